"""`SPARQLTools`: how an agent queries and explores one endpoint through handles."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyoxigraph import NamedNode

from reasoningbank import sparql
from reasoningbank.errors import (
    EndpointError,
    QueryError,
    QueryTimeoutError,
    ToolError,
    UsageError,
)
from reasoningbank.findings import Finding
from reasoningbank.refs import Ref, RefLike, RefStore
from reasoningbank.schema import (
    EndpointProfile,
    Schema,
    as_lines,
    explain_empty,
    explain_error,
    is_empty,
    lint,
    nearest_names,
    probe_run,
    sampling,
)
from reasoningbank.schema.sampling import brief
from reasoningbank.sparql.terms import cut
from reasoningbank.sparql.tree import outline
from reasoningbank.tools import describing, labels
from reasoningbank.tools.describing import MOST_COUNTED, bounded_count, counted
from reasoningbank.tools.returns import (
    CAPS,
    Handle,
    Rows,
    bounded_limit,
    brief_repr,
    fit,
    listing,
    noted,
    show_rows,
    show_stats,
    some,
    tool_error,
)

NO_ROWS = (
    "no rows: a class, property or value of the query is not in the data; look them up with "
    "sparql_sample(class), sparql_describe(resource) or sparql_find(name)"
)
TOO_LARGE = "more rows would be too large for one answer: SELECT fewer columns, or page with OFFSET"
#: How to get what no limit gives.
PAGING = "ask more narrowly, or use sparql_query with LIMIT and OFFSET"
#: Characters of a text to search for, of an IRI in a note, and of the example of a class.
MOST_PATTERN, MOST_IRI_CHARS, EXAMPLE_CHARS, EXAMPLE_TRIPLES = 300, 200, 2_000, 20
#: Characters of the prefixes, the label properties and one name in `endpoint_info`.
MOST_PREFIX_CHARS, MOST_LABEL_CHARS, MOST_NAME_CHARS = 2_500, 700, 200
#: The tools that an arm's agent gets unless the arm names others. In the trials of `rlm` and
#: `react` recorded until 0.1.0, no agent called any other tool.
DEFAULT_TOOLS = (
    "sparql_query",
    "sparql_peek",
    "sparql_slice",
    "sparql_find",
    "sparql_describe",
    "sparql_classes",
    "sparql_properties",
    "sparql_sample",
    "sparql_count",
)
#: What agents see of each tool, in the order in which they need them.
TOOL_NAMES = (*DEFAULT_TOOLS, "sparql_stats", "endpoint_info")
#: What a tool reports: errors of the query, of the endpoint, and of a schema that was given.
_FAILURES = (QueryError, EndpointError, UsageError)

T = TypeVar("T")


@dataclass
class _Asked:
    """The query behind a handle, what was changed of it, and what is wrong with it, once known."""

    prepared: sparql.PreparedQuery
    limit: int
    note: str = ""
    findings: tuple[str, ...] | None = None


class SPARQLTools:
    """The query tools of one endpoint. Large results stay behind handles.

    Args:
        config: The endpoint.
        store: Where results are kept; its own by default, released by `close`.
        client: The connection; its own by default.
        schema: The endpoint's schema, shared by all trials of a run, or classes and properties as
            a Turtle file.
        profile: How the endpoint can be explored; shared by all trials of a run.
    """

    def __init__(
        self,
        config: sparql.EndpointConfig,
        *,
        store: RefStore | None = None,
        client: sparql.SPARQLClient | None = None,
        schema: Schema | Path | None = None,
        profile: EndpointProfile | None = None,
    ) -> None:
        file = schema if isinstance(schema, Path) else None
        declared = Schema.of_files(file) if file is not None and profile is None else None
        self.config = config
        self.store = store if store is not None else RefStore()
        self.schema = schema if isinstance(schema, Schema) else Schema.of(config, file)
        self.profile = profile or EndpointProfile(config, declared=declared)
        self._client = client or sparql.SPARQLClient(config)
        own = (self.store, store), (self.profile, profile), (self._client, client)
        self._own = [mine for mine, given in own if given is None]
        self._source = config.source
        self._asked: dict[str, _Asked] = {}

    def close(self) -> None:
        """Release what was not given: store, profile and connection."""
        for one in self._own:
            one.close()

    def as_dspy_tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools by name, for `dspy.RLM(tools=[...])` and `dspy.ReAct`."""
        return {name: getattr(self, name) for name in TOOL_NAMES}

    def sparql_query(self, query: str, limit: int = 100) -> Ref:
        """Run a SPARQL query. Returns a handle; look at its rows with sparql_peek(handle)."""
        limit, note = bounded_limit("sparql_query", limit, self.config.max_rows)
        prepared = self._prepare(query, limit)
        result = self._try(lambda: self._client.query(prepared, max_rows=limit), query)
        own_limit = outline(prepared.original).limit.value
        if not note and result.truncated and prepared.limit_changed and own_limit is not None:
            note = prepared.limit_note
        dtype = {sparql.BooleanResult: "boolean", sparql.TableResult: "results"}.get(
            type(result), "graph"
        )
        size = len(str(result.value)) if isinstance(result, sparql.BooleanResult) else result.chars
        kept = self.store.put(result, dtype=dtype, rows=result.n_rows, sz=size, source=self._source)
        # Beside the result and not around it, so that the store can spill the result's table.
        self._asked[kept.key] = _Asked(prepared, limit, note)
        return Handle(kept)

    def sparql_stats(self, ref: RefLike) -> dict[str, Any]:
        """Return the number of rows and the columns of a handle."""
        handle, result, notes, most = self._look(ref)
        return show_stats(handle, result, notes, most=most)

    def sparql_peek(self, ref: RefLike, n: int = 5, full: bool = False) -> Rows:
        """Return the first n rows of a handle (at most 20); full=True gives uncut terms."""
        n, note = bounded_limit("sparql_peek", n)
        return self._rows(ref, 0, n, note, full)

    def sparql_slice(self, ref: RefLike, start: int = 0, end: int = 50, full: bool = False) -> Rows:
        """Return rows start to end of a handle (end not included; at most 50 rows)."""
        whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (start, end))
        if not whole or start < 0 or end < start:
            what = f"cannot slice from {brief_repr(start)} to {brief_repr(end)}"
            raise ToolError(what, hint="give 0 <= start < end as whole numbers", code="bad-slice")
        length, note = bounded_limit("sparql_slice", max(1, end - start))
        return self._rows(ref, start, start + length if end > start else start, note, full)

    def sparql_classes(self, limit: int = 50) -> dict[str, Any]:
        """List the most frequent classes with their counts."""
        limit, note = bounded_limit("sparql_classes", limit)
        found = self._try(lambda: sampling.classes(self.profile, limit + 1))
        return self._counted("class", found, limit, [note])

    def sparql_properties(self, limit: int = 50, class_uri: str = "") -> dict[str, Any]:
        """List the most frequent properties with counts, of one class if class_uri is given."""
        limit, note = bounded_limit("sparql_properties", limit)
        if not class_uri:
            found = self._try(lambda: sampling.properties(self.profile, limit + 1))
            return self._counted("property", found, limit, [note])
        iri = self._iri(class_uri)
        found = self._try(lambda: sampling.properties_of(self.profile, iri, limit + 1))
        notes = [note] if found.items else self._no_class(iri)
        return self._counted("property", found, limit, notes)

    def sparql_describe(self, uri: str, limit: int = 20) -> dict[str, Any]:
        """Show the triples of a resource, some of every property, and what points to it."""
        limit, note = bounded_limit("sparql_describe", limit)
        iri = self._iri(uri)
        about = self._try(lambda: describing.describe(self.profile, iri, limit))
        items = self._about(about)
        notes = [note, *about.notes]
        if not items:
            notes = [self._near(iri) or "nothing is known of it", "sparql_find(text) searches"]
        shown = self._show(NamedNode(iri))
        found = self._listing("sparql_describe", "triples", items, limit, notes, uri=shown)
        most = CAPS["sparql_describe"].most
        some = [said for said in about.said if len(said.values) < said.count]
        if some and not found["truncated"]:
            name, points_here = self._show(some[0].property), some[0].side == "s"
            more = "" if limit == most or points_here else f"raise limit (at most {most}), or "
            rest = f"?s {{ ?s {name} {shown} }}" if points_here else f"?o {{ {shown} {name} ?o }}"
            how = f'{more}sparql_query("SELECT {rest}") lists those of {name}'
            found = noted({**found, "truncated": True}, [f"there are more values: {how}", *notes])
        return found

    def sparql_find(self, pattern: str, limit: int = 20) -> dict[str, Any]:
        """Find resources by name, label or identifier, e.g. sparql_find("kinase")."""
        limit, note = bounded_limit("sparql_find", limit)
        text = labels.plain(pattern) if isinstance(pattern, str) else ""
        if not text or len(text) > MOST_PATTERN:
            what = "the pattern is empty, not text, or too long"
            raise ToolError(what, hint="give a part of a name", code="bad-pattern")
        found = self._try(lambda: labels.find(self.profile, text, limit))
        items: list[dict[str, Any]] = [
            {name.strip("_"): self._show(term) for name, term in one._asdict().items() if term}
            | ({} if one.class_ or one.label else self._kind(one.uri))
            for one in found.value
        ]
        notes = [note, *found.notes]
        if not items:
            nothing = "nothing was found" if found.notes else "no label contains this"
            notes = [f"{nothing}; try a shorter or another word", *found.notes]
        shown = {"pattern": text, "via": found.via}
        return self._listing("sparql_find", "results", items, limit, notes, **shown)

    def sparql_sample(self, class_uri: str, n: int = 10) -> dict[str, Any]:
        """List instances of a class, and the properties of the first."""
        n, note = bounded_limit("sparql_sample", n)
        iri = self._iri(class_uri)
        instances, first = self._try(lambda: describing.sample(self.profile, iri, n + 1))
        items = [{"s": self._show(term)} for term in instances]
        notes = [note, *first.notes] if items else self._no_class(iri)
        example = fit(self._about(first)[:EXAMPLE_TRIPLES], EXAMPLE_CHARS)
        rest = {"class": self._show(NamedNode(iri)), "example": example}
        found = self._listing("sparql_sample", "instances", items, n, notes, **rest)
        example = found.pop("example")
        return {**found, "example": example}

    def sparql_count(self, query: str) -> dict[str, Any]:
        """Run a query such as SELECT (COUNT(*) AS ?n) WHERE {...} and return the number."""
        prepared = self._prepare(query, self.config.max_rows)
        notes: list[str] = []
        try:
            result = self._client.query(prepared)
        except _FAILURES as error:
            fewer = bounded_count(query) if isinstance(error, QueryError) else None
            if fewer is None:
                raise self._failed(query, error) from error
            # Counting all has failed.
            result = self._try(lambda: self._client.query(fewer), query)
            notes.append(f"only the first {MOST_COUNTED:,} were counted: {brief(error)}")
        if not isinstance(result, sparql.TableResult):
            raise ToolError("a count needs a SELECT", hint="use sparql_query for other forms")
        number, what = counted(query, result)
        truncated = result.truncated or bool(notes)
        notes.append(what)
        if is_empty(result, prepared):
            notes += self._explained(explain_empty, prepared) or (NO_ROWS,)
        return noted({"source": self._source, "count": number, "truncated": truncated}, notes)

    def endpoint_info(self) -> dict[str, Any]:
        """Return the endpoint's name, authority and address, and the prefixes declared for you."""
        config = self.config
        # The endpoint's own come first: the common ones are well known.
        prefixes = list({**config.prefixes, **config.namespaces}.items())
        properties = [self._show(NamedNode(name)) for name in config.label_properties]
        notes: list[str] = []
        unsaid = "prefixes are declared; a full IRI needs none"
        prefixes = some(prefixes, MOST_PREFIX_CHARS, unsaid, notes)
        unsaid = "label properties; sparql_find searches all"
        properties = some(properties, MOST_LABEL_CHARS, unsaid, notes)
        info = {
            "source": self._source,
            "name": cut(config.name, MOST_NAME_CHARS),
            "authority": cut(config.authority, MOST_NAME_CHARS),
            "url": config.url,
            "prefixes": dict(prefixes),
            "label_properties": properties,
            "max_rows": config.max_rows,
            "truncated": bool(notes),
        }
        return noted(info, notes)

    # -- asking ---------------------------------------------------------------------------

    def _iri(self, text: str) -> str:
        if not isinstance(text, str):
            hint = "give it as text, e.g. 'rdfs:label'"
            raise ToolError(f"{brief_repr(text)} is not an IRI", hint=hint, code="not-an-iri")
        try:
            return sparql.to_iri(labels.unquoted(text), self.config.namespaces).value
        except QueryError as error:
            hint = "; ".join(filter(None, (self._near(text), error.hint)))
            raise tool_error(error, hint, cut(error.what, MOST_IRI_CHARS)) from error

    def _prepare(self, query: str, limit: int | None) -> sparql.PreparedQuery:
        return self._try(lambda: self._client.prepare(query, limit=limit), query)

    def _try(self, find: Callable[[], T], query: str = "") -> T:
        try:
            return find()
        except _FAILURES as error:
            raise self._failed(query, error) from error

    def _failed(self, query: str, error: QueryError | EndpointError | UsageError) -> ToolError:
        if isinstance(error, EndpointError):
            return tool_error(error, "try again once")
        if isinstance(error, UsageError):
            return tool_error(error, "nothing in the query can fix this")
        meant: tuple[str, ...] = ()
        # The schema may have to be requested: not from an endpoint that is already slow.
        if query and isinstance(query, str) and not isinstance(error, QueryTimeoutError):
            namespaces = self.config.namespaces
            meant = self._hints(lambda: explain_error(query, error, self.schema, namespaces))
        return tool_error(error, "; ".join(filter(None, (*meant, error.hint))))

    def _explained(
        self, find: Callable[..., list[Finding]], prepared: sparql.PreparedQuery
    ) -> tuple[str, ...]:
        run, namespaces = probe_run(self.config), self.config.namespaces
        return self._hints(
            lambda: as_lines(find(prepared, self.schema, run, namespaces=namespaces))
        )

    def _near(self, name: str) -> str:
        """Return a hint with the classes and properties that a name probably means."""
        near = self._hints(
            lambda: (
                self._show(NamedNode(term.iri))
                for term in nearest_names(name[:MOST_IRI_CHARS], self.schema)
                if term.iri != name
            )
        )
        return f"did you mean {', '.join(near)}?" if near else ""

    def _hints(self, find: Callable[[], Iterable[object]]) -> tuple[str, ...]:
        """Return hints as lines; a schema that cannot be read gives none."""
        try:
            return tuple(map(str, find()))
        except UsageError as error:
            return (f"no suggestion is possible: {cut(error.what, MOST_IRI_CHARS)}",)

    def _kind(self, name: sparql.Term) -> dict[str, Any]:
        """Return whether the schema has a name as a class or a property."""
        iri = str(getattr(name, "value", ""))
        with contextlib.suppress(UsageError):
            if iri in self.schema.classes:
                return {"class": "rdfs:Class"}
            if iri in self.schema.properties:
                return {"class": "rdf:Property"}
        return {}

    def _no_class(self, iri: str) -> list[str]:
        """Explain why nothing is of a class, as the query that asks for it is explained."""
        name = self._show(NamedNode(iri))
        query = f"SELECT ?s {{ {self.profile.within(f'?s a {name}')} }}"
        found = self._explained(explain_empty, self._prepare(query, 1))
        nothing = f"nothing is of class {cut(str(name), MOST_IRI_CHARS)}"
        return list(found or (nothing, "sparql_classes() lists classes"))

    # -- showing --------------------------------------------------------------------------

    def _look(self, ref: RefLike) -> tuple[Ref, sparql.Result, list[str], int | None]:
        """Return a handle, its result, notes on it, and the rows that a higher limit may give."""
        handle, most = self.store.ref(ref), self.config.max_rows
        result: sparql.Result = self.store.get(ref, "results|graph|boolean")
        asked = self._asked.get(handle.key)
        if asked is None:
            return handle, result, [], most
        if result.truncated and result.n_rows < asked.limit:
            return handle, result, [TOO_LARGE], None
        if asked.findings is None:
            asked.findings = ()
            if is_empty(result, asked.prepared):
                asked.findings = self._explained(explain_empty, asked.prepared) or (NO_ROWS,)
            elif _has_empty_column(result):
                asked.findings = self._explained(lint, asked.prepared)
        return handle, result, [asked.note, *asked.findings], most

    def _rows(self, ref: RefLike, start: int, end: int, note: str, full: bool) -> Rows:
        handle, result, notes, most = self._look(ref)
        notes, namespaces = [note, *notes], self.config.namespaces
        return show_rows(
            handle, result, start, end, notes, most=most, namespaces=namespaces, whole=full is True
        )

    def _show(self, term: sparql.Term | None) -> str | int | float | bool | None:
        return sparql.compact(term, self.config.namespaces)

    def _about(self, about: describing.About) -> list[dict[str, Any]]:
        """Return one item a value; the first of a property has the count, if it has more."""
        return [
            {"p": self._show(one.property), one.side: self._show(value)}
            | ({"count": one.count} if at == 0 and one.count > len(one.values) else {})
            for one in about.said
            for at, value in enumerate(one.values)
        ]

    def _counted(
        self, name: str, found: sampling.Counted, limit: int, notes: list[str]
    ) -> dict[str, Any]:
        items = [
            {name: self._show(NamedNode(iri))} | ({} if count is None else {"count": count})
            for iri, count in found.items
        ]
        plural = "classes" if name == "class" else "properties"
        notes = [*notes, *found.notes]
        if self._try(lambda: self.profile.in_graphs):
            notes.append("the data are in named graphs only: put GRAPH ?g { ... } around patterns")
        return self._listing(f"sparql_{plural}", plural, items, limit, notes, via=found.via)

    def _listing(
        self,
        tool: str,
        name: str,
        items: list[dict[str, Any]],
        limit: int,
        notes: Iterable[str],
        **rest: Any,
    ) -> dict[str, Any]:
        """Return `limit` of the items; one item more shows that the list is cut."""
        cap = CAPS[tool]

        def left_out(shown: int) -> str:
            if shown < min(limit, len(items)):
                return f"there are more, but one return holds no more: {PAGING}"
            if limit >= cap.most:
                return f"there may be more; {cap.most} is the maximum of {tool}: {PAGING}"
            return f"there may be more: raise {cap.parameter} (at most {cap.most})"

        head = {"source": self._source, **rest}
        return listing(head, name, items, list(notes), limit=limit, left_out=left_out)


def _has_empty_column(result: sparql.Result) -> bool:
    """Return whether a column has no value in any row, as a misspelt OPTIONAL leaves it."""
    if not isinstance(result, sparql.TableResult | sparql.GraphResult) or not result.n_rows:
        return False
    return any(column.null_count == result.n_rows for column in result.table.columns)
