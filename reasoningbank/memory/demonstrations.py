"""Worked turns of successes: taken from trajectories, shown within a bound, and their control."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from reasoningbank.agents import Budget, CodeTurn, Demonstration
from reasoningbank.corpus.task import shuffle_key
from reasoningbank.findings import Finding
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.item import ItemSource, MemoryItem, Turn
from reasoningbank.memory.leakage import LeakageFilter
from reasoningbank.memory.search import example_of
from reasoningbank.sparql import EntityLinker
from reasoningbank.sparql.terms import short
from reasoningbank.sparql.tokens import tokenize, without_comments
from reasoningbank.trajectory import Trajectory

if TYPE_CHECKING:
    import dspy


#: Tokens of a prompt that one demonstration may take. Each turn repeats those before it, so four
#: turns of usual length take about 2,600.
MOST_TOKENS = 900
#: The random control is drawn among so many that are nearest in tokens.
NEAREST = 5
#: Turns of one demonstration, and characters of a turn's output and reasoning.
MOST_TURNS = 4
MOST_OUTPUT_CHARS = 500
#: Rows that a worked turn looks at.
MOST_PEEKED = 3
MOST_REASONING_CHARS = 240

_RUNS = re.compile(r"\bsparql_query\s*\(")
_REASONING = re.compile(r"\[\[ ## reasoning ## \]\]\s*(.*?)\s*(?=\[\[ ## |\Z)", re.DOTALL)
_SUBMIT = re.compile(r"\bSUBMIT\s*\(")
#: DSPy's mark of a failed execution, and what Python prints.
_FAILED = re.compile(r"^\[Error\]|\bTraceback \(most recent|^\w*Error\b", re.MULTILINE)
_RUNNING = "I write the query that the question asks for, run it and look at its rows."
_SUBMITTING = "The rows answer the question, so I submit the query that I ran."


# -- showing ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownDemonstration:
    """A demonstration as it is shown, with its item."""

    item: MemoryItem
    demonstration: Demonstration
    text: str
    tokens: int

    def to_event(self) -> dict[str, Any]:
        """Return its entry in a ``memory_retrieved`` event."""
        origin = self.item.provenance
        return {
            "id": self.item.id,
            "task": origin.task,
            "trial": origin.trial,
            "tokens": self.tokens,
            "turns": len(self.demonstration.turns),
            "left_out": max(0, len(self.item.turns) - len(self.demonstration.turns)),
            "text": self.text,
        }


@lru_cache(maxsize=4096)
def shown_demonstration(item: MemoryItem, tokens: int = MOST_TOKENS) -> ShownDemonstration | None:
    """Return an item's demonstration, or if too long its last turns that fit, if any."""
    from reasoningbank.agents.loops import turn_examples  # loads DSPy

    if not item.turns or not item.question:
        return None
    turns = tuple(CodeTurn(**vars(turn)) for turn in item.turns)
    for first in range(len(turns)):
        shown = Demonstration(question=item.question, turns=turns[first:])
        if first and not any(_RUNS.search(turn.code) for turn in shown.turns):
            break
        # The number of allowed turns, which the prompt states, takes one token or two.
        parts = [_fields(example) for example in turn_examples(shown, Budget().iterations)]
        # As the chat adapter writes them.
        texts = ("\n\n".join(f"[[ ## {k} ## ]]\n{v}" for k, v in p.items()) for p in parts)
        used = sum(map(count_tokens, texts))
        if used <= tokens:
            last = "\n".join(v for k, v in parts[-1].items() if k != "iteration")
            return ShownDemonstration(item, shown, last, used)
    return None


#: Returns the turns of an answered question that nobody worked on: a query, peeked at, submitted.
Work = Callable[[str], tuple[Turn, ...]]


def worked_turns(query: str, tools: Mapping[str, Callable[..., Any]]) -> tuple[Turn, ...]:
    """Return the turns that answer a question whose query is known, with what the tools return."""
    ref = tools["sparql_query"](query)
    output = f"{ref}\n{tools['sparql_peek'](ref, MOST_PEEKED)}\n"
    code = f'query = """{query}"""\nref = sparql_query(query)\nprint(ref)\n'
    code += f"print(sparql_peek(ref, {MOST_PEEKED}))"
    ran = Turn(_RUNNING, code, _cut(output))
    return ran, Turn(_SUBMITTING, "SUBMIT(query)")


def _demonstrated(
    item: MemoryItem, work: Work | None, linker: EntityLinker | None
) -> ShownDemonstration | None:
    """Return an item's demonstration; one with a query but no turns is worked on first."""
    shown, example = item, example_of(item)
    if work is not None and not item.turns and example is not None:
        shown = replace(shown, turns=work(example.query))
    if linker is not None:
        shown = replace(shown, question=linker.annotated(item.question))
    found = shown_demonstration(shown)
    # Its id is that of the bank's item, by which its origin is known.
    return found and replace(found, item=item)


def shown_demonstrations(
    items: Iterable[MemoryItem],
    most: int | None,
    work: Work | None = None,
    linker: EntityLinker | None = None,
) -> tuple[ShownDemonstration, ...]:
    """Return the demonstrations of the first `most` items that have one; None for all."""
    found = (_demonstrated(item, work, linker) for item in items)
    return tuple(itertools.islice((one for one in found if one is not None), most))


def random_demonstration(
    bank: MemoryBank,
    like: ShownDemonstration,
    *,
    leakage: LeakageFilter,
    seed: int = 0,
    kinds: frozenset[ItemSource] | None = None,
    work: Work | None = None,
    linker: EntityLinker | None = None,
    besides: Iterable[ShownDemonstration] = (),
) -> tuple[ShownDemonstration, tuple[tuple[str, Finding], ...]]:
    """Return a random demonstration like another in tokens, and what the leakage filter removed.

    It differs from those that are shown `besides`.
    """
    taken = {like.item.id, *(one.item.id for one in besides)}
    others = (i for i in bank.items() if i.id not in taken and (kinds is None or i.src in kinds))
    pool = shown_demonstrations(others, None, work, linker)

    def order(one: ShownDemonstration) -> tuple[Any, str]:
        return shuffle_key(seed, f"{leakage.task} turns {one.item.id}"), one.item.id

    near: list[ShownDemonstration] = []
    filtered_out: list[tuple[str, Finding]] = []
    for one in sorted(pool, key=lambda one: (abs(one.tokens - like.tokens), order(one))):
        if len(near) == NEAREST:
            break
        if finding := leakage.finding(one.item):
            filtered_out.append((one.item.id, finding))
        else:
            near.append(one)
    # As the nearest of all, `like` itself would be drawn far too often.
    return min(near, key=order, default=like), tuple(filtered_out)


def _fields(example: dspy.Example) -> dict[str, str]:
    return {
        "variables_info": "\n".join(example.variables_info),
        "repl_history": example.repl_history.format(),
        "iteration": example.iteration,
        "reasoning": example.reasoning,
        "code": example.code,
    }


# -- taking -------------------------------------------------------------------------------


class _Taken(NamedTuple):
    """A turn of a trajectory, and the queries that it ran, without comments."""

    at: int
    turn: Turn
    failed: bool
    queries: tuple[str, ...]
    submits: bool


def turns_of(trajectory: Trajectory, sparql: str) -> tuple[Turn, ...]:
    """Return the turns of a success that led to its query, at most four, with outputs cut."""
    query = without_comments(sparql)
    taken = list(_taken(trajectory))
    ran = next((turn for turn in taken if query in turn.queries and not turn.failed), None)
    if not query or ran is None:
        return ()
    earlier = (one for one in taken if one.at < ran.at and not one.failed)
    before = [one.turn for one in earlier if not one.submits and one.turn.output]
    names = _names_in(query)
    relevant = [
        turn
        for turn in before
        for token in tokenize(turn.code)
        if token.kind == "string" and _names_in(token.text.strip("\"'")) & names
    ]
    looked: dict[str, Turn] = {}
    for turn in relevant or before:
        looked.setdefault(" ".join(turn.code.split()), turn)
    turns = [*list(looked.values())[: MOST_TURNS - 2], ran.turn]
    if not ran.submits:
        later = (one.turn for one in taken if one.submits and one.at > ran.at)
        kept = re.search(r"^(\w+)\s*=\s*[rf]?(\"\"\"|'''|\"|')", ran.turn.code, re.MULTILINE)
        name = kept[1] if kept else f'"""{query}"""'
        turns.append(next(later, Turn(_SUBMITTING, f"SUBMIT({name})")))
    return tuple(turns)


def _taken(trajectory: Trajectory) -> Iterator[_Taken]:
    reasoning = ""
    for event in trajectory.events:
        data = trajectory.resolve(event.data)
        if event.kind == "lm_call":
            found = _REASONING.search(str(data.get("response") or data.get("output") or ""))
            reasoning = found[1] if found else ""
        elif event.kind == "code":
            output, code = str(data.get("output") or ""), str(data.get("code") or "").strip()
            turn = Turn(short(reasoning, MOST_REASONING_CHARS), code, _cut(output))
            failed = bool(data.get("repeated") or _FAILED.search(output))
            given = (
                trajectory.resolve(call.data).get("arguments") or {}
                for call in trajectory.of("tool_call")
                if call.parent == event.index and call.data.get("tool") == "sparql_query"
            )
            queries = tuple(without_comments(str(one.get("query") or "")) for one in given)
            yield _Taken(event.index, turn, failed, queries, bool(_SUBMIT.search(code)))
            reasoning = ""


def _names_in(text: str) -> set[str]:
    return {t.text for t in tokenize(text) if t.kind in ("name", "iri")}


def _cut(output: str) -> str:
    most = MOST_OUTPUT_CHARS
    return output if len(output) <= most else f"{output[: most - 1].rstrip()}…"
