"""Bring Debian's Virtuoso 7, the tests' second engine, into the cache folder; no root needed.

`python scripts/fetch_virtuoso.py` asks apt for the package and what it lacks on this machine,
unpacks them under `virtuoso` in the cache (``REASONINGBANK_CACHE``, or the user's cache folder)
and starts the program once. Where it is already there, nothing happens. The exit status is 1
where it could not be had; the tests that need it are skipped then, and say so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from reasoningbank.cache import cache_dir

PACKAGE = "virtuoso-opensource-7-bin"
PROGRAM = "usr/bin/virtuoso-t"
LIBRARIES = ("usr/lib", "lib")


class NotHad(Exception):  # noqa: N818 - an outcome, told in one line
    """It could not be had, for the reason given."""


def run(command: Sequence[str], folder: Path, **environment: str) -> str:
    """Run a command and return what it says."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
        raise NotHad(f"{Path(command[0]).name} {command[-1]}: {last}")
    return done.stdout


def library_path(root: Path) -> str:
    """Return the folders of the unpacked libraries, as the dynamic linker wants them."""
    found = [sub for name in LIBRARIES for sub in sorted((root / name).glob("*-linux-*"))]
    return os.pathsep.join(str(folder) for folder in found)


def version(root: Path) -> str:
    """Start the program, for its version alone."""
    # It prints its usage and fails, as it should.
    said = subprocess.run(
        [str(root / PROGRAM), "-?"],
        env={**os.environ, "LD_LIBRARY_PATH": library_path(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in (said.stdout + said.stderr).splitlines():
        if line.startswith("Version"):
            return line.split(" as of ")[0]
    raise NotHad(f"the program does not start: {(said.stderr or said.stdout).strip()[:200]}")


def fetch(root: Path) -> None:
    """Download and unpack the packages that this machine does not have installed."""
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NotHad(f"there is no {tool} on this machine")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".virtuoso-") as name:
        folder = Path(name)
        # Lists and caches of our own: those of the machine may be empty, and are root's.
        for sub in ("lists/partial", "cache/archives/partial", "unpacked"):
            (folder / sub).mkdir(parents=True)
        apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={folder / 'lists'}"]
        apt += ["-o", f"Dir::Cache={folder / 'cache'}", "-o", "Debug::NoLocking=1"]
        apt += ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
        run([*apt, "update"], folder)
        plan = run([*apt, "--no-install-recommends", "--simulate", "install", PACKAGE], folder)
        names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
        # An installed package is not in the plan; what it brought is where the system has it.
        run([*apt, "download", *dict.fromkeys([*names, PACKAGE])], folder)
        for package in sorted(folder.glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(folder / "unpacked")], folder)
        version(folder / "unpacked")
        shutil.rmtree(root, ignore_errors=True)
        (folder / "unpacked").rename(root)


def main() -> int:
    """Fetch it unless it is there; say in one line how it ended."""
    root = cache_dir() / "virtuoso"
    try:
        with contextlib.suppress(NotHad, OSError):
            print(f"Virtuoso is there: {version(root)}, {root}")
            return 0
        fetch(root)
        print(f"Virtuoso fetched: {version(root)}, {root}")
    except (NotHad, OSError) as error:
        print(f"Virtuoso cannot be had, tests with it are skipped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
