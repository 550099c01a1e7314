"""The server of the page: its routes, and work in threads whose events are streamed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from jinja2 import ChoiceLoader, PackageLoader
from pydantic import BaseModel
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from reasoningbank.analysis.report import environment, scale
from reasoningbank.corpus import known_packs
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.experiment import memory_sources
from reasoningbank.http import listening
from reasoningbank.lm import CATALOGUE
from reasoningbank.memory import MemoryBank
from reasoningbank.sparql import is_loopback
from reasoningbank.version import __version__
from reasoningbank.web import chat
from reasoningbank.web.answers import Answers, Asked, Emit, agents_of, example_questions
from reasoningbank.web.guard import Guard, body_of
from reasoningbank.web.runs import LiveRun, RunShelf, trial_place

logger = logging.getLogger(__name__)

#: Seconds between looks at a run that is going on.
LOOK_S = 1.0
#: Seconds for open requests when the server stops.
GRACE_S = 2
#: Items that a search finds, and changes that are shown.
MOST_FOUND, MOST_CHANGES = 10, 20
#: Packages with templates, styles and scripts; those of the report are shared.
_PAGES = ("reasoningbank.web", "reasoningbank.analysis.report")
#: Errors that mean that an address is wrong.
_MISSING = ("no-run", "no-memory", "no-page", "unknown-item", "model_not_found")

Work = Callable[[Emit, threading.Event], None]
Events = AsyncIterator[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class PageSettings:
    """What the page offers."""

    default: Asked = field(default_factory=Asked)  #: What answers unless the reader chooses
    runs: tuple[Path, ...] = ()  #: Folders of runs
    banks: tuple[Path, ...] = ()  #: Bank files
    feedback: Path = Path("feedback")  #: The folder of verdicts
    token: str = ""  #: What readers must know; empty on loopback


class _Rating(BaseModel):
    id: str
    good: bool


class _BankChange(BaseModel):
    """What to do with a bank: retire an item, undo a change, or else learn from feedback."""

    retire: str = ""
    reason: str = "retired by hand"
    undo: int | None = None


def make_app(settings: PageSettings) -> Guard:
    """Return the application; what it opens is closed at its shutdown."""
    site = Site(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(site.close)

    routes = [
        Route("/", site.ask_page),
        Route("/runs", site.runs_page),
        Route("/compare", site.compare_page),
        Route("/runs/{name}", site.report),
        Route("/runs/{name}/live", site.live_page),
        Route("/memory", site.memory_page),
        Route("/memory/{name}", site.bank_page),
        Route("/memory/{name}/{item}", site.item_page),
        Mount("/static", StaticFiles(packages=[(package, "page") for package in _PAGES])),
        Route("/api/examples", site.examples),
        Route("/api/runs/{name}", site.live),
        Route("/api/ask", site.ask, methods=["POST"]),
        Route("/api/query", site.query, methods=["POST"]),
        Route("/api/feedback", site.rate, methods=["POST"]),
        Route("/api/memory/{name}", site.change_bank, methods=["POST"]),
        Route("/v1/models", site.models),
        Route("/v1/chat/completions", site.complete, methods=["POST"]),
    ]
    handlers = {404: site.missing, ReasoningBankError: site.failed, Exception: site.failed}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    return Guard(app, settings.token)


class Site:
    """The pages and actions, one method a route."""

    def __init__(self, settings: PageSettings) -> None:
        self._settings = settings
        self._runs = RunShelf(settings.runs, settings.banks)
        agents = agents_of(settings.default)
        self._answers = Answers(settings.feedback, self._runs.bank, agents)
        # Parts, filters and escaping are those of the static report.
        self._templates = environment()
        self._templates.loader = ChoiceLoader([PackageLoader(one, "page") for one in _PAGES])
        self._templates.filters["place"] = trial_place
        self._templates.globals["version"] = __version__

    def close(self) -> None:
        """Close what answers, and remove the reports."""
        self._answers.close()
        self._runs.close()

    def failed(self, request: Request, error: Exception) -> Response:
        finding, status = _finding(error), _status(error)
        path = request.url.path
        if path.startswith("/v1/"):
            return JSONResponse({"error": chat.error_body(finding)}, status)
        if path.startswith("/api/"):
            return JSONResponse({"error": finding}, status)
        return self._page("message.html", status, line=finding["text"])

    def missing(self, request: Request, _: Exception) -> Response:
        where = request.url.path
        error = UsageError("there is no such page", where=where, code="no-page")
        return self.failed(request, error)

    def _page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(**values), status)

    def ask_page(self, request: Request) -> Response:
        default = self._settings.default
        return self._page(
            "ask.html",
            default=default,
            packs=list(dict.fromkeys((default.pack, *known_packs()))),
            agents=agents_of(default),
            models=list(dict.fromkeys((default.lm, *CATALOGUE))),
            memories=list(self._runs.banks()),
            question=request.query_params.get("q", "")[:2_000],
        )

    def examples(self, request: Request) -> Response:
        pack = request.query_params.get("pack", "")
        return _json(example_questions(pack) if pack else [])

    async def ask(self, request: Request) -> Response:
        return EventSourceResponse(_as_sse(self._asking(await body_of(request, Asked))))

    async def query(self, request: Request) -> Response:
        asked = await body_of(request, Asked)
        return _json(await run_in_threadpool(self._answers.run, asked))

    async def rate(self, request: Request) -> Response:
        rating = await body_of(request, _Rating)
        path = await run_in_threadpool(self._answers.rate, rating.id, rating.good)
        return JSONResponse({"said": f"kept in {path}"})

    def models(self, _: Request) -> Response:
        names = chat.model_names(self._settings.default)
        found = [{"id": n, "object": "model", "created": 0, "owned_by": "local"} for n in names]
        return JSONResponse({"object": "list", "data": found})

    async def complete(self, request: Request) -> Response:
        wanted = await body_of(request, chat.ChatRequest)
        asked = chat.question_of(wanted, self._settings.default)
        model = wanted.model or f"{asked.agent}/{asked.pack}"
        if wanted.stream:
            parts = chat.chunks(self._asking(asked), secrets.token_hex(6), model)
            return EventSourceResponse(parts)
        never = threading.Event()
        answer = await run_in_threadpool(self._answers.ask, asked, lambda *_: None, never)
        return _json(chat.completion(answer, model))

    def _asking(self, asked: Asked) -> Events:
        return streamed(lambda emit, stop: emit("answer", self._answers.ask(asked, emit, stop)))

    def runs_page(self, _: Request) -> Response:
        return self._page("runs.html", runs=self._runs.listed(), folders=self._settings.runs)

    def report(self, request: Request) -> Response:
        path = self._runs.report(request.path_params["name"])
        # The page's own policy, in its head, allows its scripts by their hashes.
        policy = {"content-security-policy": "frame-ancestors 'none'"}
        return FileResponse(path, media_type="text/html", headers=policy)

    def compare_page(self, request: Request) -> Response:
        first, second = (request.query_params.get(name, "") for name in ("first", "second"))
        shown: dict[str, Any] = {"runs": self._runs.listed(), "first": first, "second": second}
        if not (first or second):
            return self._page("compare.html", **shown)
        try:
            found = self._runs.compared(first, second)
        except ReasoningBankError as error:
            return self._page("compare.html", _status(error), problem=str(error), **shown)
        pairs = list(zip(found.comparisons, found.differing, strict=True))
        most = scale(found.comparisons)
        return self._page("compare.html", found=found, pairs=pairs, most=most, **shown)

    def live_page(self, request: Request) -> Response:
        name = request.path_params["name"]
        experiment = self._runs.run(name).require_manifest().get("experiment") or {}
        return self._page("live.html", name=name, experiment=experiment)

    async def live(self, request: Request) -> Response:
        follow = LiveRun(self._runs.run(request.path_params["name"]))

        def work(emit: Emit, stop: threading.Event) -> None:
            while not stop.is_set():
                for name, data in follow.news():
                    emit(name, data)
                    if name == "end":
                        return
                stop.wait(LOOK_S)

        return EventSourceResponse(_as_sse(streamed(work)))

    def memory_page(self, _: Request) -> Response:
        banks, feedback = self._runs.banks(), self._settings.feedback
        return self._page("memory.html", banks=banks, feedback=feedback)

    def bank_page(self, request: Request) -> Response:
        query = request.query_params.get("q", "")[:2_000]
        status, name = request.query_params.get("status", "active"), request.path_params["name"]
        with memory_sources.opened(*self._runs.bank(name)) as bank:
            every = [(item, None) for item in bank.items(status=None)]
            found = [(i, m.score) for i, m in bank.match(query, MOST_FOUND)]
            shown = [one for one in every if status in (one[0].status, "all")]
            return self._page(
                "bank.html",
                items=found if query.strip() else shown,
                changes=bank.history()[: -MOST_CHANGES - 1 : -1],
                feedback=len(memory_sources.read_feedback(self._settings.feedback)),
                **self._bank(name) | {"query": query, "wanted": status},
            )

    def item_page(self, request: Request) -> Response:
        name, wanted = request.path_params.values()
        with memory_sources.opened(*self._runs.bank(name)) as bank:
            item = bank.get(wanted)
            changes = bank.history(item.id)[::-1]
        return self._page("item.html", item=item, changes=changes, **self._bank(name))

    async def change_bank(self, request: Request) -> Response:
        wanted, name = await body_of(request, _BankChange), request.path_params["name"]

        def changed() -> str:
            with MemoryBank(memory_sources.bank_file(self._runs.bank(name)[0])) as bank:
                if wanted.retire:
                    bank.retire(wanted.retire, reason=wanted.reason)
                    return f"retired {wanted.retire}"
                if wanted.undo is not None:
                    return f"undid change {wanted.undo} ({bank.undo(wanted.undo).item_id})"
                found = memory_sources.read_feedback(self._settings.feedback)
                learned = memory_sources.learn_feedback(bank, found)
                added, known, rejected = map(len, learned)
                return f"{added} added, {known} known, {rejected} not learned"

        return JSONResponse({"said": await run_in_threadpool(changed)})

    def _bank(self, name: str) -> dict[str, Any]:
        return {"name": name, "can_change": memory_sources.is_bank(self._runs.bank(name)[0])}


def _finding(error: Exception) -> dict[str, str]:
    """Return an error as code and text; an unexpected one is logged."""
    if isinstance(error, ReasoningBankError):
        return {"code": error.code, "text": str(error)}
    logger.error("a request failed", exc_info=error)
    return {"code": "bug", "text": f"the server failed ({type(error).__name__}); see its log"}


def _status(error: Exception) -> int:
    if not isinstance(error, ReasoningBankError):
        return 500
    known = 400 if isinstance(error, UsageError) else 502
    return 404 if error.code in _MISSING else known


async def streamed(work: Work) -> Events:
    """Do work in a thread and yield what it emits; when nobody listens any more, stop it."""
    loop, stop = asyncio.get_running_loop(), threading.Event()
    queue: asyncio.Queue[tuple[str, Mapping[str, Any]] | None] = asyncio.Queue()

    def put(event: tuple[str, Mapping[str, Any]] | None) -> None:
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(queue.put_nowait, event)

    def run() -> None:
        try:
            work(lambda name, data: put((name, data)), stop)
        except Exception as error:
            put(("error", _finding(error)))
        finally:
            put(None)

    threading.Thread(target=run, name="streamed", daemon=True).start()
    try:
        while (event := await queue.get()) is not None:
            yield event
    finally:
        stop.set()


async def _as_sse(events: Events) -> AsyncIterator[dict[str, str]]:
    async for name, data in events:
        yield {"event": name, "data": json.dumps(data, default=str)}


def _json(data: Any) -> Response:
    return Response(json.dumps(data, default=str), media_type="application/json")


def serve_page(
    settings: PageSettings, host: str, port: int, on_ready: Callable[[str], None]
) -> None:
    """Serve the page until a signal; `on_ready` is called with its address.

    Raises:
        UsageError: If others can reach the host and no token is set.
        SetupError: If the port is not free.
    """
    if not is_loopback(host) and not settings.token:
        hint = "set a token, or listen on 127.0.0.1"
        raise UsageError("others can reach this address", where=host, hint=hint, code="no-token")
    hint = "choose another --port, or 0 for any"
    with listening(host, port, f"{host}:{port}", hint) as bound:
        name = f"[{host}]" if ":" in host else host
        query = f"?token={settings.token}" if settings.token else ""
        on_ready(f"http://{name}:{bound.getsockname()[1]}/{query}")
        app = make_app(settings)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=GRACE_S)
        uvicorn.Server(config).run([bound])
