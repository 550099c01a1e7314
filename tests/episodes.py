"""Episodes with a scripted model, real tools and the real sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from forest import write_forest

from reasoningbank.agents import Budget, Episode, Meter
from reasoningbank.agents.sandbox.interpreter import Sandbox
from reasoningbank.corpus import Pack
from reasoningbank.lm import UsageCounter
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools
from reasoningbank.trajectory import Recorder


class KeptSandbox(Sandbox):
    """Stays up when an agent shuts it down: Pyodide takes seconds to start."""

    def shutdown(self) -> None:
        return None

    def end(self) -> None:
        super().shutdown()


@pytest.fixture(scope="session")
def kept_sandbox() -> Iterator[KeptSandbox]:
    box = KeptSandbox()
    yield box
    box.end()


@pytest.fixture(scope="session")
def forest(tmp_path_factory: pytest.TempPathFactory, trees_file: Path) -> Pack:
    """A pack of the four plants, with patterns, rules and examples in groups."""
    return write_forest(tmp_path_factory.mktemp("forest") / "trees", trees_file.read_text("utf-8"))


@pytest.fixture
def episode(trees: EndpointConfig, kept_sandbox: KeptSandbox) -> Iterator[Callable[..., Episode]]:
    """Return what makes an episode: replies of the scripted model, a budget, an endpoint."""
    opened: list[SPARQLTools] = []

    def make(
        *replies: dict[str, str],
        endpoint: EndpointConfig = trees,
        context: str = "",
        lm: Any = None,
        pack: Pack | None = None,
        hidden: frozenset[str] = frozenset(),
        **limits: Any,
    ) -> Episode:
        recorder = Recorder()
        counter = UsageCounter(recorder)
        meter = Meter(Budget(**limits), lambda: counter.usage)
        tools = SPARQLTools(endpoint)
        opened.append(tools)
        return Episode(
            endpoint=endpoint,
            tools=meter.metered(tools.as_dspy_tools()),
            lm=lm or DummyLM(list(replies)),
            recorder=recorder,
            meter=meter,
            context=context,
            sandbox=lambda: kept_sandbox,
            callbacks=[counter],
            pack=pack,
            hidden=hidden,
        )

    yield make
    for tools in opened:
        tools.close()
