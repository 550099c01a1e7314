"""What the agents with tools (rlm, react) share, so that only their loops differ."""

from __future__ import annotations

import inspect
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import dspy

from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Task
from reasoningbank.lm import stuck_temperature

#: Instructions of the extract step.
TASK = "Write the SPARQL query that answers the question over the endpoint {name}."
#: Event of a reply that the adapter could not parse.
UNREADABLE = {"error": "the reply could not be parsed", "code": "unreadable-reply"}
#: Turns that repeat an earlier one before a loop is ended.
MOST_REPEATS = 2

_lock = threading.Lock()
#: Tools by the function behind them and their name; entries go with the function.
_known: weakref.WeakKeyDictionary[Any, dict[str, dspy.Tool]] = weakref.WeakKeyDictionary()


def task_signature(episode: Episode) -> Any:
    """Return the signature: advice if there is any, the question, and the query."""
    fields: dict[str, Any] = {}
    if episode.context:
        fields["memory"] = (str, dspy.InputField(desc="advice from earlier tasks"))
    fields["question"] = (str, dspy.InputField())
    fields["sparql"] = (str, dspy.OutputField(desc="the query that answers the question"))
    return dspy.Signature(fields, TASK.format(name=episode.endpoint.source))


def inputs_of(task: Task, episode: Episode) -> dict[str, str]:
    """Return the inputs that `task_signature` asks for."""
    advice = {"memory": episode.context} if episode.context else {}
    return {**advice, "question": task.query}


def tool_lines(tools: Mapping[str, Callable[..., Any]]) -> str:
    """Return the tools as a prompt lists them, one line each."""
    return "\n".join(_tool_line(name, tool) for name, tool in tools.items())


def _tool_line(name: str, tool: Callable[..., Any]) -> str:
    shown = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(tool).parameters.values()
    ]
    summary = (inspect.getdoc(tool) or "").split("\n\n")[0].replace("\n", " ")
    return f"- `{name}({', '.join(shown)})`: {summary}"


def tool_objects(tools: Mapping[str, Callable[..., Any]]) -> list[dspy.Tool]:
    """Return the tools for `dspy.RLM` and `dspy.ReAct`."""
    return [_tool_object(name, tool) for name, tool in tools.items()]


def _tool_object(name: str, tool: Callable[..., Any]) -> dspy.Tool:
    behind = inspect.unwrap(tool)
    function = getattr(behind, "__func__", behind)
    if not inspect.isfunction(function):
        return dspy.Tool(tool, name=name)
    with _lock:
        made = _known.setdefault(function, {})
        if name not in made:
            # The template must hold neither the function nor the trial whose tool it is.
            made[name] = dspy.Tool(tool, name=name).model_copy(update={"func": _never_called})
        return made[name].model_copy(update={"func": tool})


def _never_called() -> None:
    raise AssertionError("a template is not called")


class Repeats:
    """Detects turns that repeat an earlier one; at temperature 0 a small model never stops."""

    def __init__(self, predict: Any) -> None:
        self._predict = predict
        self._seen: set[str] = set()
        self._count = 0

    def again(self, text: str) -> bool:
        """Return whether this was done before, and remember it."""
        text = _normalized(text)
        repeated = text in self._seen
        self._seen.add(text)
        if repeated:
            self._count += 1
            warmer = stuck_temperature(self._predict.lm)
            if warmer is not None:
                self._predict.config["temperature"] = warmer
        return repeated

    def forget(self, text: str) -> None:
        """Allow a repeat: it failed for a reason that may be gone the next time."""
        self._seen.discard(_normalized(text))

    @property
    def too_many(self) -> bool:
        """Whether the loop should end."""
        return self._count >= MOST_REPEATS


def _normalized(text: str) -> str:
    # Code that differs in its indentation is no repeat: it fixes an IndentationError.
    lines = (line for line in text.splitlines() if line.strip())
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + " ".join(line.split()) for line in lines
    )
