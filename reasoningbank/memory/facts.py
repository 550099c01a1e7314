"""What schema and data say about names: existence, kind and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.schema import NamedTerm, Schema, namespace_of, probe_run
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    BooleanResult,
    EndpointConfig,
    Result,
    TableResult,
    Term,
    compact,
    iri,
    string_literal,
)
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import tokenize

#: Texts of a resource that are compared with a question.
_MOST_TEXTS = 50
#: Shorter texts are in a question by chance.
_LEAST_CHARS = 3
#: Classes that say nothing about a resource.
_VAGUE = frozenset(
    STANDARD_PREFIXES[prefix] + name
    for prefix, names in (
        ("owl", ("Thing", "Class", "NamedIndividual")),
        ("rdfs", ("Class", "Resource")),
        ("skos", ("Concept",)),
    )
    for name in names
)


class Facts:
    """What is known of an endpoint's names; it is asked what the schema lacks, each query once."""

    def __init__(
        self,
        vocabulary: Schema,
        endpoint: EndpointConfig,
        run: Callable[[str], Result] | None = None,
        languages: Sequence[str] = ("en",),
    ) -> None:
        self.vocabulary = vocabulary
        self.endpoint = endpoint
        self.namespaces: Mapping[str, str] = endpoint.namespaces
        self._given = run
        known = (*vocabulary.classes, *vocabulary.properties)
        #: The namespaces of classes and properties.
        self.homes = frozenset(namespace_of(name) for name in known)
        self._languages = tuple(languages)
        self._answers: dict[str, Result | None] = {}

    @cached_property
    def run(self) -> Callable[[str], Result]:
        """Sends queries; by default to the endpoint, within 3 s."""
        return self._given or probe_run(self.endpoint)

    def iri_of(self, written: str) -> str | None:
        """Return the IRI of a name; None for other terms and unknown prefixes."""
        return absolute(written, self.namespaces)

    def names(self, query: str) -> dict[str, str]:
        """Return the names in a query, as written, and their IRIs."""
        written = (token.text for token in tokenize(query) if token.kind in ("iri", "name"))
        return {text: name for text in written if (name := self.iri_of(text)) is not None}

    def property_of(self, written: str) -> NamedTerm | None:
        """Return the property of a name, if it is one."""
        return self.vocabulary.properties.get(self.iri_of(written) or "")

    def show(self, name: str) -> str:
        """Return an IRI as agents write it."""
        return str(compact(NamedNode(name), self.namespaces))

    def is_term(self, name: str) -> bool:
        """Return whether an IRI is a class or property."""
        return self.vocabulary.term(name) is not None

    def has_data(self, name: str) -> bool:
        """Return whether a class or property is known to have instances or uses."""
        term = self.vocabulary.term(name)
        return term is not None and (
            term.in_data or not self.vocabulary.complete or bool(self.vocabulary.below(name))
        )

    def exists(self, name: str) -> bool | None:
        """Return whether an IRI occurs in the data; None if unknown."""
        if self.has_data(name):
            return True
        if self.is_term(name):
            return False
        term = iri(name)
        found = self._ask(
            f"ASK {{ {{ {term} ?p ?o }} UNION {{ ?s {term} ?o }} UNION {{ ?s ?p {term} }} }}"
        )
        return found.value if isinstance(found, BooleanResult) else None

    def kind_of(self, name: str) -> str:
        """Return the most specific known class of a resource; may be empty."""
        rows = self._rows(f"SELECT DISTINCT ?kind {{ {iri(name)} a ?kind }} LIMIT 10")
        kinds = sorted(term.value for (term,) in rows if isinstance(term, NamedNode))
        specific = [kind for kind in kinds if kind not in _VAGUE]
        known = [kind for kind in specific if self.is_term(kind)]
        return (known or specific or [""])[0]

    def called_in(self, name: str, question: str) -> tuple[str, str] | None:
        """Return the property and the text by which a question refers to a resource."""
        asked = question.casefold()
        body = f"{iri(name)} ?property ?text FILTER(isLiteral(?text))"
        rows = self._rows(f"SELECT ?property ?text {{ {body} }} LIMIT {_MOST_TEXTS}")
        found = sorted(
            (-len(text.value), property_.value, text.value)
            for property_, text in rows
            if isinstance(property_, NamedNode)
            and isinstance(text, Literal)
            and len(text.value) >= _LEAST_CHARS
            and text.value.casefold() in asked
        )
        return (found[0][1], found[0][2]) if found else None

    def is_called(self, texts: Sequence[str]) -> bool:
        """Return whether one of these texts occurs in the data."""
        tags = (None, *self._languages)
        written = " ".join(string_literal(text, tag) for text in texts for tag in tags)
        found = self._ask(f"ASK {{ VALUES ?text {{ {written} }} ?thing ?property ?text }}")
        return isinstance(found, BooleanResult) and found.value

    def _rows(self, query: str) -> list[Sequence[Term | None]]:
        found = self._ask(query)
        return list(found.rows(0, found.n_rows)) if isinstance(found, TableResult) else []

    def _ask(self, query: str) -> Result | None:
        if query not in self._answers:
            try:
                self._answers[query] = self.run(query)
            except (EndpointError, QueryError):
                # Not cached: a slow endpoint may answer for the next task.
                return None
        return self._answers[query]
