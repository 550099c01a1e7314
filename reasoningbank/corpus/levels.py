"""Levels of generalization: how far a task is from what an agent was trained on.

After GrailQA (Gu et al., WWW 2021, "Beyond I.I.D."): a task is *iid* if its query shape occurs in
training with other constants, *compositional* if only its classes and properties do, *zero-shot*
if one of them does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, get_args

from reasoningbank.corpus.task import Task
from reasoningbank.errors import QueryError
from reasoningbank.sparql.shape import SLOT, Prefixes, names_in, shape_hash, slots_as_iris
from reasoningbank.sparql.terms import RDF_TYPE, STANDARD_PREFIXES, absolute
from reasoningbank.sparql.tokens import prologue, tokenize
from reasoningbank.sparql.tree import read_query

Level = Literal["iid", "compositional", "zero-shot"]
LEVELS: tuple[Level, ...] = get_args(Level)
_NO_PREFIXES: Mapping[str, str] = MappingProxyType({})


def levels(
    tasks: Iterable[Task],
    training: Iterable[Task | str],
    prefixes: Mapping[str, str] = _NO_PREFIXES,
) -> dict[str, Level]:
    """Return the level of each task relative to training tasks.

    Args:
        tasks: Tasks with their golds.
        training: Training tasks, or queries: of a memory bank (``<<name>>`` stands for a constant)
            or of the examples in a prompt.
        prefixes: Prefixes that the queries may use without declaring them.

    Returns:
        Task id → level.
    """
    declared = tuple(sorted(prefixes.items()))
    known = [one if isinstance(one, str) else one.expected_sparql for one in training]
    shapes = {shape_hash(query, declared) for query in known} - {""}
    items = frozenset[str]().union(*(schema_items(query, declared) for query in known))
    found: dict[str, Level] = {}
    for task in tasks:
        own = schema_items(task.expected_sparql, declared)
        if shape_hash(task.expected_sparql, declared) in shapes:
            found[task.id] = "iid"
        else:
            found[task.id] = "compositional" if own <= items else "zero-shot"
    return found


@lru_cache(maxsize=8192)
def schema_items(query: str, prefixes: Prefixes = ()) -> frozenset[str]:
    """Return the IRIs of a query's properties and classes (objects of ``rdf:type``)."""
    text = slots_as_iris(query)
    own, _ = prologue(tokenize(text))
    declared = {**STANDARD_PREFIXES, **dict(prefixes), **own}
    try:
        patterns = read_query(text).triple_patterns()
    except QueryError:
        return frozenset(names_in(text, declared))
    found: set[str] = set()
    for pattern in patterns:
        steps = [absolute(token.text, declared) for token in tokenize(pattern.predicate)]
        found.update(step for step in steps if step)
        if steps and steps[-1] == RDF_TYPE and (named := absolute(pattern.object, declared)):
            found.add(named)
    return frozenset(name for name in found if not name.startswith(SLOT))


def near_duplicates(
    tasks: Sequence[Task], training: Sequence[Task], threshold: float = 0.8
) -> list[tuple[str, str, float]]:
    """Find tasks whose question nearly repeats a training question."""
    shown = [(task.id, _pairs(task.query)) for task in training]
    found = []
    for task in tasks:
        own = _pairs(task.query)
        for name, other in shown:
            common = len(own & other)
            if common and (share := common / (len(own) + len(other) - common)) >= threshold:
                found.append((task.id, name, round(share, 3)))
    return sorted(found, key=lambda pair: (-pair[2], pair))


def _pairs(question: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(["", *re.findall(r"\w+", question.casefold()), ""]))
