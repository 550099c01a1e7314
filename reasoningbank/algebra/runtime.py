"""One object a run: whatever a program reads or writes outside of this process goes through it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rdflib import Graph

from reasoningbank.algebra.journal import Journal, Write
from reasoningbank.algebra.runtime_limits import Limits, Spent
from reasoningbank.algebra.runtime_queries import Queries
from reasoningbank.algebra.runtime_writes import Method, Sent, Unanswered, Writer, body_of
from reasoningbank.algebra.values import Table
from reasoningbank.algebra.web import NotSent, Web, WebReply
from reasoningbank.algebra.web_address import Addresses, checked, within
from reasoningbank.algebra.web_credentials import Credential
from reasoningbank.algebra.web_rdf import ACCEPT, graph_of
from reasoningbank.errors import EndpointError, UsageError

__all__ = ["Compose", "Limits", "Planned", "Runtime", "Sent"]

#: Question, endpoint (or empty) and the variables that the query must project → query.
Compose = Callable[[str, str, frozenset[str]], str]


@dataclass(frozen=True)
class Planned:
    """A write that a dry run did not do.

    Attributes:
        method: PUT, POST or PATCH.
        url: The document.
        body: What would be sent: N-Triples, or a SPARQL Update.
        allowed: Whether the run may write there.
    """

    method: str
    url: str
    body: str
    allowed: bool


class Runtime:
    """What a run may reach, and what it has done; safe to share between threads.

    Args:
        allow_write: Addresses below which documents may be written; by default none.
        allow_read: Addresses below which documents may be read and endpoints asked; None is any.
        limits: Its budgets.
        addresses: Public prefix → where what lies below it is really asked.
        credentials: Who the run is to which servers.
        compose: Turns a question into a query, for SPARQLString.
        record: Called with what happened, request by request.
        dry_run: Whether writes are listed in `planned` instead of done; reading goes on, and sees
            what is really there.
        journal: The file in which writes are noted; without one they are noted in memory alone.
        resume: Whether to go on with that journal: what it says was done is not done again.
        program: What tells the program, its variables and options from others.
        unanswered: What to do with a write of the resumed run of which nobody knows whether it was
            done, where the server cannot tell: ``ask`` ends the run, ``done`` and ``again`` decide.
        pause: Waits so many seconds between tries.

    Raises:
        UsageError: An address is none, or the journal does not fit.

    Examples:
        >>> with Runtime(dry_run=True, allow_write=["http://localhost/a/"]) as runtime:
        ...     sent = runtime.send("PUT", "http://localhost/b", Graph())
        ...     runtime.planned[0].allowed
        False
    """

    def __init__(
        self,
        *,
        allow_write: Sequence[str] = (),
        allow_read: Sequence[str] | None = None,
        limits: Limits | None = None,
        addresses: Mapping[str, str] | None = None,
        credentials: Sequence[Credential] = (),
        compose: Compose | None = None,
        record: Callable[[Mapping[str, Any]], None] | None = None,
        dry_run: bool = False,
        journal: Path | None = None,
        resume: bool = False,
        program: str = "",
        unanswered: Unanswered = "ask",
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        if dry_run and resume:
            hint = "leave one of the two out"
            raise UsageError("a dry run resumes nothing, and notes nothing", hint=hint)
        self.limits = limits or Limits()
        self.dry_run = dry_run
        self._allow_write = tuple(checked(base) for base in allow_write)
        self._allow_read = None if allow_read is None else tuple(map(checked, allow_read))
        self._compose = compose
        self._spent = Spent(self.limits)
        self._planned: list[Planned] = []
        self._lock = threading.Lock()
        real = Addresses(addresses or {})
        noted = record or (lambda _: None)
        self._web = Web(
            self.limits,
            self._spent,
            addresses=real,
            credentials=credentials,
            record=noted,
            pause=pause,
        )
        self._queries = Queries(
            self.limits,
            self._spent,
            real,
            self._web.credential,
            noted,
            services=self._allow_read,
        )
        self._journal = Journal(None if dry_run else journal, program=program, resume=resume)
        self._writer = Writer(
            self._web,
            self._journal,
            tries=self.limits.tries,
            unanswered=unanswered,
            may_write=self._check_write,
            pause=pause,
        )

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and the journal; what was done can still be asked for."""
        self._queries.close()
        self._web.close()
        self._journal.close()

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._spent.requests

    @property
    def planned(self) -> tuple[Planned, ...]:
        """The writes that a dry run would have done, in order."""
        with self._lock:
            return tuple(self._planned)

    @property
    def writes(self) -> tuple[Write, ...]:
        """The writes of the run, and of those that it resumes, in order, with how they ended."""
        return self._journal.writes()

    def get(self, url: str) -> Graph:
        """Return the graph of a document.

        Raises:
            EndpointError: It cannot be had, or is no RDF.
            BudgetError: The run may send no more requests.
            UsageError: The address is none, or may not be read.
        """
        address = checked(url)
        self._check_read(address)
        reply = self._got(address)
        if not 200 <= reply.status < 300:
            hint = {
                401: "give a credential for it",
                403: "give a credential for it",
                404: "check the address",
                406: "it has no RDF there; query an endpoint instead",
                410: "check the address",
            }.get(reply.status, "try again later")
            raise EndpointError(reply.told, where=url, hint=hint)
        return graph_of(reply, self.limits.rows)

    def send(self, method: Method, url: str, body: Graph | str) -> Sent:
        """Write a document: PUT creates or replaces it, POST adds to it, PATCH changes it.

        Args:
            method: Which.
            url: The document.
            body: A graph; for PATCH the text of a SPARQL Update.

        Raises:
            UsageError: The run may not write there, or the body is not what the method takes.
            EndpointError: It was refused, could not be sent, or its answer was lost; `writes` tells
                which.
            BudgetError: The run may send no more requests.
            RecordError: The journal cannot be written; nothing was sent.
        """
        address = checked(url, exactly=True)
        if self.dry_run:
            text = body_of(method, body, url).decode()
            allowed = within(self._allow_write, address) is not None
            with self._lock:
                self._planned.append(Planned(method, url, text, allowed))
            return Sent(0, url)
        self._check_write(address)
        return self._writer.send(method, url, address, body)

    def select(self, endpoint: str, query: str) -> Table:
        """Return the rows of a SELECT, as a stream from disk where there are many.

        Raises:
            QueryError: The query is wrong, or of another form, or takes too long.
            EndpointError: The endpoint cannot be asked, or cut its answer off.
            BudgetError: There are more rows than the run may take, or no more requests.
        """
        return self._queries.select(self._endpoint(endpoint), query)

    def graph(self, endpoint: str, query: str) -> Graph:
        """Return the graph of a CONSTRUCT or DESCRIBE; raises as `select` does."""
        return self._queries.graph(self._endpoint(endpoint), query)

    def ask(self, endpoint: str, query: str) -> bool:
        """Return the answer of an ASK; raises as `select` does."""
        return self._queries.ask(self._endpoint(endpoint), query)

    def compose(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        """Return a query that answers a question and projects the names.

        Raises:
            UsageError: The run has no model.
        """
        if self._compose is None:
            hint = "give the run a model, or write the query itself"
            raise UsageError("no model is there to write a query", hint=hint)
        return self._compose(question, endpoint, names)

    def uuid(self, place: str) -> str:
        """Return a random UUID; a resumed run gets the same ones at the same places."""
        return self._journal.draw(place)

    def _got(self, address: str) -> WebReply:
        try:
            accept = {"Accept": ACCEPT}
            return self._web.ask("GET", address, headers=accept, may_follow=self._check_read)
        except NotSent as error:
            hint = "check the address and that its server is up"
            raise EndpointError(str(error), where=address, hint=hint) from None

    def _endpoint(self, url: str) -> str:
        address = checked(url)
        self._check_read(address)
        return address

    def _check_read(self, address: str) -> None:
        if self._allow_read is not None and within(self._allow_read, address) is None:
            known = ", ".join(self._allow_read) or "none"
            raise UsageError("may not be read", where=address, hint=f"allowed: {known}")

    def _check_write(self, address: str) -> None:
        if within(self._allow_write, address) is None:
            known = ", ".join(self._allow_write)
            hint = f"allowed: {known}" if known else "allow its base with --allow-write"
            raise UsageError("may not be written", where=address, hint=hint)
