"""Bring Debian's Virtuoso 7, the tests' second engine, into the cache folder; no root needed.

`python scripts/fetch_virtuoso.py` asks apt for the package and what it lacks on this machine,
unpacks them under `virtuoso` in the cache (``REASONINGBANK_CACHE``, or the user's cache folder)
and starts the program once. Where it is already there, nothing happens. The exit status is 1
where it could not be had; the tests that need it are skipped then, and say so.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

from debian import NotHad, library_folders, unpack

from reasoningbank.cache import cache_dir

PACKAGE = "virtuoso-opensource-7-bin"
PROGRAM = "usr/bin/virtuoso-t"


def version(root: Path) -> str:
    """Start the program, for its version alone."""
    libraries = os.pathsep.join(map(str, library_folders(root)))
    # It prints its usage and fails, as it should.
    said = subprocess.run(
        [str(root / PROGRAM), "-?"],
        env={**os.environ, "LD_LIBRARY_PATH": libraries},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in (said.stdout + said.stderr).splitlines():
        if line.startswith("Version"):
            return line.split(" as of ")[0]
    raise NotHad(f"the program does not start: {(said.stderr or said.stdout).strip()[:200]}")


def main() -> int:
    """Fetch it unless it is there; say in one line how it ended."""
    root = cache_dir() / "virtuoso"
    try:
        with contextlib.suppress(NotHad, OSError):
            print(f"Virtuoso is there: {version(root)}, {root}")
            return 0
        unpack([PACKAGE], root, version)
        print(f"Virtuoso fetched: {version(root)}, {root}")
    except (NotHad, OSError) as error:
        print(f"Virtuoso cannot be had, tests with it are skipped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
