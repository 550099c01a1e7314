"""Look texts up in the data, and read the literals and conditions of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.schema.names import is_label, local_name
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import Term, compact, full, iri, values
from reasoningbank.sparql.probing import Prober
from reasoningbank.sparql.tokens import Token, tokenize

#: Namespaces in which a text may be a resource's local name.
_MOST_SPACES = 40
#: Label properties, and owners of a text, that are looked at.
_MOST_NAMING, _OWNERS = 12, 5
_SHOWN_CHARS = 60
_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS = ("integer", "int", "decimal", "double", "float")
_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SEARCHES = ("CONTAINS", "STRSTARTS", "STRENDS", "REGEX")


class Typed(NamedTuple):
    """A value and a class of it; None where it has none."""

    value: Term | None
    kind: Term | None


class Owner(NamedTuple):
    """A text found in the data: the resource and the property that it is a value of."""

    value: str
    property: str
    resource: str

    def __str__(self) -> str:
        if not self.resource:
            return f"{self.value} is the value of {self.property}"
        return f"{self.value} is the {self.property} of {self.resource}"

    def fields(self) -> dict[str, Any]:
        """Return what a `Finding` says of it."""
        return {"owner": self._asdict()}


@dataclass(frozen=True)
class Lookups:
    """Bounded look-ups by exact text; each is at most one request."""

    prober: Prober
    namespaces: Mapping[str, str]
    naming: tuple[str, ...] = ()

    @classmethod
    def of(cls, prober: Prober, schema: Schema, namespaces: Mapping[str, str]) -> Lookups:
        """Return look-ups that know the schema's label properties."""
        naming = [p for p, term in schema.properties.items() if term.in_data and is_label(p)]
        return cls(prober, namespaces, tuple(naming[:_MOST_NAMING]))

    def resource(self, text: str) -> Typed | None:
        """Return the resource with this local name, e.g. for an accession written as a string."""
        if not re.fullmatch(r"[\w.:-]+", text):
            return None
        local = text.rpartition(":")[2]
        spaces = [space for space in dict.fromkeys(self.namespaces.values()) if ":" in space]
        listed = " ".join(iri(space + local) for space in spaces[:_MOST_SPACES])
        rows = self.prober.rows(["x", "class"], f"VALUES ?x {{ {listed} }} ?x a ?class")
        return Typed(*rows[0]) if rows else None

    def owner(self, forms: Sequence[str]) -> Owner | None:
        """Return the resource and property that have one of some texts, labels first."""
        body = f"VALUES ?value {{ {' '.join(forms)} }} ?x ?property ?value ."
        if self.naming:
            named = f"{values('property', map(NamedNode, self.naming))} {body}"
            columns = "SELECT ?x ?property ?value"
            body = (
                f"{{ {columns} {{ {named} }} LIMIT {_OWNERS} }} UNION "
                f"{{ {columns} {{ {body} }} LIMIT 1 }}"
            )
        rows = self.prober.rows(["x", "property", "value"], body, _OWNERS + 1)
        if not rows:
            return None
        resource, property_, value = min(
            rows, key=lambda row: not isinstance(row[1], NamedNode) or not is_label(row[1].value)
        )
        name = "" if isinstance(resource, BlankNode) else self.show(resource)
        return Owner(self.literal(value), self.show(property_), name)

    def namesake(self, missing: str) -> Owner | None:
        """Return what has the local name of a missing IRI as a text."""
        text = re.sub(r"^[A-Z]+_", "", local_name(missing)).replace("_", " ")
        forms = [full(Literal(text)), full(Literal(text, language="en"))]
        return self.owner(forms) if text else None

    def show(self, term: Term | str | None) -> str:
        """Return a term as an agent reads it."""
        node = NamedNode(term) if isinstance(term, str) else term
        return str(compact(node, self.namespaces, _SHOWN_CHARS))

    def literal(self, term: Term | None) -> str:
        """Return a term as a query writes it."""
        if not isinstance(term, Literal):
            return self.show(term)
        if len(term.value) > _SHOWN_CHARS:
            return f'"{term.value[:_SHOWN_CHARS]}…"'
        if term.language is None and not term.datatype.value.endswith("#string"):
            value = compact(term, self.namespaces)
            return str(value).lower() if isinstance(value, bool) else str(value)
        return full(term)


@dataclass(frozen=True)
class Written:
    """The text of a literal in a query, without language and datatype."""

    text: str

    @property
    def spaced(self) -> bool:
        """Whether it is several words."""
        return " " in self.text.strip()

    @property
    def number(self) -> bool:
        """Whether it is a number."""
        return _REAL.fullmatch(self.text) is not None


def read_literal(written: str) -> Written | None:
    r"""Read a literal of a query; None for other terms."""
    tokens = tokenize(written)
    if not tokens or not (
        tokens[0].kind in ("string", "number")
        or tokens[0].text in ("true", "false")
        or (tokens[0].text in ("+", "-") and len(tokens) > 1)
    ):
        return None
    if tokens[0].kind != "string":
        return Written(written)
    # The engine's own parser knows all escapes.
    solutions = pyoxigraph.Store().query(f"SELECT ({tokens[0].text} AS ?x) {{}}")
    assert isinstance(solutions, pyoxigraph.QuerySolutions), "a SELECT yields solutions"
    value = next(iter(solutions))["x"]
    assert isinstance(value, Literal), "a string yields a literal"
    return Written(value.value)


def variants(literal: Written, seen: Iterable[Term | None] = ()) -> list[str]:
    """Return literals with the same text, upper or lower case, as N-Triples writes them."""
    text = literal.text
    found = [Literal(text)]
    known = [term for term in seen if isinstance(term, Literal)]
    languages = {term.language: None for term in known if term.language} | {"en": None}
    for case in (text, text.capitalize(), text.lower(), text.upper(), text.title()):
        found += [Literal(case), *(Literal(case, language=tag) for tag in languages)]
    found += [Literal(text, datatype=t.datatype) for t in known if not t.language]
    if _INTEGER.fullmatch(text):
        found += [Literal(text, datatype=NamedNode(_XSD + name)) for name in _NUMBERS]
    elif _REAL.fullmatch(text):
        found += [Literal(text, datatype=NamedNode(_XSD + name)) for name in _NUMBERS[2:]]
    return list(dict.fromkeys(full(term) for term in found))


@dataclass(frozen=True)
class TextCondition:
    """A FILTER on one variable."""

    variable: str
    text: str
    function: str = ""


def read_condition(written: str) -> TextCondition | None:
    """Read a FILTER that compares a variable with a text; None for other ones."""
    tokens = [t for t in tokenize(written) if t.text not in ("(", ")")][1:]
    search = bool(tokens) and tokens[0].is_word(*_SEARCHES)
    variables = [t for t in tokens if t.kind == "variable"]
    strings = [t for t in tokens if t.kind == "string"]
    if len({t.text for t in variables}) != 1 or not strings or _is_complex(tokens):
        return None
    literal = read_literal(strings[0].text)
    if literal is None or not literal.text:
        return None
    if not search and not any(t.text == "=" or t.is_word("IN") for t in tokens):
        return None
    return TextCondition(
        variables[0].text[1:], literal.text, tokens[0].text.upper() if search else ""
    )


def _is_complex(tokens: Sequence[Token]) -> bool:
    if any(t.text in ("&&", "||", "!", "!=", "<", ">", "<=", ">=") for t in tokens):
        return True
    return any(t.is_word("NOT", "EXISTS") for t in tokens)
