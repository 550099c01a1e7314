"""The algebra agent over the towns, with a scripted model, and their judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from towns import write_towns

from reasoningbank.agents import Attempt, Episode, make_agent
from reasoningbank.corpus import Pack, open_endpoint
from reasoningbank.judge import DocumentChanges, ExecutionJudge, GoldStore
from reasoningbank.sparql import EndpointConfig, SPARQLClient

from .programs import tasks


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return write_towns(tmp_path_factory.mktemp("algebra") / "towns")


@pytest.fixture(scope="module")
def served(towns: Pack) -> Iterator[EndpointConfig]:
    with open_endpoint(towns) as config:
        yield config


@pytest.fixture
def solve(
    towns: Pack, served: EndpointConfig, episode: Callable[..., Episode]
) -> Callable[..., Attempt]:
    """Return what lets the agent answer a task with scripted replies."""

    def solved(task: int, *replies: Any, **options: Any) -> Attempt:
        texts = [one if isinstance(one, str) else json.dumps(one) for one in replies]
        given = episode(
            *({"program": text} for text in texts),
            endpoint=served,
            pack=towns,
            context="Towns have names.",
        )
        return make_agent("algebra", **options).solve(tasks(towns)[task].blind(), given)

    return solved


@pytest.fixture
def strict(towns: Pack, served: EndpointConfig, tmp_path: Path) -> Iterator[Callable[..., bool]]:
    with SPARQLClient(served) as client:
        judge = ExecutionJudge(
            client, GoldStore(tmp_path / "gold", "towns"), documents=DocumentChanges.of(towns)
        )
        yield lambda task, attempt: judge.judge(tasks(towns)[task], attempt.sparql).strict
