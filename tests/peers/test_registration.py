"""The tasks of `experiments/peers.toml` are drawn as it says, and all arms see the same golds."""

from __future__ import annotations

from dataclasses import replace

from reasoningbank.agents import Episode
from reasoningbank.corpus import levels, load_corpus, load_pack, sample_tasks
from reasoningbank.experiment import load_experiment, plan_run
from reasoningbank.experiment.plan import select_tasks
from reasoningbank.experiment.settings import TaskSelection
from reasoningbank.sparql import EndpointConfig

from .conftest import ROOT


def test_the_tasks_are_drawn_with_seed_two() -> None:
    plan = plan_run(load_experiment(ROOT / "experiments" / "peers.toml"))
    pool = TaskSelection(split="test", per_template=1, sample_seed=2)
    tasks = select_tasks(load_corpus("uniprot-instances").tasks, pool)
    level = levels(tasks, plan.stream)
    drawn = {
        task.id
        for name, size in (("iid", 20), ("compositional", 10))
        for task in sample_tasks([one for one in tasks if level[one.id] == name], size, seed=2)
    }
    assert {task.id for task in plan.tasks} == drawn


def test_peers_are_given_the_golds_that_memory_is_made_of(trees: EndpointConfig) -> None:
    from experiments.peers.published import published

    plan = plan_run(load_experiment(ROOT / "experiments" / "peers.toml"))
    episode = replace(Episode(trees, {}), pack=load_pack("uniprot-instances"), hidden=plan.hidden)
    assert [task.id for task in published(episode)] == [task.id for task in plan.stream]
    assert len(plan.stream) == 50
