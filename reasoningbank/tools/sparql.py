"""`SPARQLTools`: how an agent queries and explores one endpoint through handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
from pyoxigraph import NamedNode

from reasoningbank.errors import EndpointError, QueryError, ToolError
from reasoningbank.refs import Ref, RefLike, RefStore
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    Result,
    SPARQLClient,
    TableResult,
    compact,
    to_iri,
)
from reasoningbank.tools import schema_queries
from reasoningbank.tools.bounds import CAPS, bounded_limit, fit
from reasoningbank.tools.handle import Handle
from reasoningbank.tools.labels import label_search, rank_by_label
from reasoningbank.tools.rows import Rows

__all__ = ["SPARQLTools"]

NO_ROWS = (
    "no rows: a class, property or value of the query is not in the data; look them up with "
    "sparql_sample(class), sparql_describe(resource) or sparql_find(name)"
)

#: What agents see of each tool, in the order in which they need them.
TOOL_NAMES = (
    "sparql_query",
    "sparql_peek",
    "sparql_slice",
    "sparql_stats",
    "sparql_find",
    "sparql_describe",
    "sparql_classes",
    "sparql_properties",
    "sparql_sample",
    "sparql_count",
    "endpoint_info",
)


class SPARQLTools:
    """The query tools of one endpoint. Large results stay behind handles.

    Args:
        config: The endpoint.
        store: Where results are kept; an own one by default, released by `close`.
        client: The connection; an own one by default.
    """

    def __init__(
        self,
        config: EndpointConfig,
        *,
        store: RefStore | None = None,
        client: SPARQLClient | None = None,
    ) -> None:
        self.config = config
        self.store = store if store is not None else RefStore()
        self._client = client if client is not None else SPARQLClient(config)
        self._source = config.source

    def close(self) -> None:
        """Release the handles and the connection."""
        self.store.close()
        self._client.close()

    def as_dspy_tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools by name, for `dspy.RLM(tools=[...])` and `dspy.ReAct`."""
        return {name: getattr(self, name) for name in TOOL_NAMES}

    def sparql_query(self, query: str, limit: int = 100) -> Ref:
        """Run a SPARQL query. Returns a handle; look at its rows with sparql_peek(handle)."""
        limit, _ = bounded_limit("sparql_query", limit, self.config.max_rows)
        return self._keep(self._run(query, limit))

    def sparql_stats(self, ref: RefLike) -> dict[str, Any]:
        """Say how many rows and which columns a handle has."""
        handle = self.store.ref(ref)
        result = self.store.get(ref, "results|graph|boolean")
        stats: dict[str, Any] = {"source": handle.source, "rows": handle.rows, "sz": handle.sz}
        if isinstance(result, BooleanResult):
            return {**stats, "boolean": result.value, "truncated": False}
        stats["cols"] = list(result.variables)
        stats["truncated"] = result.truncated
        if result.truncated:
            stats["note"] = "the endpoint has more rows: raise limit or narrow the query"
        return stats

    def sparql_peek(self, ref: RefLike, n: int = 5) -> Rows:
        """Return the first n rows of a handle (at most 20)."""
        n, note = bounded_limit("sparql_peek", n)
        return self._rows(ref, 0, n, note)

    def sparql_slice(self, ref: RefLike, start: int = 0, end: int = 50) -> Rows:
        """Return rows start to end of a handle (end not included; at most 50 rows)."""
        for bound in (start, end):
            if isinstance(bound, bool) or not isinstance(bound, int):
                raise ToolError(
                    f"{bound!r} is not a whole number", mend="give 0 <= start < end as numbers"
                )
        if start < 0 or end < start:
            raise ToolError(
                f"a slice from {start} to {end} is empty or negative",
                mend="give 0 <= start < end",
            )
        length, note = bounded_limit("sparql_slice", max(1, end - start))
        return self._rows(ref, start, start + length if end > start else start, note)

    def sparql_classes(self, limit: int = 50) -> dict[str, Any]:
        """List the most frequent classes with their counts."""
        limit, note = bounded_limit("sparql_classes", limit)
        found = schema_queries.classes(self._select, limit)
        return self._counted("class", found, limit, note)

    def sparql_properties(self, limit: int = 50, class_uri: str = "") -> dict[str, Any]:
        """List the most frequent properties with counts, of one class if class_uri is given."""
        limit, note = bounded_limit("sparql_properties", limit)
        iri = self._iri(class_uri) if class_uri else None
        found = schema_queries.properties(self._select, limit, iri)
        if iri and not found.items:
            note = self._no_class(iri, class_uri)
        return self._counted("property", found, limit, note)

    def sparql_describe(self, uri: str, limit: int = 20) -> dict[str, Any]:
        """Show what is said of a resource: each property with an example; and what points to it."""
        limit, note = bounded_limit("sparql_describe", limit)
        iri = self._iri(uri)
        outgoing = self._about("o", f"<{iri}> ?p ?o", limit)
        # What points to it can be half the store, so only some of it is looked at.
        pointing = f"{{ SELECT ?p ?s WHERE {{ ?s ?p <{iri}> }} LIMIT {schema_queries.SAMPLE} }}"
        incoming = self._about("s", pointing, limit)
        items = [*outgoing, *incoming][:limit]
        more = len(outgoing) + len(incoming) > len(items)
        if not items:
            note = "nothing is known of it; sparql_find(text) searches by name"
        return self._listing("triples", items, more, note, uri=self._show_iri(iri))

    def sparql_find(self, pattern: str, limit: int = 20) -> dict[str, Any]:
        """Find resources by a part of their name or label, e.g. sparql_find("kinase")."""
        limit, note = bounded_limit("sparql_find", limit)
        if not isinstance(pattern, str) or not pattern.strip():
            raise ToolError("the pattern is empty or no text", mend="give a part of a name")
        try:
            query = label_search(pattern, self.config.label_properties)
        except QueryError as error:
            raise ToolError("the pattern is no valid text", mend="give a part of a name") from error
        found = rank_by_label(self._items(query), pattern)
        if not found:
            note = "no label holds this; try a shorter or another word"
        return self._listing("results", found[:limit], len(found) > limit, note, pattern=pattern)

    def sparql_sample(self, class_uri: str, n: int = 10) -> dict[str, Any]:
        """List instances of a class, and all that is said of the first."""
        n, note = bounded_limit("sparql_sample", n)
        iri = self._iri(class_uri)
        items = self._items(f"SELECT ?s WHERE {{ ?s a <{iri}> }} LIMIT {n + 1}")
        if not items:
            note = self._no_class(iri, class_uri)
        first = f"{{ SELECT ?s WHERE {{ ?s a <{iri}> }} LIMIT 1 }} ?s ?p ?o"
        example = self._about("o", first, CAPS["sparql_describe"].default)
        listing = self._listing("instances", items[:n], len(items) > n, note)
        return {**listing, "class": self._show_iri(iri), "example": fit(example, 2_000)}

    def sparql_count(self, query: str) -> dict[str, Any]:
        """Run a query such as SELECT (COUNT(*) AS ?n) WHERE {...} and return the number."""
        result = self._run(query, self.config.max_rows)
        if not isinstance(result, TableResult):
            raise ToolError("a count needs a SELECT", mend="use sparql_query for other forms")
        if result.n_rows == 1 and len(result.variables) == 1:
            value = compact(result.rows(0, 1)[0][0], self.config.namespaces)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return {"source": self._source, "count": value, "truncated": False}
        note = "the query does not count; this is its number of rows"
        return {
            "source": self._source,
            "count": result.n_rows,
            "truncated": result.truncated,
            "note": note + (", cut at the endpoint's cap" if result.truncated else ""),
        }

    def endpoint_info(self) -> dict[str, Any]:
        """Say what the endpoint is: name, authority, address, prefixes declared for you."""
        return {
            "source": self._source,
            "name": self.config.name,
            "authority": self.config.authority,
            "url": self.config.url,
            "prefixes": dict(self.config.prefixes),
            "label_properties": [self._show_iri(p) for p in self.config.label_properties],
            "max_rows": self.config.max_rows,
            "truncated": False,
        }

    def _no_class(self, iri: str, written: str) -> str:
        known = self._run(f"ASK {{ <{iri}> ?p ?o }}", None)
        if isinstance(known, BooleanResult) and known.value:
            return f"{written} is a resource, not a class: sparql_describe({written!r}) shows it"
        return f"nothing is of class {written}; sparql_classes() lists classes"

    def _iri(self, text: str) -> str:
        if not isinstance(text, str):
            raise ToolError(f"{text!r} is not an IRI", mend="give it as text, e.g. 'rdfs:label'")
        try:
            return to_iri(text, self.config.namespaces).value
        except QueryError as error:
            raise ToolError(error.what, where=error.where, mend=error.mend) from error

    def _run(self, query: str, limit: int | None) -> Result:
        try:
            return self._client.query(self._client.prepare(query, limit=limit))
        except QueryError as error:
            raise ToolError(error.what, where=error.where, mend=error.mend) from error
        except EndpointError as error:
            raise ToolError(error.what, where=error.where, mend="try again once") from error

    def _select(self, query: str) -> TableResult:
        result = self._run(query, None)
        assert isinstance(result, TableResult)
        return result

    def _items(self, query: str) -> list[dict[str, Any]]:
        result = self._select(query)
        return [self._row(result.variables, row) for row in result.rows(0, result.n_rows)]

    def _about(self, side: str, pattern: str, limit: int) -> list[dict[str, Any]]:
        """Return each ?p of a pattern with an example of `?side`, and its count if above 1."""
        rows = self._items(
            f"SELECT ?p (SAMPLE(?{side}) AS ?example) (COUNT(?{side}) AS ?count) "
            f"WHERE {{ {pattern} }} GROUP BY ?p ORDER BY ?count ?p LIMIT {limit + 1}"
        )
        return [
            {"p": row["p"], side: row["example"]}
            | ({"count": row["count"]} if row["count"] > 1 else {})
            for row in rows
        ]

    def _row(self, columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
        return {
            name: compact(term, self.config.namespaces)
            for name, term in zip(columns, row, strict=True)
        }

    def _keep(self, result: Result) -> Ref:
        if isinstance(result, BooleanResult):
            dtype, rows, size = "boolean", 1, len(str(result.value))
        else:
            dtype = "results" if isinstance(result, TableResult) else "graph"
            rows, size = result.n_rows, _chars(result)
        kept = self.store.put(result, dtype=dtype, rows=rows, sz=size, source=self._source)
        return Handle(kept)

    def _rows(self, ref: RefLike, start: int, end: int, note: str) -> Rows:
        handle = self.store.ref(ref)
        result = self.store.get(ref, "results|graph|boolean")
        if isinstance(result, BooleanResult):
            return Rows([{"boolean": result.value}], source=handle.source, total=1)
        if start > result.n_rows or (start == result.n_rows and start > 0):
            raise ToolError(
                f"{handle.key} has {result.n_rows} rows, so none from {start}",
                mend=f"slice from 0 to {result.n_rows}",
            )
        items = fit([self._row(result.variables, row) for row in result.rows(start, end)])
        stop = start + len(items)
        rest = handle.rows - stop
        notes = [note] if note else []
        if rest > 0:
            notes.append(f"{rest} more rows: sparql_slice({handle.key!r}, {stop}, {stop + 50})")
        elif handle.rows == 0:
            notes.append(NO_ROWS)
        elif result.truncated:
            notes.append("the endpoint has more rows: raise limit or narrow the query")
        return Rows(
            items,
            source=handle.source,
            total=handle.rows,
            truncated=rest > 0 or result.truncated,
            note="; ".join(notes),
        )

    def _counted(
        self, name: str, found: schema_queries.Counted, limit: int, note: str
    ) -> dict[str, Any]:
        items = [{name: self._show_iri(iri), "count": count} for iri, count in found.items]
        plural = "classes" if name == "class" else "properties"
        return self._listing(plural, items, len(items) >= limit, note, via=found.via)

    def _listing(
        self, name: str, items: list[dict[str, Any]], more: bool, note: str, **rest: Any
    ) -> dict[str, Any]:
        kept = fit(items)
        truncated = more or len(kept) < len(items)
        notes = [note] if note else []
        if truncated:
            notes.append("there may be more: raise limit or ask more narrowly")
        listing = {"source": self._source, **rest, "count": len(kept), name: kept}
        listing["truncated"] = truncated
        if notes:
            listing["note"] = "; ".join(notes)
        return listing

    def _show_iri(self, iri: str) -> str:
        return str(compact(NamedNode(iri), self.config.namespaces))


def _chars(result: TableResult | GraphResult) -> int:
    """Return the characters of all cells, as the endpoint wrote them."""
    return sum(pc.sum(pc.utf8_length(column)).as_py() or 0 for column in result.table.columns)
