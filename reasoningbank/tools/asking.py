"""What all query tools of an endpoint need: asking, errors as lines, bounded listings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError, ToolError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.refs import RefStore
from reasoningbank.schema import (
    EndpointProfile,
    Schema,
    as_lines,
    explain_empty,
    explain_error,
    probe_run,
)
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    PreparedQuery,
    Result,
    SPARQLClient,
    Term,
    compact,
    to_iri,
)
from reasoningbank.sparql.terms import cut
from reasoningbank.tools.bounds import CAPS, fit, told
from reasoningbank.tools.looking import Asked

__all__ = ["Asking"]

NO_ROWS = (
    "no rows: a class, property or value of the query is not in the data; look them up with "
    "sparql_sample(class), sparql_describe(resource) or sparql_find(name)"
)

#: How to get what no limit gives.
PAGING = "ask more narrowly, or use sparql_query with LIMIT and OFFSET"
#: Characters of an IRI in a note, and of what is wrong with one.
MOST_IRI_CHARS = 200

#: What keeps a question from being answered: the query, the endpoint, or what a person gave,
#: such as a schema that cannot be read.
FAILURES = (QueryError, EndpointError, UsageError)

T = TypeVar("T")


class Asking:
    """One endpoint, asked for an agent: the arguments are those of `SPARQLTools`."""

    def __init__(
        self,
        config: EndpointConfig,
        *,
        store: RefStore | None = None,
        client: SPARQLClient | None = None,
        schema: Path | None = None,
        vocabulary: Schema | None = None,
        profile: EndpointProfile | None = None,
    ) -> None:
        self.config = config
        self._own_store = store is None
        self.store = store if store is not None else RefStore()
        self.vocabulary = vocabulary if vocabulary is not None else Schema.of(config, schema)
        self._own_profile = profile is None
        if profile is None:
            declared = Schema.of_files(schema) if schema is not None else None
            profile = EndpointProfile(config, declared=declared)
        self.profile = profile
        self._own_client = client is None
        self._client = client if client is not None else SPARQLClient(config)
        self._source = config.source
        self._asked: dict[str, Asked] = {}

    def close(self) -> None:
        """Release what is the tools' own of store, survey and connection; the given ones stay."""
        if self._own_store:
            self.store.close()
        if self._own_profile:
            self.profile.close()
        if self._own_client:
            self._client.close()

    def _iri(self, text: str) -> str:
        if not isinstance(text, str):
            raise ToolError(
                f"{told(text)} is not an IRI", hint="give it as text, e.g. 'rdfs:label'"
            )
        try:
            return to_iri(text, self.config.namespaces).value
        except QueryError as error:
            what = cut(error.what, MOST_IRI_CHARS)
            raise ToolError(what, where=error.where, hint=error.hint) from error

    def _prepare(self, query: str, limit: int | None) -> PreparedQuery:
        try:
            return self._client.prepare(query, limit=limit)
        except QueryError as error:
            raise self._failed(query, error) from error

    def _run(self, prepared: PreparedQuery) -> Result:
        try:
            return self._client.query(prepared)
        except FAILURES as error:
            raise self._failed(prepared.original, error) from error

    def _explore(self, find: Callable[[], T]) -> T:
        try:
            return find()
        except FAILURES as error:
            raise self._failed("", error) from error

    def _failed(self, query: str, error: QueryError | EndpointError | UsageError) -> ToolError:
        if isinstance(error, EndpointError):
            return ToolError(error.what, where=error.where, hint="try again once")
        if isinstance(error, UsageError):
            hint = "nothing in the query can fix this"
            return ToolError(error.what, where=error.where, hint=hint, code=error.code)
        meant = ""
        # Its vocabulary may have to be asked for: not of an endpoint that is slow already.
        if isinstance(query, str) and query and not isinstance(error, QueryTimeoutError):
            try:
                found = explain_error(query, error, self.vocabulary, self.config.namespaces)
                meant = "; ".join(map(str, found))
            except UsageError as broken:
                meant = _no_hint(broken)
        hint = "; ".join(part for part in (meant, error.hint) if part)
        return ToolError(error.what, where=error.where, hint=hint)

    def _why_empty(self, prepared: PreparedQuery) -> tuple[str, ...]:
        return self._explained(explain_empty, prepared) or (NO_ROWS,)

    def _explained(
        self, find: Callable[..., list[Finding]], prepared: PreparedQuery
    ) -> tuple[str, ...]:
        run, namespaces = probe_run(self.config), self.config.namespaces
        try:
            return as_lines(find(prepared, self.vocabulary, run, namespaces=namespaces))
        except UsageError as broken:
            return (_no_hint(broken),)

    def _no_class(self, iri: str, written: str) -> str:
        try:
            known = self._client.query(f"ASK {{ {self.profile.within(f'<{iri}> ?p ?o')} }}")
        except FAILURES:
            known = BooleanResult(False)
        written = cut(written, MOST_IRI_CHARS)
        if isinstance(known, BooleanResult) and known.value:
            return f"{written} is a resource, not a class: sparql_describe({written!r}) shows it"
        return f"nothing is of class {written}; sparql_classes() lists classes"

    def _show(self, term: Term | None) -> str | int | float | bool | None:
        return compact(term, self.config.namespaces)

    def _listing(
        self,
        tool: str,
        name: str,
        items: list[dict[str, Any]],
        limit: int,
        notes: Iterable[str],
        **rest: Any,
    ) -> dict[str, Any]:
        """Return what a tool lists: `limit` of the items, of which there is one more to say so."""
        kept = fit(items[:limit])
        truncated = len(kept) < len(items)
        said = [note for note in notes if note]
        if truncated:
            most = CAPS[tool].most
            if len(kept) < min(limit, len(items)):
                how = f"one return holds no more; {PAGING}"
            elif limit >= most:
                how = f"{most} is the most {tool} gives; {PAGING}"
            else:
                how = "raise limit or ask more narrowly"
            said.append(f"there may be more: {how}")
        listing = {"source": self._source, **rest, "count": len(kept), name: kept}
        listing["truncated"] = truncated
        if said:
            listing["note"] = "; ".join(said)
        return listing


def _no_hint(error: UsageError) -> str:
    return f"what was meant is not known: {cut(error.what, MOST_IRI_CHARS)}"
