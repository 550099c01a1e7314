"""The leakage guard: what a trial must not be shown, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from reasoningbank.corpus import Task
from reasoningbank.memory.item import MemoryItem
from reasoningbank.sparql.extraction import queries_in
from reasoningbank.sparql.shape import Prefixes, query_hashes, shape_hash

__all__ = ["Guard"]

#: Of the telling words of a question, the part that makes another text near-verbatim; how many
#: times as long that may be; and how many telling words a question needs to be known by.
NEAR = 0.9
LONGEST = 1.5
LEAST_WORDS = 4

_SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n+")
_WORDS = re.compile(r"[^\W_]+(?:[-.:_/][^\W_]+)*")


@dataclass(frozen=True)
class Guard:
    """What one trial must not see. Without arguments it withholds nothing.

    Ids and groups are compared with the provenance of an item, its merged evidence included. As
    an imported item may name a wrong source or none, its texts are read as well: a query that is
    a gold of the evaluation split or of the task itself in other words, and sentences that are
    one of their questions, are leaks whatever the provenance says.

    Attributes:
        task: Id of the trial's task.
        group: The task's group.
        evaluation: Ids of the tasks of the evaluation split.
        evaluation_groups: Their groups.
        corpus: Name of the pack or folder that these ids are of; an item of another corpus may
            have the same id by chance.
        gold_hashes: `query_hashes` of the golds, and their `template_hash`, by which an item
            without provenance is judged.
        questions: The questions of these golds.
        prefixes: Prefixes that a query of an item need not declare.

    Examples:
        >>> from reasoningbank.memory import Provenance
        >>> guard = Guard(task="t1", group="masses", evaluation=frozenset({"t2"}))
        >>> item = MemoryItem("Masses", "", "Use up:mass.", "gold", provenance=Provenance("t2"))
        >>> guard.objection(item)
        'evaluation split: rests on the task t2'
        >>> Guard().objection(item)
        ''
    """

    task: str = ""
    group: str = ""
    evaluation: frozenset[str] = frozenset()
    evaluation_groups: frozenset[str] = frozenset()
    corpus: str = ""
    gold_hashes: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()
    prefixes: Prefixes = ()

    @classmethod
    def of(
        cls,
        task: Task | None,
        evaluation: Iterable[Task] = (),
        *,
        prefixes: Mapping[str, str] | None = None,
    ) -> Guard:
        """Return the guard of a trial.

        Args:
            task: The trial's task, its gold included; None for what is no trial.
            evaluation: The tasks of the evaluation split, theirs included.
            prefixes: Prefixes of the pack.
        """
        held = tuple(evaluation)
        known = tuple(sorted((prefixes or {}).items()))
        all_ = held if task is None else (*held, task)
        hashes: set[str] = set()
        for one in all_:
            if one.expected_sparql:
                hashes |= query_hashes(one.expected_sparql, known)
                hashes.add(shape_hash(one.expected_sparql, known))
        return cls(
            task=task.id if task is not None else "",
            group=task.group if task is not None else "",
            evaluation=frozenset(one.id for one in held),
            evaluation_groups=frozenset(one.group for one in held) - {""},
            corpus=task.corpus if task is not None else next((one.corpus for one in held), ""),
            gold_hashes=frozenset(hashes - {""}),
            questions=frozenset(one.query for one in all_),
            prefixes=known,
        )

    def objection(self, item: MemoryItem) -> str:
        """Return why an item must not be shown; empty where it may."""
        for origin in item.origins:
            same = not self.corpus or not origin.corpus or origin.corpus == self.corpus
            if origin.task and same:
                if origin.task == self.task:
                    return f"own task: rests on {origin.task}"
                if origin.task in self.evaluation:
                    return f"evaluation split: rests on the task {origin.task}"
            if origin.group and origin.group == self.group:
                return f"own group: rests on {origin.task or 'a task'} of {origin.group}"
            if origin.group in self.evaluation_groups:
                return f"evaluation split: rests on a task of the group {origin.group}"
        return self._in_text(item)

    def _in_text(self, item: MemoryItem) -> str:
        if self.gold_hashes:
            nameless = not any(origin.task for origin in item.origins)
            for where, text in _texts(item):
                for query in queries_in(text):
                    if not self.gold_hashes.isdisjoint(query_hashes(query, self.prefixes)):
                        return f"gold query: its {where} holds one of the evaluation"
                    if nameless and shape_hash(query, self.prefixes) in self.gold_hashes:
                        return f"gold query: its {where} has the shape of one of the evaluation"
        if self.questions:
            for where, text in _texts(item):
                for sentences, asked in _asked(self.questions):
                    said = _windows(text, sentences)
                    if any(_near(words, window) for words in asked for window in said):
                        return f"question: its {where} holds one of the evaluation"
        return ""


def _texts(item: MemoryItem) -> Iterator[tuple[str, str]]:
    yield "pattern", item.pattern
    yield "query", item.query
    yield "question", item.question
    yield "description", item.description
    yield "title", item.title
    yield "content", item.content
    yield "tags", "\n".join(item.tags)
    for turn in item.turns:
        yield "turns", turn.reasoning
        yield "turns", turn.code
        yield "turns", turn.output


@lru_cache(maxsize=16)
def _asked(questions: frozenset[str]) -> tuple[tuple[int, tuple[frozenset[str], ...]], ...]:
    """Return the telling words of questions, by how many sentences they have."""
    found: dict[int, list[frozenset[str]]] = {}
    for question in sorted(questions):
        found.setdefault(len(_sentences(question)), []).append(_telling(question))
    return tuple((number, tuple(asked)) for number, asked in sorted(found.items()))


@lru_cache(maxsize=8192)
def _windows(text: str, most: int) -> frozenset[frozenset[str]]:
    """Return the telling words of a text as a whole, and of up to `most` sentences in a row."""
    parts = [_telling(part) for part in _sentences(text)]
    rows = (parts[at : at + n] for n in range(1, most + 1) for at in range(len(parts)))
    every = {frozenset().union(*row) for row in (parts, *rows)}
    return frozenset(words for words in every if len(words) >= LEAST_WORDS - 1)


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCES.split(text) if part.strip()]


@lru_cache(maxsize=8192)
def _telling(text: str) -> frozenset[str]:
    """Return the words of a text that are long or hold a digit."""
    words = (word.casefold() for word in _WORDS.findall(text))
    return frozenset(w for w in words if len(w) > 2 or any(c.isdigit() for c in w))


def _near(asked: frozenset[str], said: frozenset[str]) -> bool:
    if len(asked) < LEAST_WORDS or len(said) > LONGEST * len(asked):
        return False
    missing = asked - said
    if len(missing) > (1 - NEAR) * len(asked):
        return False
    # A question with another identifier or number is another question.
    return not any(character.isdigit() for word in missing for character in word)
