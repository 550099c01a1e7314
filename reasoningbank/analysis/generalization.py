"""Levels of generalization along a stream, and why i.i.d. trials fail, from records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reasoningbank.corpus.splits import Level, schema_items
from reasoningbank.experiment import TrialRecord
from reasoningbank.sparql.shape import Prefixes, shape_hash
from reasoningbank.sparql.tokens import prologue, tokenize

#: Why a trial whose query shape was in the training tasks is wrong: memory showed no item of this
#: shape; it did and no query of this shape was submitted; or only constants differ.
CAUSES = ("template not shown", "form wrong", "slot wrong")


def stream_levels(
    places: Iterable[tuple[int, int, str]], golds: Mapping[str, str], known: Sequence[str] = ()
) -> dict[tuple[int, str], Level]:
    """Return the level of each task of a stream relative to what the stream held before it."""
    declared = prefixes_of(golds.values())
    found: dict[tuple[int, str], Level] = {}
    shapes: set[str] = set()
    items: set[str] = set()

    def learn(query: str) -> None:
        shapes.add(shape_hash(query, declared))
        items.update(schema_items(query, declared))

    permutation = None
    for seed, _, task in sorted(set(places)):
        if seed != permutation:
            permutation = seed
            shapes.clear()
            items.clear()
            for query in known:
                learn(query)
        if gold := golds.get(task):
            seen = shape_hash(gold, declared) in shapes - {""}
            own = schema_items(gold, declared)
            found[seed, task] = "iid" if seen else "compositional" if own <= items else "zero-shot"
            learn(gold)
    return found


def cause_of_failure(record: TrialRecord, patterns: Mapping[str, str]) -> str | None:
    """Return one of `CAUSES` for a wrong i.i.d. trial with a memory; None for any other."""
    judged = (record.verdict or {}).get("status", "gold_defect") != "gold_defect"
    retrieved = record.trajectory.of("memory_retrieved")
    if record.level != "iid" or record.strict or not judged or not retrieved:
        return None
    declared = prefixes_of([record.gold])
    wanted = shape_hash(record.gold, declared)
    data = [record.trajectory.resolve(event.data) for event in retrieved]
    shown = {
        shape_hash(patterns.get(str(item.get("id")), ""), declared)
        for one in data
        for item in (*(one.get("items") or ()), *(one.get("demonstrations") or ()))
    }
    if wanted not in shown:
        return CAUSES[0]
    return CAUSES[1] if shape_hash(record.sparql or "", declared) != wanted else CAUSES[2]


def prefixes_of(queries: Iterable[str]) -> Prefixes:
    """Return the prefixes that queries declare."""
    found = {k: v for query in queries for k, v in prologue(tokenize(query))[0].items()}
    return tuple(sorted(found.items()))
