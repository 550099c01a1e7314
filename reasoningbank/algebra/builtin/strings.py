"""Strings: Str, Replace, Concat, STRUUID."""

from __future__ import annotations

from pydantic import Field
from rdflib import Literal

from reasoningbank.algebra.arguments import PlainText, Text, Texts
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.replacing import replace_all
from reasoningbank.algebra.terms import literal
from reasoningbank.algebra.values import Value

__all__ = ["STRUUID", "Concat", "Replace", "Str"]


@register
class Str(Operation):
    """Gets the string value of an RDF term, without its language or datatype."""

    op = "Str"
    yields = "text"
    examples = (
        Example(
            {"input": {"type": "literal", "value": "Copenhagen", "xml:lang": "en"}}, "Copenhagen"
        ),
    )

    input: Text = Field(description="A term, a binding or a string")

    def run(self, run: Evaluation) -> Value:
        """Return the string."""
        return Literal(str(self.input))


@register
class Replace(Operation):
    """Replaces every match of a regular expression in a string, as SPARQL's REPLACE() does.

    `$1` in the replacement is the first group; write `\\\\$` and `\\\\\\\\` for a dollar sign and a
    backslash. The string keeps its language.
    """

    op = "Replace"
    yields = "text"
    examples = (
        Example(
            {
                "input": "Welcome to ${cityName}",
                "pattern": "\\$\\{cityName\\}",
                "replacement": "Copenhagen",
            },
            "Welcome to Copenhagen",
        ),
    )

    input: Text = Field(description="The string")
    pattern: PlainText = Field(description="A regular expression of XPath")
    replacement: PlainText = Field(description="What is put in place of each match")
    flags: PlainText = Field(default="", description="Of s, m, i, x, q")

    def run(self, run: Evaluation) -> Value:
        """Return the string with its replacements."""
        made = replace_all(str(self.input), self.pattern, self.replacement, self.flags)
        return literal(made, lang=self.input.language)


@register
class Concat(Operation):
    """Concatenates a list of strings into one.

    Useful for building URIs from several parts. The language is kept where all strings share it.
    """

    op = "Concat"
    yields = "text"
    examples = (
        Example(
            {
                "inputs": [
                    {
                        "@op": "EncodeForURI",
                        "args": {"input": {"@op": "Value", "args": {"name": "cityName"}}},
                    },
                    "/",
                ]
            },
            "Copenhagen/",
            {"cityName": {"type": "literal", "value": "Copenhagen"}},
        ),
    )

    inputs: Texts = Field(description="The strings")

    def run(self, run: Evaluation) -> Value:
        """Return the string."""
        languages = {text.language for text in self.inputs}
        shared = languages.pop() if len(languages) == 1 else None
        return literal("".join(map(str, self.inputs)), lang=shared)


@register
class STRUUID(Operation):
    """Generates a random UUID as a string."""

    op = "STRUUID"
    yields = "text"
    examples = (Example({}),)

    def run(self, run: Evaluation) -> Value:
        """Return the UUID."""
        rows = " ".join(map(str, run.scope.rows))
        return Literal(run.runtime.uuid(f"{run.path} {rows}"))
