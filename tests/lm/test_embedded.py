"""The embedded model itself; `reasoningbank lm pull local` brings its weights."""

from __future__ import annotations

import os

import dspy
import pytest

from reasoningbank.lm import UsageCounter, open_lm
from reasoningbank.trajectory import Recorder


@pytest.mark.model
@pytest.mark.skipif(
    os.environ.get("REASONINGBANK_NO_MODEL") == "1",
    reason="REASONINGBANK_NO_MODEL=1: the weights of the embedded model are not wanted here",
)
def test_the_embedded_model_answers_and_keeps_its_prefix() -> None:
    recorder = Recorder()
    counter = UsageCounter(recorder)
    with open_lm("local") as model:
        ask = dspy.Predict("question -> answer")
        with dspy.context(lm=model.lm(max_tokens=40), callbacks=[counter]):
            first = ask(question="What is the capital of France? One word.")
            second = ask(question="What is the capital of Italy? One word.")
    assert "Paris" in first.answer
    assert "Rome" in second.answer
    calls = recorder.trajectory().of("lm_call")
    assert calls[0].data["cached_prompt_tokens"] == 0
    assert calls[1].data["cached_prompt_tokens"] > calls[1].data["prompt_tokens"] / 2
    assert all(call.data["generation_s"] > 0 for call in calls)
