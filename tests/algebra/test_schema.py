"""The JSON Schema: it takes the examples, refuses what is wrong, and llama.cpp can decode by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import llguidance
import pytest
import xllamacpp

from reasoningbank.algebra import Operation, ProgramError, mistakes, operations, read_program
from reasoningbank.algebra.reference import program_schema

from .in_memory import op, value

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
