from __future__ import annotations

import dspy
import pytest

from reasoningbank.lm import UsageCounter, make_lm
from reasoningbank.trajectory import Recorder, Usage

from .scripted import chat, failure, scripted


@pytest.mark.parametrize("name", ["openai/x", "hosted_vllm/x"])
def test_tokens_are_counted_and_recorded(name: str) -> None:
    reply = chat("Paris", prompt_tokens_details={"cached_tokens": 7})
    recorder = Recorder()
    counter = UsageCounter(recorder, role="judge")
    with scripted(reply) as server:
        lm = make_lm(name, api_base=server.base)
        with dspy.context(callbacks=[counter]):
            lm("Capital of France?")
            lm("Capital of France?")
    expected = Usage(
        lm_calls=2, prompt_tokens=22, completion_tokens=6, cached_prompt_tokens=14, dollars=None
    )
    assert counter.usage == expected
    first, second = recorder.trajectory().of("lm_call")
    assert first.data["messages"] == [{"role": "user", "content": "Capital of France?"}]
    assert (first.data["response"], first.data["role"]) == ("Paris", "judge")
    assert (second.data["prompt_tokens"], second.data["finish_reason"]) == (11, "stop")
    assert first.seconds > 0


def test_a_priced_model_costs_dollars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    counter = UsageCounter()
    reply = chat("x", prompt_tokens=1_000_000, completion_tokens=0, total_tokens=1_000_000)
    with scripted(reply) as server, dspy.context(callbacks=[counter]):
        make_lm("openai/gpt-4o-mini", api_base=server.base)("q")
        assert counter.usage.dollars is not None
        assert 0 < counter.usage.dollars < 100
        make_lm("openai/x", api_base=server.base)("q")
    assert counter.usage.dollars is None, "a sum with an unknown part is no price"


def test_an_answer_from_the_cache_costs_nothing() -> None:
    counter = UsageCounter()
    with scripted(chat("x")) as server, dspy.context(callbacks=[counter]):
        # The port makes the question new, so that no earlier run has answered it.
        question = f"cached? {server.base}"
        lm = make_lm("openai/x", api_base=server.base, cache=True)
        assert lm(question) == lm(question)
    assert len(server.asked) == 1
    assert (counter.usage.lm_calls, counter.usage.cached_calls) == (1, 1)
    assert counter.usage.prompt_tokens == 11


def test_a_failed_call_is_recorded_and_counted_apart() -> None:
    recorder = Recorder()
    counter = UsageCounter(recorder)
    with (
        scripted(failure(401, "bad key")) as server,
        dspy.context(callbacks=[counter]),
        pytest.raises(dspy.LMError),
    ):
        make_lm("openai/x", api_base=server.base)("q")
    assert (counter.failed_calls, counter.usage) == (1, Usage())
    (event,) = recorder.trajectory().of("lm_call")
    assert "bad key" in recorder.trajectory().resolve(event.data["error"])


def test_calls_from_several_threads_are_told_apart() -> None:
    recorder = Recorder()
    counter = UsageCounter(recorder)
    replies = [chat(f"[[ ## answer ## ]]\n{n}", completion_tokens=n) for n in range(1, 13)]
    with scripted(*replies) as server:
        lm = make_lm("openai/x", api_base=server.base)
        ask = dspy.Predict("question -> answer")
        with dspy.context(lm=lm, callbacks=[counter]):
            parallel = dspy.Parallel(num_threads=4, disable_progress_bar=True)
            parallel([(ask, {"question": str(n)}) for n in range(12)])
    assert counter.usage.lm_calls == 12
    assert counter.usage.completion_tokens == sum(range(1, 13))
    for event in recorder.trajectory().of("lm_call"):
        assert event.data["response"].endswith(f"\n{event.data['completion_tokens']}")


def test_nothing_is_counted_outside_the_trial() -> None:
    counter = UsageCounter()
    with scripted(chat("x")) as server:
        lm = make_lm("openai/x", api_base=server.base)
        with dspy.context(callbacks=[counter]):
            lm("in")
        lm("out")
    assert counter.usage.lm_calls == 1


def test_the_key_never_reaches_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "gw-secret-1")
    recorder = Recorder(redact=["gw-secret-1"])
    with scripted(failure(401, "key gw-secret-1 refused")) as server:
        lm = make_lm("openai/x", api_base=server.base, api_key_env="MY_KEY")
        with dspy.context(callbacks=[UsageCounter(recorder)]), pytest.raises(dspy.LMError):
            lm("q")
    assert "gw-secret-1" not in str(recorder.trajectory().to_json())
