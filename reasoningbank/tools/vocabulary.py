"""The classes and properties of an endpoint: computed once, lazily, for all trials of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools.contents import Contents, NamedTerm, of_endpoint, of_schema

__all__ = ["Vocabulary"]


class Vocabulary:
    """What classes and properties an endpoint has; filled when first asked, safe between threads.

    Args:
        fill: Computes the contents; called once, by the first who asks.

    Examples:
        >>> names = Vocabulary.of_terms(["http://e/Tree"], ["http://e/height"])
        >>> list(names.properties), names.via, names.complete
        (['http://e/height'], 'given', True)
    """

    def __init__(self, fill: Callable[[], Contents]) -> None:
        self._fill = fill
        self._lock = threading.Lock()
        self._contents: Contents | None = None

    @classmethod
    def of(cls, config: EndpointConfig, schema: Path | None = None) -> Vocabulary:
        """Return the vocabulary of an endpoint: its schema, its VoID statistics, or samples.

        Nothing is asked before the vocabulary is used. An endpoint that fails then costs what
        it would have told, and nothing else.

        Args:
            config: The endpoint.
            schema: Classes and properties as Turtle, e.g. those of a pack.
        """
        return cls(lambda: of_endpoint(config, schema))

    @classmethod
    def of_schema(cls, schema: Path) -> Vocabulary:
        """Return the vocabulary that a Turtle file declares; the data may hold more, or less.

        Raises:
            UsageError: When it is first used, if the file cannot be read or parsed.
        """
        return cls(lambda: of_schema(schema))

    @classmethod
    def of_terms(cls, classes: Iterable[str], properties: Iterable[str]) -> Vocabulary:
        """Return a vocabulary of exactly these IRIs."""
        given = Contents(
            {iri: NamedTerm(iri, in_data=True) for iri in classes},
            {iri: NamedTerm(iri, in_data=True) for iri in properties},
            via="given",
            complete=True,
        )
        return cls(lambda: given)

    @property
    def classes(self) -> Mapping[str, NamedTerm]:
        """The classes by IRI, the most frequent first where counts are known."""
        return MappingProxyType(dict(self._read().classes))

    @property
    def properties(self) -> Mapping[str, NamedTerm]:
        """The properties by IRI, the most frequent first where counts are known."""
        return MappingProxyType(dict(self._read().properties))

    @property
    def via(self) -> str:
        """Where it comes from, such as ``schema and void`` or ``sample of 10000 triples``."""
        return self._read().via

    @property
    def complete(self) -> bool:
        """Whether a name that is not in it is not in the data either."""
        return self._read().complete

    def term(self, iri: str) -> NamedTerm | None:
        """Return the class or property with this IRI."""
        contents = self._read()
        return contents.classes.get(iri) or contents.properties.get(iri)

    def properties_of(self, class_iri: str) -> tuple[str, ...]:
        """Return the properties that instances of a class have, the most used first."""
        return self._read().of_class.get(class_iri, ())

    def link(self, class_iri: str, property_iri: str) -> str:
        """Return a property that leads from a class to what has another property.

        It takes one step; empty where no such property is known.
        """
        contents = self._read()
        wanted = contents.properties.get(property_iri)
        holders = {c for c, has in contents.of_class.items() if property_iri in has}
        holders |= set(wanted.domain) if wanted is not None else set()
        return self._leading(self.properties_of(class_iri), holders)

    def leading_to(self, class_iri: str, classes: Iterable[str] = ()) -> str:
        """Return a property whose values are of a class, one of some classes' own if there is.

        Empty where no such property is known.
        """
        own = [p for name in classes for p in self.properties_of(name)]
        return self._leading([*own, *self._read().properties], {class_iri})

    def below(self, class_iri: str) -> tuple[str, ...]:
        """Return the classes below a class that the data hold, by IRI."""
        classes = self._read().classes
        return tuple(c for c, t in classes.items() if t.in_data and class_iri in self._above(c))

    def _leading(self, properties: Iterable[str], classes: set[str]) -> str:
        """Return the first property with one of the classes, else with one above it, as range."""
        known = self._read().properties
        ranges = {p: set(known[p].range) for p in properties if p in known}
        for wanted in (classes, {above for c in classes for above in self._above(c)}):
            found = next((p for p, targets in ranges.items() if targets & wanted), "")
            if found:
                return found
        return ""

    def _above(self, class_iri: str) -> set[str]:
        classes = self._read().classes
        found: set[str] = set()
        todo = [class_iri]
        while todo:
            term = classes.get(todo.pop())
            new = set(term.parents) - found if term is not None else set()
            found |= new
            todo += new
        return found

    def _read(self) -> Contents:
        with self._lock:
            if self._contents is None:
                self._contents = self._fill()
            return self._contents
