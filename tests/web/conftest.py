"""The page on loopback, over a small pack's real endpoint, with a scripted model behind it."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import fetch_browser
import httpx
import pytest
import uvicorn
from analysis.report.handmade import MANIFEST, records
from forest import write_forest
from lm.scripted import Reply, ScriptedServer, chat, scripted

from reasoningbank.corpus import Pack
from reasoningbank.experiment import RunFolder
from reasoningbank.memory import Counters, MemoryBank, MemoryItem, Provenance
from reasoningbank.web import PageSettings, make_app
from reasoningbank.web.answers import Asked

QUESTION = "Which plants near the pine are trees, and how tall are they?"
QUERY = "SELECT ?plant ?metres WHERE { ?plant a t:Tree ; t:height ?metres }"
EMPTY = "SELECT ?plant WHERE { ?plant a t:Moss ; t:near ?other }"
LM = "openai/scripted"


def written(sparql: str) -> Reply:
    """Return the reply of a model that writes a query."""
    return chat(f"[[ ## sparql ## ]]\n{sparql}\n\n[[ ## completed ## ]]")


def rewritten(question: str) -> Reply:
    """Return the reply of a model that rewrites a follow-up."""
    return chat(question)


@dataclass
class Page:
    """The server as a browser finds it, and what is behind it."""

    url: str
    model: ScriptedServer
    folder: Path
    settings: PageSettings

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.folder / "runs" / "trees")

    @property
    def bank(self) -> Path:
        return self.folder / "bank.sqlite"

    def script(self, *replies: Reply) -> None:
        """Have the model give these replies from now on, the last one again and again."""
        self.model.asked.clear()
        self.model.replies[:] = replies

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return httpx.post(self.url + path, json=body, headers=headers, timeout=60)

    def asked(self, path: str = "/api/ask", **changes: Any) -> list[tuple[str, Any]]:
        """Return the events of a streamed answer."""
        body = {"pack": self.settings.default.pack, "lm": LM, "question": QUESTION, **changes}
        return events_of(self.post(path, body).text)


def events_of(text: str) -> list[tuple[str, Any]]:
    """Return the events of a stream: name and data."""
    found = []
    for block in text.replace("\r", "").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "data" in fields and "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


@contextlib.contextmanager
def serving(settings: PageSettings) -> Iterator[str]:
    """Serve the page in a thread; yields its address."""
    config = uvicorn.Config(
        make_app(settings), port=0, log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


def write_bank(path: Path) -> list[str]:
    """Write a bank of two items, and return their ids."""
    trees = MemoryItem(
        "Trees by kind",
        "For questions on kinds of plants.",
        "Use the class t:Tree.",
        "success",
        pattern="SELECT ?plant WHERE { ?plant a t:Tree }",
        provenance=Provenance(task="trees", corpus="trees", trial="direct/trees.0"),
        counters=Counters(4, 3, 1, 2, 1),
    )
    tall = MemoryItem("Heights in metres", "For heights.", "Use t:height.", "failure")
    with MemoryBank(path) as bank:
        return bank.add([trees, tall], reason="by hand")


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory, trees_file: Path) -> Pack:
    return write_forest(tmp_path_factory.mktemp("web") / "trees", trees_file.read_text("utf-8"))


@pytest.fixture(scope="module")
def page(forest: Pack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    run = RunFolder(folder / "runs" / "trees")
    run.write_manifest(MANIFEST)
    for made in records():
        run.write(made)
    write_bank(folder / "bank.sqlite")
    default = Asked(pack=str(forest.root), agent="rag", lm=LM)
    settings = PageSettings(
        default, (folder / "runs",), (folder / "bank.sqlite",), folder / "feedback"
    )
    with scripted(written(QUERY)) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "scripted-key")
        patch.setenv("OPENAI_API_BASE", model.base)
        patch.setenv("REASONINGBANK_CACHE", str(tmp_path_factory.mktemp("cache")))
        with serving(settings) as url:
            yield Page(url, model, folder, settings)


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


def elsewhere(address: str, url: str) -> list[str]:
    """Return an address if it is not one of the page."""
    return [] if address.startswith((url, "data:", "about:")) else [address]


@pytest.fixture
def visit(browser: Any, page: Page) -> Iterator[Any]:
    """Open an address of the page; afterwards the browser must have had nothing to complain of."""
    contexts, said = [], []

    def open_page(path: str = "/", url: str = page.url, **settings: Any) -> Any:
        context = browser.new_context(**settings)
        context.set_default_timeout(120_000)
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda asked: said.extend(elsewhere(asked.url, url)))
        opened.goto(url + path)
        opened.wait_for_selector("html.ready")
        return opened

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
