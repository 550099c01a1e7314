"""When two patterns are the same pattern, and which names an item is about.

Read from tokens, not from an algebra: a pattern has slots where a query has constants, so no
parser takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from reasoningbank.memory.item import MemoryItem
from reasoningbank.sparql import STANDARD_PREFIXES
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["canonical_pattern", "names_in", "names_used"]

_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_SLOT = re.compile(r"<<\s*([\w .-]+?)\s*>>")
#: What a slot is for the tokenizer: a variable that nobody writes.
_SLOT_VARIABLE = "?slot\u00b7"
#: The same inside of a string or an IRI.
_SLOT_WITHIN = re.compile(re.escape(_SLOT_VARIABLE) + r"\w+")
_RDF_TYPE = f"<{STANDARD_PREFIXES['rdf']}type>"
#: A prefixed name or an IRI in running text.
_IN_TEXT = re.compile(r"<([a-z][\w+.-]*:[^\s<>]+)>|(?<![\w:/])([A-Za-z][\w-]*:[A-Za-z_][\w-]*)")


def canonical_pattern(pattern: str, prefixes: Mapping[str, str] | None = None) -> str:
    """Return a pattern as every pattern that differs in wording alone is written.

    Slots and variables are numbered by their first use; prefixes are resolved; layout, comments,
    the case of keywords, ``WHERE`` and a last ``.`` of a block do not count. A pattern that is no
    query (code of an agent) keeps its words, its slots numbered.

    Args:
        pattern: A query or code skeleton with slots ``<<name>>``.
        prefixes: Prefixes that are declared without being written.

    Examples:
        >>> one = canonical_pattern("SELECT ?p WHERE { ?p rdfs:label <<name>> . } LIMIT 5")
        >>> two = canonical_pattern("select $x { $x rdfs:label <<label>> } limit 5")
        >>> one == two
        True
    """
    return _canonical(pattern, tuple(sorted((prefixes or {}).items())))[0]


def names_used(item: MemoryItem, prefixes: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the names that an item is about: those of its pattern, or else of its words.

    A name whose prefix is known is an IRI; another stays as it is written.

    Args:
        item: The item.
        prefixes: Prefixes that are declared without being written.

    Examples:
        >>> item = MemoryItem("Labels", "", "Use rdfs:label, never ex:name.", "failure")
        >>> sorted(names_used(item))
        ['ex:name', 'http://www.w3.org/2000/01/rdf-schema#label']
    """
    if item.pattern.strip():
        return _canonical(item.pattern, tuple(sorted((prefixes or {}).items())))[1]
    return names_in("\n".join((item.title, item.description, item.content)), prefixes)


def names_in(text: str, prefixes: Mapping[str, str] | None = None) -> frozenset[str]:
    """Return the prefixed names and the IRIs in a text, those of known prefixes as IRIs."""
    return _names_in_text(text, {**STANDARD_PREFIXES, **(prefixes or {})})


# Patterns are read again at every step of a stream, and each takes a tenth of a millisecond.
@lru_cache(maxsize=32_768)
def _canonical(pattern: str, declared: tuple[tuple[str, str], ...]) -> tuple[str, frozenset[str]]:
    known = {**STANDARD_PREFIXES, **dict(declared)}
    tokens = tokenize(_SLOT.sub(_as_variable, pattern))
    start = next((at for at, token in enumerate(tokens) if token.is_word(*_FORMS)), None)
    if start is None or not _is_prologue(tokens[:start]):
        words = " ".join(_numbered(pattern).split())
        return words, _names_in_text(pattern, known)
    known.update(_declared(tokens[:start]))
    names: set[str] = set()
    words_of_query = list(_words(tokens[start:], known, names))
    return " ".join(words_of_query), frozenset(names)


def _as_variable(slot: re.Match[str]) -> str:
    return _SLOT_VARIABLE + re.sub(r"\W", "_", slot[1])


def _is_prologue(tokens: tuple[Token, ...]) -> bool:
    """Tell whether all that stands before the form is PREFIX and BASE lines."""
    rest = [token for token in tokens if not token.is_word("PREFIX", "BASE")]
    return all(token.kind in ("name", "iri") for token in rest)


def _declared(prologue: tuple[Token, ...]) -> Iterator[tuple[str, str]]:
    for at, token in enumerate(prologue):
        if token.is_word("PREFIX") and len(prologue) > at + 2:
            yield prologue[at + 1].text.partition(":")[0], prologue[at + 2].text[1:-1]


def _words(tokens: tuple[Token, ...], known: Mapping[str, str], names: set[str]) -> Iterator[str]:
    numbers: dict[str, str] = {}

    def numbered(name: str) -> str:
        mark = "<<" if name.startswith(_SLOT_VARIABLE) else "_:" if name[0] == "_" else "?"
        # $name and ?name are one variable.
        return numbers.setdefault(mark + name.lstrip("?$"), f"{mark}{len(numbers)}")

    for at, token in enumerate(tokens):
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind in ("variable", "blank"):
            yield numbered(token.text)
        elif token.kind in ("iri", "name"):
            name = _SLOT_WITHIN.sub(lambda slot: numbered(slot[0]), _iri(token.text, known))
            names.add(name)
            yield f"<{name}>"
        elif token.kind == "string":
            yield _SLOT_WITHIN.sub(lambda slot: numbered(slot[0]), token.text)
        elif token.kind == "word":
            if token.text == "a":
                yield _RDF_TYPE
            elif not token.is_word("WHERE"):
                yield token.text.upper()
        elif token.text != "." or following != "}":
            yield token.text


def _iri(text: str, known: Mapping[str, str]) -> str:
    if text.startswith("<"):
        return text[1:-1]
    prefix, _, local = text.partition(":")
    return known[prefix] + local.replace("\\", "") if prefix in known else text


def _numbered(pattern: str) -> str:
    numbers: dict[str, str] = {}
    return _SLOT.sub(lambda slot: numbers.setdefault(slot[1], f"<<{len(numbers)}>>"), pattern)


def _names_in_text(text: str, known: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        match[1] if match[1] else _iri(match[2], known) for match in _IN_TEXT.finditer(text)
    )
