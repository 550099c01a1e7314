"""Putting values into queries: Substitute, Values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from rdflib import Literal

from reasoningbank.algebra.arguments import Name, Names, Query, RowOrTerm, TableLike
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import ProgramError, one_of
from reasoningbank.algebra.inline_data import with_values
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.substitution import substitute
from reasoningbank.algebra.values import Value
from reasoningbank.algebra.visible import Visible

__all__ = ["Substitute", "Values"]

_CITIES = {
    "results": {
        "bindings": [
            {"city": {"type": "uri", "value": "http://dbpedia.org/resource/Aarhus"}},
            {"city": {"type": "uri", "value": "http://dbpedia.org/resource/Odense"}},
        ]
    }
}


@register
class Substitute(Operation):
    """Replaces a variable of a SPARQL query with a value.

    Every ?var of the query becomes the binding, written as SPARQL with all escapes; what only looks
    like the variable, in strings, comments or longer names, stays. With a whole row as binding,
    `var` may be left out: each variable of the row that the query has is replaced.
    """

    op = "Substitute"
    yields = "text"
    examples = (
        Example(
            {
                "query": "PREFIX dbo: <http://dbpedia.org/ontology/> CONSTRUCT WHERE "
                "{ ?city dbo:populationTotal ?population }",
                "var": "city",
                "binding": {"@op": "Value", "args": {"name": "city"}},
            },
            "PREFIX dbo: <http://dbpedia.org/ontology/> CONSTRUCT WHERE "
            "{ <http://dbpedia.org/resource/Copenhagen> dbo:populationTotal ?population }",
            {"city": {"type": "uri", "value": "http://dbpedia.org/resource/Copenhagen"}},
        ),
    )

    query: Query = Field(description="A SPARQL query (or update)")
    var: Name = Field(default="", description="The variable, without ?")
    binding: RowOrTerm = Field(description="The value: a term, or a row")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse a term without a variable."""
        term = given["binding"]
        if "var" not in given and isinstance(term, str | bool | int | float):
            raise ProgramError("a single value needs var", where="args", hint="name the variable")

    def run(self, run: Evaluation) -> Value:
        """Return the query."""
        if not isinstance(self.binding, Mapping):
            if not self.var:
                raise ProgramError("a single value needs var", hint="name the variable")
            return Literal(substitute(self.query, {self.var.lstrip("?$"): self.binding}))
        if not self.var:
            return Literal(substitute(self.query, self.binding))
        name = self.var.lstrip("?$")
        if name not in self.binding:
            hint = f"the row has {one_of(list(self.binding))}"
            raise ProgramError(f"?{name} is missing in the binding", hint=hint)
        return Literal(substitute(self.query, {name: self.binding[name]}))


@register
class Values(Operation):
    """Joins a SPARQL query with the rows of a table, by a VALUES block behind it.

    It is Substitute for many rows at once: one request instead of one a row. The columns are
    variables of the query.
    """

    op = "Values"
    yields = "text"
    examples = (
        Example(
            {
                "query": "SELECT ?city ?population WHERE "
                "{ ?city <http://dbpedia.org/ontology/populationTotal> ?population }",
                "data": _CITIES,
            },
            "SELECT ?city ?population WHERE "
            "{ ?city <http://dbpedia.org/ontology/populationTotal> ?population }\n"
            "VALUES (?city) {\n"
            "  (<http://dbpedia.org/resource/Aarhus>)\n"
            "  (<http://dbpedia.org/resource/Odense>)\n"
            "}",
        ),
    )

    query: Query = Field(description="A SPARQL query without VALUES at its end")
    data: TableLike = Field(description="A table, or a list of bindings")
    vars: Names = Field(default_factory=list, description="Columns to take; all by default")

    def run(self, run: Evaluation) -> Value:
        """Return the query."""
        names = [name.lstrip("?$") for name in self.vars] or list(self.data.vars)
        odd = [name for name in names if name not in self.data.vars]
        if odd:
            hint = f"it has {one_of(self.data.vars)}"
            raise ProgramError(f"the table has no {odd[0]!r}", where="args.vars", hint=hint)
        rows = run.counted(self.data.rows)
        return Literal(with_values(self.query, names, rows))  # type: ignore[arg-type]
