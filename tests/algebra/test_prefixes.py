"""Prefixes that a program uses undeclared are declared where they are used, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.algebra import mistakes
from reasoningbank.algebra.source import with_prefixes

from .in_memory import op

KNOWN = {"dct": "http://purl.org/dc/terms/", "ex": "http://example.org/"}
ENDPOINT = "http://e/sparql"


@pytest.mark.parametrize(
    ("program", "path", "wanted"),
    [
        (
            op("SELECT", endpoint=ENDPOINT, query="SELECT ?a WHERE { ?a ex:p 'dct:x' }"),
            ("args", "query"),
            "PREFIX ex: <http://example.org/>\nSELECT ?a WHERE { ?a ex:p 'dct:x' }",
        ),
        (
            op("PATCH", url="http://e/d", update="DELETE WHERE { ?a ex:p ?b }"),
            ("args", "update"),
            "PREFIX ex: <http://example.org/>\nDELETE WHERE { ?a ex:p ?b }",
        ),
        (
            op("PUT", url="http://e/d", data={"@id": "ex:a", "dct:title": "ex:b"}),
            ("args", "data", "@context"),
            {"ex": KNOWN["ex"], "dct": KNOWN["dct"]},
        ),
        (
            [op("Merge", graphs=[{"@id": "http://e/a", "@type": "ex:T"}])],
            (0, "args", "graphs", 0, "@context"),
            {"ex": KNOWN["ex"]},
        ),
        (
            op("ForEach", select=[1], operation=op("POST", url="http://e/", data={"ex:p": 1})),
            ("args", "operation", "args", "data", "@context"),
            {"ex": KNOWN["ex"]},
        ),
        (
            op("PUT", url="http://e/d", data={"@context": {"ex": "http://my/"}, "ex:p": 1}),
            ("args", "data", "@context"),
            {"ex": "http://my/"},
        ),
        (
            op("PUT", url="http://e/d", data={"ex:p": [{"@id": "dct:x"}, op("STRUUID")]}),
            ("args", "data", "@context"),
            {"ex": KNOWN["ex"], "dct": KNOWN["dct"]},
        ),
    ],
)
def test_known_prefixes_are_declared(program: Any, path: tuple[Any, ...], wanted: Any) -> None:
    made = with_prefixes(program, KNOWN)
    assert not mistakes(made)
    for step in path:
        made = made[step]
    assert made == wanted


def test_what_is_nested_too_deeply_is_left_to_the_check() -> None:
    program: Any = "x"
    for _ in range(450):
        program = op("Str", input=program)
    assert with_prefixes(program, KNOWN) is program
    assert mistakes(program)[0].code == "too-deep"


@pytest.mark.parametrize(
    "program",
    [
        op("SELECT", endpoint=ENDPOINT, query="SELECT ?a WHERE { ?a no:p 1 }"),
        op("Str", input="ex:a"),
        op("PUT", url="http://e/d", data={"@context": ["http://far/"], "ex:p": 1}),
        op("PUT", url="http://e/d", data={"@id": "http://e/a", "http://e/p": "ex:b"}),
        {"@op": "Gte", "args": {"url": "ex:a"}},
        {"@op": "GET", "args": "ex:a"},
        {"@op": 1},
        "ex:a",
        None,
    ],
)
def test_what_needs_none_stays_as_it_is(program: Any) -> None:
    assert with_prefixes(program, KNOWN) == program
