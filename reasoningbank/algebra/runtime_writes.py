"""Writing documents so that nothing is lost or doubled, also where an answer is lost.

PUT says what a document shall be, so it may be sent again. POST adds and PATCH changes: before
either, the document's ETag is asked for, the request carries it as a condition, and after a lost
answer the ETag tells whether the request was carried out. Where it cannot tell, the run ends with
the write noted as unanswered.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urljoin

from rdflib import BNode, Graph
from rdflib.term import Node

from reasoningbank.algebra.journal import Journal, State, Write
from reasoningbank.algebra.web import Lost, NotSent, Web, WebReply
from reasoningbank.algebra.web_rdf import ACCEPT, TURTLE, digest, graph_of, written
from reasoningbank.errors import BudgetError, EndpointError, ReasoningBankError, UsageError

__all__ = ["Method", "Sent", "Unanswered", "Writer", "body_of"]

Method = Literal["PUT", "POST", "PATCH"]
#: What to do with a write of an earlier run of which nobody knows whether it was done.
Unanswered = Literal["ask", "done", "again"]
UPDATE = "application/sparql-update"
_CHANGED_MEANWHILE = 412
#: Whether the request was carried out before it failed, nobody says.
_UNCLEAR = frozenset({500, 502, 504})
_LOCKS = 64


@dataclass(frozen=True)
class Sent:
    """How a write ended.

    Attributes:
        status: The HTTP status; 0 in a dry run.
        url: The document that was written.
    """

    status: int
    url: str


@dataclass(frozen=True)
class _Order:
    method: Method
    url: str
    address: str
    body: bytes
    graph: Graph | None

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": TURTLE if self.graph is not None else UPDATE}


def body_of(method: Method, body: Graph | str, url: str) -> bytes:
    """Return what is sent: N-Triples of a graph for PUT and POST, a SPARQL Update for PATCH.

    Raises:
        UsageError: The body is not what the method takes.
    """
    if isinstance(body, str) == (method == "PATCH"):
        return body.encode() if isinstance(body, str) else written(body)
    takes = "a SPARQL Update" if method == "PATCH" else "a graph"
    raise UsageError(f"{method} takes {takes}", where=url)


class Writer:
    """Carries out the writes of a run, each noted in its journal.

    Args:
        web: What sends requests.
        journal: Where writes are noted.
        tries: How often one write is sent at most.
        unanswered: What to do with an unanswered write of an earlier run that cannot be settled.
        may_write: Raises where an address may not be written.
        pause: Waits so many seconds.
    """

    def __init__(
        self,
        web: Web,
        journal: Journal,
        *,
        tries: int = 4,
        unanswered: Unanswered = "ask",
        may_write: Callable[[str], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._web = web
        self._journal = journal
        self._tries = tries
        self._unanswered = unanswered
        self._may_write = may_write
        self._pause = pause
        # Writes to one document go one after another, so that their ETags hold.
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def send(self, method: Method, url: str, address: str, body: Graph | str) -> Sent:
        """Write a document, unless an earlier run that this one resumes has done it.

        Args:
            method: How.
            url: The document, as the program names it.
            address: Its address as it is sent.
            body: What is written.

        Raises:
            EndpointError: It was refused, not sent, or its answer was lost.
            RecordError: The journal cannot be written; nothing was sent.
        """
        graph = None if isinstance(body, str) else body
        order = _Order(method, url, address, body_of(method, body, url), graph)
        with self._locks[hash(address) % _LOCKS]:
            earlier = self._journal.earlier(method, address, digest(order.body))
            if earlier is not None and earlier.state == "done":
                return Sent(earlier.status, earlier.at or url)
            if earlier is not None and (settled := self._settled(order, earlier)):
                return settled
            return self._sent(order, earlier)

    def _settled(self, order: _Order, earlier: Write) -> Sent | None:
        """Return how an unanswered write of an earlier run ended; None if it is to be sent."""
        if order.method == "PUT" or self._unanswered == "again":
            return None
        if self._unanswered == "done" or self._was_done(order, earlier.condition):
            self._journal.end(earlier, "done", status=earlier.status or 200)
            return Sent(earlier.status or 200, order.url)
        return None

    def _sent(self, order: _Order, earlier: Write | None) -> Sent:
        condition = self._condition(order)
        if earlier is not None:
            write = self._journal.again(earlier, condition)
        else:
            write = self._journal.begin(order.method, order.address, digest(order.body), condition)
        lost = ""
        for attempt in range(1, self._tries + 1):
            last = attempt == self._tries
            try:
                reply = self._asked(order, condition)
                changed = reply.status == _CHANGED_MEANWHILE and bool(condition)
                if changed and not lost and not last:
                    # By somebody else, since its ETag was told; this write was not done.
                    condition = self._condition(order)
                    write = self._journal.again(write, condition)
                    continue
            except Lost as error:
                lost = str(error)
            except (NotSent, BudgetError, EndpointError, UsageError) as error:
                raise self._broken_off(order, write, error, lost) from error
            else:
                # After a lost answer, it may be the lost request that changed it.
                if reply.status not in _UNCLEAR and not (changed and lost):
                    return self._ended(order, write, reply)
                lost = reply.told
            if self._done_all_the_same(order, write, condition, lost):
                self._journal.end(write, "done", status=200, why=f"seen after: {lost}")
                return Sent(200, order.url)
            if last:
                self._journal.end(write, "unanswered", why=lost)
                raise self._failure(order, "unanswered", lost)
            self._pause(0.5 * 2 ** (attempt - 1) * random.uniform(0.75, 1.25))
        raise AssertionError("the last attempt returns or raises")

    def _broken_off(
        self, order: _Order, write: Write, error: Exception, lost: str
    ) -> ReasoningBankError:
        """Note a write that is sent no more, and return the error that says so."""
        # An attempt before this one may still be carried out.
        state: State = "unanswered" if lost else "not sent"
        self._journal.end(write, state, why=lost or str(error))
        if isinstance(error, BudgetError):
            return BudgetError(error.what, where=error.where, hint=error.hint)
        return self._failure(order, state, f"{error}")

    def _asked(self, order: _Order, condition: Mapping[str, str]) -> WebReply:
        return self._web.ask(
            order.method,
            order.address,
            headers={**order.headers, **condition},
            body=order.body,
            may_follow=self._may_write,
        )

    def _ended(self, order: _Order, write: Write, reply: WebReply) -> Sent:
        if reply.status == 303 or 200 <= reply.status < 300:
            at = order.url
            named = reply.headers.get("Location")
            if named and reply.status in (201, 303) and order.method == "POST":
                at = self._web.known_as(urljoin(reply.url, named))
            noted = "" if at == order.url else at
            self._journal.end(write, "done", status=reply.status, at=noted)
            return Sent(reply.status, at)
        what = reply.told
        if 300 <= reply.status < 400:
            what = f"HTTP {reply.status} redirects to {reply.headers.get('Location', 'nowhere')}"
        self._journal.end(write, "refused", status=reply.status, why=what)
        raise self._failure(order, "refused", what)

    def _done_all_the_same(
        self, order: _Order, write: Write, condition: Mapping[str, str], lost: str
    ) -> bool:
        """Say whether a write whose answer was lost was carried out; where not, it may be repeated.

        Raises:
            EndpointError: It cannot be told.
        """
        if order.method == "PUT":
            return False
        try:
            return self._was_done(order, condition)
        except EndpointError as error:
            self._journal.end(write, "unanswered", why=lost)
            raise self._failure(order, "unanswered", f"{lost}; {error.what}") from None

    def _was_done(self, order: _Order, condition: Mapping[str, str]) -> bool:
        """Compare the document with what it was before a write.

        Raises:
            EndpointError: It cannot be told.
        """
        try:
            if condition and self._condition(order) == condition:
                return False
            if order.graph is not None and self._holds(order):
                return True
        except (Lost, NotSent, ReasoningBankError) as error:
            what = f"the document cannot be looked at: {error}"
            raise EndpointError(what, where=order.url) from None
        raise EndpointError(
            f"the document does not tell whether an earlier {order.method} was done",
            where=order.url,
            hint="look at it, and resume saying that unanswered writes are done, or to do again",
        )

    def _condition(self, order: _Order) -> dict[str, str]:
        """Return the condition under which the document is as it is now; empty if none can be."""
        if order.method == "PUT":
            return {}
        # The condition that the server compares is of the document, whatever its format.
        try:
            reply = self._web.ask("HEAD", order.address, headers={"Accept": ACCEPT})
        except NotSent as error:
            raise EndpointError(f"{error}", where=order.url) from None
        if reply.status in (404, 410):
            return {"If-None-Match": "*"}
        tag = reply.headers.get("ETag", "")
        good = 200 <= reply.status < 300 and tag and not tag.startswith("W/")
        return {"If-Match": tag} if good else {}

    def _holds(self, order: _Order) -> bool:
        """Say whether the document holds what was to be added."""
        reply = self._web.ask("GET", order.address, headers={"Accept": ACCEPT})
        if reply.status in (404, 410):
            return False
        if reply.status >= 300:
            raise EndpointError(reply.told, where=order.url)
        return order.graph is not None and _entails(graph_of(reply), order.graph)

    def _failure(self, order: _Order, state: str, why: str) -> EndpointError:
        if state == "unanswered":
            what = f"the {order.method} was sent, and it is not known whether it was done: {why}"
            hint = "resume the run, which looks before it repeats it"
        elif state == "refused":
            what, hint = f"the {order.method} was refused: {why}", ""
        else:
            what, hint = f"the {order.method} was not sent: {why}", "resume the run later"
        return EndpointError(what, where=order.url, hint=hint)


def _entails(there: Graph, wanted: Graph) -> bool:
    """Say whether a graph holds another, whose blank nodes have other names there.

    This is simple entailment (RDF 1.1 Semantics, section 5): each blank node stands for one node
    in all its triples.
    """
    names: dict[Node, str] = {}

    def written(part: Node) -> str:
        if isinstance(part, BNode):
            return names.setdefault(part, f"?b{len(names)}")
        return part.n3()

    plain = [t for t in wanted if not any(isinstance(part, BNode) for part in t)]
    if not all(triple in there for triple in plain):
        return False
    linked = [t for t in wanted if any(isinstance(part, BNode) for part in t)]
    pattern = " . ".join(" ".join(map(written, triple)) for triple in linked)
    return not linked or bool(there.query(f"ASK {{ {pattern} }}").askAnswer)
