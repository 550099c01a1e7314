"""What follows a repeated turn of an agent with tools."""

from __future__ import annotations

import dspy
import pytest
from asked_models import make_lm

from reasoningbank.agents.loops import Repeats, _tool
from reasoningbank.lm import STUCK_TEMPERATURE


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


def test_a_tools_schema_is_made_once_and_calls_the_tool_of_its_own_trial() -> None:
    class Shelf:
        def __init__(self, book: str) -> None:
            self.book = book

        def read(self, page: int, line: int = 1) -> str:
            """Read a line."""
            return f"{self.book} {page}.{line}"

    one, other = _tool(Shelf("A").read, "read"), _tool(Shelf("B").read, "read")
    plain = dspy.Tool(Shelf("C").read, name="read")
    for tool, book in ((one, "A"), (other, "B"), (plain, "C")):
        assert tool(page=2) == f"{book} 2.1"
        assert tool.args == plain.args
        assert tool.model_dump(exclude={"func"}) == plain.model_dump(exclude={"func"})
    one.args["page"]["description"] = "mine"
    assert "description" not in other.args["page"]
    assert _tool(Shelf("D").read, "look").name == "look"
