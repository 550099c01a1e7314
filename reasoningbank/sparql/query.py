"""Preparing a query before it is sent: what it asks, what it lacks, and how much it may return.

The algebra is rdflib's. Every edit is made at a token, never by searching the text, and can be
traced back, so that an engine's error is reported in the author's own lines.

rdflib's parser keeps state in its grammar and breaks under two threads, so it is used under a lock.
pyoxigraph offers no parser of its own, and evaluates at once what aggregates or asks. So a query is
given with arguments that are refused once it is parsed, and an update, which is parsed as a whole
before its first operation runs, behind one that fails.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyoxigraph
from rdflib.plugins.sparql.algebra import translateQuery, translateUpdate
from rdflib.plugins.sparql.parser import QueryUnit, UpdateUnit, parseQuery, parseUpdate
from rdflib.plugins.sparql.sparql import Query

from reasoningbank.errors import QueryError
from reasoningbank.sparql.endpoint import same_address
from reasoningbank.sparql.syntax import refuse_unreadable, syntax_error
from reasoningbank.sparql.terms import STANDARD_PREFIXES, expanded
from reasoningbank.sparql.tokens import Edit, apply_edits, origin, position, tokenize
from reasoningbank.sparql.tree import Form, QueryTree, outline

#: rdflib takes up to a second for as many, and the square of their number for SERVICEs; others are
#: parsed by Oxigraph alone.
MOST_TOKENS, MOST_SERVICES = 2_000, 10


@dataclass(frozen=True)
class PreparedQuery:
    text: str  #: The query as sent: the author's text with prefixes, addresses and LIMIT adjusted
    form: Form
    #: The columns of a SELECT in order; empty if they cannot be determined
    variables: tuple[str, ...] = ()
    #: Addresses of the SERVICE clauses as sent, ``?name`` for a variable one
    services: tuple[str, ...] = ()
    limit: int | None = None  #: The LIMIT of the outermost level as sent; None if there is none
    limit_changed: bool = False  #: Whether that LIMIT was added or lowered
    limit_note: str = ""  #: What was changed about LIMIT, for people
    #: rdflib's query (prologue and algebra), shared and not to be changed; None if only Oxigraph
    #: can parse it, or it has more than 2,000 tokens
    parsed: Query | None = field(default=None, compare=False, repr=False)
    #: The author's text, which `edits` turn into `text`
    original: str = field(default="", repr=False)
    edits: tuple[Edit, ...] = field(default=(), repr=False)

    def limited(self, limit: int) -> PreparedQuery:
        """Return the same query with a LIMIT of at most `limit`, if it is a SELECT."""
        # In CONSTRUCT and DESCRIBE a LIMIT counts solutions, so their results are cut when read.
        if self.form != "SELECT":
            return self
        found = outline(self.original).limit
        limit = limit if found.value is None else min(limit, found.value)
        if limit == found.value and not self.limit_changed:
            return self
        edits = tuple(e for e in self.edits if (e.start, e.end) != (found.start, found.end))
        note = ""
        if found.value is None:
            edits = (*edits, Edit(found.start, found.end, f"\nLIMIT {limit}"))
            note = f"LIMIT {limit} added"
        elif found.value != limit:
            edits = (*edits, Edit(found.start, found.end, str(limit)))
            note = f"LIMIT lowered from {found.value} to {limit}"
        return replace(
            self,
            text=apply_edits(self.original, edits),
            limit=limit,
            limit_changed=bool(note),
            limit_note=note,
            edits=edits,
        )

    def explain(self, message: str) -> QueryError | None:
        """Turn an engine's message into an error in the author's lines, if it names a position."""
        offset = offset_in(self.text, message)
        if offset is None:
            return None
        return syntax_error(self.original, origin(self.edits, offset), said=message)

    def complaint(self) -> QueryError | None:
        """Return the error of Oxigraph's parser for a query that rdflib parses; None if none."""
        found = complaint_of(outline(self.original), self.edits)
        if found is None:
            return None
        if found.offset is None:
            hint = "write it in plain SPARQL 1.1"
            return QueryError(found.message, hint=hint, code="syntax-error")
        return syntax_error(self.original, found.offset, said=found.message)


def prepare(
    query: str,
    *,
    prefixes: Mapping[str, str] = STANDARD_PREFIXES,
    limit: int | None = None,
    aliases: Mapping[str, str] | None = None,
    services: Iterable[str] | None = None,
) -> PreparedQuery:
    """Check a query and prepare it for sending.

    Args:
        query: SPARQL 1.1 or 1.2 query text.
        prefixes: Prefix → namespace, declared for the query if it uses them undeclared.
        limit: Most rows of a SELECT; its outermost LIMIT is added or lowered.
        aliases: Public address → real address, put into SERVICE clauses.
        services: The addresses SERVICE may name besides aliases; None allows any.
    """
    refuse_unreadable(query)
    shape = outline(query)
    edits: list[Edit] = []
    missing = _missing_prefixes(shape, prefixes)
    if missing:
        head = "".join(f"PREFIX {name}: <{space}>\n" for name, space in missing.items())
        edits.append(Edit(shape.prefix_at, shape.prefix_at, head))
    namespaces = {**missing, **shape.declared}
    allowed = None if services is None else tuple(services)
    targets = tuple(_service_edits(shape, namespaces, aliases or {}, allowed, edits))
    # Oxigraph 0.5 rejects local names with two or more dots (`ec:1.1.1.1`), which the grammar
    # allows. Every engine reads full IRIs, but not escaped dots.
    edits += (
        Edit(token.start, token.end, f"<{expanded(token.text, namespaces)}>")
        for token in shape.body
        if token.kind == "name" and len(re.findall(r"(?<!\\)\.", token.text.partition(":")[2])) > 1
    )
    parsed = _parse(shape, edits)
    prepared = PreparedQuery(
        text=apply_edits(query, edits),
        form=shape.form,
        variables=_variables(shape, parsed),
        services=targets,
        limit=shape.limit.value,
        parsed=parsed,
        original=query,
        edits=tuple(edits),
    )
    return prepared if limit is None else prepared.limited(limit)


def _missing_prefixes(shape: QueryTree, prefixes: Mapping[str, str]) -> dict[str, str]:
    missing: dict[str, str] = {}
    for token in shape.body:
        if token.kind != "name":
            continue
        prefix = token.text.partition(":")[0]
        if prefix in shape.declared or prefix in missing:
            continue
        if prefix not in prefixes:
            known = ", ".join(f"{name}:" for name in sorted(prefixes)[:40])
            what = f"the prefix {prefix + ':'!r} is not declared"
            hint = f"declare it with PREFIX {prefix}: <...>, or use a known one ({known})"
            if prefix in ("http", "https"):
                hint = "write an IRI between < and >, without spaces"
            at, code = token.start, "unknown-prefix"
            raise syntax_error(shape.text, at, what, hint=hint, code=code, prefix=prefix)
        missing[prefix] = prefixes[prefix]
    return missing


def _service_edits(
    shape: QueryTree,
    namespaces: Mapping[str, str],
    aliases: Mapping[str, str],
    allowed: Collection[str] | None,
    edits: list[Edit],
) -> Iterator[str]:
    """Yield the address of each SERVICE as sent; add the edits that put it there."""
    code = "service-refused"
    for token in shape.service_targets:
        if token.kind == "variable":
            if allowed is not None:
                what = "SERVICE with a variable may reach any address, which is not allowed here"
                hint = "write the address of the endpoint itself"
                raise syntax_error(shape.text, token.start, what, hint=hint, code=code)
            yield f"?{token.text[1:]}"
            continue
        address = expanded(token.text, namespaces)
        real = next((to for name, to in aliases.items() if same_address(name, address)), None)
        if real is not None:
            edits.append(Edit(token.start, token.end, f"<{real}>"))
            address = real
        elif allowed is not None and not any(same_address(a, address) for a in allowed):
            public = {*aliases, *allowed} - set(aliases.values())
            known = ", ".join(sorted(public)[:20]) or "none"
            what = f"SERVICE <{address}> is not among the allowed endpoints"
            hint = f"allowed: {known}"
            at = token.start
            raise syntax_error(shape.text, at, what, hint=hint, code=code, address=address)
        yield address


def _parse(shape: QueryTree, edits: list[Edit]) -> Query | None:
    text = apply_edits(shape.text, edits)
    complaint = ""
    try:
        if len(shape.body) <= MOST_TOKENS and len(shape.service_targets) <= MOST_SERVICES:
            return parse_once(text)
    except Exception as error:  # rdflib raises bare Exceptions, and RecursionErrors at 100 triples
        complaint = f"{error}"
    # Covers rdflib's gaps: RDF 1.2, LATERAL, engine extensions, long lists.
    found = complaint_of(shape, edits)
    if found is not None:
        at = len(shape.text) if found.offset is None else found.offset
        said = complaint if found.offset is None else found.message
        raise syntax_error(shape.text, at, said=said)
    return None


def _variables(shape: QueryTree, parsed: Query | None) -> tuple[str, ...]:
    if shape.form != "SELECT":
        return ()
    if not shape.star or parsed is None:
        return shape.projected
    visible = {str(name) for name in parsed.algebra.PV}
    order = dict.fromkeys(t.text[1:] for t in shape.body if t.kind == "variable")
    return tuple(name for name in order if name in visible)


# -- parsers ------------------------------------------------------------------------------

# rdflib logs a traceback for each ill-typed literal; without a handler that goes to stderr.
logging.getLogger("rdflib").addHandler(logging.NullHandler())

# matplotlib turns on pyparsing's memoization for all grammars; this one takes 2.5 times as long.
_parts: Any = [*QueryUnit.visit_all(), *UpdateUnit.visit_all()]  # type: ignore[no-untyped-call]
_ignored = {id(one): one for part in _parts for one in part.ignoreExprs}
for _part in itertools.chain(_parts, *(one.visit_all() for one in _ignored.values())):
    _part._parse = _part._parseNoCache

_lock = threading.Lock()


def parse_algebra(text: str) -> Query:
    """Parse a query with rdflib and translate it into the algebra; thread-safe."""
    with _lock:
        return translateQuery(parseQuery(text))


#: The same, cached: callers must not change the result.
parse_once = functools.lru_cache(maxsize=256)(parse_algebra)


def parse_update(text: str) -> None:
    """Parse an update with rdflib, which raises if it is not one; a long one is not read."""
    if len(tokenize(text)) <= MOST_TOKENS:
        with _lock:
            translateUpdate(parseUpdate(text))


#: An operation that fails: nothing is loaded from there, so an update ends here.
FAILS = "LOAD <urn:nowhere> ; "
_POSITION = re.compile(r"(?:\bat |\bline )(\d+)(?::|,? col(?:umn)? )(\d+)")


class Complaint(NamedTuple):
    """The error of Oxigraph's parser, and its offset in the query, None if it names no place."""

    message: str
    offset: int | None


def complaint_of(
    tree: QueryTree, edits: Iterable[Edit] = (), *, base: str | None = None
) -> Complaint | None:
    """Let Oxigraph parse a query with further edits, without evaluating any of it."""
    made = tuple(edits)
    text = apply_edits(tree.text, made)
    try:
        # No query may have both of these; it is parsed before they are looked at.
        pyoxigraph.Store().query(
            text,
            base_iri=base,
            use_default_graph_as_union=True,
            default_graph=pyoxigraph.DefaultGraph(),
        )
    except SyntaxError as error:
        message = " ".join(str(error).split())
        offset = offset_in(text, message)
        if offset is None:
            return Complaint(message, None)
        offset = min(len(tree.text), origin(made, offset))
        line, column = position(tree.text, offset)
        return Complaint(_POSITION.sub(f"at {line}:{column}", message, count=1), offset)
    except ValueError:
        pass  # it parses
    return None


def offset_in(text: str, message: str) -> int | None:
    """Return the offset in a text of the line and column that a parser's message names."""
    found = _POSITION.search(message)
    lines = text.split("\n")
    if found is None or not 1 <= (line := int(found[1])) <= len(lines):
        return None
    return min(len(text), sum(len(before) + 1 for before in lines[: line - 1]) + int(found[2]) - 1)


def update_complaint(update: str, begin: int) -> str | None:
    """Return what Oxigraph says against an update whose prologue ends at `begin`."""
    return parsed_alone(f"{update[:begin]}{FAILS}{update[begin:]}")


def parsed_alone(update: str, base: str | None = None) -> str | None:
    """Parse an update whose first operation is `FAILS`, so that none of it runs."""
    try:
        pyoxigraph.Store().update(update, base_iri=base)
    except SyntaxError as error:
        return str(error)
    except (RuntimeError, ValueError, OSError):
        pass  # as intended
    return None
