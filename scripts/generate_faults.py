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

from reasoningbank.sparql import EndpointConfig, OxigraphServer


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "scene"
        folder.mkdir()
        data = folder / "trees.ttl"
        data.write_text(conftest.TREES, encoding="utf-8")
        with OxigraphServer([data], timeout_s=10) as server:
            trees = EndpointConfig(
                "https://trees.example/sparql/",
                "Trees",
                "The Forest",
                prefixes={"t": "http://e/"},
                query_url=server.url,
                retries=0,
            )
            scene = Scene(trees, folder)
            try:
                page = render(lambda fault: observe(fault, scene))
            finally:
                scene.close()
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE}: {page.count(chr(10) + '| ') - 11} faults")


if __name__ == "__main__":
    main()
