"""Steps of an attempt, shown as each completes, and queries as people read them.

On a terminal, queries and code are highlighted. In a pipe everything is plain text, in the lines
it was written in, so that it can be copied from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from reasoningbank.cli.output import console, progress_console
from reasoningbank.nl2sparql.confidence import Confidence
from reasoningbank.trajectory import Event

__all__ = ["Steps", "confidence_line", "print_query", "print_step"]

#: Characters of a turn's output that are shown; the agent itself sees no more.
MOST_OUTPUT = 1_500


def print_query(text: str, to: Console = console, language: str = "sparql") -> None:
    """Print a query or code, highlighted on a terminal.

    Args:
        text: The query.
        to: Where to.
        language: What it is written in, as Pygments names it.
    """
    if to.is_terminal:
        to.print(Syntax(text, language, background_color="default", word_wrap=True))
    else:
        _plain(text, to)


def confidence_line(found: Confidence) -> str:
    """Return a confidence in words.

    Examples:
        >>> confidence_line(Confidence(0.8, 0.8, False, ""))
        'confidence 0.80 (not calibrated)'
    """
    measured = "measured" if found.calibrated else "not calibrated"
    return f"confidence {found.confidence:.2f} ({measured})"


def print_step(name: str, found: Mapping[str, Any], to: Console = progress_console) -> None:
    """Print what a step of the pipeline or of the graph came to.

    Args:
        name: Its name.
        found: What it found: the data of its event, or the graph's state after it.
        to: Where to.
    """
    told = _TOLD.get(name)
    _plain(f"[{name}] {told(found) if told else ''}".rstrip(), to)
    query = found.get("generated_sparql" if name in ("write", "generate") else "sparql")
    if query and name in _WRITES:
        print_query(str(query), to)


class Steps:
    """Shows an attempt's steps, as they are recorded.

    Those of `rag` and `graph` by their names, those of `rlm` as turns of code with their output,
    those of `react` as calls of tools with what they returned; `direct` has none.

    Args:
        to: Where they are shown.
    """

    def __init__(self, to: Console = progress_console) -> None:
        self._to = to
        self._turns = 0
        self._named = False
        self._calls: dict[int, str] = {}

    def __call__(self, event: Event) -> None:
        """Show an event, if it is the end of a step."""
        data = event.data
        if event.kind == "step":
            # Queries that are recorded between such steps belong to them.
            self._named = True
            print_step(str(data["step"]), data, self._to)
        elif event.kind == "memory_retrieved":
            titles = [str(one["title"]) for one in data["items"]]
            _plain(f"[memory] {'; '.join(titles) or 'no item'}", self._to)
        elif event.kind == "code" and "output" in data:
            # An event of code is told twice: without its output when it begins.
            self._turn(str(data["code"]), str(data["output"]))
        elif event.kind == "tool_call" and event.parent is None and not self._named:
            said = ", ".join(f"{key}={value!r}" for key, value in dict(data["arguments"]).items())
            self._calls[event.index] = f"{data['tool']}({said})"
        elif event.kind == "tool_result" and event.parent in self._calls:
            self._turns += 1
            _plain(f"[turn {self._turns}] {self._calls.pop(event.parent)}", self._to)
            _plain(_cut(str(data.get("error") or data.get("result") or "")), self._to)
        elif event.kind == "error":
            _plain(f"[error] {data['error']}", self._to)

    def _turn(self, code: str, output: str) -> None:
        self._turns += 1
        _plain(f"[turn {self._turns}]", self._to)
        print_query(code, self._to, "python")
        if output.strip():
            _plain(_cut(output.strip()), self._to)


def _plain(text: str, to: Console) -> None:
    # As a Text: brackets are no markup in it, and :names: no pictures.
    to.print(Text(text), soft_wrap=True)


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
_TOLD: dict[str, Callable[[Mapping[str, Any]], str]] = {
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
