"""The plain baseline: what it is shown, and what it may not see."""

from __future__ import annotations

import json
from collections.abc import Callable

from dspy.utils import DummyLM
from experiment.learning.orchard import TEST

from reasoningbank.agents import Episode, make_agent
from reasoningbank.corpus import Pack, load_corpus, split_tasks
from reasoningbank.experiment.plan import hidden_tasks

QUERY = "SELECT ?plant WHERE { ?plant t:height ?h . FILTER(?h > 1) }"


def test_it_is_shown_training_examples_and_no_hidden_one(
    orchard: Pack, episode: Callable[..., Episode]
) -> None:
    corpus = load_corpus(orchard).tasks
    train = split_tasks(corpus).train
    asked = [task for task in corpus if task.id in TEST]
    hidden = hidden_tasks(corpus, [*asked, train[0]])
    model = DummyLM([{"sparql": f"```sparql\n{QUERY}\n```"}])
    agent = make_agent("experiments.peers.baseline:Baseline", k=len(corpus))
    attempt = agent.solve(asked[0].blind(), episode(model, hidden))
    assert (attempt.sparql, attempt.status, attempt.usage.lm_calls) == (QUERY, "submitted", 1)
    prompt = json.dumps(model.history[0]["messages"])
    shown = {task.id for task in corpus if f"{task.query}\\\\n" in prompt}
    assert shown == {task.id for task in train} - hidden
    assert train[0].id in hidden
    ends = [task.expected_sparql.splitlines()[-1] for task in train if task.id in shown]
    assert all(end in prompt for end in ends)
