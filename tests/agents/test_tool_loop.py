"""What follows a repeated turn of an agent with tools."""

from __future__ import annotations

import dspy
import pytest

from reasoningbank.agents.loops import Repeats
from reasoningbank.lm import STUCK_TEMPERATURE, make_lm


@pytest.mark.parametrize(
    ("name", "raised"),
    [("openai/gpt-4.1", STUCK_TEMPERATURE), ("openai/gpt-5-mini", None), ("openai/o3", None)],
)
def test_a_repeat_raises_the_temperature(name: str, raised: float | None) -> None:
    lm = make_lm(name, api_base="http://127.0.0.1:9/v1")
    predict = dspy.Predict("question -> code")
    repeats = Repeats(predict)
    with dspy.context(lm=lm):
        assert [repeats.again("look()"), repeats.again("look()")] == [False, True]
    assert predict.config.get("temperature") == raised
