"""Two tiers of models, opened by name and key."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.nl2sparql.graph import NL2SPARQLAgent, Tiers, tiers_for
from reasoningbank.nl2sparql.graph import translator as module
from reasoningbank.nl2sparql.graph.translator import open_tiers
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
    ("tiers", "told"),
    [
        (
            Tiers("openai/gpt-4.1", "anthropic/claude-haiku-4-5"),
            "openai/gpt-4.1 and anthropic/claude-haiku-4-5: "
            "one key cannot be for anthropic and openai",
        ),
        (Tiers("local", "local-small"), "a local model takes no key"),
    ],
)
def test_a_key_that_is_not_one_providers_is_refused(tiers: Tiers, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught, contextlib.ExitStack() as stack:
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


def test_a_missing_key_and_a_nameless_provider_are_told() -> None:
    with pytest.raises(SetupError), contextlib.ExitStack() as stack:
        open_tiers(tiers_for("openai"), stack)
    with pytest.raises(UsageError, match="no default model is known for 'nobody'"):
        tiers_for("nobody")


def test_an_agent_neither_shows_nor_hands_on_its_key(forest: Pack, trees: EndpointConfig) -> None:
    with NL2SPARQLAgent("openai", api_key=SECRET, pack=forest, endpoint=trees) as agent:
        run = agent.begun("Which plants are trees?")
        assert SECRET not in repr(run)
        assert SECRET not in repr(agent)
        assert run._start["provider"] == "openai"
        assert run._start["model"] == "openai/gpt-4.1"
        assert SECRET not in str(run._start)
