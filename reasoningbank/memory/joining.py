"""Joins: the example that two items make together, for a question that combines what they answer.

One item answers with what the other asks about: "Which proteins does the gene SHBG encode?" and
"What is the full name of P05093?" make the names of the proteins of a gene. Or both answer with
things of one class, and the join asks for those that meet both conditions. What fits is read from
the schema, so nothing is executed.

A join is made only where it leaves things of the classes that the question names, and where its two
questions together are nearer to the question than that of any single item, by a margin: a question
of a known shape is nearest to its own example.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from reasoningbank.agents import FewShotExample
from reasoningbank.errors import QueryError
from reasoningbank.memory.item import MemoryItem, without_quoted
from reasoningbank.memory.skeleton import shortened
from reasoningbank.retrieval import Embedder
from reasoningbank.schema import Schema, variable_classes
from reasoningbank.sparql import EntityLinker
from reasoningbank.sparql.entity_linking import EntityMention
from reasoningbank.sparql.shape import shape_hash
from reasoningbank.sparql.tokens import Edit, Token, apply_edits, tokenize
from reasoningbank.sparql.tree import QueryTree, read_query

#: Items that are joined with one another: the nearest, one of each shape.
MOST_JOINED = 8
#: Joins that are shown: of two that differ in a word ("symbol", "other symbols") the model chooses.
MOST_SHOWN = 2
#: How much nearer, as a cosine, a join must be than any single item.
MARGIN = 0.005

Classes = Mapping[str, frozenset[str]]


class Join(NamedTuple):
    """An item made of two, and these two: the one that is asked first, and the other."""

    item: MemoryItem
    parts: tuple[MemoryItem, MemoryItem]


@dataclass(frozen=True)
class _Half:
    """An item as one half of a join."""

    item: MemoryItem
    question: str
    text: str  #: The question with classes in place of names, which is embedded
    query: str  #: Without the prefixes that need no declaration
    tree: QueryTree
    answers: Classes  #: Column → classes of what it holds, if known
    named: tuple[EntityMention, ...]  #: What the question names

    def kinds(self, without: str = "") -> frozenset[str]:
        """Return the classes of what the question names, but of one resource."""
        return frozenset(of for one in self.named if one.name != without for of in one.classes)


def best_joins(
    question: str,
    text: str,
    examples: Iterable[tuple[MemoryItem, FewShotExample]],
    *,
    linker: EntityLinker,
    schema: Schema,
    prefixes: Mapping[str, str],
    embedder: Embedder,
) -> list[Join]:
    """Return the joins that are nearest to a question; none if a single item is nearer.

    Args:
        question: The question.
        text: What is searched for: the question with classes in place of the names in it.
        examples: Items with their questions and queries, the nearest first.
        linker: Finds the resources that their questions name.
        schema: Says of which classes they are.
        prefixes: Prefixes that queries need not declare.
        embedder: Compares the questions.
    """
    single: dict[str, str] = {}
    declared = tuple(sorted(prefixes.items()))
    halves: list[_Half] = []
    for item, example in examples:
        if len(single) == MOST_JOINED:
            break
        shape = shape_hash(example.query, declared)
        if shape not in single:
            single[shape] = without_quoted(linker.generalized(example.question))
            with suppress(QueryError):
                halves += _half(item, example, single[shape], linker, schema, prefixes)
    kinds = linker.kinds(without_quoted(question))
    pairs = list(_pairs(halves, kinds, schema))
    if not pairs:
        return []
    texts = [" ".join(both) for one, other, _, _ in pairs for both in _orders(one, other)]
    near = embedder.passages([*single.values(), *texts]) @ embedder.queries([text])[0]
    cosines = near[len(single) :].reshape(-1, 2).max(axis=1)
    if cosines.max() < near[: len(single)].max() + MARGIN:
        return []
    return [_join(*pairs[place]) for place in (-cosines).argsort(kind="stable")[:MOST_SHOWN]]


def _orders(one: _Half, other: _Half) -> tuple[tuple[str, str], tuple[str, str]]:
    return (one.text, other.text), (other.text, one.text)


def _half(
    item: MemoryItem,
    example: FewShotExample,
    text: str,
    linker: EntityLinker,
    schema: Schema,
    prefixes: Mapping[str, str],
) -> Iterator[_Half]:
    """Yield an item as a half, if its query selects columns and ends with its WHERE group."""
    query = shortened(example.query, prefixes)
    tree = read_query(query)
    head = query[: tree.where.start] if tree.where else ""
    if not (tree.projected and tree.where and tree.where.end == len(query)) or "(" in head:
        return
    used = {t.text.partition(":")[0] for t in tree.body if t.kind == "name"}
    declared = "".join(f"PREFIX {name}: <{prefixes[name]}>\n" for name in used if name in prefixes)
    classes = variable_classes(declared + query, schema)
    yield _Half(
        item,
        example.question,
        text,
        query,
        tree,
        {name: classes[name] for name in tree.projected if name in classes},
        linker.mentions(example.question),
    )


def _pairs(
    halves: Sequence[_Half], kinds: frozenset[str], schema: Schema
) -> Iterator[tuple[_Half, _Half, str, str]]:
    """Yield two halves, the words of the second that the first answers with, and the query.

    What they name after that is of the given classes, as far as either is known.
    """

    def wanted(left: frozenset[str]) -> bool:
        return not kinds or not left or left == kinds

    for one, other in itertools.permutations(halves, 2):
        written = {token.text for token in other.tree.body}
        asked = [mention for mention in other.named if mention.name in written]
        for (column, of), about in itertools.product(one.answers.items(), asked):
            left = one.kinds() | other.kinds(without=about.name)
            if _fits(of, frozenset(about.classes), schema) and wanted(left):
                query = _joined(one, other, {}, {about.name: f"?{column}"}, column)
                yield one, other, about.words, query
    for one, other in itertools.combinations(halves, 2):
        for (column, of), (same, others) in itertools.product(
            one.answers.items(), other.answers.items()
        ):
            if _fits(of, others, schema) and wanted(one.kinds() | other.kinds()):
                yield one, other, "", _joined(one, other, {same: column}, {}, column)


def _fits(one: frozenset[str], other: frozenset[str], schema: Schema) -> bool:
    return bool(one and other) and schema.compatible(one, other)


def _joined(
    one: _Half, other: _Half, same: Mapping[str, str], terms: Mapping[str, str], column: str
) -> str:
    """Return the query of both, with variables and terms of the second exchanged."""
    taken = {t.text[1:] for t in one.tree.body if t.kind == "variable"} | {column}
    names = dict(same)
    for token in other.tree.body:
        if token.kind == "variable" and (name := token.text[1:]) not in names:
            numbered = (f"{name}{number}" for number in itertools.count(2))
            names[name] = next(n for n in (name, *itertools.islice(numbered, 99)) if n not in taken)
    exchanged = dict(terms) | {f"?{old}": f"?{new}" for old, new in names.items()}
    edits = [
        Edit(t.start, t.end, exchanged[t.text])
        for t in tokenize(other.query)
        if exchanged.get(t.text, t.text) != t.text
    ]
    second = read_query(apply_edits(other.query, edits))
    first = [column] if terms else one.tree.projected
    columns = " ".join(f"?{name}" for name in dict.fromkeys((*first, *second.projected)))
    distinct = "DISTINCT " if any(t.is_word("DISTINCT") for t in _heads(one, other)) else ""
    return f"SELECT {distinct}{columns} WHERE {{ {_body(one.tree)} . {_body(second)} }}"


def _heads(*halves: _Half) -> Iterator[Token]:
    return (half.tree.body[1] for half in halves)


def _body(tree: QueryTree) -> str:
    assert tree.where is not None
    return tree.text[tree.where.start + 1 : tree.where.end - 1].strip().removesuffix(".").rstrip()


def _join(first: _Half, second: _Half, asked: str, query: str) -> Join:
    """Return two halves as one item."""
    question = second.question.replace(asked, "it") if asked else second.question
    one, other = first.item, second.item
    item = MemoryItem(
        title=f"{one.title}; {other.title}",
        description="",
        content="",
        src="success",
        pattern=query,
        question=f"{first.question} {question}",
        query=query,
        scope=one.scope,
        provenance=one.provenance,
        evidence=(*one.evidence, *other.origins),
    )
    return Join(item, (one, other))
