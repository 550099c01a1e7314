"""The plain baseline: what it is shown, and what it may not see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from dspy.utils import DummyLM
from experiment.learning.orchard import TEST, write_orchard

from reasoningbank.agents import Budget, Episode, Meter, make_agent
from reasoningbank.corpus import Pack, load_corpus, load_pack, split_tasks
from reasoningbank.experiment.plan import hidden_tasks
from reasoningbank.lm import UsageCounter
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder

ROOT = Path(__file__).parents[2]
QUERY = "SELECT ?plant WHERE { ?plant t:height ?h . FILTER(?h > 1) }"


@pytest.fixture(autouse=True)
def _repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the experiment are started there."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def orchard(tmp_path: Path) -> Pack:
    return load_pack(write_orchard(tmp_path / "trees"))


def test_it_is_shown_training_examples_and_no_hidden_one(
    orchard: Pack, trees: EndpointConfig
) -> None:
    corpus = load_corpus(orchard).tasks
    train = split_tasks(corpus).train
    asked = [task for task in corpus if task.id in TEST]
    hidden = hidden_tasks(corpus, [*asked, train[0]])
    recorder, model = Recorder(), DummyLM([{"sparql": f"```sparql\n{QUERY}\n```"}])
    counter = UsageCounter(recorder)
    meter = Meter(Budget(), lambda: counter.usage)
    episode = Episode(trees, {}, model, recorder=recorder, meter=meter, callbacks=[counter])
    episode = replace(episode, pack=orchard, hidden=hidden)
    agent = make_agent("experiments.peers.baseline:Baseline", k=len(corpus))
    attempt = agent.solve(asked[0].blind(), episode)
    assert (attempt.sparql, attempt.status, attempt.usage.lm_calls) == (QUERY, "submitted", 1)
    prompt = json.dumps(model.history[0]["messages"])
    shown = {task.id for task in corpus if f"{task.query}\\\\n" in prompt}
    assert shown == {task.id for task in train} - hidden
    assert train[0].id in hidden
    ends = [task.expected_sparql.splitlines()[-1] for task in train if task.id in shown]
    assert all(end in prompt for end in ends)
