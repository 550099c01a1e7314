"""Asking endpoints: SPARQLString, SELECT, ASK, DESCRIBE, CONSTRUCT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from rdflib import Literal

from reasoningbank.algebra.arguments import Query, Text, Url
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import one_of
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.terms import scalar
from reasoningbank.algebra.texts import check_query, query_outline
from reasoningbank.algebra.values import Value
from reasoningbank.algebra.visible import Visible
from reasoningbank.errors import QueryError
from reasoningbank.sparql.tree import QueryTree

__all__ = ["ASK", "ASKING", "CONSTRUCT", "DESCRIBE", "SELECT", "SPARQLString"]

_DBPEDIA = "https://dbpedia.org/sparql"


@register
class SPARQLString(Operation):
    """Turns a question in natural language into a SPARQL query that answers it.

    The result is a SELECT query (a table of resources and values) or a DESCRIBE query (the
    descriptions of resources), with all variables named, never `*`. The variables that the
    program reads of its rows are among them.
    """

    op = "SPARQLString"
    yields = "text"
    examples = (
        Example(
            {"question": "Provide the description of the City of Copenhagen"},
            "DESCRIBE <http://dbpedia.org/resource/Copenhagen>",
        ),
    )

    question: Text = Field(description="What the query is to find")

    def run(self, run: Evaluation) -> Value:
        """Return the query.

        Raises:
            UsageError: No model is at hand.
            QueryError: What the model wrote is no such query.
        """
        text = run.runtime.compose(str(self.question), run.endpoint, run.names)
        shape = check_query(text)
        if shape.star or _describes_all(shape):
            raise QueryError("the written query takes *", hint="name its variables in the question")
        lacking = sorted(run.names - set(shape.projected))
        if shape.form == "SELECT" and lacking:
            hint = f"it has {one_of([f'?{name}' for name in shape.projected])}"
            raise QueryError(f"the written query does not project ?{lacking[0]}", hint=hint)
        return Literal(text)


def _describes_all(shape: QueryTree) -> bool:
    return shape.form == "DESCRIBE" and len(shape.body) > 1 and shape.body[1].text == "*"


class _Asking(Operation):
    form: ClassVar[str]

    endpoint: Url = Field(description="The address of the SPARQL endpoint")
    query: Query = Field(description="The query")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse what is no query of the form."""
        if isinstance(given.get("query"), str):
            _checked(given["query"], cls.form)


def _checked(query: str, form: str) -> QueryTree:
    try:
        return check_query(query, form)
    except QueryError as error:
        error.at(f"args.query: {error.where}" if error.where else "args.query")
        raise


@register
class SELECT(_Asking):
    """Asks a SPARQL endpoint a SELECT query and returns its rows as a table."""

    op = form = "SELECT"
    yields = "table"
    examples = (
        Example(
            {
                "endpoint": _DBPEDIA,
                "query": "SELECT ?city ?cityName WHERE "
                "{ ?city <http://schema.org/name> ?cityName }",
            }
        ),
    )

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the columns that a query names."""
        query = given.get("query")
        if not isinstance(query, str):
            return None
        shape = query_outline(query, "SELECT")
        return None if shape.star else shape.projected

    def run(self, run: Evaluation) -> Value:
        """Return the rows, as a stream."""
        _checked(self.query, self.form)
        return run.runtime.select(self.endpoint, self.query)


@register
class ASK(_Asking):
    """Asks a SPARQL endpoint an ASK query and returns true or false."""

    op = form = "ASK"
    yields = "term"
    examples = (
        Example(
            {
                "endpoint": _DBPEDIA,
                "query": "ASK { <http://dbpedia.org/resource/Copenhagen> ?property ?value }",
            },
            "true",
        ),
    )

    def run(self, run: Evaluation) -> Value:
        """Return the answer as a boolean literal."""
        _checked(self.query, self.form)
        return scalar(run.runtime.ask(self.endpoint, self.query))


class _Graphs(_Asking):
    yields = "graph"

    def run(self, run: Evaluation) -> Value:
        """Return the graph."""
        _checked(self.query, self.form)
        return run.runtime.graph(self.endpoint, self.query)


@register
class DESCRIBE(_Graphs):
    """Asks a SPARQL endpoint a DESCRIBE query and returns the graph."""

    op = form = "DESCRIBE"
    examples = (
        Example(
            {
                "endpoint": _DBPEDIA,
                "query": "DESCRIBE <http://dbpedia.org/resource/Copenhagen>",
            }
        ),
    )


@register
class CONSTRUCT(_Graphs):
    """Asks a SPARQL endpoint a CONSTRUCT query and returns the graph."""

    op = form = "CONSTRUCT"
    examples = (
        Example(
            {
                "endpoint": _DBPEDIA,
                "query": "CONSTRUCT { <http://dbpedia.org/resource/Copenhagen> ?p ?o } "
                "WHERE { <http://dbpedia.org/resource/Copenhagen> ?p ?o }",
            }
        ),
    )


#: Names of the operations that ask an endpoint a query.
ASKING = tuple(kind.op for kind in (SELECT, ASK, DESCRIBE, CONSTRUCT))
