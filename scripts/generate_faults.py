"""Act every fault of `tests/faults` out and write what came of it to `docs/faults.md`.

Run `python scripts/generate_faults.py` after a message changed; the tests compare.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import conftest
from faults.page import PAGE, render
from faults.scene import Scene, observe


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "scene"
        folder.mkdir()
        with conftest.serving_trees(folder / "trees.ttl") as trees:
            scene = Scene(trees, folder)
            try:
                page = render(lambda fault: observe(fault, scene))
            finally:
                scene.close()
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE}: {page.count(chr(10) + '| ') - 11} faults")


if __name__ == "__main__":
    main()
