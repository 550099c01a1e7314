"""A proxy that refuses what the engines of large public endpoints refuse.

It stands before a real endpoint, parses each query, and answers as Virtuoso does where the work
could grow with the store: every solution of a pattern that is not selective is needed, and no
LIMIT ends the search. A pattern is selective when its subject is known, when its predicate and
object are, or when its predicate belongs to the statistics that a store keeps of itself. What
is read under a LIMIT, with nothing in between that must see all solutions first, may be anything.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rdflib import RDF, Variable
from rdflib.term import BNode

from reasoningbank.sparql.query import parse_algebra

#: Most solutions that may be read under one LIMIT.
MOST_ROWS = 100_000
STATISTICS = (
    "http://rdfs.org/ns/void#",
    "http://www.w3.org/ns/sparql-service-description#",
)
TEXT_SEARCH = (
    "bif:contains",
    "http://www.bigdata.com/rdf/search#",
    "http://jena.apache.org/text#query",
    "http://qlever.cs.uni-freiburg.de/builtin-functions/",
)
REFUSAL = (
    "Virtuoso 42000 Error The estimated execution time 1843 (sec) exceeds the limit of 400 (sec)."
)


class Costly(Exception):  # noqa: N818 - a verdict
    """The query could make the engine look at everything."""


#: What is known of variables: the values that VALUES gives, or None for a few unknown ones.
Known = dict[Variable, set[Any] | None]


def check(query: str, most: int = MOST_ROWS) -> None:
    """Raise `Costly` for a query whose work is not bounded."""
    _Checker(most).check(parse_algebra(query).algebra)


@dataclass(frozen=True)
class _Checker:
    most: int

    def check(self, algebra: Any) -> None:
        if algebra.name == "AskQuery":
            self._part(algebra.p, streamed=True, known={})
        elif algebra.name != "DescribeQuery" or algebra.p is not None:
            self._part(algebra.p, streamed=False, known={})

    def _part(self, node: Any, *, streamed: bool, known: Known) -> Known:
        """Check a part of the algebra and return the variables that it binds to few values."""
        name = node.name
        if name == "Slice":
            if node.length is None or node.length > self.most:
                return self._part(node.p, streamed=False, known=known)
            self._part(node.p, streamed=True, known=known)
            return dict.fromkeys(_variables(node))
        if name in ("Project", "Extend", "ToMultiSet", "SelectQuery", "ConstructQuery", "Graph"):
            if name == "ToMultiSet" and node.p.name == "values":
                values: Known = {}
                for row in node.p.res:
                    for variable, value in row.items():
                        values.setdefault(variable, set()).add(value)  # type: ignore[union-attr]
                return values
            return self._part(node.p, streamed=streamed, known=known)
        if name in ("Distinct", "Reduced", "OrderBy", "Group", "AggregateJoin"):
            return self._part(node.p, streamed=False, known=known)
        if name == "Filter":
            for inner in _exists(node.expr):
                bound = {**known, **self._part(node.p, streamed=streamed, known=known)}
                self._part(inner, streamed=True, known=bound)
                return bound
            return self._part(node.p, streamed=False, known=known)
        if name in ("Join", "LeftJoin", "Union", "Minus"):
            return self._pair(node, streamed=streamed, known=known)
        if name == "BGP":
            return self._triples(node.triples, streamed=streamed, known=known)
        if name == "values":
            return {}
        raise Costly(f"{name} is not among what the guard knows")

    def _pair(self, node: Any, *, streamed: bool, known: Known) -> Known:
        if node.name == "Union":
            one = self._part(node.p1, streamed=streamed, known=known)
            other = self._part(node.p2, streamed=streamed, known=known)
            return dict.fromkeys(one.keys() & other.keys())
        # Either side may be the one that makes the other selective.
        for first, second in ((node.p1, node.p2), (node.p2, node.p1)):
            try:
                found = self._part(first, streamed=streamed, known=known)
                return {**found, **self._part(second, streamed=streamed, known={**known, **found})}
            except Costly as costly:
                reason = costly
        raise reason

    def _triples(self, triples: Any, *, streamed: bool, known: Known) -> Known:
        found: Known = dict(known)
        left = list(triples)
        while left:
            for triple in left:
                if _selective(triple, found):
                    left.remove(triple)
                    found |= {v: None for v in triple if _is_open(v) and v not in found}
                    break
            else:
                if streamed:
                    return found
                raise Costly("every solution of " + " ".join(part.n3() for part in left[0]))
        return found


def _selective(triple: Any, known: Known) -> bool:
    subject, predicate, object_ = triple
    names = known.get(predicate) if isinstance(predicate, Variable) else {predicate}
    if not _is_open(subject) or subject in known:
        return True
    if names and all(str(name).startswith(STATISTICS + TEXT_SEARCH) for name in names):
        return True
    if _is_open(predicate) and predicate not in known:
        return False
    # All instances of a class are many, although predicate and object are known.
    typing = names is None or RDF.type in names
    return (not _is_open(object_) or object_ in known) and not typing


def _is_open(part: Any) -> bool:
    return isinstance(part, Variable | BNode)


def _variables(node: Any) -> set[Variable]:
    return set(node.p.PV) if "PV" in node.p else set(node.p.get("_vars") or ())


def _exists(expression: Any) -> Iterator[Any]:
    if getattr(expression, "name", "") in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
        yield expression.graph


@dataclass
class Guard:
    """What came by.

    Attributes:
        url: Where to send queries.
        passed: The queries that were let through.
        refused: The queries that were not, with the reason.
    """

    url: str
    passed: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def guarded(endpoint: str, most: int = MOST_ROWS) -> Iterator[Guard]:
    """Stand before an endpoint on loopback; `most` solutions may be read under one LIMIT."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve(urlsplit(self.path).query, None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._serve(body.decode(), body)

        def _serve(self, form: str, body: bytes | None) -> None:
            query = parse_qs(form).get("query", [""])[0]
            try:
                if query:
                    check(query, most)
                    guard.passed.append(query)
            except Costly as costly:
                guard.refused.append((query, str(costly)))
                self._answer(500, {"Content-Type": "text/plain"}, REFUSAL.encode())
                return
            asked = urlsplit(self.path).query
            target = endpoint + (f"?{asked}" if asked else "")
            kept = ("Accept", "Content-Type", "User-Agent")
            headers = {name: self.headers[name] for name in kept if self.headers[name]}
            request = urllib.request.Request(target, data=body, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=30) as reply:
                    self._answer(reply.status, reply.headers, reply.read())
            except urllib.error.HTTPError as error:
                self._answer(error.code, error.headers, error.read())

        def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name in ("Content-Type", "Server"):
                if headers.get(name):
                    self.send_header(name, headers[name])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    guard = Guard(f"http://127.0.0.1:{server.server_address[1]}/sparql")
    try:
        yield guard
    finally:
        server.shutdown()
        server.server_close()
