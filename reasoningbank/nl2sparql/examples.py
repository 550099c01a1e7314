"""The example queries of a pack, as retrieval uses them: questions, query, patterns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rdflib.term import URIRef

from reasoningbank.corpus import Pack, Task, load_corpus, load_pack, query_features
from reasoningbank.nl2sparql.patterns import PatternSet, QuerySign, load_patterns
from reasoningbank.schema import read_statements
from reasoningbank.sparql.parsers import parse_once

_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


@dataclass(frozen=True)
class PackExample:
    """A question with the query that answers it.

    Attributes:
        id: The task's id.
        nl: The question, in the first language it comes in.
        sparql: The query.
        patterns: What it needs: the example's keywords that are patterns; derived from the query
            if there are none.
        group: Examples of one group have one template.
        questions: The question by language.
    """

    id: str
    nl: str
    sparql: str
    patterns: tuple[str, ...] = ()
    group: str = ""
    questions: tuple[tuple[str, str], ...] = ()

    def question(self, language: str = "") -> str:
        """Return the question in a language; the first one if it does not exist in it."""
        return dict(self.questions).get(language, self.nl)


def example_pack(pack: Pack) -> Pack:
    """Return the pack whose examples may be shown: for a test set, the pack it belongs to.

    Examples:
        >>> from reasoningbank.corpus import load_pack
        >>> example_pack(load_pack("liita-test")).examples.name
        'examples'
    """
    return load_pack(pack.root) if pack.test is not None and pack.examples == pack.test else pack


def load_examples(pack: Pack) -> tuple[PackExample, ...]:
    """Read the examples of a pack with their questions in all of the pack's languages.

    Raises:
        UsageError: If the pack's files cannot be read.
    """
    by_language = {
        language: {
            task.id: task
            for task in load_corpus(pack, language=language).tasks
            # An update of documents is not an example of a query.
            if task.form != "UPDATE"
        }
        for language in pack.languages or ("en",)
    }
    first = next(iter(by_language.values()))
    questions = {
        one: tuple(
            (language, tasks[one].query)
            for language, tasks in by_language.items()
            if one in tasks and tasks[one].language == language
        )
        for one in first
    }
    return examples_of(first.values(), load_patterns(pack), questions)


def examples_of(
    tasks: Iterable[Task],
    patterns: PatternSet,
    questions: dict[str, tuple[tuple[str, str], ...]] | None = None,
) -> tuple[PackExample, ...]:
    """Return tasks as examples.

    Args:
        tasks: Tasks with their queries.
        patterns: The pack's patterns.
        questions: The questions by language, by task id; the task's own by default.
    """
    return tuple(
        PackExample(
            task.id,
            task.query,
            task.expected_sparql,
            # Case matters: `gene` is any keyword, `GENE` is a pattern.
            tuple(name for name in patterns.names if name in task.keywords)
            or patterns_of_query(task.expected_sparql, patterns),
            task.group or f"task-{task.id}",
            (questions or {}).get(task.id) or ((task.language, task.query),),
        )
        for task in tasks
    )


def patterns_of_query(sparql: str, patterns: PatternSet) -> tuple[str, ...]:
    """Return the patterns that a query's names and features show; none if it does not parse."""
    seen = _seen(sparql)
    if seen is None:
        return ()
    given = {
        pattern.name: None
        for pattern in patterns.patterns
        if any(_shows(sign, seen) for sign in pattern.signs)
    }
    for pattern in patterns.patterns:
        if pattern.name in given:
            given.update(dict.fromkeys(pattern.implies))
    return tuple(name for name in patterns.names if name in given)


@dataclass(frozen=True)
class _Seen:
    properties: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    graphs: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    features: frozenset[str] = field(default_factory=frozenset)


@lru_cache(maxsize=4096)
def _seen(sparql: str) -> _Seen | None:
    try:
        parse_once(sparql)
        walked = read_statements(sparql)
    except Exception:  # rdflib raises pyparsing's errors and bare ones
        return None
    return _Seen(
        frozenset(str(s.predicate) for s in walked.statements),
        frozenset(
            str(term)
            for s in walked.statements
            for term in (s.subject, s.object)
            if isinstance(term, URIRef)
        ),
        frozenset(str(s.object) for s in walked.statements if str(s.predicate) == _TYPE),
        frozenset(str(s.graph) for s in walked.statements if s.graph is not None)
        | frozenset(walked.dataset),
        frozenset(str(s.service) for s in walked.statements if s.service is not None),
        frozenset(query_features(sparql).features),
    )


def _shows(sign: QuerySign, seen: _Seen) -> bool:
    parts: Sequence[tuple[frozenset[str], frozenset[str]]] = (
        (sign.properties, seen.properties),
        (sign.along, seen.properties),
        (sign.classes, seen.classes),
        (sign.graphs, seen.graphs),
        (sign.services, seen.services),
        (sign.features, seen.features),
    )
    asked = [bool(wanted & there) for wanted, there in parts if wanted]
    if sign.namespaces:
        asked.append(any(one.startswith(tuple(sign.namespaces)) for one in seen.resources))
    return bool(asked) and all(asked)
