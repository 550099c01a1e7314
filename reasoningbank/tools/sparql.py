"""`SPARQLTools`: how an agent queries and explores one endpoint through handles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.errors import EndpointError, QueryError, ToolError, UsageError
from reasoningbank.refs import Ref, RefLike
from reasoningbank.schema import is_empty, lint, sampling
from reasoningbank.schema.profile import brief
from reasoningbank.sparql import BooleanResult, Result, TableResult
from reasoningbank.sparql.terms import cut
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.tools import describing, labels
from reasoningbank.tools.asking import Asking
from reasoningbank.tools.bounds import CAPS, bounded_limit, fit, told
from reasoningbank.tools.describing import MOST_COUNTED, bounded_count
from reasoningbank.tools.handle import Handle
from reasoningbank.tools.looking import Asked, bare_columns, show_rows, show_stats, size_of
from reasoningbank.tools.rows import Rows

__all__ = ["SPARQLTools"]

#: Characters of what may be searched for.
MOST_PATTERN = 300
#: Characters of what `endpoint_info` tells: all prefixes, all label properties, one name.
MOST_PREFIX_CHARS = 4_000
MOST_LABEL_CHARS = 1_000
MOST_NAME_CHARS = 300
#: Where none of these words is, a query selects what is in the data.
_COMPUTED = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "AS")
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


class SPARQLTools(Asking):
    """The query tools of one endpoint. Large results stay behind handles.

    Args:
        config: The endpoint.
        store: Where results are kept; an own one by default, released by `close`.
        client: The connection; an own one by default.
        schema: Classes and properties as Turtle, e.g. those of a pack.
        vocabulary: What names the endpoint knows; shared by all trials of a run.
        profile: How the endpoint can be explored; shared by all trials of a run.
    """

    def as_dspy_tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools by name, for `dspy.RLM(tools=[...])` and `dspy.ReAct`."""
        return {name: getattr(self, name) for name in TOOL_NAMES}

    def sparql_query(self, query: str, limit: int = 100) -> Ref:
        """Run a SPARQL query. Returns a handle; look at its rows with sparql_peek(handle)."""
        limit, note = bounded_limit("sparql_query", limit, self.config.max_rows)
        prepared = self._prepare(query, limit)
        result = self._run(prepared)
        if not note and result.truncated:
            note = next((n for n in prepared.notes if n.startswith("LIMIT lowered")), "")
        dtype = {BooleanResult: "boolean", TableResult: "results"}.get(type(result), "graph")
        kept = self.store.put(
            result, dtype=dtype, rows=result.n_rows, sz=size_of(result), source=self._source
        )
        # Beside the result and not around it, so that the store can spill the result's table.
        self._asked[kept.key] = Asked(prepared, note)
        return Handle(kept)

    def sparql_stats(self, ref: RefLike) -> dict[str, Any]:
        """Say how many rows and which columns a handle has."""
        handle, result, notes = self._look(ref)
        return show_stats(handle, result, notes, most=self.config.max_rows)

    def sparql_peek(self, ref: RefLike, n: int = 5, full: bool = False) -> Rows:
        """Return the first n rows of a handle (at most 20); full=True gives uncut terms."""
        n, note = bounded_limit("sparql_peek", n)
        return self._rows(ref, 0, n, note, full)

    def sparql_slice(self, ref: RefLike, start: int = 0, end: int = 50, full: bool = False) -> Rows:
        """Return rows start to end of a handle (end not included; at most 50 rows)."""
        for bound in (start, end):
            if isinstance(bound, bool) or not isinstance(bound, int):
                raise ToolError(
                    f"{told(bound)} is not a whole number", hint="give 0 <= start < end as numbers"
                )
        if start < 0 or end < start:
            raise ToolError(
                f"a slice from {told(start)} to {told(end)} is empty or negative",
                hint="give 0 <= start < end",
            )
        length, note = bounded_limit("sparql_slice", max(1, end - start))
        return self._rows(ref, start, start + length if end > start else start, note, full)

    def sparql_classes(self, limit: int = 50) -> dict[str, Any]:
        """List the most frequent classes with their counts."""
        limit, note = bounded_limit("sparql_classes", limit)
        found = self._explore(lambda: sampling.classes(self.profile, limit + 1))
        return self._counted("class", found, limit, note)

    def sparql_properties(self, limit: int = 50, class_uri: str = "") -> dict[str, Any]:
        """List the most frequent properties with counts, of one class if class_uri is given."""
        limit, note = bounded_limit("sparql_properties", limit)
        if not class_uri:
            found = self._explore(lambda: sampling.properties(self.profile, limit + 1))
            return self._counted("property", found, limit, note)
        iri = self._iri(class_uri)
        found = self._explore(lambda: sampling.properties_of(self.profile, iri, limit + 1))
        if not found.items:
            note = self._no_class(iri, class_uri)
        return self._counted("property", found, limit, note)

    def sparql_describe(self, uri: str, limit: int = 20) -> dict[str, Any]:
        """Show what is said of a resource: each property with an example; and what points to it."""
        limit, note = bounded_limit("sparql_describe", limit)
        iri = self._iri(uri)
        about = self._explore(lambda: describing.describe(self.profile, iri, limit))
        items = self._about(about)
        notes = [note, *about.notes]
        if not items:
            notes = ["nothing is known of it; sparql_find(text) searches by name"]
        shown = self._show(NamedNode(iri))
        return self._listing("sparql_describe", "triples", items, limit, notes, uri=shown)

    def sparql_find(self, pattern: str, limit: int = 20) -> dict[str, Any]:
        """Find resources by a part of their name or label, e.g. sparql_find("kinase")."""
        limit, note = bounded_limit("sparql_find", limit)
        text = labels.plain(pattern) if isinstance(pattern, str) else ""
        if not text or len(text) > MOST_PATTERN:
            raise ToolError(
                "the pattern is empty, no text, or too long", hint="give a part of a name"
            )
        found = self._explore(lambda: labels.find(self.profile, text))
        items = [
            {
                "uri": self._show(match.uri),
                "label": self._show(match.label),
                "property": self._show(match.property),
            }
            for match in found.matches
        ]
        notes = [note, *found.notes]
        if not items:
            nothing = "nothing was found" if found.notes else "no label holds this"
            notes = [f"{nothing}; try a shorter or another word", *found.notes]
        shown = {"pattern": text, "via": found.via}
        return self._listing("sparql_find", "results", items, limit, notes, **shown)

    def sparql_sample(self, class_uri: str, n: int = 10) -> dict[str, Any]:
        """List instances of a class, and all that is said of the first."""
        n, note = bounded_limit("sparql_sample", n)
        iri = self._iri(class_uri)
        most = CAPS["sparql_describe"].default
        found = self._explore(lambda: describing.sample(self.profile, iri, n + 1, most))
        items = [{"s": self._show(term)} for term in found.instances]
        notes = [note, *found.first.notes] if items else [self._no_class(iri, class_uri)]
        listing = self._listing("sparql_sample", "instances", items, n, notes)
        example = fit(self._about(found.first), 2_000)
        return {**listing, "class": self._show(NamedNode(iri)), "example": example}

    def sparql_count(self, query: str) -> dict[str, Any]:
        """Run a query such as SELECT (COUNT(*) AS ?n) WHERE {...} and return the number."""
        prepared = self._prepare(query, self.config.max_rows)
        notes: list[str] = []
        try:
            result = self._client.query(prepared)
        except (EndpointError, UsageError) as error:
            raise self._failed(query, error) from error
        except QueryError as error:
            fewer = bounded_count(query)
            if fewer is None:
                raise self._failed(query, error) from error
            try:
                result = self._client.query(fewer)
            except QueryError:
                raise self._failed(query, error) from error
            except (EndpointError, UsageError) as gone:
                raise self._failed(query, gone) from gone
            notes.append(f"not all were counted, only the first {MOST_COUNTED:,}: {brief(error)}")
        if not isinstance(result, TableResult):
            raise ToolError("a count needs a SELECT", hint="use sparql_query for other forms")
        count: int | float = result.n_rows
        truncated = result.truncated or bool(notes)
        value = result.rows(0, 1)[0][0] if result.n_rows == len(result.variables) == 1 else None
        number = self._show(value)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            count = number
            if not any(token.is_word(*_COMPUTED) for token in tokenize(query)):
                notes.append("the query does not count; this is the value that it selects")
        else:
            cut = ", cut at the endpoint's cap" if result.truncated else ""
            notes.append(f"the query does not count; this is its number of rows{cut}")
        if is_empty(result, prepared):
            notes += self._why_empty(prepared)
        shown = {"source": self._source, "count": count, "truncated": truncated}
        return shown | ({"note": "; ".join(notes)} if notes else {})

    def endpoint_info(self) -> dict[str, Any]:
        """Say what the endpoint is: name, authority, address, prefixes declared for you."""
        config = self.config
        # Those of the endpoint's own come first: the common ones are known by heart.
        prefixes = list({**config.prefixes, **config.namespaces}.items())
        labels = [self._show(NamedNode(name)) for name in config.label_properties]
        kept = fit(prefixes, MOST_PREFIX_CHARS, least=0)
        kept_labels = fit(labels, MOST_LABEL_CHARS, least=0)
        notes = []
        if left := len(prefixes) - len(kept):
            notes.append(f"{left} more prefixes are declared; a full IRI needs none")
        if left := len(labels) - len(kept_labels):
            notes.append(f"{left} more label properties; sparql_find searches all")
        info = {
            "source": self._source,
            "name": cut(config.name, MOST_NAME_CHARS),
            "authority": cut(config.authority, MOST_NAME_CHARS),
            "url": config.url,
            "prefixes": dict(kept),
            "label_properties": kept_labels,
            "max_rows": config.max_rows,
            "truncated": bool(notes),
        }
        return info | ({"note": "; ".join(notes)} if notes else {})

    def _look(self, ref: RefLike) -> tuple[Ref, Result, list[str]]:
        """Return a handle, what it names, and what there is to say of it."""
        handle = self.store.ref(ref)
        result: Result = self.store.get(ref, "results|graph|boolean")
        asked = self._asked.get(handle.key)
        if asked is None:
            return handle, result, []
        if asked.found is None:
            asked.found = self._findings(asked, result)
        return handle, result, [note for note in (asked.note, *asked.found) if note]

    def _findings(self, asked: Asked, result: Result) -> tuple[str, ...]:
        if is_empty(result, asked.prepared):
            return self._why_empty(asked.prepared)
        if not bare_columns(result):
            return ()
        return self._explained(lint, asked.prepared)

    def _rows(self, ref: RefLike, start: int, end: int, note: str, full: bool) -> Rows:
        handle, result, notes = self._look(ref)
        if note:
            notes = [note, *notes]
        return show_rows(
            handle,
            result,
            start,
            end,
            notes,
            most=self.config.max_rows,
            namespaces=self.config.namespaces,
            whole=full is True,
        )

    def _about(self, about: describing.About) -> list[dict[str, Any]]:
        return [
            {"p": self._show(one.property), one.side: self._show(one.example)}
            | ({"count": one.count} if one.count > 1 else {})
            for one in about.said
        ]

    def _counted(self, name: str, found: sampling.Counted, limit: int, note: str) -> dict[str, Any]:
        items = [
            {name: self._show(NamedNode(iri))} | ({} if count is None else {"count": count})
            for iri, count in found.items
        ]
        plural = "classes" if name == "class" else "properties"
        notes = [note, *found.notes]
        if self._explore(lambda: self.profile.in_graphs):
            notes.append(
                "the data are in named graphs only: write GRAPH ?g { ... } around patterns"
            )
        return self._listing(f"sparql_{plural}", plural, items, limit, notes, via=found.via)
