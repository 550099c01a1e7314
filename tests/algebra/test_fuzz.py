"""Whatever stands in a program, the check names mistakes and never breaks; nor does the run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasoningbank.algebra import json_chunks, mistakes, operations, read_program, run_program
from reasoningbank.errors import ReasoningBankError

from .in_memory import Bounds, Memory, op, text, uri, value

# rdflib tells of literals that are not of their datatype.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROW = {"city": uri("http://e/a"), "cityName": text("A", "da"), "monarchLabel": text("x")}
CALLS = [op(kind.op, **example.args) for kind in operations().values() for example in kind.examples]
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(allow_nan=False),
    st.text(max_size=5), st.sampled_from(["http://e/", "city", "$v", "?city", "@id", "@op", "ø ø"]),
)  # fmt: skip
ODD = st.recursive(
    st.one_of(SCALARS, st.sampled_from([*CALLS, value("city"), value("$v"), ROW, ROW["city"]])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["@op", "args", "@id", "@type", "@value", "@context", "@graph", "@language", "type",
                 "value", "results", "bindings", "head", "vars", "http://e/p", "name", "x:y"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)  # fmt: skip


def places(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Go through the places of JSON data, as keys from its root."""
    yield above
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*above, key))


@st.composite
def programs(draw: st.DrawFn) -> Any:
    """Draw a program of the examples in which some places hold something else."""
    call = draw(st.sampled_from(CALLS))
    program: Any = [
        op("Variable", name="v", value="x"),
        op("ForEach", select=[ROW], operation=[op("Variable", name="cityName", value="y"), call]),
    ]
    for _ in range(draw(st.integers(0, 3))):
        program = copy.deepcopy(program)
        inside = [place for place in places(program) if place]
        if not inside:
            break
        place = draw(st.sampled_from(inside))
        holder = program
        for key in place[:-1]:
            holder = holder[key]
        if draw(st.booleans()):
            holder[place[-1]] = draw(ODD)
        else:
            del holder[place[-1]]
    return program


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(programs(), ODD))
def test_the_check_never_breaks_and_what_passes_runs_or_is_told_why(program: Any) -> None:
    wrong = mistakes(program)
    for one in wrong:
        assert one.where.startswith("$")
        assert "\n" not in str(one)
    if wrong:
        return
    web = Memory(
        documents={"http://dbpedia.org/resource/Copenhagen": "<> <http://e/p> 1 ."},
        data="<http://e/a> <http://e/p> 1 .",
        composer=lambda *_: "SELECT ?city ?cityName { ?city ?p ?cityName }",
        limits=Bounds(rows=50, depth=30),
    )
    told = ""
    try:
        "".join(json_chunks(run_program(read_program(program), web))).encode()
    except ReasoningBankError as error:
        told = str(error)
    assert told == "" or told.startswith("$")
    assert "\n" not in told
