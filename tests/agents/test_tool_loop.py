"""What the agents with tools share: tools as DSPy's, and what follows a repeated turn."""

from __future__ import annotations

import gc
import weakref

import dspy
import pytest

from reasoningbank.agents import Budget, Meter
from reasoningbank.agents import calling as module
from reasoningbank.agents.calling import Repeats, tool_objects
from reasoningbank.lm import STUCK_TEMPERATURE, make_lm


class Shelf:
    def __init__(self, content: str) -> None:
        self.content = content

    def look(self, key: str, n: int = 2) -> str:
        """Say what is there."""
        return f"{self.content} {key} {n}"


def test_each_trial_calls_its_own_tools() -> None:
    shelves = [Shelf("a"), Shelf("b")]
    made = [tool_objects({"look": shelf.look})[0] for shelf in shelves]
    assert [tool(key="x") for tool in made] == ["a x 2", "b x 2"]


def test_they_are_what_dspy_makes_of_them() -> None:
    shelf = Shelf("a")
    meter = Meter(Budget(tool_calls=1))
    for _ in range(2):
        (ours,) = tool_objects(meter.metered({"look": shelf.look}))
        theirs = dspy.Tool(shelf.look, name="look")
        for part in ("name", "desc", "args", "arg_types", "has_kwargs"):
            assert getattr(ours, part) == getattr(theirs, part)
    assert ours(key="x", n=3) == "a x 3"


def test_two_names_of_one_function_are_told_apart() -> None:
    shelf = Shelf("a")
    one, other = tool_objects({"look": shelf.look, "peek": shelf.look})
    assert (one.name, other.name) == ("look", "peek")


def test_what_is_kept_holds_no_trial() -> None:
    shelf = Shelf("a")
    (tool,) = tool_objects({"look": shelf.look})
    gone = weakref.ref(shelf)
    assert Shelf.look in module._known
    del tool, shelf
    gc.collect()
    assert gone() is None


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
