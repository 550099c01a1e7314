"""Columns that are selected and that nothing in the query gives a value."""

from __future__ import annotations

from itertools import pairwise

from reasoningbank.sparql import PreparedQuery
from reasoningbank.sparql.tree import outline

__all__ = ["unbound_columns"]


def unbound_columns(prepared: PreparedQuery) -> tuple[str, ...]:
    """Return a line for each column that is always empty, with the variables that are not selected.

    Such a query runs, and its rows say nothing in that column.

    Examples:
        >>> from reasoningbank.sparql.query import prepare
        >>> unbound_columns(prepare("SELECT ?reaction { ?r <e:of> ?rhea }"))
        ('?reaction is selected, and no pattern has it; not selected are ?r, ?rhea',)
        >>> unbound_columns(prepare("SELECT (COUNT(?r) AS ?n) ?of { ?r <e:of> ?of } GROUP BY ?of"))
        ()
    """
    shape = outline(prepared.text)
    opening = next((at for at, t in enumerate(shape.body) if t.text == "{"), len(shape.body))
    head, where = shape.body[:opening], shape.body[opening:]
    given = list(dict.fromkeys(t.text[1:] for t in where if t.kind == "variable"))
    named = {after.text[1:] for before, after in pairwise(head) if before.is_word("AS")}
    used = {t.text[1:] for t in head if t.kind == "variable"}
    rest = ", ".join(f"?{name}" for name in given if name not in used)
    instead = f"; not selected are {rest}" if rest else ""
    return tuple(
        f"?{name} is selected, and no pattern has it{instead}"
        for name in shape.projected
        if name not in given and name not in named
    )
