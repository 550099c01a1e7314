"""JSON-LD checks: what a processor would fetch, or drop without a word, is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyoxigraph

from reasoningbank.algebra.faults import ProgramError, json_path

__all__ = ["check_jsonld", "contexts_of", "is_iri", "terms_of"]

#: What can give keys a meaning that only a whole processor can tell.
_MAPPERS = ("@vocab", "@nest", "@import", "@propagate")
#: Under terms of these containers stand objects whose keys are languages, names or numbers.
_MAPS = ("@language", "@index", "@id", "@type", "@graph")
_SOMEWHERE = "http://document.invalid/"


def contexts_of(data: Any) -> Iterator[Mapping[str, Any]]:
    """Go through the contexts that stand in a document, at whatever depth."""
    if isinstance(data, list):
        for item in data:
            yield from contexts_of(item)
    elif isinstance(data, Mapping):
        for key, member in data.items():
            found = member if isinstance(member, list) else [member]
            if key == "@context":
                yield from (context for context in found if isinstance(context, Mapping))
            if key != "@value":
                yield from contexts_of(member)


def check_jsonld(
    data: Any, path: str, base: str | None, prefixes: Mapping[str, str] | None = None
) -> None:
    """Refuse remote contexts, keys that nothing maps to an IRI, and addresses that are no IRIs.

    Args:
        data: A JSON-LD document.
        path: Where it stands, for errors.
        base: What relative IRIs are relative to.
        prefixes: Well-known prefixes, which are refused where no context declares them; None
            takes them for the schemes of full IRIs, as JSON-LD does.

    Raises:
        ProgramError: There is something of the kind; its place is told.

    Examples:
        >>> check_jsonld({"@id": "http://e/a", "name": "x"}, "$", None)
        Traceback (most recent call last):
        ...
        reasoningbank.algebra.faults.ProgramError: $.name: nothing tells what the key 'name' ...
    """
    _refuse_remote(data, path)
    contexts = list(contexts_of(data))
    told = json.dumps(contexts)
    vague = any(mapper in told for mapper in _MAPPERS)
    known = frozenset(term for context in contexts for term in context)
    based = base is not None or "@base" in told
    checked = _Check(
        None if vague else known,
        based,
        prefixes or {},
        references=terms_of(contexts, "@type", "@id"),
        maps=terms_of(contexts, "@container", *_MAPS),
        json=terms_of(contexts, "@type", "@json"),
    )
    checked.part(data, path)


def terms_of(contexts: Iterable[Mapping[str, Any]], keyword: str, *values: str) -> frozenset[str]:
    """Return the terms that contexts define with one of the values of a keyword.

    Examples:
        >>> sorted(terms_of([{"a": {"@type": "@id"}, "b": "http://e/b"}], "@type", "@id"))
        ['a']
    """
    return frozenset(
        term
        for context in contexts
        for term, meaning in context.items()
        if isinstance(meaning, Mapping)
        for said in [meaning.get(keyword)]
        if set(said if isinstance(said, list) else [said]) & set(values)
    )


def _refuse_remote(data: Any, path: str, in_context: bool = False) -> None:
    if isinstance(data, list):
        for at, item in enumerate(data):
            _refuse_remote(item, json_path(path, at), in_context)
    elif isinstance(data, Mapping):
        for key, member in data.items():
            if key != "@value":
                remote = key in ("@import", "@context")
                _refuse_remote(member, json_path(path, key), remote)
    elif in_context and isinstance(data, str):
        hint = 'write the context itself, e.g. {"schema": "http://schema.org/"}'
        raise ProgramError(f"the remote context {data!r} is not fetched", where=path, hint=hint)


@dataclass(frozen=True)
class _Check:
    known: frozenset[str] | None
    based: bool
    prefixes: Mapping[str, str]
    references: frozenset[str]
    maps: frozenset[str]
    json: frozenset[str]

    def part(self, data: Any, path: str) -> None:
        if isinstance(data, list):
            for at, item in enumerate(data):
                self.part(item, json_path(path, at))
            return
        if not isinstance(data, Mapping):
            return
        for key, member in data.items():
            where = json_path(path, key)
            if key in ("@context", "@value") or key in self.json:
                continue
            if not key.startswith("@"):
                self._key(key, where)
            if key in ("@id", "@type") or key in self.references:
                for name in member if isinstance(member, list) else [member]:
                    if isinstance(name, str):
                        self._name(name, where)
            if key in self.maps and isinstance(member, Mapping):
                for name, value in member.items():
                    self.part(value, json_path(where, name))
            else:
                self.part(member, where)

    def _key(self, key: str, where: str) -> None:
        if self.known is None or key in self.known:
            return
        if ":" not in key:
            hint = "write it as a full IRI, or map it in @context"
            raise ProgramError(f"nothing tells what the key {key!r} means", where=where, hint=hint)
        if key.startswith("_:"):
            hint = "write it as a full IRI"
            raise ProgramError("a property is no blank node", where=where, hint=hint)
        self._name(key, where)

    def _name(self, name: str, where: str) -> None:
        if name.startswith(("_:", "@")):
            return
        if self.known is not None and name not in self.known:
            prefix, sign, local = name.partition(":")
            if prefix in self.prefixes and prefix not in self.known and local[:2] != "//":
                hint = f'add {{"{prefix}": "{self.prefixes[prefix]}"}} to @context'
                what = f"nothing declares the prefix {prefix + ':'!r}"
                raise ProgramError(what, where=where, hint=hint)
            if not self.based and not sign:
                hint = "write it in full"
                raise ProgramError(f"{name!r} is relative to nothing", where=where, hint=hint)
        if not is_iri(name):
            hint = "percent-encode it (EncodeForURI)"
            raise ProgramError(f"{name!r} is no IRI", where=where, hint=hint)


def is_iri(name: str) -> bool:
    """Say whether a name is an IRI, full or relative, by RFC 3987.

    Examples:
        >>> is_iri("http://e/ø?x#y"), is_iri("a/b"), is_iri("http://e/##"), is_iri("a b")
        (True, True, False, False)
    """
    if any(sign in name for sign in "<>\\"):
        return False
    document = f"<{name}> <urn:p> <urn:o> ."
    try:
        next(iter(pyoxigraph.parse(document, pyoxigraph.RdfFormat.TURTLE, base_iri=_SOMEWHERE)))
    except (SyntaxError, ValueError):
        return False
    return True
