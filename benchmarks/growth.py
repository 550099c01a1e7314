"""What must grow with its input and no faster: four times as much, so many times as long.

Tests count calls; what happens within one call of C, such as a search by a regular expression, is
measured here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from benchmarks.measure import Row, median_seconds
from reasoningbank.judge import Answer, compare
from reasoningbank.lm.reply import queries_in, query_in
from reasoningbank.sparql.tokens import tokenize

__all__ = ["growth"]


def growth(size: int, repeats: int) -> list[Row]:
    """Do each job on inputs of `size` characters (a tenth of it rows), and four times that."""
    rows = []
    for what, make in JOBS.items():
        few, many = (median_seconds(make(n), repeats) for n in (size, 4 * size))
        rows.append(
            Row(f"four times as much of {what}", "times as long", many / few, 4, "in proportion")
        )
    return rows


def _tokens(unit: str) -> Callable[[int], Callable[[], object]]:
    def made(size: int) -> Callable[[], object]:
        text = "SELECT " + unit * (size // len(unit))
        return lambda: tokenize(text)

    return made


def _prose(size: int) -> Callable[[], object]:
    text = "Select what you need and ask again. " * (size // 36)
    return lambda: queries_in(text)


def _reply(size: int) -> Callable[[], object]:
    text = "SELECT ?s { ?s ?p ?o }\n" * (size // 23)
    return lambda: query_in(text)


def _answers(size: int) -> Callable[[], object]:
    draw = random.Random(3)
    rows = [(f"<http://e/p{i}>", str(draw.randrange(10**6)), f"_:b{i // 3}") for i in
            range(size // 10)]  # fmt: skip
    gold = Answer.of_rows("abc", rows)
    predicted = Answer.of_rows("xyz", [row[::-1] for row in draw.sample(rows, len(rows))])
    return lambda: compare(gold, predicted)


JOBS: Mapping[str, Callable[[int], Callable[[], object]]] = {
    **{f"the text {unit!r}": _tokens(unit) for unit in ("a-", "a.", "a", "-", "'a", "<a", "?a<")},
    "prose without a query": _prose,
    "a reply with queries": _reply,
    "two equal answers": _answers,
}
