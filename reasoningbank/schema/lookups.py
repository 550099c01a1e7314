"""Look terms up in the data by small, bounded queries; read the literals of a query."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import pyoxigraph
from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError, ToolError
from reasoningbank.findings import Finding
from reasoningbank.schema.names import is_label, local_name
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    BooleanResult,
    Result,
    TableResult,
    Term,
    full,
    iri,
    values,
)
from reasoningbank.sparql.terms import XSD, absolute, written
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import QueryTree

#: Requests one diagnosis may send, and seconds it may take in total.
MOST_PROBES = 16
MOST_SECONDS = 8.0

#: Namespaces in which a text may be a resource's local name.
_MOST_SPACES = 40
#: Label properties, and owners of a text, that are looked at.
_MOST_NAMING, _OWNERS = 12, 5
_SHOWN_CHARS = 60
_SERVICE = re.compile(r"SERVICE\s+(?:SILENT\s+)?\S+", re.IGNORECASE)
_SUBCLASS = iri(STANDARD_PREFIXES["rdfs"] + "subClassOf")

_NUMBERS = ("integer", "int", "decimal", "double", "float")
_INTEGER = re.compile(r"[+-]?\d+")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SEARCHES = ("CONTAINS", "STRSTARTS", "STRENDS", "REGEX")
#: Functions that leave the text of their argument as it is, but for its case.
_SAME = ("STR", "LCASE", "UCASE")
_OPERATORS = ("&&", "||", "!", "!=", "<", ">", "<=", ">=")


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
        return {"owner": self._asdict()}


class Prober:
    """Sends probes until its requests or seconds are used up; none without `run`."""

    def __init__(self, run: Callable[[str], Result] | None, most: int = MOST_PROBES) -> None:
        self._run = run
        self._left = most
        self._end = time.monotonic() + MOST_SECONDS

    def send(self, query: str) -> Result | None:
        if self._run is None or self._left <= 0 or time.monotonic() >= self._end:
            return None
        self._left -= 1
        try:
            return self._run(query)
        except (QueryError, EndpointError, ToolError):
            return None


@dataclass(frozen=True)
class Lookups:
    """What the data say about the terms of one query; each look-up is at most one request."""

    query: QueryTree
    schema: Schema
    namespaces: Mapping[str, str]
    prober: Prober
    #: Where bodies are put: inside the GRAPH or SERVICE of the part that is explained.
    context: str = "%s"

    @property
    def service(self) -> str:
        """The SERVICE that answers the part; empty for the endpoint itself."""
        found = _SERVICE.search(self.context)
        return found[0] if found else ""

    @property
    def there(self) -> Lookups:
        """The same at the endpoint that answers the part, outside of its GRAPH."""
        return replace(self, context=f"{self.service} {{ %s }}" if self.service else "%s")

    @property
    def place(self) -> str:
        """The endpoint that answers the part, in words."""
        return f"in {self.service}" if self.service else "here"

    def name(self, written: str) -> str | None:
        """Return the IRI that the query means by a text; None for other terms."""
        return absolute(written, self.query.declared)

    def ask(self, body: str) -> bool | None:
        """Return whether a group has a row; None if that is unknown."""
        result = self._send(f"ASK {self._where(body)}")
        return result.value if isinstance(result, BooleanResult) else None

    def rows(
        self,
        names: Sequence[str],
        body: str,
        limit: int = 1,
        *,
        distinct: bool = False,
        anywhere: bool = False,
    ) -> list[tuple[Term | None, ...]] | None:
        """Return a few rows of a group, in its context or `anywhere`; None if unknown."""
        head = f"SELECT {'DISTINCT ' if distinct else ''}{' '.join(f'?{name}' for name in names)}"
        where = f"WHERE {{ {body} }}" if anywhere else self._where(body)
        result = self._send(f"{head} {where} LIMIT {limit}")
        return result.rows(0, limit) if isinstance(result, TableResult) else None

    def which(self, bodies: Sequence[str]) -> list[bool] | None:
        """Return, with one request, which of several groups have a row; None if it failed."""
        if not bodies:
            return []
        parts = (
            f"{{ SELECT ({at} AS ?part) {{ {self.context.replace('%s', body)} }} LIMIT 1 }}"
            for at, body in enumerate(bodies)
        )
        outside = replace(self, context="%s")
        found = outside.rows(["part"], " UNION ".join(parts), len(bodies))
        if found is None:
            return None
        seen = {int(term.value) for (term,) in found if isinstance(term, Literal)}
        return [at in seen for at in range(len(bodies))]

    def _where(self, body: str) -> str:
        return f"{self.query.dataset} WHERE {{ {self.context.replace('%s', body)} }}"

    def _send(self, query: str) -> Result | None:
        return self.prober.send(self.query.text[: self.query.body[0].start] + query)

    def column(
        self, name: str, body: str, limit: int = 1, *, distinct: bool = False
    ) -> list[Term | None]:
        """Return a few values of one variable; none if they are unknown."""
        return [term for (term,) in self.rows([name], body, limit, distinct=distinct) or ()]

    def kinds(self, names: Iterable[str]) -> dict[str, Term | None]:
        """Return a class of each resource that has one."""
        listed = " ".join(map(iri, names))
        if not listed:
            return {}
        rows = self.rows(["x", "class"], f"VALUES ?x {{ {listed} }} ?x a ?class", 5) or []
        return {x.value: kind for x, kind in rows if isinstance(x, NamedNode)}

    def resources(self, text: str) -> str:
        """Return the IRIs that a text may stand for: as it is written, or by its local name."""
        text = text.strip()
        whole = absolute(text, {**self.namespaces, **self.query.declared})
        if whole is None and text.startswith(("http:", "https:", "urn:")):
            whole = absolute(f"<{text}>", {})
        found = [] if whole is None else [whole]
        if re.fullmatch(r"[\w.:-]+", text):
            local = text.rpartition(":")[2]
            spaces = [space for space in dict.fromkeys(self.namespaces.values()) if ":" in space]
            found += (space + local for space in spaces[:_MOST_SPACES])
        return " ".join(map(iri, dict.fromkeys(found)))

    def meant(
        self, name: str, body: str, term: Term | None, value: Term | None
    ) -> tuple[str, str] | None:
        """Return a code and the value to write where a text stands for a resource, or reversed."""
        if isinstance(term, Literal) and isinstance(value, NamedNode):
            code, forms = "text-for-resource", self.resources(term.value)
        elif isinstance(term, NamedNode) and isinstance(value, Literal):
            texts = (self.show(term).strip("<>"), term.value, local_name(term.value))
            forms = " ".join(form for text in texts for form in variants(text, [value]))
            code = "resource-for-text"
        else:
            return None
        found = forms and self.column(name, f"{body} VALUES ?{name} {{ {forms} }}")
        return (code, self.show(found[0])) if found else None

    def classified(self, name: str, written: str, subject: str) -> Finding | None:
        """Return how to reach what a class has in place of instances: its subclasses."""
        below = self.column("c", f"?c {_SUBCLASS} {iri(name)}", _OWNERS)
        if not below:
            return None
        used = self.ask(f"?x a ?c . ?c {_SUBCLASS} {iri(name)}")
        step = f"{'a/' if used else ''}{self.show(_SUBCLASS[1:-1])}"
        listed = [self.show(term) for term in below]
        what = f"nothing is a {written} itself, but it has subclasses such as {listed[0]}"
        fields = {"name": written, "subclasses": listed}
        return write("only-subclasses", what, f"{subject} {step} {written}", fields)

    @cached_property
    def _naming(self) -> list[NamedNode]:
        known = self.schema.properties.items()
        found = [NamedNode(name) for name, term in known if term.in_data and is_label(name)]
        return found[:_MOST_NAMING]

    def owner(self, forms: Sequence[str]) -> Owner | None:
        """Return the resource and property that have one of some texts, labels first."""
        body = f"VALUES ?value {{ {' '.join(forms)} }} ?x ?property ?value ."
        if self._naming:
            named = f"{values('property', self._naming)} {body}"
            columns = "SELECT ?x ?property ?value"
            body = (
                f"{{ {columns} {{ {named} }} LIMIT {_OWNERS} }} UNION "
                f"{{ {columns} {{ {body} }} LIMIT 1 }}"
            )
        rows = self.rows(["x", "property", "value"], body, _OWNERS + 1)
        if not rows:
            return None
        resource, property_, value = min(
            rows, key=lambda row: not isinstance(row[1], NamedNode) or not is_label(row[1].value)
        )
        name = "" if isinstance(resource, BlankNode) else self.show(resource)
        return Owner(self.show(value), self.show(property_), name)

    def namesake(self, missing: str) -> Owner | None:
        """Return what has the local name of a missing IRI as a text."""
        text = re.sub(r"^[A-Z]+_", "", local_name(missing)).replace("_", " ")
        return self.owner(plain_and_english(text)) if text else None

    def missing(self, written: str) -> Finding:
        """Return that a resource does not exist, and what has its local name as a text."""
        name = self.name(written)
        owner = None if name is None else self.namesake(name)
        what = f"{written} does not exist {self.place}"
        fields = {"name": written, **(owner.fields() if owner is not None else {})}
        return Finding("unknown-resource", what, hint=str(owner or ""), fields=fields)

    def show(self, term: Term | str | None) -> str:
        """Return a term as a query writes it."""
        return "" if term is None else written(term, self.namespaces, _SHOWN_CHARS)


def write(code: str, what: str, hint: str, fields: Mapping[str, Any], instead: str = "") -> Finding:
    """Return a finding that says what to write instead: the whole hint by default."""
    return Finding(code, what, hint=f"write {hint}", fields={**fields, "instead": instead or hint})


def plain_and_english(text: str) -> list[str]:
    """Return the two most common literals of a text, as N-Triples writes them."""
    return [full(Literal(text)), full(Literal(text, language="en"))]


def read_literal(written: str) -> str | None:
    r"""Return the text of a literal, without language and datatype; None for other terms."""
    tokens = tokenize(written)
    if not tokens:
        return None
    first = tokens[0]
    if first.kind == "string":
        # The engine's own parser knows all escapes.
        solutions: Any = pyoxigraph.Store().query(f"SELECT ({first.text} AS ?x) {{}}")
        return str(next(solutions)["x"].value)
    signed = first.text in ("+", "-") and len(tokens) > 1
    return written if signed or first.kind == "number" or first.text in ("true", "false") else None


def variants(text: str, seen: Iterable[Term | None] = ()) -> list[str]:
    """Return literals with the same text, upper or lower case, as N-Triples writes them."""
    found = [Literal(text)]
    known = [term for term in seen if isinstance(term, Literal)]
    languages = {term.language: None for term in known if term.language} | {"en": None}
    for case in (text, text.capitalize(), text.lower(), text.upper(), text.title()):
        found += [Literal(case), *(Literal(case, language=tag) for tag in languages)]
    found += [Literal(text, datatype=t.datatype) for t in known if not t.language]
    if NUMBER.fullmatch(text):
        types = _NUMBERS if _INTEGER.fullmatch(text) else _NUMBERS[2:]
        found += [Literal(text, datatype=NamedNode(XSD + name)) for name in types]
    return list(dict.fromkeys(map(full, found)))


class TextCondition(NamedTuple):
    """A FILTER on one variable: the text it is compared with, and the function, if any."""

    variable: str
    text: str
    function: str


def read_condition(written: str) -> TextCondition | None:
    """Read a FILTER that compares a variable with a text; None for other ones."""
    tokens = [t for t in tokenize(written) if t.text not in ("(", ")")][1:]
    variables = {t.text for t in tokens if t.kind == "variable"}
    strings = [t.text for t in tokens if t.kind == "string"]
    if len(variables) != 1 or not strings:
        return None
    if any(t.text in _OPERATORS or t.is_word("NOT", "EXISTS") for t in tokens):
        return None
    called = (t for t, after in pairwise(tokenize(written)[1:]) if after.text == "(")
    if any(t.text[:1].isalpha() and not t.is_word(*_SEARCHES, *_SAME, "IN") for t in called):
        return None
    function = tokens[0].text.upper() if tokens[0].is_word(*_SEARCHES) else ""
    text = read_literal(strings[0])
    if not text or not (function or any(t.text == "=" or t.is_word("IN") for t in tokens)):
        return None
    return TextCondition(variables.pop()[1:], text, function)
