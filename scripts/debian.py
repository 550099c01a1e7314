"""Debian packages unpacked into a folder, without root and without installing anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

LIBRARIES = ("usr/lib", "lib")


class NotHad(Exception):  # noqa: N818 - an outcome, reported in one line
    """It could not be had, for the reason given."""


def run(command: Sequence[str], folder: Path) -> str:
    """Run a command and return what it says."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
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


def unpack(packages: Sequence[str], root: Path, check: Callable[[Path], object]) -> None:
    """Download packages and what they lack on this machine, and unpack them under `root`.

    Args:
        packages: Their names.
        root: The folder; what it held is gone afterwards.
        check: Given the unpacked folder, raises `NotHad` if it is of no use; `root` is left as
            it is then.

    Raises:
        NotHad: If they cannot be had.
    """
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise NotHad(f"there is no {tool} on this machine")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=f".{root.name}-") as name:
        folder = Path(name)
        # Lists and caches of our own: those of the machine may be empty, and are root's.
        for sub in ("lists/partial", "cache/archives/partial", "unpacked"):
            (folder / sub).mkdir(parents=True)
        apt = ["apt-get", "-qq", "-o", f"Dir::State::lists={folder / 'lists'}"]
        apt += ["-o", f"Dir::Cache={folder / 'cache'}", "-o", "Debug::NoLocking=1"]
        apt += ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
        run([*apt, "update"], folder)
        plan = run([*apt, "--no-install-recommends", "--simulate", "install", *packages], folder)
        names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
        # An installed package is not in the plan; what it brought is where the system has it.
        run([*apt, "download", *dict.fromkeys([*names, *packages])], folder)
        unpacked = folder / "unpacked"
        for package in sorted(folder.glob("*.deb")):
            run(["dpkg-deb", "--extract", str(package), str(unpacked)], folder)
        check(unpacked)
        shutil.rmtree(root, ignore_errors=True)
        unpacked.rename(root)


def library_folders(root: Path) -> list[Path]:
    """Return the folders of the unpacked libraries."""
    return [sub for name in LIBRARIES for sub in sorted((root / name).glob("*-linux-*"))]
