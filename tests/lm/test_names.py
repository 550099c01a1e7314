from __future__ import annotations

from pathlib import Path

import pytest
from failing import fails

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.lm.names import (
    CATALOGUE,
    check_hosted,
    parse_name,
    sampling_settings,
    secrets_in_environment,
    weights_named,
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("local", "embedded"),
        (" local-small ", "embedded"),
        ("local:/m/x.gguf", "file"),
        ("openai/gpt-4o-mini", "hosted"),
        ("openrouter/qwen/qwen3:free", "hosted"),
        ("ollama_chat/qwen3:8b", "hosted"),
    ],
)
def test_each_form_of_a_name_is_told_apart(text: str, kind: str) -> None:
    assert parse_name(text).kind == kind


def test_a_file_may_lie_in_the_home_folder() -> None:
    assert parse_name("local:~/x.gguf").path == Path.home() / "x.gguf"


@pytest.mark.parametrize("text", ["", "locale", "local:", "openai/", "/x", "gpt 4"])
def test_an_unknown_name_is_answered_with_examples(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_name(text)
    assert "openai/gpt-4o-mini" in str(caught.value)


def test_an_unknown_embedded_model_is_answered_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="nolocal") as caught:
        weights_named("nolocal")
    assert all(name in str(caught.value) for name in CATALOGUE)


def test_an_unknown_provider_is_a_usage_error() -> None:
    with fails(UsageError, "unknown-provider"):
        check_hosted("opnai/gpt-4o")


@pytest.mark.parametrize(
    ("name", "variable"),
    [("openai/gpt-4o", "OPENAI_API_KEY"), ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY")],
)
def test_a_missing_key_is_named_before_anything_is_sent(name: str, variable: str) -> None:
    with fails(SetupError, "missing-key", variable=variable):
        check_hosted(name)


def test_a_key_in_the_environment_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    check_hosted("openai/gpt-4o")


def test_a_named_variable_must_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    with fails(SetupError, "missing-key", variable="MY_KEY"):
        check_hosted("openai/x", api_key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "k")
    check_hosted("openai/x", api_key_env="MY_KEY")


@pytest.mark.parametrize("name", ["ollama_chat/qwen3", "hosted_vllm/x"])
def test_a_provider_on_the_own_machine_needs_no_key(name: str) -> None:
    check_hosted(name)


def test_an_address_of_its_own_needs_no_key() -> None:
    check_hosted("openai/x", api_base="http://127.0.0.1:1/v1")


def test_settings_that_a_model_would_refuse_are_left_out() -> None:
    assert sampling_settings("openai/gpt-4o", temperature=0.0, seed=1) == {
        "temperature": 0.0,
        "seed": 1,
    }
    assert sampling_settings("anthropic/claude-sonnet-4-5", temperature=0.5, seed=1) == {
        "temperature": 0.5
    }
    assert sampling_settings("openai/gpt-5", temperature=0.0, seed=None) == {"temperature": None}


def test_credentials_are_found_for_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-12345678")
    monkeypatch.setenv("SOME_NAME", "not-a-secret")
    assert "sk-12345678" in secrets_in_environment()
    assert "not-a-secret" not in secrets_in_environment()
