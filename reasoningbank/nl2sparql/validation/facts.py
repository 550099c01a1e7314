"""What all checks of a query know: the query's statements, the pack's names and rules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyoxigraph import NamedNode
from rdflib.term import Identifier, URIRef, Variable

from reasoningbank.corpus import Pack
from reasoningbank.nl2sparql.constraints import Constraints, PropertyRow, load_constraints
from reasoningbank.nl2sparql.knowledge import Knowledge, load_knowledge
from reasoningbank.nl2sparql.patterns import namespaces_of
from reasoningbank.nl2sparql.walking import WalkedQuery
from reasoningbank.sparql import STANDARD_PREFIXES, compact

__all__ = ["DESCRIBING", "GENERAL", "RDF_TYPE", "Facts", "is_datatype"]

RDF_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: What these lead from and to says nothing: classes and restrictions are anything.
GENERAL = (
    STANDARD_PREFIXES["rdf"],
    STANDARD_PREFIXES["owl"],
    *(
        STANDARD_PREFIXES["rdfs"] + name
        for name in ("subClassOf", "subPropertyOf", "domain", "range")
    ),
)
#: Vocabularies that describe endpoints; they need not be in a pack's schema.
DESCRIBING = (STANDARD_PREFIXES["void"], STANDARD_PREFIXES["sd"])


@dataclass(frozen=True)
class Facts:
    """One query, and what it is held against.

    Attributes:
        pack: The pack.
        walked: The query's statements.
        patterns: What the question needs.
        knowledge: The pack's names.
        constraints: The pack's rules.
        rows: The property table by IRI.
        namespaces: Namespace by prefix.
    """

    pack: Pack
    walked: WalkedQuery
    patterns: frozenset[str]
    knowledge: Knowledge
    constraints: Constraints
    rows: Mapping[str, PropertyRow]
    namespaces: Mapping[str, str]

    @classmethod
    def of(cls, pack: Pack, walked: WalkedQuery, patterns: Iterable[str]) -> Facts:
        """Gather what a pack knows.

        Raises:
            UsageError: The pack's files cannot be read.
        """
        constraints = load_constraints(pack)
        return cls(
            pack,
            walked,
            frozenset(patterns),
            load_knowledge(pack),
            constraints,
            {row.iri: row for row in constraints.properties},
            namespaces_of(pack),
        )

    def short(self, name: str) -> str:
        """Return an IRI as a prompt writes it."""
        return str(compact(NamedNode(name), self.namespaces))

    def show(self, term: Identifier) -> str:
        """Return a term as its author wrote it."""
        if isinstance(term, Variable):
            return f"?{str(term).partition('~')[0]}"
        return self.short(str(term)) if isinstance(term, URIRef) else term.n3()

    def near(self, name: str, known: Iterable[str]) -> str:
        """Return which known names were probably meant, as a mend."""
        local = {_local(one): one for one in sorted(known)}
        found = difflib.get_close_matches(_local(name), local, n=3, cutoff=0.6)
        if not found:
            return "use only names that the examples and the property table show"
        return f"did you mean {' or '.join(self.short(local[one]) for one in found)}?"


def is_datatype(name: str) -> bool:
    """Say whether an IRI is that of a datatype, not of a class."""
    return name.startswith(STANDARD_PREFIXES["xsd"]) or name.endswith(("#Literal", "#langString"))


def _local(name: str) -> str:
    return name.rpartition("#")[2].rpartition("/")[2].lower()
