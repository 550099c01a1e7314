"""The steps of an attempt as people read them: named steps, turns of code, tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reasoningbank.trajectory import Event

#: Longer outputs of a turn are cut; the agent sees no more either.
MOST_OUTPUT = 1_500


@dataclass(frozen=True)
class ShownStep:
    """One step: its name, what came of it, the query or code that it wrote, and its output."""

    name: str
    text: str = ""
    code: str = ""
    language: str = "sparql"
    output: str = ""


class StepReader:
    """Turns events, in the order they are recorded, into the steps that they complete.

    Examples:
        >>> read = StepReader()
        >>> read(Event(0, "step", 0.0, data={"step": "detect", "patterns": {"KIND": 0.9}}))
        ShownStep(name='detect', text='KIND 0.90', code='', language='sparql', output='')
        >>> read(Event(1, "lm_call", 0.0)) is None
        True
    """

    def __init__(self) -> None:
        self._turns = 0
        self._named = False
        self._calls: dict[int, str] = {}

    def __call__(self, event: Event) -> ShownStep | None:
        """Return the step that an event ends, if any."""
        data = event.data
        if event.kind == "step":
            # Queries recorded between named steps belong to them.
            self._named = self._named or data["step"] != "follow-up"
            return named_step(str(data["step"]), data)
        if event.kind == "memory_retrieved":
            titles = [str(one["title"]) for one in data["items"]]
            return ShownStep("memory", "; ".join(titles) or "no item")
        if event.kind == "code" and "output" in data:
            # A code event comes twice: the first time without output.
            return self._turn(
                code=str(data["code"]), language="python", output=str(data["output"]).strip()
            )
        if event.kind == "tool_call" and event.parent is None and not self._named:
            arguments = ", ".join(f"{k}={v!r}" for k, v in dict(data["arguments"]).items())
            self._calls[event.index] = f"{data['tool']}({arguments})"
        elif event.kind == "tool_result" and event.parent in self._calls:
            said = str(data.get("error") or data.get("result") or "")
            return self._turn(text=self._calls.pop(event.parent), output=said)
        elif event.kind == "error":
            return ShownStep("error", str(data["error"]))
        return None

    def _turn(self, *, output: str, **rest: Any) -> ShownStep:
        self._turns += 1
        cut = output if len(output) <= MOST_OUTPUT else f"{output[:MOST_OUTPUT]} …"
        return ShownStep(f"turn {self._turns}", output=cut, **rest)


def named_step(name: str, found: Mapping[str, Any]) -> ShownStep:
    """Return a step of the pipeline or graph: from its event's data, or from the state."""
    describe = _DESCRIBE.get(name)
    query = found.get("generated_sparql" if name in ("write", "generate") else "sparql")
    code = str(query) if query and name in _WRITES else ""
    return ShownStep(name, describe(found) if describe else "", code)


def _examples(found: Mapping[str, Any]) -> str:
    shown = found.get("examples") or found.get("retrieved_examples") or ()
    return ", ".join(f"{one['id']} {one['score']:.2f}" for one in shown) or "no example"


def _patterns(found: Mapping[str, Any]) -> str:
    shown = [f"{name} {score:.2f}" for name, score in found["patterns"].items()]
    return ", ".join(shown) or "no pattern"


def _validated(found: Mapping[str, Any]) -> str:
    rows = "" if found["rows"] is None else f"{found['rows']} rows; "
    return rows + ("; ".join(found["problems"]) or "sound")


def _explored(found: Mapping[str, Any]) -> str:
    return "; ".join(filter(None, (", ".join(found["discovered_properties"]), *found["findings"])))


_WRITES = ("exchange", "adapt", "synthesise", "fix", "write", "generate")
_DESCRIBE: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "follow-up": lambda found: f"understood as: {found['question']}",
    "detect": _patterns,
    "retrieve": _examples,
    "constrain": lambda found: f"{found['chars']} characters of rules",
    **dict.fromkeys(
        ("exchange", "adapt", "synthesise", "fix"),
        lambda found: str(found.get("stopped") or found.get("example") or ""),
    ),
    "validate": _validated,
    "analyze": lambda found: (
        f"{', '.join(found['detected_patterns']) or 'no pattern'}, {found['complexity']}"
    ),
    "clarify": lambda found: str(found.get("clarification") or ""),
    "plan": lambda found: " → ".join(found["sub_tasks"]),
    **dict.fromkeys(("write", "generate"), lambda found: str(found.get("family") or "")),
    "execute": lambda found: found["execution_error"] or f"{found['result_count']} rows",
    "verify": lambda found: "; ".join(found["validation_errors"]) or "sound",
    "explore": _explored,
    "output": lambda found: f"confidence {found['confidence']:.2f}" if found["calibrated"] else "",
}
