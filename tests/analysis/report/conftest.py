"""The report of a run written by hand, and a real browser to show it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import fetch_browser
import pytest

from reasoningbank.analysis.report import Report, write_report
from reasoningbank.experiment import RunFolder

from .handmade import HOSTILE, ITEM, MANIFEST, records


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The run on disk, with a memory snapshot and a damaged trial file."""
    folder = RunFolder(tmp_path_factory.mktemp("report") / "trees")
    folder.write_manifest(MANIFEST)
    for made in records():
        folder.write(made)
    broken = folder.path / "trials" / "first" / "d_task.0.json"
    broken.write_text('{"key": {"arm": "first", "ta', encoding="utf-8")
    (folder.path / "memory").mkdir()
    other = {**ITEM, "id": "m2", "title": HOSTILE, "content": HOSTILE, "src": "failure"}
    for snapshot, items in (("s1", [ITEM]), ("s2", [ITEM, other])):
        lines = "\n".join(json.dumps(item) for item in items)
        (folder.path / "memory" / f"{snapshot}.jsonl").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def report(run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Its report."""
    return write_report(run, tmp_path_factory.mktemp("page") / "report.html")


# Not for the whole session: while it runs, no other test of this process may start an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real headless Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = fetch_browser.find()
    if program is None:
        pytest.skip("no Chromium here: run scripts/fetch_browser.py")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(program))
        yield chromium
        chromium.close()


class Visit:
    """A page that is open, and all that it said and asked for."""

    def __init__(self, browser: Any, report: Report, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.address = report.path.as_uri()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def go(self, place: str = "") -> Any:
        """Open a place of the page anew, and wait until it can be used."""
        self.page.goto("about:blank")
        self.page.goto(self.address + place)
        self.page.wait_for_selector("html.ready")
        return self.page


@pytest.fixture
def visit(browser: Any, report: Report) -> Iterator[Any]:
    """Open the report; afterwards it must have had nothing to complain of and asked nobody."""
    visits = []

    def open_page(place: str = "", of: Report = report, **settings: Any) -> Any:
        visits.append(Visit(browser, of, **settings))
        return visits[-1].go(place)

    yield open_page
    for made in visits:
        made.context.close()
        assert made.said == []
        assert {address.split("#")[0] for address in made.asked} <= {
            made.address,
            "about:blank",
            "data:,",
        }
