"""Steps of an attempt, shown as each completes; queries are highlighted on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.syntax import Syntax

from reasoningbank.cli.output import console, progress_console, say
from reasoningbank.nl2sparql.confidence import Confidence
from reasoningbank.trajectory import Event

#: Characters of a turn's output that are shown; the agent sees no more either.
MOST_OUTPUT = 1_500


def print_query(text: str, to: Console = console, language: str = "sparql") -> None:
    """Print a query or code, highlighted on a terminal; `language` is Pygments' name of it."""
    if to.is_terminal:
        to.print(Syntax(text, language, background_color="default", word_wrap=True))
    else:
        say(text, to)


def confidence_line(found: Confidence) -> str:
    """Return a confidence in words.

    Examples:
        >>> confidence_line(Confidence(0.8, 0.8, False, ""))
        'confidence 0.80 (not calibrated)'
    """
    measured = "measured" if found.calibrated else "not calibrated"
    return f"confidence {found.confidence:.2f} ({measured})"


def print_step(name: str, found: Mapping[str, Any], to: Console = progress_console) -> None:
    """Print the outcome of a step of the pipeline or graph: its event's data or the state."""
    describe = _DESCRIBE.get(name)
    say(f"[{name}] {describe(found) if describe else ''}".rstrip(), to)
    query = found.get("generated_sparql" if name in ("write", "generate") else "sparql")
    if query and name in _WRITES:
        print_query(str(query), to)


class Steps:
    """Shows an attempt's steps as they are recorded.

    Steps of `rag` and `graph` are shown by name, turns of `rlm` as code with its output, turns of
    `react` as tool calls with their results; `direct` has no steps.
    """

    def __init__(self, to: Console = progress_console) -> None:
        self._to = to
        self._turns = 0
        self._named = False
        self._calls: dict[int, str] = {}

    def __call__(self, event: Event) -> None:
        """Show an event if it ends a step."""
        data = event.data
        if event.kind == "step":
            # Queries recorded between named steps belong to them.
            self._named = True
            print_step(str(data["step"]), data, self._to)
        elif event.kind == "memory_retrieved":
            titles = [str(one["title"]) for one in data["items"]]
            say(f"[memory] {'; '.join(titles) or 'no item'}", self._to)
        elif event.kind == "code" and "output" in data:
            # A code event comes twice: the first time without output.
            self._turn(str(data["code"]), str(data["output"]))
        elif event.kind == "tool_call" and event.parent is None and not self._named:
            arguments = ", ".join(
                f"{key}={value!r}" for key, value in dict(data["arguments"]).items()
            )
            self._calls[event.index] = f"{data['tool']}({arguments})"
        elif event.kind == "tool_result" and event.parent in self._calls:
            self._turns += 1
            say(f"[turn {self._turns}] {self._calls.pop(event.parent)}", self._to)
            say(_cut(str(data.get("error") or data.get("result") or "")), self._to)
        elif event.kind == "error":
            say(f"[error] {data['error']}", self._to)

    def _turn(self, code: str, output: str) -> None:
        self._turns += 1
        say(f"[turn {self._turns}]", self._to)
        print_query(code, self._to, "python")
        if output.strip():
            say(_cut(output.strip()), self._to)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_OUTPUT else f"{text[:MOST_OUTPUT]} …"


def _examples(found: Mapping[str, Any]) -> str:
    shown = found.get("examples") or found.get("retrieved_examples") or ()
    return ", ".join(f"{one['id']} {one['score']:.2f}" for one in shown) or "no example"


def _validated(found: Mapping[str, Any]) -> str:
    rows = "" if found["rows"] is None else f"{found['rows']} rows; "
    return rows + ("; ".join(found["problems"]) or "sound")


def _made(found: Mapping[str, Any]) -> str:
    return str(found.get("stopped") or found.get("example") or "")


_WRITES = ("exchange", "adapt", "synthesise", "fix", "write", "generate")
_DESCRIBE: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "detect": lambda found: (
        ", ".join(f"{name} {score:.2f}" for name, score in found["patterns"].items())
        or "no pattern"
    ),
    "retrieve": _examples,
    "constrain": lambda found: f"{found['chars']} characters of rules",
    "exchange": _made,
    "adapt": _made,
    "synthesise": _made,
    "fix": _made,
    "validate": _validated,
    "analyze": lambda found: (
        f"{', '.join(found['detected_patterns']) or 'no pattern'}, {found['complexity']}"
    ),
    "clarify": lambda found: str(found.get("clarification") or ""),
    "plan": lambda found: " → ".join(found["sub_tasks"]),
    "write": lambda found: str(found.get("family") or ""),
    "generate": lambda found: str(found.get("family") or ""),
    "execute": lambda found: found["execution_error"] or f"{found['result_count']} rows",
    "verify": lambda found: "; ".join(found["validation_errors"]) or "sound",
    "explore": lambda found: "; ".join(
        filter(None, (", ".join(found["discovered_properties"]), *found["findings"]))
    ),
    "output": lambda found: f"confidence {found['confidence']:.2f}",
}
