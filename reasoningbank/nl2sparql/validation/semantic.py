"""Whether a query fits its pack's schema and rules; found on the algebra, not on the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import QueryError
from reasoningbank.nl2sparql.patterns import DEFAULT_PACK, load_patterns, namespaces_of
from reasoningbank.nl2sparql.problems import Problem, Validation
from reasoningbank.nl2sparql.validation.apart import unjoined
from reasoningbank.nl2sparql.validation.classes import misplaced_classes
from reasoningbank.nl2sparql.validation.directions import wrong_ends
from reasoningbank.nl2sparql.validation.entries import shared_entries
from reasoningbank.nl2sparql.validation.facts import Facts
from reasoningbank.nl2sparql.validation.named import unnamed
from reasoningbank.nl2sparql.validation.names import misnamed
from reasoningbank.nl2sparql.walking import walk_query
from reasoningbank.sparql import prepare

__all__ = ["validate_semantic"]

#: Problems a query is told of at once; the first ones often explain the others.
MOST = 5


def validate_semantic(
    sparql: str,
    pack: Pack | str = DEFAULT_PACK,
    patterns: Iterable[str] = (),
    *,
    question: str = "",
) -> Validation:
    """Check a query against what a pack knows.

    Found are: a property or class that does not exist; a property in the wrong graph; one that is
    only known at another endpoint (missing or wrong SERVICE); one variable used for two entries;
    a property whose subject or object is of another class, and so a reversed direction; a
    relation whose end that the question names stands on the wrong side; parts that nothing joins;
    and, where the question is known, a quoted word or a code of it that the query does not hold.

    Args:
        sparql: A query; the pack's prefixes need not be declared.
        pack: The pack or its name, whose schema, statistics and ``hints/constraints.toml`` are
            used.
        patterns: What the question needs, for rules that depend on it.
        question: The question itself.

    Returns:
        At most five problems, names before classes. A query that does not parse is another
        level's, and is noted.

    Raises:
        UsageError: The pack's files cannot be read.

    Examples:
        >>> found = validate_semantic("ASK { ?lemma lila:hasPos lila:noun }")
        >>> print(found.problems[0])
        there is no property lila:hasPos; did you mean lila:hasPOS?
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    try:
        prepared = prepare(sparql, prefixes=namespaces_of(found))
    except QueryError as error:
        return Validation(notes=(f"not checked, since it does not parse: {error.what}",))
    if prepared.parsed is None:
        return Validation(notes=("not checked: the query goes beyond SPARQL 1.1",))
    facts = Facts.of(found, walk_query(prepared.parsed), patterns)
    named = unnamed(question, sparql, load_patterns(found).shapes)
    problems = dict.fromkeys((*named, *_problems(facts)))
    return Validation(tuple(problems)[:MOST])


def _problems(facts: Facts) -> Iterator[Problem]:
    sound = []
    for statement in facts.walked.statements:
        found = list(misnamed(facts, statement))
        yield from found
        if not found:
            sound.append(statement)
    yield from shared_entries(facts)
    yield from wrong_ends(facts)
    yield from misplaced_classes(facts, sound)
    yield from unjoined(facts)
