"""Operations on SPARQL endpoints: queries, values put into queries, ontologies extracted from data.

Extraction keeps declared domains and ranges. Where a property has none, its use decides: a single
class (or datatype) becomes ``rdfs:domain`` or ``rdfs:range``; several become
``schema:domainIncludes`` and ``schema:rangeIncludes``, since several ``rdfs:domain`` would mean
that all hold at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from rdflib import OWL, RDF, RDFS, Graph, Literal, Namespace, URIRef

from reasoningbank.algebra import queries
from reasoningbank.algebra.evaluation import Evaluation, QueryRequest
from reasoningbank.algebra.operation import (
    Name,
    Names,
    Query,
    RowOrTerm,
    TableLike,
    Text,
    Url,
    Visible,
    Yield,
    define,
)
from reasoningbank.algebra.terms import ProgramError, locating, one_of, scalar
from reasoningbank.algebra.values import Value
from reasoningbank.errors import QueryError

_ASKING, _VALUES, _ONTOLOGIES = (
    "Querying endpoints",
    "Putting values into queries",
    "Ontologies from data",
)
#: Replies of a model to one question.
MOST_REPLIES = 3
Endpoint = Annotated[Url, "The address of the SPARQL endpoint"]
Asked = Annotated[Query, "The query"]


@define("SPARQLString", "text", _ASKING)
def sparql_string(run: Evaluation, question: Annotated[Text, "What the query is to find"]) -> Value:
    """Turns a question in natural language into a SPARQL query that answers it.

    The result is a SELECT query (a table of resources and values) or a DESCRIBE query (the
    descriptions of resources), with all variables named, never `*`. The variables that the
    program reads of its rows are among them.
    """
    request = replace(run.wanted, question=str(question))
    for left in range(MOST_REPLIES, 0, -1):
        text = run.declared(run.runtime.compose(request))
        try:
            _check_written(text, request)
        except QueryError as error:
            if left == 1 or text in dict(request.rejected):
                raise
            request = replace(request, rejected=(*request.rejected, (text, str(error))))
        else:
            break
    return Literal(text)


def _check_written(text: str, request: QueryRequest) -> None:
    shape = queries.check_query(text, *filter(None, [request.form]))
    describes_all = shape.form == "DESCRIBE" and [t.text for t in shape.body[1:2]] == ["*"]
    if shape.star or describes_all:
        raise QueryError("the written query selects *", hint="name its variables", code="star")
    lacking = sorted(request.columns - set(shape.projected))
    if shape.form == "SELECT" and lacking:
        hint = f"it has {one_of([f'?{name}' for name in shape.projected])}"
        what = f"the written query does not project ?{lacking[0]}"
        raise QueryError(what, hint=hint, code="columns-missing", columns=lacking)


def _query_check(*forms: str) -> Callable[[Mapping[str, Any], Visible], None]:
    @locating("args.query")
    def check(given: Mapping[str, Any], visible: Visible) -> None:
        text = queries.source_query(given["query"])
        if text is not None:
            # What is put together is checked in full by the operations that do it.
            (queries.check_query if given["query"] == text else queries.query_outline)(text, *forms)

    return check


def _selected(given: Mapping[str, Any]) -> tuple[str, ...] | None:
    text = queries.source_query(given.get("query"))
    shape = None if text is None else queries.query_outline(text, "SELECT")
    return None if shape is None or shape.star else shape.projected


def _asks(form: str, yields: Yield, does: str, columns: Any = None) -> None:
    """Register the operation that asks an endpoint a query of one form."""

    def asked(run: Evaluation, endpoint: Endpoint, query: Asked) -> Value:
        text = run.declared(query)
        with locating("args.query"):
            queries.check_query(text, form)
        if form == "SELECT":
            return run.runtime.select(endpoint, text)
        if form == "ASK":
            return scalar(run.runtime.ask(endpoint, text))
        return run.runtime.graph(endpoint, text)

    asked.__doc__ = f"Asks a SPARQL endpoint {does}."
    traits = {"columns": columns} if columns else {}
    define(form, yields, _ASKING, check=_query_check(form), asks=form, **traits)(asked)


_asks("SELECT", "table", "a SELECT query and returns its rows as a table", _selected)
_asks("ASK", "term", "an ASK query and returns true or false")
_asks("DESCRIBE", "graph", "a DESCRIBE query and returns the graph")
_asks("CONSTRUCT", "graph", "a CONSTRUCT query and returns the graph")


#: Names of the operations that ask an endpoint a query.
ASKING = ("SELECT", "ASK", "DESCRIBE", "CONSTRUCT")


def _check_substitute(given: Mapping[str, Any], visible: Visible) -> None:
    query, name, binding = given["query"], given.get("var"), given["binding"]
    if "var" not in given and isinstance(binding, str | bool | int | float):
        raise _lacks_var("args")
    if not isinstance(query, str) or not isinstance(name, str) or not name.strip("?$"):
        return
    term = None if isinstance(binding, Mapping | list | None) else scalar(binding)
    queries.check_substitution(query, name.lstrip("?$"), term)


@define("Substitute", "text", _VALUES, check=_check_substitute)
def substituted(
    run: Evaluation,
    *,
    query: Annotated[Query, "A SPARQL query (or update)"],
    var: Annotated[Name, "The variable, without ?"] = "",
    binding: Annotated[RowOrTerm, "The value: a term, or a row"],
) -> Value:
    """Replaces a variable of a SPARQL query with a value.

    Every ?var of the query becomes the binding, written as SPARQL with all escapes; what only looks
    like the variable, in strings, comments or longer names, stays. With a whole row as binding,
    `var` may be left out: each variable of the row that the query has is replaced.
    """
    name = var.lstrip("?$")
    if not name and not isinstance(binding, Mapping):
        raise _lacks_var()
    terms = binding if isinstance(binding, Mapping) else {name: binding}
    if name and name not in terms:
        hint = f"the row has {one_of(list(terms))}"
        what = f"?{name} is missing in the binding"
        raise ProgramError(what, hint=hint, code="unknown-column", name=name)
    return Literal(queries.substitute(query, {name: terms[name]} if name else terms))


def _lacks_var(where: str = "") -> ProgramError:
    what = "a single value needs var"
    return ProgramError(what, where=where, hint="name the variable", code="missing-argument")


@define("Values", "text", _VALUES, check=_query_check())
def joined_with_values(
    run: Evaluation,
    query: Annotated[Query, "A SPARQL query"],
    data: Annotated[TableLike, "A table, or a list of bindings"],
    vars: Annotated[Names, "Columns to take; all by default"] = (),
) -> Value:
    """Joins a SPARQL query with the rows of a table, by a VALUES block at the start of its WHERE.

    It is Substitute for many rows at once: one request instead of one a row. The columns are
    variables of the query.
    """
    names = [name.lstrip("?$") for name in vars] or list(data.vars)
    # No row says what the columns are.
    odd = [name for name in names if name not in data.vars] if data.vars else []
    if odd:
        where, hint = "args.vars", f"it has {one_of(data.vars)}"
        what = f"the table has no {odd[0]!r}"
        raise ProgramError(what, where=where, hint=hint, code="unknown-column", name=odd[0])
    return Literal(queries.with_values(query, names, run.counted(data.rows)))


#: The vocabularies of ontologies are not part of them.
_OWN = (str(RDF), str(RDFS), str(OWL))
_SCHEMA = Namespace("http://schema.org/")


def _constructed(run: Evaluation, endpoint: str, query: str) -> Graph:
    """Return what a query constructs about classes or properties."""
    graph = run.runtime.graph(endpoint, queries.QUERIES["prefixes"] + query)
    for thing in set(graph.subjects()):
        if not isinstance(thing, URIRef) or str(thing).startswith(_OWN):
            graph.remove((thing, None, None))
    return graph


@define("ExtractClasses", "graph", _ONTOLOGIES)
def extract_classes(run: Evaluation, endpoint: Endpoint) -> Value:
    """Extracts the classes of a dataset as an OWL ontology: declared ones, and those in use."""
    return _constructed(run, endpoint, queries.QUERIES["classes"])


@define("ExtractObjectProperties", "graph", _ONTOLOGIES)
def extract_object_properties(run: Evaluation, endpoint: Endpoint) -> Value:
    """Extracts the object properties of a dataset as an OWL ontology, with domains and ranges.

    Domains and ranges that are not declared are found from use.
    """
    kinds = ("ObjectProperty", "DatatypeProperty")
    return _properties(run, endpoint, kinds, "!isLiteral(?value)", queries.QUERIES["class_ranges"])


@define("ExtractDatatypeProperties", "graph", _ONTOLOGIES)
def extract_datatype_properties(run: Evaluation, endpoint: Endpoint) -> Value:
    """Extracts the datatype properties of a dataset as an OWL ontology, with their datatypes.

    Domains and datatypes that are not declared are found from use.
    """
    kinds = ("DatatypeProperty", "ObjectProperty")
    return _properties(run, endpoint, kinds, "isLiteral(?value)", queries.QUERIES["datatypes"])


def _properties(
    run: Evaluation, endpoint: str, kinds: tuple[str, str], condition: str, ranges: str
) -> Graph:
    """Return the properties of the first kind, with domains and ranges as declared or used."""
    kind, other = kinds
    query = queries.QUERIES["properties"] % (kind, kind, condition, other)
    graph = _constructed(run, endpoint, query)
    for used, one, several in (
        (queries.QUERIES["domains"] % condition, RDFS.domain, _SCHEMA.domainIncludes),
        (ranges, RDFS.range, _SCHEMA.rangeIncludes),
    ):
        found = _constructed(run, endpoint, used)
        for thing in set(found.subjects()):
            classes = {what for what in found.objects(thing) if str(OWL) not in str(what)}
            if (thing, None, None) in graph and (thing, one, None) not in graph:
                for what in classes:
                    graph.add((thing, one if len(classes) == 1 else several, what))
    return graph
