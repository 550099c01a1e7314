"""A success's own turns, compressed, as demonstrations for agents that work by turns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from reasoningbank.agents.demonstrations import Demonstration
from reasoningbank.agents.demonstrations import Turn as ShownTurn
from reasoningbank.memory.distillation.experience import Experience
from reasoningbank.memory.item import MemoryItem, Turn
from reasoningbank.sparql.tokens import tokenize, without_comments
from reasoningbank.trajectory import Event, Trajectory

__all__ = ["MOST_TURNS", "demonstrations_of", "turns_of"]

#: Turns of one demonstration, and characters of what a turn printed and of why it was taken.
MOST_TURNS = 4
MOST_OUTPUT_CHARS = 500
MOST_REASONING_CHARS = 240

_REASONING = re.compile(r"\[\[ ## reasoning ## \]\]\s*(.*?)\s*(?=\[\[ ## |\Z)", re.DOTALL)
_SUBMIT = re.compile(r"\bSUBMIT\s*\(")
_FAILED = re.compile(r"^\[(?:Repeated|Error)\]|\bTraceback \(most recent|^\w*Error\b", re.MULTILINE)
_SUBMITTING = "The rows answer the question, so I submit the query that I ran."


@dataclass(frozen=True)
class _Made:
    """A turn as it was taken."""

    index: int
    turn: Turn
    failed: bool
    queries: tuple[str, ...]

    @property
    def submits(self) -> bool:
        return _SUBMIT.search(self.turn.code) is not None


def turns_of(experience: Experience) -> tuple[Turn, ...]:
    """Return the turns of a success that led to its query, at most four; none of one without.

    What failed, was repeated, or looked at names that the query does not use is left out; the
    last turn submits. Outputs are cut.
    """
    query = without_comments(experience.sparql or "")
    made = list(_made(experience.trajectory))
    ran = next((turn for turn in made if query in turn.queries and not turn.failed), None)
    if not query or ran is None:
        return ()
    names = {t.text for t in tokenize(query) if t.kind in ("name", "iri")}
    before = [
        turn
        for turn in made
        if turn.index < ran.index and not turn.failed and not turn.submits and turn.turn.output
    ]
    telling = [turn for turn in before if _names_in(turn.turn.code) & names] or before
    looked = _distinct(telling)[: MOST_TURNS - 2]
    last = next((turn.turn for turn in made if turn.submits and turn.index > ran.index), None)
    if ran.submits:
        return (*(turn.turn for turn in looked), ran.turn)
    return (*(turn.turn for turn in looked), ran.turn, last or _submission(ran, query))


def demonstrations_of(items: Iterable[MemoryItem]) -> tuple[Demonstration, ...]:
    """Return the demonstrations that items hold; an item without turns holds none."""
    return tuple(
        Demonstration(
            question=item.question,
            turns=tuple(
                ShownTurn(reasoning=turn.reasoning, code=turn.code, output=turn.output)
                for turn in item.turns
            ),
        )
        for item in items
        if item.turns and item.question
    )


def _made(trajectory: Trajectory) -> Iterable[_Made]:
    reasoning = ""
    for event in trajectory.events:
        data = trajectory.resolve(event.data)
        if event.kind == "lm_call":
            found = _REASONING.search(str(data.get("response") or data.get("output") or ""))
            reasoning = found[1] if found else ""
        elif event.kind == "code":
            output = str(data.get("output") or "")
            turn = Turn(
                _cut(" ".join(reasoning.split()), MOST_REASONING_CHARS),
                str(data.get("code") or "").strip(),
                _cut(output, MOST_OUTPUT_CHARS),
            )
            failed = _FAILED.search(output) is not None
            yield _Made(event.index, turn, failed, _queries(trajectory, event))
            reasoning = ""


def _queries(trajectory: Trajectory, code: Event) -> tuple[str, ...]:
    """Return the queries that a turn ran, without comments."""
    found = []
    for call in trajectory.of("tool_call"):
        if call.parent == code.index and call.data.get("tool") == "sparql_query":
            arguments = trajectory.resolve(call.data).get("arguments") or {}
            found.append(without_comments(str(arguments.get("query") or "")))
    return tuple(found)


def _names_in(code: str) -> set[str]:
    """Return the names in the strings of a turn's code."""
    inside = (t.text.strip("\"'") for t in tokenize(code) if t.kind == "string")
    return {t.text for text in inside for t in tokenize(text) if t.kind in ("name", "iri")}


def _distinct(turns: Iterable[_Made]) -> list[_Made]:
    once = {" ".join(turn.turn.code.split()): turn for turn in reversed(list(turns))}
    return sorted(once.values(), key=lambda turn: turn.index)


def _submission(ran: _Made, query: str) -> Turn:
    """Return the turn that submits what an earlier one ran and kept in a variable."""
    kept = re.search(r"^(\w+)\s*=\s*[rf]?(\"\"\"|'''|\"|')", ran.turn.code, re.MULTILINE)
    name = kept[1] if kept else f'"""{query}"""'
    return Turn(_SUBMITTING, f"SUBMIT({name})")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
