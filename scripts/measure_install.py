"""Print the megabytes that each extra takes on disk, bytecode included, with all it requires.

Run it with the Python of an environment into which `reasoningbank[all]` was installed by pip.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

NAME = "reasoningbank"


def closure(extras: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return what the package requires with these extras: installed distributions, and others."""
    found: dict[str, set[str]] = {}
    missing = set()
    todo = [(NAME, {"", *extras})]
    while todo:
        name, wanted = todo.pop()
        if name in found and wanted <= found[name]:
            continue
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            missing.add(name)
            continue
        found[name] = found.get(name, set()) | wanted
        for requirement in map(Requirement, requires):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": one}) for one in found[name]):
                other = re.sub(r"[-_.]+", "-", requirement.name).lower()
                todo.append((other, {"", *requirement.extras}))
    return set(found), missing


def megabytes(names: Iterable[str]) -> float:
    """Return what the files of distributions take on disk."""
    files = (file for name in names for file in distribution(name).files or ())
    paths = {Path(str(file.locate())) for file in files}
    return sum(path.stat().st_blocks * 512 for path in paths if path.exists()) / 1e6


def main() -> None:
    """Print one line per extra."""
    base = megabytes(closure(())[0])
    print(f"{NAME}: {base:.0f}")
    for extra in distribution(NAME).metadata.get_all("Provides-Extra") or ():
        found, missing = closure((extra,))
        whole = megabytes(found)
        more = f"{whole:.0f} (+ {whole - base:.0f})"
        print(f"[{extra}]: {'not installed: ' + ', '.join(sorted(missing)) if missing else more}")


if __name__ == "__main__":
    main()
