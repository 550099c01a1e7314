"""A table as the VALUES block of a query (SPARQL 1.1, section 10)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rdflib import BNode

from reasoningbank.algebra.faults import ProgramError, one_of
from reasoningbank.algebra.terms import to_sparql
from reasoningbank.algebra.texts import check_query, query_outline
from reasoningbank.algebra.values import Row
from reasoningbank.errors import QueryError
from reasoningbank.sparql.syntax import MOST_CHARS

__all__ = ["values_block", "with_values"]


def values_block(names: Sequence[str], rows: Iterable[Row]) -> str:
    """Write rows as a VALUES block; what a row leaves unbound is UNDEF.

    Raises:
        ProgramError: A blank node is among them, or it becomes longer than a query may be.

    Examples:
        >>> from rdflib import Literal
        >>> print(values_block(["a", "b"], [{"a": Literal("x", lang="da")}]))
        VALUES (?a ?b) {
          ("x"@da UNDEF)
        }
    """
    lines: list[str] = []
    size = 0
    for row in rows:
        cells = []
        for name in names:
            term = row.get(name)
            if isinstance(term, BNode):
                hint = "no query can name it: ask for its parts in one query"
                raise ProgramError(f"?{name} is a blank node", hint=hint)
            cells.append("UNDEF" if term is None else to_sparql(term))
        lines.append(f"  ({' '.join(cells)})\n")
        size += len(lines[-1])
        if size > MOST_CHARS:
            hint = "put a LIMIT into the query of the rows, or use ForEach with Substitute"
            raise ProgramError("these are too many rows for one query", hint=hint)
    head = " ".join(f"?{name}" for name in names)
    return f"VALUES ({head}) {{\n{''.join(lines)}}}"


def with_values(query: str, names: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a query with a VALUES block at its end, which joins with its outermost level.

    Raises:
        ProgramError: The query has such a block, or none of the variables; or no query is left.
    """
    shape = query_outline(query)
    there = {token.text[1:] for token in shape.body if token.kind == "variable"}
    absent = [name for name in names if name not in there]
    if absent or not names:
        wanted = f"?{absent[0]}" if absent else "variable"
        hint = f"it has {one_of([f'?{name}' for name in sorted(there)])}; choose columns with vars"
        raise ProgramError(f"no {wanted} occurs in the query", where="args.query", hint=hint)
    # A comment at the end must not swallow the block.
    made = f"{query[: shape.body[-1].end]}\n{values_block(names, rows)}"
    try:
        check_query(made)
    except QueryError as error:
        told = f"{error.where}: {error.what}" if error.where else error.what
        hint = "it must not end with a VALUES block of its own"
        raise ProgramError(f"no valid query is left: {told}", hint=hint) from None
    return made
