"""Is a bank of 1,000 items as useful after consolidation as before, and how long does it take?

`python -m benchmarks.consolidation` prints the table. The bank is made of the labelled retrieval
set's items (few-shot examples of the UniProt pack's training tasks, and its seeds), each in several
wordings, of pitfalls that were met on several tasks, and of items of other packs. Each item is a
wording of one *lesson*; a question is answered by any wording of the lesson that it should find.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.retrieval_quality import SET, Asked, best_rank, questions, seeds
from reasoningbank.analysis.statistics import bootstrap_mean
from reasoningbank.corpus import load_pack, load_shacl_tasks, split_tasks
from reasoningbank.memory import MemoryBank, MemoryItem, Provenance, Scope
from reasoningbank.memory.consolidate import consolidate
from reasoningbank.retrieval import WEIGHTS, Embedder
from reasoningbank.sparql.tokens import tokenize

__all__ = ["Lessons", "Usefulness", "lessons", "usefulness"]

PACK = "uniprot"
DEPTH = 50
#: Ways to ask the same, in front of a question.
ASKED = ("", "Tell me: ", "I would like to know: ", "Please find out: ", "Question: ", "Say ",
         "Could you tell me: ", "For my list: ")  # fmt: skip
#: What models write instead of a property's name.
INVENTED = ("{0}s", "has{1}", "is{1}Of", "{0}Value")


@dataclass(frozen=True)
class Lessons:
    """Items, and of which lesson each is a wording.

    Attributes:
        items: The items.
        lesson: Name of the lesson by the item's id.
    """

    items: tuple[MemoryItem, ...]
    lesson: Mapping[str, str]


@dataclass(frozen=True)
class Usefulness:
    """How a bank answers the labelled questions.

    Attributes:
        items: Active items.
        ranks: By question, the place of the first item of a wanted lesson.
        distinct: Mean number of lessons among the first three items.
    """

    items: int
    ranks: tuple[int, ...]
    distinct: float

    @property
    def mrr(self) -> float:
        """Mean of 1 / place."""
        return statistics.mean(1 / rank for rank in self.ranks)


def lessons(size: int = 1_000, seed: int = 0) -> Lessons:
    """Make so many items; the same ones each time."""
    draw = random.Random(seed)
    pools = [list(_exemplars(draw)), list(_seeds(draw)), list(_pitfalls(draw)), list(_others())]
    found: dict[str, tuple[str, MemoryItem]] = {}
    for lesson, item in (pair for pool in pools for pair in pool):
        found.setdefault(item.id, (lesson, item))
    pairs = list(found.values())
    # Of each lesson one stays, whatever is drawn.
    first = dict(reversed(pairs))
    rest = [pair for pair in pairs if first[pair[0]] is not pair[1]]
    draw.shuffle(rest)
    chosen = [*first.items(), *rest][:size]
    draw.shuffle(chosen)
    return Lessons(tuple(item for _, item in chosen), {item.id: lesson for lesson, item in chosen})


def usefulness(
    bank: MemoryBank,
    lesson: Mapping[str, str],
    asked: Sequence[Asked],
    weights: tuple[float, float] = WEIGHTS,
) -> Usefulness:
    """Measure a bank on labelled questions, with weights of meaning and of words."""
    ranks, distinct = [], []
    for one in asked:
        found = [lesson[item.id] for item, _ in bank.match(one.question, DEPTH, weights=weights)]
        ranks.append(best_rank(found, frozenset(one.items)))
        distinct.append(len(set(found[:3])))
    return Usefulness(len(bank.items()), tuple(ranks), statistics.mean(distinct))


def joined(bank: MemoryBank, lesson: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of different lessons that were merged."""
    gone = bank.items(status="superseded")
    return [
        (lesson[item.id], lesson[item.superseded_by])
        for item in gone
        if lesson[item.id] != lesson[item.superseded_by]
    ]


def main(embedder: Embedder | None = None) -> None:
    """Print the table."""
    made = lessons()
    asked = questions()
    bank = MemoryBank(embedder=embedder)
    bank.add(made.items)
    before = usefulness(bank, made.lesson, asked)
    began = time.perf_counter()
    changes = consolidate(bank, embedder=embedder)
    all_at_once = time.perf_counter() - began
    after = usefulness(bank, made.lesson, asked)
    print(f"{len(set(made.lesson.values()))} lessons, {len(asked)} questions\n")
    print("| | items | MRR | lessons among the first 3 |\n|---|---:|---:|---:|")
    for name, one in (("before", before), ("after", after)):
        print(f"| {name} | {one.items} | {one.mrr:.3f} | {one.distinct:.2f} |")
    gain = bootstrap_mean(
        [1 / b - 1 / a for a, b in zip(before.ranks, after.ranks, strict=True)], bounds=(-1.0, 1.0)
    )
    print(f"\ngain of MRR: {gain.rate:.3f} [{gain.low:.3f}, {gain.high:.3f}]")
    print(f"merged although different: {len(joined(bank, made.lesson))}")
    print(f"all at once: {all_at_once:.1f} s, {len(changes)} changes")
    once = MemoryBank(embedder=embedder)
    once.add(made.items)
    taken = []
    for item in lessons(seed=1).items[:25]:
        reworded = replace(item, description=f"{item.description} (again)")
        (new,) = once.add([reworded])
        began = time.perf_counter()
        consolidate(once, new=[new], embedder=embedder)
        taken.append(time.perf_counter() - began)
    print(
        f"one new item beside 1,000: median {statistics.median(taken):.3f} s, "
        f"most {max(taken):.3f} s"
    )


# -- the items ------------------------------------------------------------------------------


def _exemplars(draw: random.Random) -> Iterator[tuple[str, MemoryItem]]:
    pack = load_pack(PACK)
    for task in split_tasks(load_shacl_tasks(PACK)).train:
        for number, before in enumerate(ASKED):
            question = f"{before}{task.query}"
            item = MemoryItem(
                f"Example: {question[:60]}",
                "",
                "",
                "gold",
                pattern=_renamed(task.expected_sparql, draw if number else None),
                scope=Scope(PACK, pack.endpoint),
                provenance=Provenance(task.id, task.group, PACK, f"one/{task.id}.{number}"),
                question=question,
            )
            yield f"gold:{task.id}", item


def _seeds(draw: random.Random) -> Iterator[tuple[str, MemoryItem]]:
    for item in seeds():
        lesson = f"seed:{item.title}"
        yield lesson, item
        for before in ASKED[1:4]:
            yield (
                lesson,
                replace(
                    item,
                    title=f"{before}{item.title}",
                    description=f"{before}{item.description}",
                    pattern=_renamed(item.pattern, draw),
                ),
            )


def _pitfalls(draw: random.Random) -> Iterator[tuple[str, MemoryItem]]:
    """Yield invented names, each met on up to three tasks, worded as distillation words them."""
    pack = load_pack(PACK)
    tasks = split_tasks(load_shacl_tasks(PACK)).train
    names = {
        token.text
        for task in tasks
        for token in tokenize(task.expected_sparql)
        if token.kind == "name" and token.text.startswith("up:") and token.text[3:4].islower()
    }
    for name in sorted(names):
        local = name.removeprefix("up:")
        for form in INVENTED:
            bad = "up:" + form.format(local, local[0].upper() + local[1:])
            for task in draw.sample(tasks, 3):
                yield (
                    f"absent:{bad}",
                    MemoryItem(
                        f"Names that exist: {local}: {name}",
                        f"Questions about {local}, such as: {task.query}",
                        f"For {local}: write {name}. There is no property {bad}.\n"
                        "Sign: no rows, whatever the rest of the query is.",
                        "failure",
                        tags=(name, f"absent:{bad}"),
                        scope=Scope(PACK, pack.endpoint),
                        provenance=Provenance(task.id, task.group, PACK, judge="execution"),
                    ),
                )


def _others() -> Iterator[tuple[str, MemoryItem]]:
    for line in (SET / "others.jsonl").read_text(encoding="utf-8").splitlines():
        if line.strip():
            item = MemoryItem.from_json(json.loads(line))
            yield f"other:{item.title}", item


def _renamed(pattern: str, draw: random.Random | None) -> str:
    """Return a pattern with other variables."""
    if draw is None:
        return pattern
    parts, end = [], 0
    suffix = f"_{draw.randrange(10**6)}"
    for token in tokenize(pattern):
        if token.kind == "variable":
            parts.append(pattern[end : token.end] + suffix)
            end = token.end
    return "".join([*parts, pattern[end:]])


if __name__ == "__main__":
    main()
