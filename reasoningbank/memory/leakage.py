"""The leakage filter: which items a trial must not be shown, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from reasoningbank.corpus import Task
from reasoningbank.findings import Finding
from reasoningbank.lm.reply import queries_in
from reasoningbank.memory.item import MemoryItem
from reasoningbank.sparql.shape import Prefixes, query_hashes, shape_hash

#: Share of a question's distinctive words that makes another text near-verbatim; how many times
#: as long that text may be; and how many distinctive words a question needs to be recognized.
NEAR = 0.9
LONGEST = 1.5
LEAST_WORDS = 4

_SENTENCES = re.compile(r"(?<=[.!?:])\s+|\n+")
_WORDS = re.compile(r"[^\W_]+(?:[-.:_/][^\W_]+)*")


@dataclass(frozen=True)
class LeakageFilter:
    """What one trial must not see. Without arguments it filters out nothing.

    Ids and groups are compared with the provenance and evidence of an item. Since an imported
    item may name a wrong source or none, its texts are checked too: a query equivalent to a gold
    of the evaluation or of the task itself, and sentences that repeat one of their questions, are
    leaks whatever the provenance says.
    """

    task: str = ""  #: Id of the trial's task, which is in `group`
    group: str = ""
    #: Ids of the tasks of the evaluation split, which are in `evaluation_groups`
    evaluation: frozenset[str] = frozenset()
    evaluation_groups: frozenset[str] = frozenset()
    #: Name of the pack or folder of these ids; other corpora may have the same ids
    corpus: str = ""
    #: `query_hashes` of the gold queries, and their `shape_hash`, which is compared with items
    #: without provenance
    gold_hashes: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()  #: The questions of these golds
    prefixes: Prefixes = ()  #: Prefixes that a query of an item need not declare

    @classmethod
    def of(
        cls,
        task: Task | None,
        evaluation: Iterable[Task] = (),
        *,
        prefixes: Mapping[str, str] | None = None,
    ) -> LeakageFilter:
        """Return the filter of a trial of a task, with the golds of it and of the evaluation split.

        `task` is None outside of a trial; `prefixes` are those of the pack.
        """
        held_out, own = tuple(evaluation), () if task is None else (task,)
        known = tuple(sorted((prefixes or {}).items()))
        golds = {one.expected_sparql for one in (*held_out, *own)} - {""}
        hashes = (query_hashes(gold, known) | {shape_hash(gold, known)} for gold in golds)
        return cls(
            task=task.id if task is not None else "",
            group=task.group if task is not None else "",
            evaluation=frozenset(one.id for one in held_out),
            evaluation_groups=frozenset(one.group for one in held_out) - {""},
            corpus=next((one.corpus for one in (*own, *held_out)), ""),
            gold_hashes=frozenset().union(*hashes) - {""},
            questions=frozenset(one.query for one in (*held_out, *own)),
            prefixes=known,
        )

    def finding(self, item: MemoryItem) -> Finding | None:
        """Return why an item must not be shown; None if it may be.

        Codes: ``own-task``, ``own-group``, ``evaluation-task``, ``evaluation-group``,
        ``gold-query``, ``gold-shape``, ``question``; fields: ``task``, ``group``, ``part``.
        """
        for origin in item.origins:
            same = not self.corpus or not origin.corpus or origin.corpus == self.corpus
            if origin.task and same and origin.task == self.task:
                code, what = "own-task", f"own task: rests on {origin.task}"
            elif origin.task and same and origin.task in self.evaluation:
                code, what = "evaluation-task", f"evaluation split: rests on the task {origin.task}"
            elif origin.group and origin.group == self.group:
                what = f"own group: rests on {origin.task or 'a task'} of {origin.group}"
                code = "own-group"
            elif origin.group in self.evaluation_groups:
                what = f"evaluation split: rests on a task of the group {origin.group}"
                code = "evaluation-group"
            else:
                continue
            return Finding(code, what, fields={"task": origin.task, "group": origin.group})
        return self._in_text(item)

    def _in_text(self, item: MemoryItem) -> Finding | None:
        nameless = not any(origin.task for origin in item.origins)
        for part, text in _texts(item) if self.gold_hashes else ():
            for query in queries_in(text):
                if not self.gold_hashes.isdisjoint(query_hashes(query, self.prefixes)):
                    what = f"gold query: its {part} contains one of the evaluation"
                    return Finding("gold-query", what, fields={"part": part})
                if nameless and shape_hash(query, self.prefixes) in self.gold_hashes:
                    what = f"gold query: its {part} has the shape of one of the evaluation"
                    return Finding("gold-shape", what, fields={"part": part})
        for part, text in _texts(item):
            for sentences, asked in _asked(self.questions).items():
                said = _windows(text, sentences)
                if any(_near(words, window) for words in asked for window in said):
                    what = f"question: its {part} contains one of the evaluation"
                    return Finding("question", what, fields={"part": part})
        return None


def _texts(item: MemoryItem) -> Iterator[tuple[str, str]]:
    for part in ("pattern", "query", "question", "description", "title", "content"):
        yield part, getattr(item, part)
    yield "tags", "\n".join(item.tags)
    for turn in item.turns:
        yield from (("turns", text) for text in (turn.reasoning, turn.code, turn.output))


@lru_cache(maxsize=16)
def _asked(questions: frozenset[str]) -> dict[int, list[frozenset[str]]]:
    """Return the distinctive words of questions, by their number of sentences."""
    found: dict[int, list[frozenset[str]]] = defaultdict(list)
    for question in questions:
        words = _distinctive(question)
        if len(words) >= LEAST_WORDS:
            found[len(_sentences(question))].append(words)
    return found


@lru_cache(maxsize=8192)
def _windows(text: str, most: int) -> frozenset[frozenset[str]]:
    """Return the distinctive words of a text, and of each run of up to `most` sentences."""
    parts = [_distinctive(part) for part in _sentences(text)]
    rows = (parts[at : at + n] for n in range(1, most + 1) for at in range(len(parts)))
    every = {frozenset().union(*row) for row in (parts, *rows)}
    return frozenset(words for words in every if len(words) >= LEAST_WORDS - 1)


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCES.split(text) if part.strip()]


@lru_cache(maxsize=8192)
def _distinctive(text: str) -> frozenset[str]:
    """Return the words of a text that are long or contain a digit."""
    words = (word.casefold() for word in _WORDS.findall(text))
    return frozenset(w for w in words if len(w) > 2 or any(c.isdigit() for c in w))


def _near(asked: frozenset[str], said: frozenset[str]) -> bool:
    missing = asked - said
    if len(said) > LONGEST * len(asked) or len(missing) > (1 - NEAR) * len(asked):
        return False
    # A question with another identifier or number is another question.
    return not any(character.isdigit() for word in missing for character in word)
