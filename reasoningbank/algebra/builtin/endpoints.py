"""Operations on SPARQL endpoints: queries, values put into queries, ontologies extracted from data.

Extraction keeps declared domains and ranges. Where a property has none, its use decides: a single
class (or datatype) becomes ``rdfs:domain`` or ``rdfs:range``; several become
``schema:domainIncludes`` and ``schema:rangeIncludes``, since several ``rdfs:domain`` would mean
that all hold at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field
from rdflib import OWL, RDF, RDFS, Graph, Literal, URIRef

from reasoningbank.algebra.evaluation import Evaluation
from reasoningbank.algebra.operation import (
    Name,
    Names,
    Operation,
    Query,
    RowOrTerm,
    TableLike,
    Text,
    Url,
    Visible,
    register,
)
from reasoningbank.algebra.queries import check_query, query_outline, substitute, with_values
from reasoningbank.algebra.terms import ProgramError, located, one_of, scalar
from reasoningbank.algebra.values import Row, Value
from reasoningbank.errors import QueryError

_DBPEDIA = "https://dbpedia.org/sparql"
_ASKING, _VALUES, _ONTOLOGIES = (
    "Querying endpoints",
    "Putting values into queries",
    "Ontologies from data",
)


@register
class SPARQLString(Operation):
    """Turns a question in natural language into a SPARQL query that answers it.

    The result is a SELECT query (a table of resources and values) or a DESCRIBE query (the
    descriptions of resources), with all variables named, never `*`. The variables that the
    program reads of its rows are among them.
    """

    op = "SPARQLString"
    yields = "text"
    group = _ASKING

    question: Text = Field(description="What the query is to find")

    def run(self, run: Evaluation) -> Value:
        """Return the query.

        Raises:
            UsageError: If the run has no model.
            QueryError: If the model did not write such a query.
        """
        text = run.runtime.compose(str(self.question), run.endpoint, run.names)
        shape = check_query(text)
        describes_all = shape.form == "DESCRIBE" and [t.text for t in shape.body[1:2]] == ["*"]
        if shape.star or describes_all:
            hint = "name its variables in the question"
            raise QueryError("the written query selects *", hint=hint, code="star")
        lacking = sorted(run.names - set(shape.projected))
        if shape.form == "SELECT" and lacking:
            hint = f"it has {one_of([f'?{name}' for name in shape.projected])}"
            what = f"the written query does not project ?{lacking[0]}"
            raise QueryError(what, hint=hint, code="columns-missing", columns=lacking)
        return Literal(text)


class _Asking(Operation):
    group = _ASKING
    form: ClassVar[str]

    endpoint: Url = Field(description="The address of the SPARQL endpoint")
    query: Query = Field(description="The query")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        if isinstance(given.get("query"), str):
            cls._check(given["query"])

    @classmethod
    def _check(cls, query: str) -> None:
        try:
            check_query(query, cls.form)
        except QueryError as error:
            raise located(error, "args.query") from None


@register
class SELECT(_Asking):
    """Asks a SPARQL endpoint a SELECT query and returns its rows as a table."""

    op = form = "SELECT"
    yields = "table"

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        query = given.get("query")
        if not isinstance(query, str):
            return None
        shape = query_outline(query, "SELECT")
        return None if shape.star else shape.projected

    def run(self, run: Evaluation) -> Value:
        """Return the rows, as a stream."""
        self._check(self.query)
        return run.runtime.select(self.endpoint, self.query)


@register
class ASK(_Asking):
    """Asks a SPARQL endpoint an ASK query and returns true or false."""

    op = form = "ASK"
    yields = "term"

    def run(self, run: Evaluation) -> Value:
        self._check(self.query)
        return scalar(run.runtime.ask(self.endpoint, self.query))


class _Graphs(_Asking):
    yields = "graph"

    def run(self, run: Evaluation) -> Value:
        self._check(self.query)
        return run.runtime.graph(self.endpoint, self.query)


@register
class DESCRIBE(_Graphs):
    """Asks a SPARQL endpoint a DESCRIBE query and returns the graph."""

    op = form = "DESCRIBE"


@register
class CONSTRUCT(_Graphs):
    """Asks a SPARQL endpoint a CONSTRUCT query and returns the graph."""

    op = form = "CONSTRUCT"


#: Names of the operations that ask an endpoint a query.
ASKING = tuple(kind.op for kind in (SELECT, ASK, DESCRIBE, CONSTRUCT))


@register
class Substitute(Operation):
    """Replaces a variable of a SPARQL query with a value.

    Every ?var of the query becomes the binding, written as SPARQL with all escapes; what only looks
    like the variable, in strings, comments or longer names, stays. With a whole row as binding,
    `var` may be left out: each variable of the row that the query has is replaced.
    """

    op = "Substitute"
    yields = "text"
    group = _VALUES

    query: Query = Field(description="A SPARQL query (or update)")
    var: Name = Field(default="", description="The variable, without ?")
    binding: RowOrTerm = Field(description="The value: a term, or a row")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        if "var" not in given and isinstance(given["binding"], str | bool | int | float):
            raise _lacks_var("args")

    def run(self, run: Evaluation) -> Value:
        name = self.var.lstrip("?$")
        if not isinstance(self.binding, Mapping):
            if not name:
                raise _lacks_var()
            return Literal(substitute(self.query, {name: self.binding}))
        if not name:
            return Literal(substitute(self.query, self.binding))
        if name not in self.binding:
            hint = f"the row has {one_of(list(self.binding))}"
            what = f"?{name} is missing in the binding"
            raise ProgramError(what, hint=hint, code="unknown-column", name=name)
        return Literal(substitute(self.query, {name: self.binding[name]}))


def _lacks_var(where: str = "") -> ProgramError:
    what = "a single value needs var"
    return ProgramError(what, where=where, hint="name the variable", code="missing-argument")


@register
class Values(Operation):
    """Joins a SPARQL query with the rows of a table, by a VALUES block behind it.

    It is Substitute for many rows at once: one request instead of one a row. The columns are
    variables of the query.
    """

    op = "Values"
    yields = "text"
    group = _VALUES

    query: Query = Field(description="A SPARQL query without VALUES at its end")
    data: TableLike = Field(description="A table, or a list of bindings")
    vars: Names = Field(default_factory=list, description="Columns to take; all by default")

    def run(self, run: Evaluation) -> Value:
        names = [name.lstrip("?$") for name in self.vars] or list(self.data.vars)
        odd = [name for name in names if name not in self.data.vars]
        if odd:
            hint = f"it has {one_of(self.data.vars)}"
            what = f"the table has no {odd[0]!r}"
            raise ProgramError(
                what, where="args.vars", hint=hint, code="unknown-column", name=odd[0]
            )
        rows = run.counted(self.data.rows)
        return Literal(with_values(self.query, names, rows))  # type: ignore[arg-type]


_HEAD = """\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
"""
#: The vocabularies of ontologies are not part of them.
_OWN = (str(RDF), str(RDFS), str(OWL))
_CLASSES = """\
SELECT DISTINCT ?thing ?label ?comment ?super WHERE {
  { SELECT DISTINCT ?thing WHERE {
    { ?thing a owl:Class } UNION { ?thing a rdfs:Class } UNION { ?instance a ?thing }
    FILTER(isIRI(?thing))
  } }
  { } UNION { ?thing rdfs:label ?label } UNION { ?thing rdfs:comment ?comment }
  UNION { ?thing rdfs:subClassOf ?super FILTER(isIRI(?super)) }
}"""
_PROPERTIES = """\
SELECT DISTINCT ?thing ?label ?comment ?super ?domain ?range WHERE {
  { SELECT DISTINCT ?thing WHERE {
    { ?thing a owl:%s } UNION { ?subject ?thing ?value FILTER(%s) }
    FILTER NOT EXISTS { ?thing a owl:%s }
  } }
  { } UNION { ?thing rdfs:label ?label } UNION { ?thing rdfs:comment ?comment }
  UNION { ?thing rdfs:subPropertyOf ?super FILTER(isIRI(?super)) }
  UNION { ?thing rdfs:domain ?domain FILTER(isIRI(?domain)) }
  UNION { ?thing rdfs:range ?range FILTER(isIRI(?range)) }
}"""
_DOMAINS = """\
SELECT DISTINCT ?thing ?domain WHERE {
  ?subject ?thing ?value ; a ?domain .
  FILTER(%s && isIRI(?domain))
}"""
_CLASS_RANGES = """\
SELECT DISTINCT ?thing ?range WHERE {
  ?subject ?thing ?value . ?value a ?range .
  FILTER(isIRI(?range))
}"""
_DATATYPES = """\
SELECT DISTINCT ?thing (DATATYPE(?value) AS ?range) WHERE {
  ?subject ?thing ?value . FILTER(isLiteral(?value))
}"""
_INCLUDES = {
    RDFS.domain: URIRef("http://schema.org/domainIncludes"),
    RDFS.range: URIRef("http://schema.org/rangeIncludes"),
}


class _Extracting(Operation):
    yields = "graph"
    group = _ONTOLOGIES

    endpoint: Url = Field(description="The address of the SPARQL endpoint")

    def rows(self, run: Evaluation, query: str) -> Iterator[Row]:
        for row in run.counted(run.runtime.select(self.endpoint, _HEAD + query).rows):
            if isinstance(row, Mapping):
                yield row

    def described(self, run: Evaluation, query: str, kind: URIRef, broader: URIRef) -> Graph:
        """Return the declarations of classes or properties."""
        parts = {
            "label": RDFS.label,
            "comment": RDFS.comment,
            "super": broader,
            "domain": RDFS.domain,
            "range": RDFS.range,
        }
        graph = Graph()
        for row in self.rows(run, query):
            thing = row["thing"]
            if not isinstance(thing, URIRef) or str(thing).startswith(_OWN):
                continue
            graph.add((thing, RDF.type, kind))
            for name, predicate in parts.items():
                if name in row:
                    graph.add((thing, predicate, row[name]))
        return graph


@register
class ExtractClasses(_Extracting):
    """Extracts the classes of a dataset as an OWL ontology: declared ones, and those in use."""

    op = "ExtractClasses"

    def run(self, run: Evaluation) -> Value:
        return self.described(run, _CLASSES, OWL.Class, RDFS.subClassOf)


class _Properties(_Extracting):
    kind: ClassVar[str]
    other: ClassVar[str]
    condition: ClassVar[str]
    ranges: ClassVar[str]

    def run(self, run: Evaluation) -> Value:
        query = _PROPERTIES % (self.kind, self.condition, self.other)
        graph = self.described(run, query, OWL[self.kind], RDFS.subPropertyOf)
        self._from_use(run, graph, RDFS.domain, _DOMAINS % self.condition)
        self._from_use(run, graph, RDFS.range, self.ranges)
        return graph

    def _from_use(self, run: Evaluation, graph: Graph, predicate: URIRef, query: str) -> None:
        """Add the domains or ranges found in use where none is declared."""
        found: defaultdict[URIRef, set[URIRef]] = defaultdict(set)
        for row in self.rows(run, query):
            thing, other = row["thing"], row.get("domain", row.get("range"))
            if isinstance(thing, URIRef) and isinstance(other, URIRef) and str(OWL) not in other:
                found[thing].add(other)
        for named in set(graph.subjects()):
            if (named, predicate, None) in graph or not isinstance(named, URIRef):
                continue
            others = found.get(named, set())
            for other in others:
                graph.add((named, predicate if len(others) == 1 else _INCLUDES[predicate], other))


@register
class ExtractObjectProperties(_Properties):
    """Extracts the object properties of a dataset as an OWL ontology, with domains and ranges.

    Domains and ranges that are not declared are found from use.
    """

    op = "ExtractObjectProperties"
    kind = "ObjectProperty"
    other = "DatatypeProperty"
    condition = "!isLiteral(?value)"
    ranges = _CLASS_RANGES


@register
class ExtractDatatypeProperties(_Properties):
    """Extracts the datatype properties of a dataset as an OWL ontology, with their datatypes.

    Domains and datatypes that are not declared are found from use.
    """

    op = "ExtractDatatypeProperties"
    kind = "DatatypeProperty"
    other = "ObjectProperty"
    condition = "isLiteral(?value)"
    ranges = _DATATYPES
