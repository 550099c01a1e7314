"""Composition: strategies that two others make together, for questions that combine them.

"Which proteins does the gene SHBG encode?" answers with what "What is the full name of P05093?"
asks about: together they make the names of the proteins of a gene. Two strategies that answer with
the same make one with both conditions. What fits is read from the data, and the query has rows. A
small model copies a strategy that it sees, and combines two only rarely; so they are combined in
advance, and found by their questions like all others.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.memory.experience import shortened_title
from reasoningbank.memory.item import MemoryItem
from reasoningbank.memory.search import example_of
from reasoningbank.memory.skeleton import shortened, unused
from reasoningbank.sparql import EntityLinker, SPARQLClient
from reasoningbank.sparql.entity_linking import EntityMention
from reasoningbank.sparql.shape import shape_hash
from reasoningbank.sparql.tokens import Edit, apply_edits, tokenize
from reasoningbank.sparql.tree import QueryTree, read_query

#: Strategies that are combined with one another: those that most often led to the right answer.
MOST_COMBINED = 100
#: Rows of a strategy whose classes are read.
_ROWS = 20


@dataclass(frozen=True)
class _Half:
    item: MemoryItem
    tree: QueryTree  #: Of its query without the prefixes that need no declaration
    answers: Mapping[str, frozenset[str]]  #: Column → classes of what it holds
    general: str  #: Its question with classes in place of names
    named: tuple[EntityMention, ...]  #: What its question names


class _Seam(NamedTuple):
    """A column of the first strategy, and what it replaces in the second."""

    column: str
    term: str
    words: str = ""  #: The question's words for that; none if both answer with the same


def compose(
    items: Iterable[MemoryItem], *, client: SPARQLClient, linker: EntityLinker
) -> list[MemoryItem]:
    """Return the strategies that two others make together, each with and without the first column.

    Of strategies of one query shape the first is used. A composition rests on the evidence of
    both, and is kept if its query has rows.

    Args:
        items: Successes and few-shot examples; others are left out.
        client: Runs a query for each column, for the classes of what it holds, and one for each
            pair that fits, which asks for one row.
        linker: Finds the resources that questions name.

    Raises:
        EndpointError: If the endpoint fails.
    """
    halves = _halves(items, client, linker)
    found: dict[str, MemoryItem] = {}
    for one, other in itertools.permutations(halves, 2):
        for seam in _seams(one, other):
            where, columns = _joined(one, other, seam)
            with suppress(QueryError):
                if client.query(f"SELECT * WHERE {where} LIMIT 1").n_rows:
                    made = _composed(one, other, seam, where, columns, linker)
                    found |= {item.id: item for item in made}
    return list(found.values())


def _halves(items: Iterable[MemoryItem], client: SPARQLClient, linker: EntityLinker) -> list[_Half]:
    known, halves = tuple(sorted(client.config.prefixes.items())), dict[str, _Half]()
    for item in sorted(items, key=lambda one: (-one.counters.success, one.id)):
        example = example_of(item) if item.src in ("success", "gold") else None
        if example is None or len(halves) == MOST_COMBINED:
            continue
        with suppress(QueryError):
            shape = shape_hash(example.query, known)
            if shape not in halves and (half := _half(item, example.query, client, linker)):
                halves[shape] = half
    return list(halves.values())


def _half(item: MemoryItem, query: str, client: SPARQLClient, linker: EntityLinker) -> _Half | None:
    """Return a strategy as a half, if it selects columns and ends with its WHERE group."""
    query = shortened(query, client.config.prefixes)
    tree = read_query(query)
    head = query[: tree.where.start] if tree.where else "("
    if not tree.projected or tree.where is None or tree.where.end != len(query) or "(" in head:
        return None
    answers = {column: _classes(client, column, _body(tree)) for column in tree.projected}
    general, named = linker.generalized(item.question), linker.mentions(item.question)
    return _Half(item, tree, answers, general, named)


def _classes(client: SPARQLClient, column: str, body: str) -> frozenset[str]:
    """Return the classes of what a column holds, by its first rows; of texts there are none."""
    rows = f"SELECT ?{column} WHERE {{ {body} }} LIMIT {_ROWS}"
    found = client.rows(f"SELECT DISTINCT ?class WHERE {{ {{ {rows} }} ?{column} a ?class }}")
    return frozenset(of.value for (of,) in found if isinstance(of, NamedNode))


def _seams(one: _Half, other: _Half) -> Iterator[_Seam]:
    """Yield where the second asks about what the first answers with, or both answer the same."""
    written = {token.text for token in other.tree.body}
    asked = {m.name: (m.words, frozenset(m.classes)) for m in other.named if m.name in written}
    body = other.tree.body
    for before, token, then in zip(body, body[1:], body[2:], strict=False):
        # An object; with a language or datatype it equals no plain text.
        is_object = before.kind in ("name", "iri")
        if token.kind == "string" and is_object and not then.text.startswith(("@", "^^")):
            text = token.text.strip("\"'")
            if text in other.item.question:
                asked.setdefault(token.text, (text, frozenset()))
    for column, (term, (words, classes)) in itertools.product(one.tree.projected, asked.items()):
        if _fit(one.answers[column], classes):
            yield _Seam(column, term, words)
    if one.item.id < other.item.id:
        for column, same in itertools.product(one.tree.projected, other.tree.projected):
            if _fit(one.answers[column], other.answers[same]):
                yield _Seam(column, f"?{same}")


def _fit(one: frozenset[str], other: frozenset[str]) -> bool:
    # Texts have no class.
    return not one.isdisjoint(other) if one and other else not one and not other


def _joined(one: _Half, other: _Half, seam: _Seam) -> tuple[str, list[str]]:
    """Return the WHERE clause of both, and its columns."""
    taken = {t.text[1:] for t in one.tree.body if t.kind == "variable"}
    exchanged = {seam.term: f"?{seam.column}"}
    for token in other.tree.body:
        if token.kind == "variable" and token.text not in exchanged:
            name = unused(token.text[1:], taken)
            taken.add(name)
            exchanged[token.text] = f"?{name}"
    edits = [
        Edit(t.start, t.end, exchanged[t.text])
        for t in tokenize(other.tree.text)
        if exchanged.get(t.text, t.text) != t.text
    ]
    second = read_query(apply_edits(other.tree.text, edits))
    first = [seam.column] if seam.words else one.tree.projected
    columns = list(dict.fromkeys((*first, *second.projected)))
    return f"{{ {_body(one.tree)} . {_body(second)} }}", columns


def _body(tree: QueryTree) -> str:
    assert tree.where is not None
    return tree.text[tree.where.start + 1 : tree.where.end - 1].strip().removesuffix(".").rstrip()


def _composed(
    one: _Half, other: _Half, seam: _Seam, where: str, columns: list[str], linker: EntityLinker
) -> Iterator[MemoryItem]:
    """Yield both questions as one: with the shared column, and if asked about it, without it."""
    asked, words = other.item.question, re.escape(seam.words)
    if words:
        asked = re.sub(rf"[\"“«]?(?<!\w){words}(?!\w)[\"”»]?", "it", asked, count=1)
    general = linker.generalized(asked)
    orders = [(columns, "{} {}"), (columns[1:], "{1} ({0})")]
    for shown, order in orders if words else orders[:1]:
        query = f"SELECT DISTINCT {' '.join(f'?{name}' for name in shown)} WHERE {where}"
        yield MemoryItem(
            title=shortened_title(f"{one.item.title}; {other.item.title}"),
            description=order.format(one.general, general),
            content="",
            src="composed",
            pattern=query,
            tags=tuple(dict.fromkeys((*one.item.tags, *other.item.tags))),
            scope=one.item.scope,
            provenance=one.item.provenance,
            evidence=(*one.item.evidence, *other.item.origins),
            question=order.format(one.item.question, asked),
            query=query,
        )
