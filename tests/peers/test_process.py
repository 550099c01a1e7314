"""The protocol to a peer's process, with a stand-in peer; the environment of a real one."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_models import make_lm
from experiment.learning.orchard import TEST

from reasoningbank.agents import Agent, Attempt, Episode, make_agent
from reasoningbank.corpus import Pack, load_corpus, split_tasks
from reasoningbank.errors import SetupError
from reasoningbank.experiment.plan import hidden_tasks

STAND_IN = shlex.join([sys.executable, "-I", str(Path(__file__).parent / "stand_in_peer.py")])


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    from experiments.peers import process

    for one in process._processes.values():
        one.stop()
    process._processes.clear()


def peer(**options: Any) -> Agent:
    path = "experiments.peers.process:Peer"
    return make_agent(path, peer="stand-in", command=STAND_IN, **options)


@pytest.fixture
def ask(orchard: Pack, episode: Callable[..., Episode]) -> Callable[..., Attempt]:
    """Return what puts a question to the stand-in peer."""
    task = load_corpus(orchard).tasks[0].blind()
    model = make_lm("local", api_base="http://127.0.0.1:9/v1")

    def put(question: str, hidden: frozenset[str] = frozenset(), **limits: Any) -> Attempt:
        return peer(size=3).solve(replace(task, query=question), episode(model, hidden, **limits))

    return put


def reported(attempt: Attempt) -> tuple[int, dict[str, Any]]:
    assert attempt.sparql is not None
    pid, _, setting = attempt.sparql.partition(" # ")[2].partition(" ")
    return int(pid), json.loads(setting)


def test_a_peer_gets_what_every_arm_may_see(orchard: Pack, ask: Callable[..., Attempt]) -> None:
    corpus = load_corpus(orchard).tasks
    train = split_tasks(corpus).train
    hidden = hidden_tasks(corpus, [task for task in corpus if task.id in TEST] + [train[0]])
    _, setting = reported(ask("reported", hidden))
    assert setting["examples"] == [
        {"question": task.query, "query": task.expected_sparql}
        for task in train
        if task.id not in hidden
    ]
    assert setting["endpoint"].startswith("http://127.0.0.1")
    assert setting["model"].startswith("openai/")
    assert (setting["api_base"], setting["options"]) == ("http://127.0.0.1:9/v1", {"size": 3})


def test_one_process_answers_all_questions_and_its_usage_is_recorded(
    ask: Callable[..., Attempt],
) -> None:
    first, second = ask("reported"), ask("reported")
    assert reported(first)[0] == reported(second)[0]
    assert (first.status, first.usage.lm_calls, first.usage.tokens) == ("submitted", 2, 34)


def test_a_peer_without_a_query_and_one_without_a_network(ask: Callable[..., Attempt]) -> None:
    attempt = ask("none")
    assert (attempt.sparql, attempt.status) == (None, "refused")
    assert [one.code for one in attempt.findings] == ["peer-error"]
    with pytest.raises(OSError, match="no connection"):
        ask("network")


def test_a_peer_that_ends_is_started_again(ask: Callable[..., Attempt]) -> None:
    first, _ = reported(ask("reported"))
    with pytest.raises(OSError, match="it broke here"):
        ask("die")
    again, _ = reported(ask("reported"))
    assert again != first


def test_the_budget_of_seconds_ends_a_peer(ask: Callable[..., Attempt]) -> None:
    attempt = ask("wait", seconds=0.2)
    assert (attempt.status, attempt.budget) == ("exhausted", "seconds")
    assert ask("reported").status == "submitted"


def test_a_peer_that_is_not_there_is_one_line(
    episode: Callable[..., Episode], orchard: Pack
) -> None:
    agent = make_agent("experiments.peers.process:Peer", peer="no-such")
    with pytest.raises(SetupError) as caught:
        agent.solve(load_corpus(orchard).tasks[0].blind(), episode(None))
    assert caught.value.code == "no-peer"
