"""Model names and the models that are opened by them."""

from __future__ import annotations

import socket
from pathlib import Path

import dspy
import pytest
from asked_models import make_lm
from dspy.utils import DummyLM
from failing import fails

from reasoningbank.errors import BudgetError, ModelError, QueryError, SetupError, UsageError
from reasoningbank.lm import PlainAdapter, lm_failure, open_lm
from reasoningbank.lm.names import (
    CATALOGUE,
    check_hosted,
    check_model,
    parse_name,
    sampling_settings,
    secrets_in_environment,
    weights_named,
)

from .scripted import Reply, chat, failure, scripted


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
def test_each_form_of_a_name_is_distinguished(text: str, kind: str) -> None:
    found = parse_name(text)
    assert ("file" if found.path else "embedded" if found.is_local else "hosted") == kind


def test_a_file_may_lie_in_the_home_folder() -> None:
    assert parse_name("local:~/x.gguf").path == Path.home() / "x.gguf"


@pytest.mark.parametrize("text", ["", "locale", "local:", "openai/", "/x", "gpt 4"])
def test_an_unknown_name_is_answered_with_examples(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_name(text)
    assert "openai/gpt-4o-mini" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code", "near"),
    [
        ("local-smal", "unknown-model", "local-small"),
        ("gpt-4.1-mini", "unknown-model", "openai/gpt-4.1-mini"),
        ("claude-sonet-4-5", "unknown-model", "anthropic/claude-sonnet-4-5"),
        ("opnai/gpt-4.1", "unknown-provider", "openai/gpt-4.1"),
        ("qwen-9b-local", "unknown-model", ""),
    ],
)
def test_a_wrong_name_is_answered_with_those_near_it(text: str, code: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_model(text)
    assert (caught.value.code, caught.value.fields["near"]) == (code, [near] if near else [])
    assert near in caught.value.hint


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


#: One name that DSPy serves natively, one that goes through LiteLLM.
NAMES = ("openai/x", "hosted_vllm/x")


@pytest.mark.parametrize("name", NAMES)
def test_a_hosted_model_answers_at_another_address(name: str) -> None:
    with scripted(chat("Paris")) as server, open_lm(name, api_base=server.base) as model:
        lm = model.lm(temperature=0.7, max_tokens=20, seed=4)
        assert lm("Capital of France?") == ["Paris"]
    body = server.asked[0].body
    assert (body["model"], body["temperature"], body["seed"]) == ("x", 0.7, 4)
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 20


def test_repeats_are_asked_again() -> None:
    with scripted(chat("a"), chat("b")) as server:
        lm = make_lm("openai/x", api_base=server.base)
        assert [lm("q"), lm("q")] == [["a"], ["b"]]
    assert len(server.asked) == 2


def test_the_providers_key_is_not_sent_to_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one")
    monkeypatch.setenv("GATEWAY_KEY", "gw-1")
    with scripted(chat("x")) as server:
        make_lm("openai/x", api_base=server.base)("q")
        make_lm("openai/x", api_base=server.base, api_key_env="GATEWAY_KEY")("q")
    sent = [asked.headers["authorization"] for asked in server.asked]
    assert sent == ["Bearer none", "Bearer gw-1"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", [429, 503])
def test_a_passing_failure_is_retried(name: str, status: int) -> None:
    with scripted(failure(status, "slow down", retry_after="0"), chat("ok")) as server:
        assert make_lm(name, api_base=server.base)("q") == ["ok"]
    assert len(server.asked) == 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (failure(401, "bad key", "invalid_api_key"), SetupError, "key"),
        (failure(404, "no such model", "model_not_found"), SetupError, "no such model"),
        (failure(404, "no such path"), SetupError, "no such path"),
        (failure(429, "slow down", retry_after="0"), ModelError, "rate limit"),
        (failure(500, "boom", retry_after="0"), ModelError, "boom"),
        (Reply(200, b"<html>not json</html>"), ModelError, ""),
        (
            failure(400, "maximum context length is 4096 tokens", "context_length_exceeded"),
            BudgetError,
            "context window",
        ),
        (
            failure(400, "request (9 tokens) exceeds the available context size (8 tokens)"),
            BudgetError,
            "context window",
        ),
    ],
)
def test_each_failure_says_whose_it_is(
    name: str, reply: Reply, kind: type[Exception], words: str
) -> None:
    with scripted(reply) as server:
        lm = make_lm(name, api_base=server.base, num_retries=1)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - classified below
            lm("q")
    found = lm_failure(caught.value, name)
    assert type(found) is kind
    assert words in str(found)
    assert "\n" not in str(found)


def test_a_model_that_its_provider_does_not_have_gets_names_near_to_it() -> None:
    name = "openai/gpt-4.1-minni"
    with scripted(failure(404, "no such model", "model_not_found")) as server:
        lm = make_lm(name, api_base=server.base, num_retries=1)
        with pytest.raises(dspy.LMError) as caught:
            lm("q")
    found = lm_failure(caught.value, name)
    assert isinstance(found, SetupError)
    assert "openai/gpt-4.1-mini" in found.hint


def test_a_failure_inside_a_module_is_still_reported() -> None:
    with scripted(failure(401, "bad key", "invalid_api_key")) as server:
        lm = make_lm("openai/x", api_base=server.base)
        with dspy.context(lm=lm), pytest.raises(dspy.LMError) as caught:
            dspy.Predict("question -> answer")(question="?")
    assert isinstance(lm_failure(caught.value), SetupError)


def test_a_wrapped_failure_is_still_reported() -> None:
    outer = RuntimeError("turn 3 failed")
    outer.__cause__ = dspy.LMTransportError("gone")
    assert isinstance(lm_failure(outer, "m"), ModelError)


def test_an_error_that_is_not_the_models_is_left_alone() -> None:
    assert lm_failure(KeyError("x")) is None


@pytest.mark.parametrize("handled", [QueryError("no such prefix"), dspy.LMTransportError("gone")])
def test_a_fault_while_another_error_is_handled_is_not_that_error(handled: Exception) -> None:
    fault = KeyError("of the harness")
    fault.__context__ = handled
    assert lm_failure(fault) is None


def test_a_server_that_is_down_is_the_infrastructures_fault() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{held.getsockname()[1]}/v1"
    lm = make_lm("openai/x", api_base=base, num_retries=0)
    with pytest.raises(dspy.LMError) as caught:
        lm("q")
    assert isinstance(lm_failure(caught.value), ModelError)


def test_a_missing_key_stops_before_the_run() -> None:
    with pytest.raises(SetupError, match="OPENAI_API_KEY"), open_lm("openai/gpt-4o"):
        pass


def test_settings_that_the_model_cannot_take_are_a_usage_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with pytest.raises(UsageError, match="temperature"):
        make_lm("openai/gpt-5", temperature=0.3)
    for most, kept in ((700, None), (20_000, 20_000)):
        lm = make_lm("openai/gpt-5", max_tokens=most)
        assert lm.kwargs["max_completion_tokens"] == kept


def test_an_unknown_role_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown role"):
        make_lm("openai/x", api_base="http://127.0.0.1:1/v1", role="poet")


def test_a_run_knows_its_secrets_and_what_decides_its_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "shorty")
    with open_lm("openai/x", api_base="http://127.0.0.1:1/v1", api_key_env="MY_KEY") as model:
        assert "shorty" in model.secrets
        assert model.fingerprint["model"] == "openai/x"
        assert "shorty" not in str(model.fingerprint)


def test_a_conversation_is_instructions_turns_and_the_question() -> None:
    signature = dspy.Signature("question -> sparql", "Answer in SPARQL.")
    predict = dspy.Predict(signature)
    predict.demos = [dspy.Example(question="Any?", sparql="ASK {}").with_inputs("question")]
    lm = DummyLM([{"sparql": "ASK { ?s ?p ?o }"}])
    with dspy.context(lm=lm, adapter=PlainAdapter()):
        said = predict(question="Anything?").sparql
    assert "ASK { ?s ?p ?o }" in said
    assert [(one["role"], one["content"]) for one in lm.history[0]["messages"]] == [
        ("system", "Answer in SPARQL."),
        ("user", "Any?"),
        ("assistant", "ASK {}"),
        ("user", "Anything?"),
    ]
