"""Looking a text up in the data: as the end of a resource's name, and as somebody's value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyoxigraph import BlankNode, Literal, NamedNode

from reasoningbank.sparql import Term, compact, full, iri, values
from reasoningbank.sparql.probing import Prober
from reasoningbank.tools.diagnosis.names import calls, local_name
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["Lookups", "Typed"]

#: Namespaces in which a text may be the end of a resource's name.
_MOST_SPACES = 40
#: Properties that tell what things are called, and owners of a text that are looked at.
_MOST_NAMING, _OWNERS = 12, 5
_SHOWN_CHARS = 60


class Typed(NamedTuple):
    """A value and a class of it; None where it has none."""

    value: Term | None
    kind: Term | None


@dataclass(frozen=True)
class Lookups:
    """Bounded look-ups by exact text; each is one request, or none where none is left.

    Attributes:
        prober: Sends the requests.
        namespaces: Prefix → namespace of the endpoint.
        naming: Properties that tell what things are called.
    """

    prober: Prober
    namespaces: Mapping[str, str]
    naming: tuple[str, ...] = ()

    @classmethod
    def of(cls, prober: Prober, names: Vocabulary, namespaces: Mapping[str, str]) -> Lookups:
        """Return look-ups that know which properties tell what things are called."""
        naming = [p for p, term in names.properties.items() if term.in_data and calls(p)]
        return cls(prober, namespaces, tuple(naming[:_MOST_NAMING]))

    def resource(self, text: str) -> Typed | None:
        """Return the resource whose name ends so, e.g. of an accession written as a string."""
        if not re.fullmatch(r"[\w.:-]+", text):
            return None
        local = text.rpartition(":")[2]
        spaces = [space for space in dict.fromkeys(self.namespaces.values()) if ":" in space]
        listed = " ".join(iri(space + local) for space in spaces[:_MOST_SPACES])
        rows = self.prober.rows(["x", "class"], f"VALUES ?x {{ {listed} }} ?x a ?class")
        return Typed(*rows[0]) if rows else None

    def owner(self, forms: Sequence[str]) -> str:
        """Say which resource has a text as which property; what names it goes first."""
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
            return ""
        resource, property_, value = min(
            rows, key=lambda row: not isinstance(row[1], NamedNode) or not calls(row[1].value)
        )
        if isinstance(resource, BlankNode):
            return f"{self.literal(value)} is the value of {self.show(property_)}"
        return f"{self.literal(value)} is the {self.show(property_)} of {self.show(resource)}"

    def namesake(self, missing: str) -> str:
        """Say whose text the local name of an IRI is that does not exist."""
        text = re.sub(r"^[A-Z]+_", "", local_name(missing)).replace("_", " ")
        return self.owner([full(Literal(text)), full(Literal(text, language="en"))]) if text else ""

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
