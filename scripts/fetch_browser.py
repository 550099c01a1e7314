"""Find a headless Chromium for the report's tests, or bring Debian's into the cache folder.

`python scripts/fetch_browser.py` uses an installed Chromium or Chrome where there is one.
Otherwise it asks apt for Debian's `chromium-headless-shell` and what it lacks on this machine,
unpacks them under `chromium` in the cache (``REASONINGBANK_CACHE``, or the user's cache folder)
without installing anything, and starts the program once; no root needed. The exit status is 1
where none could be had; the tests that need it are skipped then, and say so.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from debian import NotHad, library_folders, run, unpack

from reasoningbank.cache import cache_dir

PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
INSTALLED = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome", "chrome")
PROGRAM = "usr/lib/chromium/chromium-headless-shell"

#: Starts the unpacked program with its own libraries and with fonts, wherever the folder lies.
STARTER = """#!/bin/sh
root=$(cd "$(dirname "$0")" && pwd)
LD_LIBRARY_PATH="{libraries}"
FONTCONFIG_FILE="$root/fonts.conf"
export LD_LIBRARY_PATH FONTCONFIG_FILE
exec "$root/{program}" "$@"
"""

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir prefix="relative">usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <match><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match>
  <selectfont><rejectfont>
    <pattern><patelt name="family"><string>DejaVu Serif</string></patelt></pattern>
    <pattern><patelt name="family"><string>DejaVu Math TeX Gyre</string></patelt></pattern>
  </rejectfont></selectfont>
</fontconfig>
"""


def fetched(root: Path | None = None) -> Path:
    """Return where the fetched program's starter is, whether or not it is there yet."""
    return (root or cache_dir() / "chromium") / "chromium"


def find() -> Path | None:
    """Return a Chromium to start: an installed one, else the fetched one, else None."""
    for name in INSTALLED:
        found = shutil.which(name)
        if found and works(Path(found)):
            return Path(found)
    starter = fetched()
    return starter if starter.exists() and works(starter) else None


def works(program: Path) -> bool:
    """Return whether a browser starts and shows a page."""
    try:
        return "<p>ready</p>" in probe(program)
    except (NotHad, OSError):
        return False


def probe(program: Path) -> str:
    """Open a small page without a window and return what the browser made of it."""
    page = "data:text/html,<p>ready</p>"
    with tempfile.TemporaryDirectory() as profile:
        command = [str(program), "--headless", "--no-sandbox", "--disable-gpu"]
        command += [f"--user-data-dir={profile}", "--dump-dom", page]
        return run(command, Path(profile))


def start(root: Path) -> None:
    """Write the starter beside the unpacked program and try it."""
    if not (root / PROGRAM).exists():
        raise NotHad(f"the package brought no {PROGRAM}")
    folders = library_folders(root)
    # Some packages keep their libraries one folder further down (libpulsecommon, for one).
    folders += [sub for folder in folders for sub in sorted(folder.iterdir()) if holds_library(sub)]
    libraries = ":".join(f"$root/{folder.relative_to(root)}" for folder in folders)
    (root / "fonts.conf").write_text(FONTS)
    starter = fetched(root)
    starter.write_text(STARTER.format(libraries=libraries, program=PROGRAM))
    starter.chmod(0o755)
    if "<p>ready</p>" not in probe(starter):
        raise NotHad("the program starts, but shows no page")


def holds_library(folder: Path) -> bool:
    """Return whether a folder has a shared library right in it."""
    return folder.is_dir() and any(folder.glob("*.so*"))


def main() -> int:
    """Fetch one unless it is there; say in one line how it ended."""
    try:
        found = find()
        if found is not None:
            print(f"Chromium is there: {found}")
            return 0
        unpack(PACKAGES, cache_dir() / "chromium", start)
        print(f"Chromium fetched: {fetched()}")
    except (NotHad, OSError) as error:
        print(f"Chromium cannot be had, tests with it are skipped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
