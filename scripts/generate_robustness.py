"""Act every fault of `tests/faults_of_runs` out and write what came of it to `docs/robustness.md`.

Run `python scripts/generate_robustness.py` after a message changed; the tests compare. It takes
about a minute on a machine at rest.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import conftest
from faults_of_runs.page import PAGE, render
from faults_of_runs.theatre import Theatre


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "scene"
        folder.mkdir()
        with (
            conftest.serving_trees(folder / "trees.ttl") as trees,
            Theatre(folder, trees) as theatre,
        ):
            page = render(theatre.seen, theatre.ending)
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE}: {page.count(chr(10) + '| ')} rows")


if __name__ == "__main__":
    main()
