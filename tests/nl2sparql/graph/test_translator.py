"""The graph for people and programs: translate, stream, resume; its models and its picture."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from reasoningbank.corpus import Pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.nl2sparql import (
    translator,
)
from reasoningbank.nl2sparql import translator as module
from reasoningbank.nl2sparql.graph import families_of, mermaid_picture, save_picture
from reasoningbank.nl2sparql.hints import Pattern, PatternSet
from reasoningbank.nl2sparql.nodes import GraphSettings, NL2SPARQLState
from reasoningbank.nl2sparql.translator import (
    NL2SPARQLAgent,
    Tiers,
    open_saver,
    open_tiers,
    tiers_for,
)
from reasoningbank.sparql import EndpointConfig

from .replies import BROKEN, EMPTY, QUERY, QUESTION, analysis, verified, written

Make = Callable[..., NL2SPARQLAgent]
SOUND = (analysis("KIND"), written(QUERY), verified())
FAILING = (analysis("KIND"), written(BROKEN), written(EMPTY), written(QUERY), verified())
SECRET = "sk-never-to-be-stored"


@contextlib.contextmanager
def refused(code: str) -> Iterator[None]:
    """Check that the block raises a UsageError with a code."""
    with pytest.raises(UsageError) as caught:
        yield
    assert caught.value.code == code


@pytest.fixture
def agent(forest: Pack, trees: EndpointConfig) -> Iterator[Make]:
    opened: list[NL2SPARQLAgent] = []

    def make(*replies: dict[str, str], **options: Any) -> NL2SPARQLAgent:
        lm = DummyLM(list(replies))
        options = {"pack": forest, "endpoint": trees, "lms": (lm, lm)} | options
        opened.append(NL2SPARQLAgent(**options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_a_translation_says_what_came_and_why(agent: Make) -> None:
    found = agent(*SOUND).translate(QUESTION)
    assert (found.sparql, found.is_valid, found.errors) == (QUERY, True, ())
    assert (found.attempts, found.result_count, found.refinement_history) == (1, 3, ())
    assert found.confidence is None
    assert 0.5 < found.score <= 1.0
    assert not found.calibrated
    assert "KIND" in found.explanation
    assert "3 rows" in found.explanation
    assert (found.usage.lm_calls, found.usage.tool_calls) == (3, 1)


def test_streamed_the_history_accumulates(agent: Make) -> None:
    seen = list(agent(*FAILING).stream(QUESTION))
    assert [name for name, _ in seen] == [
        "analyze", "plan", "retrieve", "generate", "execute", "verify", "refine",
        "retrieve", "generate", "execute", "verify", "explore",
        "generate", "execute", "verify", "output",
    ]  # fmt: skip
    lengths = [len(state["refinement_history"]) for _, state in seen]
    assert lengths == [0] * 6 + [1] * 5 + [2] * 5
    last = seen[-1][1]
    assert [one["step"] for one in last["refinement_history"]] == ["refine", "explore"]
    assert [one["sparql"] for one in last["refinement_history"]] == [BROKEN, EMPTY]
    assert (last["final_sparql"], last["generation_attempts"]) == (QUERY, 3)


def test_streams_side_by_side_leave_the_callers_settings_and_each_others_counts(
    agent: Make,
) -> None:
    own = DummyLM([])
    lms = DummyLM(list(SOUND)), DummyLM(list(FAILING))
    with dspy.context(lm=own):
        runs = [agent(lms=(lm, lm)).begun(QUESTION) for lm in lms]
        for steps in zip_longest(*(run.steps() for run in runs)):
            assert dspy.settings.lm is own
            assert not dspy.settings.callbacks
            assert any(steps)
    used = [run.episode.meter.usage().lm_calls for run in runs]
    assert used == [len(lm.history) for lm in lms] == [len(SOUND), len(FAILING)]


def test_the_asynchronous_forms_do_the_same(agent: Make) -> None:
    async def ask() -> tuple[Any, list[str]]:
        found = await agent(*SOUND).atranslate(QUESTION)
        names = [name async for name, _ in agent(*SOUND).astream(QUESTION)]
        return found, names

    found, names = asyncio.run(ask())
    assert found.sparql == QUERY
    assert names == ["analyze", "plan", "retrieve", "generate", "execute", "verify", "output"]


def test_a_listener_who_goes_ends_the_graph(agent: Make) -> None:
    asked = agent(*SOUND)

    async def listen() -> list[str]:
        names = []
        stream = asked.astream(QUESTION)
        async for name, _ in stream:
            names.append(name)
            break
        await stream.aclose()  # type: ignore[attr-defined]
        return names

    assert asyncio.run(listen()) == ["analyze"]


def test_an_error_of_a_stream_reaches_its_listener(agent: Make) -> None:
    async def listen() -> None:
        async for _ in agent(*SOUND).astream(" "):
            pass

    with pytest.raises(UsageError, match="the question is empty"):
        asyncio.run(listen())


def test_an_unclear_question_is_asked_back_and_the_answer_used(agent: Make, tmp_path: Path) -> None:
    replies = (analysis(unclear="Which plant do you mean?"), written(QUERY), verified())
    settings = GraphSettings(human=True)
    asked = agent(*replies, settings=settings, checkpoints=tmp_path / "c.sqlite")
    waiting = asked.translate("How high is it?", thread="t")
    assert (waiting.asks, waiting.sparql) == ("Which plant do you mean?", None)
    with refused("wrong-answer"):
        asked.resume("t")
    found = asked.resume("t", "the oak")
    assert (found.sparql, found.asks) == (QUERY, "")
    prompt = found.trajectory.resolve(found.trajectory.of("lm_call")[0].data)["messages"]
    assert "How high is it? (the oak)" in str(prompt)


def test_a_clear_question_is_not_asked_back(agent: Make) -> None:
    seen = list(agent(*SOUND, settings=GraphSettings(human=True)).stream(QUESTION))
    assert [name for name, _ in seen][:3] == ["analyze", "clarify", "plan"]
    assert seen[-1][0] == "output"


KILLED = """
import os, signal, sys
from pathlib import Path
from dspy.utils import DummyLM
from reasoningbank.nl2sparql.translator import NL2SPARQLAgent
from reasoningbank.corpus import load_pack
from reasoningbank.sparql import EndpointConfig

class Deadly(DummyLM):
    def __call__(self, *args, **kwargs):
        if len(self.history) == {after}:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(*args, **kwargs)

lm = Deadly({replies!r})
config = EndpointConfig(
    "https://trees.example/sparql/", "Trees", prefixes={{"t": "http://e/"}}, query_url={url!r}
)
agent = NL2SPARQLAgent(
    api_key={secret!r}, pack={pack!r}, endpoint=config, lms=(lm, lm), checkpoints={file!r}
)
agent.translate({question!r}, thread="killed")
"""


@pytest.mark.parametrize("after", [1, 4])
def test_killed_in_the_middle_it_goes_on_from_the_checkpoint(
    agent: Make, forest: Pack, trees: EndpointConfig, tmp_path: Path, after: int
) -> None:
    file = tmp_path / "checkpoints.sqlite"
    script = textwrap.dedent(KILLED).format(
        after=after,
        replies=list(FAILING),
        url=trees.query_url,
        secret=SECRET,
        pack=str(forest.root),
        file=str(file),
        question=QUESTION,
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env=os.environ, capture_output=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2000:]
    # Only what is left is asked: calls that were answered before are not made again.
    going_on = agent(*FAILING[after:], checkpoints=file)
    found = going_on.resume("killed")
    assert (found.sparql, found.is_valid, found.attempts) == (QUERY, True, 3)
    assert [one["sparql"] for one in found.refinement_history] == [BROKEN, EMPTY]
    assert found.usage.lm_calls == len(FAILING) - after
    going_on.close()
    for kept in tmp_path.iterdir():
        assert SECRET.encode() not in kept.read_bytes()


def test_a_thread_goes_on_as_it_was_begun_or_not_at_all(
    agent: Make, forest: Pack, tmp_path: Path
) -> None:
    file = tmp_path / "c.sqlite"
    agent(*SOUND, checkpoints=file).translate(QUESTION, thread="t")
    with refused("wrong-answer"):
        agent(checkpoints=file).resume("t", "the oak")
    elsewhere = replace(forest, key="other")
    with refused("other-thread"):
        agent(checkpoints=file, pack=elsewhere).resume("t")
    unclear = (analysis(unclear="Which plant?"), *SOUND[1:])
    human = GraphSettings(human=True)
    agent(*unclear, settings=human, checkpoints=file).translate(QUESTION, thread="asks")
    with refused("other-thread"):
        agent(checkpoints=file).resume("asks", "the oak")


@pytest.mark.parametrize(
    ("question", "language"),
    [("Quali sono gli alberi della foresta?", "it"), ("Which are the trees of the forest?", "en")],
)
def test_a_question_is_in_the_language_that_it_is_asked_in(
    agent: Make, question: str, language: str
) -> None:
    states = [state for _, state in agent(*SOUND).stream(question)]
    assert states[-1]["language"] == language
    reported = [state for _, state in agent(*SOUND).stream(question, language="de")]
    assert reported[-1]["language"] == "de"


def test_a_thread_that_ended_gives_its_answer_again(agent: Make, tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    agent(*SOUND, checkpoints=file).translate(QUESTION, thread="t")
    found = agent(checkpoints=file).resume("t")
    assert (found.sparql, found.usage.lm_calls) == (QUERY, 0)


def test_threads_are_not_mixed_up(agent: Make, tmp_path: Path) -> None:
    asked = agent(*SOUND, checkpoints=tmp_path / "c.sqlite")
    first = asked.translate(QUESTION)
    assert len(first.thread) == 32
    with refused("thread-exists"):
        asked.translate(QUESTION, thread=first.thread)
    with refused("no-thread"):
        asked.resume("other")
    with refused("no-thread"):
        agent(*SOUND).resume("t")


def test_a_thread_that_exists_is_refused_before_a_model_is_opened(
    agent: Make, forest: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.sqlite"
    agent(*SOUND, checkpoints=file).translate(QUESTION, thread="t")
    opened: list[object] = []
    monkeypatch.setattr(translator, "open_tiers", lambda *given: opened.append(given))
    with (
        NL2SPARQLAgent(pack=forest, checkpoints=file) as asked,
        refused("thread-exists"),
    ):
        asked.begun(QUESTION, thread="t")
    assert not opened


def test_a_file_that_cannot_hold_checkpoints_is_reported(agent: Make, tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_text("no database, but long enough to look like one\n" * 20)
    with pytest.raises(SetupError, match="checkpoints cannot be stored there"):
        agent(*SOUND, checkpoints=tmp_path / "c.sqlite").translate(QUESTION)


def test_a_file_that_another_process_holds_is_reported_in_a_line(
    agent: Make, tmp_path: Path
) -> None:
    file = tmp_path / "c.sqlite"
    asked = agent(*SOUND, checkpoints=file)
    steps = asked.stream(QUESTION, thread="t")
    next(steps)
    asked._saver.conn.execute("PRAGMA busy_timeout = 10")
    with contextlib.closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SetupError, match="database is locked") as caught:
            list(steps)
    assert str(file) in str(caught.value)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, trees: EndpointConfig) -> list[str]:
    """What an agent opens and ends of its own, in order."""
    reported: list[str] = []

    @contextlib.contextmanager
    def endpoint(*_: object) -> Iterator[EndpointConfig]:
        reported.append("endpoint")
        yield trees
        reported.append("endpoint ended")

    def models(_: object, stack: contextlib.ExitStack, __: object) -> tuple[DummyLM, DummyLM]:
        reported.append("models")
        stack.callback(reported.append, "models ended")
        lm = DummyLM(list(SOUND))
        return lm, lm

    monkeypatch.setattr(translator, "open_endpoint", endpoint)
    monkeypatch.setattr(translator, "open_tiers", models)
    return reported


def test_what_was_ended_is_opened_anew(forest: Pack, opened: list[str]) -> None:
    asked = NL2SPARQLAgent(pack=forest)
    for _ in range(2):
        with asked:
            assert asked.translate(QUESTION).sparql == QUERY
    assert opened == ["models", "endpoint", "endpoint ended", "models ended"] * 2


def test_a_thread_is_looked_for_before_anything_is_opened(
    forest: Pack, opened: list[str], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.sqlite"
    with refused("no-file"):
        NL2SPARQLAgent(pack=forest, checkpoints=wrong).resume("t")
    assert list(tmp_path.iterdir()) == []
    with (
        refused("no-thread"),
        open_saver(tmp_path / "c.sqlite"),
        NL2SPARQLAgent(pack=forest, checkpoints=tmp_path / "c.sqlite") as asked,
    ):
        asked.resume("other")
    assert opened == []


def test_the_environments_keys_are_in_no_record(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    found = agent(analysis("KIND"), written(f"{QUERY} # {SECRET}"), verified()).translate(QUESTION)
    assert "[redacted]" in str(found.trajectory.to_json())
    assert SECRET not in str(found.trajectory.to_json())


def test_no_key_is_part_of_the_state() -> None:
    assert not {"api_key", "key"} & set(NL2SPARQLState.__annotations__)


SECRET = "sk-never-to-be-shown"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_local_model_is_both_by_default() -> None:
    assert tiers_for() == Tiers("local", "local")
    assert tiers_for("local", "local:m.gguf", fast="local-small").fast == "local-small"


def test_a_given_key_opens_hosted_models_with_no_environment() -> None:
    with contextlib.ExitStack() as stack:
        default, fast = open_tiers(tiers_for("openai"), stack, SECRET)
    assert (default.model, fast.model) == ("openai/gpt-4.1", "openai/gpt-4.1-mini")
    assert default.kwargs["api_key"] == SECRET


@pytest.mark.parametrize(
    ("provider", "model", "whole"),
    [
        ("openai", "anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("openai", "openrouter/anthropic/claude", "openrouter/anthropic/claude"),
        ("openai", "local-small", "local-small"),
        ("anthropic", "local:m.gguf", "local:m.gguf"),
        ("openai", "meta-llama/Llama-3", "openai/meta-llama/Llama-3"),
        ("openrouter", "anthropic/claude", "openrouter/anthropic/claude"),
        ("openrouter", "openrouter/anthropic/claude", "openrouter/anthropic/claude"),
        ("groq", "openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"),
    ],
)
def test_a_whole_name_is_taken_as_it_is(provider: str, model: str, whole: str) -> None:
    assert tiers_for(provider, model) == Tiers(whole, whole)
    assert tiers_for("local", "local", fast=whole).fast == whole


@pytest.mark.parametrize(
    ("tiers", "reported"),
    [
        (
            Tiers("openai/gpt-4.1", "anthropic/claude-haiku-4-5"),
            "openai/gpt-4.1 and anthropic/claude-haiku-4-5: "
            "one key cannot be for anthropic and openai",
        ),
        (Tiers("local", "local-small"), "a local model takes no key"),
    ],
)
def test_a_key_that_is_not_one_providers_is_refused(tiers: Tiers, reported: str) -> None:
    with pytest.raises(UsageError, match=reported) as caught, contextlib.ExitStack() as stack:
        open_tiers(tiers, stack, SECRET)
    assert SECRET not in str(caught.value)


def test_beside_a_local_model_the_key_is_the_hosted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    local = object()
    served = SimpleNamespace(lm=lambda role: local)
    monkeypatch.setattr(module, "open_lm", lambda _: contextlib.nullcontext(served))
    with contextlib.ExitStack() as stack:
        default, fast = open_tiers(tiers_for("local", fast="openai/gpt-4.1"), stack, SECRET)
        assert default is local
        assert (fast.model, fast.kwargs["api_key"]) == ("openai/gpt-4.1", SECRET)
        default, fast = open_tiers(tiers_for("openai", fast="local"), stack, SECRET)
    assert (default.model, default.kwargs["api_key"]) == ("openai/gpt-4.1", SECRET)
    assert fast is local


def test_a_missing_key_and_a_nameless_provider_are_reported() -> None:
    with pytest.raises(SetupError), contextlib.ExitStack() as stack:
        open_tiers(tiers_for("openai"), stack)
    with pytest.raises(UsageError, match="no default model is known for 'nobody'"):
        tiers_for("nobody")


def test_an_agent_neither_shows_nor_hands_on_its_key(forest: Pack, trees: EndpointConfig) -> None:
    with NL2SPARQLAgent("openai", api_key=SECRET, pack=forest, endpoint=trees) as agent:
        run = agent.begun("Which plants are trees?")
        assert SECRET not in repr(run)
        assert SECRET not in repr(agent)
        assert run.start["provider"] == "openai"
        assert run.start["model"] == "openai/gpt-4.1"
        assert SECRET not in str(run.start)


EDGES = (
    "__start__ --> analyze", "analyze --> plan", "plan --> retrieve", "retrieve --> generate",
    "generate --> execute", "execute --> verify", "verify -.-> output", "verify -.-> refine",
    "verify -.-> explore", "refine --> retrieve", "explore --> generate", "output --> __end__",
)  # fmt: skip


def test_it_has_the_nodes_and_edges_of_the_design(forest: Pack) -> None:
    text = mermaid_picture(forest)
    assert all(f"{edge};" in text for edge in EDGES)
    assert text.count("-->") + text.count("-.->") == len(EDGES)


def test_what_is_switched_off_is_not_drawn(forest: Pack) -> None:
    text = mermaid_picture(forest, GraphSettings(explore=False, human=True))
    assert "explore" not in text
    assert "analyze --> clarify;" in text
    assert "clarify --> plan;" in text


def test_each_family_has_its_writer(forest: Pack) -> None:
    text = mermaid_picture(forest, inside=True)
    assert [f"subgraph {name}" in text for name in ("general", "kinds", "measures", "places")] == [
        True
    ] * 4
    assert text.count("(focus)") == text.count("(write)") == 4


@pytest.mark.parametrize(("name", "begins"), [("g.png", b"\x89PNG"), ("g.svg", b"<svg")])
def test_it_is_rendered_offline(forest: Pack, tmp_path: Path, name: str, begins: bytes) -> None:
    pytest.importorskip("mermaid_render", reason="pictures are an extra")
    save_picture(tmp_path / name, mermaid_picture(forest))
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_without_the_renderer_the_text_is_still_to_be_had(
    forest: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mermaid_render", None)
    text = mermaid_picture(forest)
    with pytest.raises(SetupError, match="pip install mermaid-render"):
        save_picture(tmp_path / "g.png", text)
    save_picture(tmp_path / "g.mmd", text)
    assert (tmp_path / "g.mmd").read_text() == text


def test_a_form_that_cannot_be_drawn_is_reported(forest: Pack, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="end the name in"):
        save_picture(tmp_path / "g.gif", mermaid_picture(forest))


def test_langgraph_is_not_loaded_with_the_agents() -> None:
    code = (
        "import sys, reasoningbank.agents, reasoningbank.nl2sparql\n"
        "print([m for m in sys.modules if m.startswith('langgraph') or m == 'mermaid_render'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("family", ["general", "a:b"])
def test_a_family_that_cannot_be_a_node_is_reported(family: str) -> None:
    patterns = PatternSet(patterns=(Pattern(name="A", family=family),))
    with pytest.raises(UsageError, match="the family of A cannot be called"):
        families_of(patterns)
