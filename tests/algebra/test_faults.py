"""Programs over servers that fail: nothing is lost or doubled, and the place is reported."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyoxigraph import Literal, NamedNode, Triple
from sparql.many_rows import ManyRows

from reasoningbank.algebra import Limits, Runtime, json_chunks, run_program
from reasoningbank.errors import BudgetError, EndpointError, QueryError, ReasoningBankError
from reasoningbank.ldp import LDPServer

from .faults import raises
from .front import CUT, GONE, LOSE, PASS, Fault, Front, answer
from .in_memory import op, value

BASE = "http://data.example/"
P = NamedNode("http://e/p")
NUMBERS = "SELECT ?doc ?n { ?doc <http://e/p> ?n } ORDER BY ?n"
#: Every document gets a blank node appended, which a repetition would double.
APPEND = op(
    "ForEach",
    select=op("SELECT", endpoint=f"{BASE}sparql", query=NUMBERS),
    operation=op(
        "POST",
        url=op("ResolveURI", base=f"{BASE}to/", relative=op("Str", input=value("n"))),
        data={"http://e/of": {"@id": "http://e/x"}},
    ),
)


@pytest.fixture
def site() -> Iterator[LDPServer]:
    with LDPServer(BASE) as running:
        for number in range(9):
            url = f"{BASE}from/{number}"
            running.documents.put(url, [Triple(NamedNode(url), P, Literal(number))])
        yield running


@pytest.fixture
def front(site: LDPServer) -> Iterator[Front]:
    made = Front(site.address)
    yield made
    made.close()


@pytest.fixture
def make(front: Front) -> Iterator[Callable[..., Runtime]]:
    made: list[Runtime] = []

    def runtime(**settings: Any) -> Runtime:
        given = {"allow_write": [f"{BASE}to/"], "addresses": {BASE: front.url}}
        made.append(Runtime(**{"pause": lambda _: None, **given, **settings}))
        return made[-1]

    yield runtime
    for one in made:
        one.close()


def ran(program: Any, runtime: Runtime) -> Any:
    return json.loads("".join(json_chunks(run_program(program, runtime))))


def sizes(site: LDPServer) -> list[int]:
    read = (site.documents.read(f"{BASE}to/{number}") for number in range(9))
    return [len(document.triples) if document else 0 for document in read]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("last", [CUT, LOSE])
def test_a_server_that_goes_in_the_middle_of_a_loop_of_writes(
    make: Callable[..., Runtime],
    front: Front,
    site: LDPServer,
    tmp_path: Path,
    workers: int,
    last: Fault,
) -> None:
    program = {**APPEND, "args": {**APPEND["args"], "concurrency": workers}}
    front.script(*[PASS] * 4, last, GONE, methods="POST")
    first = make(journal=tmp_path / "j")
    with pytest.raises(EndpointError) as failed:
        ran(program, first)
    assert str(failed.value).startswith("$.args.operation: http://data.example/to/")
    first.close()
    ended = [write.state for write in first.writes]
    done, unknown = ended.count("done"), ended.count("unanswered")
    assert 4 <= done <= sum(sizes(site)) <= done + unknown
    assert set(ended) <= {"done", "unanswered", "not sent"}

    front.script()
    again = make(journal=tmp_path / "j", resume=True)
    assert len(ran(program, again)) == 9
    assert sizes(site) == [1] * 9
    assert {write.state for write in again.writes} <= {"done", "not sent"}
    # And once more: nothing is sent.
    again.close()
    before = front.times("POST")
    ran(program, make(journal=tmp_path / "j", resume=True))
    assert front.times("POST") == before


KILLED = """
import json, os, signal, sys
from pathlib import Path
from reasoningbank.algebra import Runtime, json_chunks, run_program

program, addresses, journal = json.loads(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3])
sent = []

def record(event):
    sent.append(event.get("method"))
    if sent.count("POST") == 5:
        os.kill(os.getpid(), signal.SIGKILL)

base = next(iter(addresses)) + "to/"
with Runtime(allow_write=[base], addresses=addresses, journal=journal, record=record) as runtime:
    print("".join(json_chunks(run_program(program, runtime))))
"""


def test_a_run_that_is_killed_between_a_write_and_its_note(
    make: Callable[..., Runtime], front: Front, site: LDPServer, tmp_path: Path
) -> None:
    arguments = (json.dumps(APPEND), json.dumps({BASE: front.url}), str(tmp_path / "j"))
    command = [sys.executable, "-c", KILLED, *arguments]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert sizes(site) == [1] * 5 + [0] * 4
    again = make(journal=tmp_path / "j", resume=True)
    known = [write.state for write in again.writes]
    assert known == ["done"] * 4 + ["unanswered"]
    assert len(ran(APPEND, again)) == 9
    assert sizes(site) == [1] * 9
    assert [write.state for write in again.writes] == ["done"] * 9


def test_faults_on_the_way_that_pass(
    make: Callable[..., Runtime], front: Front, site: LDPServer
) -> None:
    front.script(
        *[LOSE, answer(429, Retry_After="1"), CUT, answer(503), PASS, LOSE, answer(502)],
        methods="POST",
    )
    runtime = make()
    assert len(ran(APPEND, runtime)) == 9
    assert sizes(site) == [1] * 9
    assert {write.state for write in runtime.writes} == {"done"}


@pytest.mark.parametrize(
    ("fault", "reported"),
    [
        (answer(200, "<a> <b", Content_Type="text/turtle"), "bad-rdf"),
        (answer(200, "<html>", Content_Type="text/html"), "not-rdf"),
        (answer(404), "http"),
        (answer(200, "#" * 999, Content_Type="text/turtle"), "too-large"),
        (answer(302, Location="ftp://e/"), "bad-url"),
    ],
)
def test_a_document_that_cannot_be_read_ends_the_loop_before_its_write(
    make: Callable[..., Runtime], front: Front, site: LDPServer, fault: Fault, reported: str
) -> None:
    copy = op(
        "ForEach",
        select=op("SELECT", endpoint=f"{BASE}sparql", query=NUMBERS),
        operation=op(
            "PUT",
            url=op("ResolveURI", base=f"{BASE}to/", relative=op("Str", input=value("n"))),
            data=op("GET", url=value("doc")),
        ),
    )
    # The first request is the query.
    front.script(PASS, PASS, PASS, fault, methods="GET")
    runtime = make(limits=Limits(document_bytes=500))
    with raises(ReasoningBankError, reported) as failed:
        ran(copy, runtime)
    assert str(failed.value).startswith("$.args.operation.args.data: ")
    assert [(write.url, write.state) for write in runtime.writes] == [
        (f"{BASE}to/0", "done"),
        (f"{BASE}to/1", "done"),
    ]
    assert sizes(site) == [1, 1] + [0] * 7


def test_a_result_that_breaks_off_leads_to_no_write(
    make: Callable[..., Runtime], front: Front
) -> None:
    body = f"?doc\t?n\n<{BASE}from/0>\t0\n<{BASE}from/1>\t1\nThe query timed out"
    front.script(*[answer(200, body, Content_Type="text/tab-separated-values")] * 2, methods="GET")
    with pytest.raises((QueryError, EndpointError)):
        ran(APPEND, make())
    assert front.times("POST") == 0


def test_a_result_beyond_the_budget_leads_to_no_write(
    make: Callable[..., Runtime], front: Front
) -> None:
    with raises(BudgetError, "budget"):
        ran(APPEND, make(limits=Limits(rows=8)))
    assert front.times("POST") == 0


def test_a_million_rows_are_not_in_memory() -> None:
    with ManyRows(1_000_000) as many, Runtime(limits=Limits(request_seconds=600)) as runtime:
        held = pa.total_allocated_bytes()
        table = runtime.select(many.url, "SELECT ?item ?label { ?item a ?label }")
        rows = iter(table.rows)
        first = next(rows)
        assert table.vars == ("item", "label")
        assert str(first["item"]) == "http://e/00000000"
        # A hundred megabytes of terms, of which a few blocks are here.
        assert pa.total_allocated_bytes() - held < 10_000_000
        for _ in range(5_000):
            row = next(rows)
        assert str(row["label"]) == "row 00005000"


def test_prefixes_that_everybody_knows_need_no_declaration(make: Callable[..., Runtime]) -> None:
    query = "SELECT ?doc { ?doc ?p 3 OPTIONAL { ?doc dbo:country dbr:Denmark ; foaf:name ?n } }"
    rows = list(make().select(f"{BASE}sparql", query).rows)
    assert [str(row["doc"]) for row in rows] == [f"{BASE}from/3"]


def test_queries_of_another_form_are_refused_before_they_are_sent(
    make: Callable[..., Runtime], front: Front
) -> None:
    runtime = make()
    for ask, query, reported in (
        (runtime.select, "ASK {}", "wrong-form"),
        (runtime.graph, "SELECT * {}", "wrong-form"),
        (runtime.ask, "DESCRIBE <http://e/>", "wrong-form"),
        (runtime.select, "DROP ALL", "update-refused"),
    ):
        with raises(QueryError, reported):
            ask(f"{BASE}sparql", query)
    assert not front.seen
