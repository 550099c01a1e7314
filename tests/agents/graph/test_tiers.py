"""Two tiers of models, opened by name and key."""

from __future__ import annotations

import contextlib

import pytest

from reasoningbank.agents.graph import NL2SPARQLAgent, Tiers, tiers_for
from reasoningbank.agents.graph.tiers import open_tiers
from reasoningbank.corpus import Pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.sparql import EndpointConfig

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


def test_a_missing_key_and_a_nameless_provider_are_told() -> None:
    with pytest.raises(SetupError), contextlib.ExitStack() as stack:
        open_tiers(tiers_for("openai"), stack)
    with pytest.raises(UsageError, match="no default model of 'nobody'"):
        tiers_for("nobody")


def test_an_agent_neither_shows_nor_hands_on_its_key(forest: Pack, trees: EndpointConfig) -> None:
    with NL2SPARQLAgent("openai", api_key=SECRET, pack=forest, endpoint=trees) as agent:
        run = agent.begun("Which plants are trees?")
        assert SECRET not in repr(run)
        assert SECRET not in repr(agent)
        assert run._start["provider"] == "openai"
        assert run._start["model"] == "openai/gpt-4.1"
        assert SECRET not in str(run._start)
