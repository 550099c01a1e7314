"""What people and agents are told is made of the operations themselves."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from pydantic import Field

from reasoningbank.algebra import (
    Evaluation,
    Operation,
    ProgramError,
    Value,
    operations,
    register,
)
from reasoningbank.algebra.operation import Url
from reasoningbank.algebra.reference import agent_prompt, reference, signature, with_reference

from .faults import raises
from .in_memory import Memory, op, outcome, text

operation_module = importlib.import_module("reasoningbank.algebra.operation")
PAGE = Path(__file__).parents[2] / "docs" / "algebra.md"

SPECIFIED = [
    "ResolveURI(base: URI, relative: str) → URI",
    "GET(url: URL) → Graph",
    "POST(url: URL, data: Graph) → Table",
    "PUT(url: URL, data: Graph) → Table",
    "PATCH(url: URL, update: Query) → Table",
    "SPARQLString(question: str) → str",
    "SELECT(endpoint: URL, query: Query) → Table",
    "ASK(endpoint: URL, query: Query) → Term",
    "DESCRIBE(endpoint: URL, query: Query) → Graph",
    "CONSTRUCT(endpoint: URL, query: Query) → Graph",
    "Merge(graphs: List[Graph]) → Graph",
    "Value(name: str) → any",
    "Str(input: str) → str",
    "ForEach(select: Table | List, operation: Operation | List[Operation], concurrency?: int)"
    " → List",
    "Replace(input: str, pattern: str, replacement: str, flags?: str) → str",
    "EncodeForURI(input: str) → str",
    "Execute(operation: Operation | List[Operation]) → any",
    "Variable(name: str, value?: any, select?: any) → None",
    "Current() → any",
    "ExtractClasses(endpoint: URL) → Graph",
    "ExtractObjectProperties(endpoint: URL) → Graph",
    "ExtractDatatypeProperties(endpoint: URL) → Graph",
    "Substitute(query: Query, var?: str, binding: Term | Row) → str",
    "Concat(inputs: List[str]) → str",
    "STRUUID() → str",
    "URI(input: URI) → URI",
    "Bindings(table: Table | List) → List",
    "Filter(input: Table | List | Row, expression: int | str) → any",
    "Values(query: Query, data: Table, vars?: List[str]) → str",
]


def test_the_operations_are_those_that_are_specified() -> None:
    told = [signature(kind) for name, kind in operations().items() if not name.startswith("ldh-")]
    assert sorted(told) == sorted(SPECIFIED)


def test_the_page_holds_the_reference_as_it_is() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_reference(page) == page, "write docs/algebra.md anew with `with_reference`"


def test_every_operation_is_told_of() -> None:
    for name, kind in operations().items():
        assert f"### {name}\n" in reference()
        assert signature(kind) in agent_prompt()
    with raises(ProgramError, "unknown-operation"):
        reference(["Gte"])


@pytest.mark.parametrize("name", [name for name, k in operations().items() if k.examples])
def test_the_examples_yield_what_they_say(name: str) -> None:
    kind = operations()[name]
    for example in kind.examples:
        if example.result is None or name.startswith("ldh-") or name == "SPARQLString":
            continue
        web = Memory(data="<http://dbpedia.org/resource/Copenhagen> <http://e/p> 1 .")
        call = op(name, **example.args)
        if example.row is None:
            assert outcome(call, web) == example.result
        else:
            # JSON has no form for a lone row's order, so it is compared as data.
            found = outcome(op("ForEach", select=[example.row], operation=call), web)
            assert found == [json.loads(json.dumps(example.result))]


def test_the_class_on_the_page_is_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    (code,) = (block.partition("```")[0] for block in blocks if "@register" in block)
    known = dict(operation_module._register)
    monkeypatch.setattr(operation_module, "_register", known)
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(code, str(PAGE), "exec", dont_inherit=True), names)
    assert "UCase" in known
    assert outcome(op("UCase", input=text("københavn", "da"))) == "KØBENHAVN"


def test_what_is_no_operation() -> None:
    class Again(Operation):
        op = "GET"
        yields = "graph"

        def run(self, run: Evaluation) -> Value:
            return None

    class Bare(Again):
        op = "Bare"
        url: Url

    class Unkind(Again):
        op = "Unkind"
        url: str = Field(description="An address")

    for kind, told in (
        (Again, "two operations are called GET"),
        (Bare, "Bare: the argument url has no description"),
        (Unkind, "Unkind: the argument url has no kind"),
    ):
        with pytest.raises(ValueError, match=told):
            register(kind)
