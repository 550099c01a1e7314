"""The reference, the agent's prompt and the JSON Schema are made from the operations."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import llguidance
import pytest
import xllamacpp
from pydantic import Field

from reasoningbank.algebra import (
    Evaluation,
    Operation,
    ProgramError,
    Value,
    mistakes,
    operations,
    read_program,
    register,
)
from reasoningbank.algebra.operation import (
    Url,
    agent_prompt,
    program_schema,
    reference,
    signature,
)

from .faults import raises
from .in_memory import Memory, op, outcome, text, value

operation_module = importlib.import_module("reasoningbank.algebra.operation")
PAGE = Path(__file__).parents[2] / "docs" / "algebra.md"

SPECIFIED = [
    "ResolveURI(base: URI, relative: str) → URI",
    "GET(url: URL) → Graph",
    "POST(url: URL, data: Graph) → Table",
    "PUT(url: URL, data: Graph, only_new?: bool) → Table",
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
    reported = [
        signature(kind) for name, kind in operations().items() if not name.startswith("ldh-")
    ]
    assert sorted(reported) == sorted(SPECIFIED)


def test_the_page_holds_the_reference_as_it_is() -> None:
    page = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- operations -->\n\n{reference()}\n<!-- end of operations -->"
    assert wanted in page, "write `reference()` between the markers of docs/algebra.md"


def test_every_operation_is_reported() -> None:
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


def test_what_is_not_an_operation() -> None:
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

    for kind, reported in (
        (Again, "two operations are called GET"),
        (Bare, "Bare: the argument url has no description"),
        (Unkind, "Unkind: the argument url has no kind"),
    ):
        with pytest.raises(ValueError, match=reported):
            register(kind)


CHECKER = jsonschema.Draft202012Validator(program_schema())


def examples() -> Iterator[tuple[type[Operation], dict[str, Any]]]:
    for kind in operations().values():
        for example in kind.examples:
            yield kind, op(kind.op, **example.args)


@pytest.mark.parametrize(("kind", "call"), [*examples()])
def test_it_takes_every_example(kind: type[Operation], call: dict[str, Any]) -> None:
    CHECKER.validate(call)
    inside = op("ForEach", select=[], operation=[op("Variable", name="cityName", value=1), call])
    assert not mistakes(inside)
    CHECKER.validate(inside)


ALIKE = [
    {"@op": "GTE", "args": {"url": "http://e/"}},
    {"@op": "GET"},
    op("GET", address="http://e/"),
    op("GET", url=op("GET", url="http://e/")),
    op("Str", input=["x"]),
    op("PUT", url="http://e/", data="x"),
    op("PUT", url="http://e/", data=op("STRUUID")),
    op("Merge", graphs=[op("STRUUID")]),
    op("ForEach", select=[], operation=[]),
    op("ForEach", select=op("GET", url="http://e/"), operation=op("STRUUID")),
    op("ForEach", select=[], operation=op("STRUUID"), concurrency=0),
    op("Concat", inputs="x"),
    op("Value", name=op("Str", input="x")),
    {"@op": "STRUUID", "arguments": {}},
    "x",
]


@pytest.mark.parametrize("program", ALIKE)
def test_it_refuses_what_validation_refuses(program: Any) -> None:
    assert not CHECKER.is_valid(program)
    with pytest.raises(ProgramError):
        read_program(program)


def test_operations_may_stand_in_json_ld_and_in_rows() -> None:
    data = {"@id": "", "http://e/p": [value("x"), {"@id": value("y")}]}
    CHECKER.validate(op("PUT", url=value("u"), data=data))
    CHECKER.validate(op("ForEach", select=[{"x": value("y")}], operation=value("x")))


def test_what_validation_takes_it_takes() -> None:
    CHECKER.validate({"@op": "STRUUID", "args": {}})
    term = {"type": "uri", "value": op("Str", input="http://e/a")}
    call = op("Substitute", query="ASK { ?a a ?v }", var="v", binding=term)
    CHECKER.validate(call)
    assert not mistakes(call)


def test_it_may_hold_some_operations_only() -> None:
    schema = program_schema(["SELECT", "Value", "ForEach", "Str"])
    checker = jsonschema.Draft202012Validator(schema)
    assert checker.is_valid(op("Str", input=value("x")))
    assert not checker.is_valid(op("Str", input=op("STRUUID")))
    assert not checker.is_valid(op("GET", url="http://e/"))


def test_every_reference_leads_somewhere() -> None:
    for names in (None, ["Str"], ["GET", "Value"]):
        schema = program_schema(names)
        found: list[str] = []

        def walk(part: Any, found: list[str] = found) -> None:
            if isinstance(part, dict):
                found += [part["$ref"]] if "$ref" in part else []
                for member in part.values():
                    walk(member)
            elif isinstance(part, list):
                for member in part:
                    walk(member)

        walk(schema)
        assert {one.removeprefix("#/$defs/") for one in found} <= set(schema["$defs"])


def matcher() -> llguidance.LLMatcher:
    # llama.cpp hands the schema to llguidance, which is asked here without a model.
    grammar = xllamacpp.json_schema_to_grammar(json.dumps(program_schema()))
    assert llguidance.LLMatcher.validate_grammar(grammar) == ""
    return llguidance.LLMatcher(BYTES, grammar)


BYTES = llguidance.LLTokenizer("byte")


@pytest.mark.parametrize(("kind", "call"), [*examples()])
def test_a_constrained_model_can_write_every_example(
    kind: type[Operation], call: dict[str, Any]
) -> None:
    decoding = matcher()
    # Under constraint, arguments come in the order of the operation's signature.
    args = call.get("args", {})
    call = op(kind.op, **{name: args[name] for name in kind.model_fields if name in args})
    tokens = BYTES.tokenize_str(json.dumps(call, ensure_ascii=False))
    assert decoding.try_consume_tokens(tokens) == len(tokens), decoding.get_error()
    assert decoding.is_accepting()


@pytest.mark.parametrize(
    ("beginning", "cannot"),
    [
        ('{"@op": "', "Selekt"),
        ('{"@op": "GET", "args": {"', "address"),
        ('{"@op": "ForEach", "args": {"select": {"@op": "', "GET"),
        ('{"@op": "PUT", "args": {"url": "http://e/", "data": {"@op": "', "URI"),
        ('{"@op": "Str", "args": {"input": ', "["),
    ],
)
def test_a_constrained_model_cannot_write_what_is_wrong(beginning: str, cannot: str) -> None:
    decoding = matcher()
    tokens = BYTES.tokenize_str(beginning)
    assert decoding.try_consume_tokens(tokens) == len(tokens)
    wrong = BYTES.tokenize_str(f'{cannot}"')
    assert decoding.try_consume_tokens(wrong) < len(wrong)
