"""Writing documents, and the journal of writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from rdflib import Graph, Literal, URIRef

from reasoningbank.algebra.runtime import Limits, Runtime
from reasoningbank.algebra.writes import Journal, entails
from reasoningbank.errors import BudgetError, EndpointError, RecordError, UsageError
from reasoningbank.ldp import LDPServer

from .faults import full_disk, raises
from .front import CUT, GONE, LOSE, PASS, Fault, Front, answer

BASE = "http://data.example/"
DOC = f"{BASE}d"
P = "http://e/p"
RISE = f"DELETE {{ <{DOC}> <{P}> ?n }} INSERT {{ <{DOC}> <{P}> ?m }} "
RISE += f"WHERE {{ <{DOC}> <{P}> ?n BIND(?n + 1 AS ?m) }}"
BLANK = f"<{DOC}> <{P}> [ <http://e/of> 1 ] ."


def graph(turtle: str) -> Graph:
    return Graph().parse(data=turtle, format="turtle", publicID=DOC)


@pytest.fixture
def site() -> Iterator[LDPServer]:
    with LDPServer(BASE) as running:
        yield running


@pytest.fixture
def front(site: LDPServer) -> Iterator[Front]:
    made = Front(site.address)
    yield made
    made.close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def make(front: Front, pauses: list[float]) -> Iterator[Callable[..., Runtime]]:
    made: list[Runtime] = []

    def runtime(**settings: Any) -> Runtime:
        given = {"allow_write": [BASE], "addresses": {BASE: front.url}, "pause": pauses.append}
        made.append(Runtime(**{**given, **settings}))
        return made[-1]

    yield runtime
    for one in made:
        one.close()


def values(site: LDPServer, url: str = DOC) -> list[str]:
    document = site.documents.read(url)
    return sorted(str(triple.object) for triple in document.triples) if document else []


def states(runtime: Runtime) -> list[tuple[str, str]]:
    return [(write.method, write.state) for write in runtime.writes]


def test_only_a_new_document_is_written(
    make: Callable[..., Runtime], site: LDPServer, front: Front, tmp_path: Path
) -> None:
    journal = tmp_path / "j"
    runtime = make(journal=journal)
    assert runtime.send("PUT", DOC, graph(f"<> <{P}> 1 ."), only_new=True).status == 201
    assert front.headers[-1]["if-none-match"] == "*"
    with raises(EndpointError, "write-refused"):
        runtime.send("PUT", DOC, graph(f"<> <{P}> 2 ."), only_new=True)
    assert [value[1] for value in values(site)] == ["1"]
    assert front.times("PUT") == 1
    # Whether a write with a lost reply was done is seen in the document.
    front.script(LOSE, methods="PUT")
    runtime.send("PUT", f"{BASE}e", graph(BLANK), only_new=True)
    assert front.times("PUT") == 2
    assert [state for _, state in states(runtime)] == ["done", "refused", "done"]
    # Somebody else made it between the look and the request.
    front.script(answer(412), methods="PUT")
    with raises(EndpointError, "write-refused"):
        runtime.send("PUT", f"{BASE}f", graph(BLANK), only_new=True)
    runtime.close()
    again = make(journal=journal, resume=True)
    assert again.send("PUT", DOC, graph(f"<> <{P}> 1 ."), only_new=True).status == 201


def test_each_way_to_write(make: Callable[..., Runtime], site: LDPServer) -> None:
    runtime = make()
    assert runtime.send("PUT", DOC, graph(f"<> <{P}> 1 .")).status == 201
    assert runtime.send("POST", DOC, graph(f"<> <{P}> 2 .")).status == 200
    assert runtime.send("PATCH", DOC, f"DELETE DATA {{ <{DOC}> <{P}> 1 }}").status == 200
    assert [value[1] for value in values(site)] == ["2"]
    sent = runtime.send("POST", f"{BASE}new", graph(f"<> <{P}> 'ø'@da ."))
    assert (sent.status, sent.url) == (201, f"{BASE}new")
    assert [state for _, state in states(runtime)] == ["done"] * 4
    assert runtime.writes[0].status == 201


def test_an_update_resolves_relative_iris_against_the_public_address() -> None:
    with (
        LDPServer() as site,
        Runtime(allow_write=[BASE], addresses={BASE: site.address}) as runtime,
    ):
        runtime.send("PUT", DOC, graph(f"<> <{P}> 1 ."))
        runtime.send("PATCH", DOC, f"DELETE WHERE {{ ?s ?p 1 }}; INSERT DATA {{ <#it> <{P}> <o> }}")
        document = site.documents.read(f"{site.address}d")
        assert document is not None
        (triple,) = document.triples
        assert (str(triple.subject), str(triple.object)) == (f"<{DOC}#it>", f"<{BASE}o>")


@pytest.mark.parametrize(
    "url",
    [
        "http://elsewhere.example/d",
        "http://data.example.evil/d",
        "https://data.example/d",
        "http://data.example:81/d",
        f"{BASE}other",
    ],
)
def test_only_allowed_bases_are_written(
    make: Callable[..., Runtime], front: Front, url: str
) -> None:
    runtime = make(allow_write=[f"{BASE}in/"])
    with raises(UsageError, "write-not-allowed"):
        runtime.send("PUT", url, Graph())
    with raises(UsageError, "write-not-allowed"):
        make(allow_write=[]).send("PUT", DOC, Graph())
    assert not front.seen
    assert runtime.writes == ()


def test_bodies_are_what_methods_take(make: Callable[..., Runtime]) -> None:
    runtime = make()
    with raises(UsageError, "wrong-body"):
        runtime.send("PATCH", DOC, Graph())
    with raises(UsageError, "wrong-body"):
        runtime.send("PUT", DOC, "<a> <b> <c> .")
    with raises(UsageError, "bad-url"):
        runtime.send("PUT", f"{DOC}#it", Graph())


def test_a_dry_run_resumes_nothing(tmp_path: Path) -> None:
    Journal(tmp_path / "j").close()
    with raises(UsageError, "exclusive-options"):
        Runtime(dry_run=True, resume=True, journal=tmp_path / "j")


def test_a_dry_run_lists_writes_and_does_none(
    make: Callable[..., Runtime], front: Front, site: LDPServer, tmp_path: Path
) -> None:
    runtime = make(dry_run=True, allow_write=[DOC], journal=tmp_path / "j")
    assert runtime.send("PUT", DOC, graph(f"<> <{P}> 'ø' .")).status == 0
    runtime.send("PATCH", f"{BASE}e", "DELETE WHERE { ?s ?p ?o }")
    assert [(plan.method, plan.url, plan.allowed) for plan in runtime.planned] == [
        ("PUT", DOC, True),
        ("PATCH", f"{BASE}e", False),
    ]
    assert runtime.planned[0].body == f'<{DOC}> <{P}> "ø" .\n'
    # Reading goes on.
    assert len(runtime.get(BASE)) == 0
    assert front.times("PUT") == 0
    assert site.documents.read(DOC) is None
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize("fault", [CUT, LOSE, answer(502), answer(504), Fault("after", 500)])
def test_a_put_whose_answer_is_lost_is_repeated(
    make: Callable[..., Runtime], front: Front, site: LDPServer, fault: Fault
) -> None:
    front.script(fault, methods="PUT")
    runtime = make()
    assert runtime.send("PUT", DOC, graph(BLANK)).status in (200, 201)
    assert front.times("PUT") == 2
    assert len(values(site)) == 2
    assert states(runtime) == [("PUT", "done")]


@pytest.mark.parametrize("fault", [CUT, LOSE, Fault("after", 500), answer(502), answer(429)])
@pytest.mark.parametrize("there", [True, False])
def test_a_post_is_done_once_whatever_becomes_of_its_answer(
    make: Callable[..., Runtime], front: Front, site: LDPServer, fault: Fault, there: bool
) -> None:
    runtime = make()
    if there:
        runtime.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    front.script(fault, methods="POST")
    runtime.send("POST", DOC, graph(BLANK))
    assert len(values(site)) == (3 if there else 2)
    assert states(runtime)[-1] == ("POST", "done")


def test_a_lost_request_that_is_carried_out_late_is_not_doubled(
    make: Callable[..., Runtime], front: Front, site: LDPServer
) -> None:
    runtime = make()
    runtime.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    late = iter([True])

    def arrives_late() -> None:
        # After the answer was lost and the ETag was looked at, just before the repetition.
        if front.times("HEAD") == 2 and next(late, False):
            tag = httpx.head(f"{site.address}d").headers["ETag"]
            headers = {"Content-Type": "text/turtle", "If-Match": tag}
            httpx.post(f"{site.address}d", content=front.bodies[-2], headers=headers)

    front.during = arrives_late
    front.script(PASS, CUT, methods="HEAD POST")
    runtime.send("POST", DOC, graph(BLANK))
    assert len(values(site)) == 3
    assert states(runtime)[-1] == ("POST", "done")
    assert front.times("POST") == 2


def test_an_update_that_was_cut_off_before_the_server_is_done_once(
    make: Callable[..., Runtime], front: Front, site: LDPServer
) -> None:
    runtime = make()
    runtime.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    front.script(CUT, answer(502), answer(503, Retry_After="2"), methods="PATCH")
    assert runtime.send("PATCH", DOC, RISE).status == 200
    assert values(site)[0].startswith('"1"')


def test_an_update_of_which_nobody_knows_ends_the_run_and_is_not_repeated(
    make: Callable[..., Runtime], front: Front, site: LDPServer, tmp_path: Path
) -> None:
    journal = tmp_path / "j"
    first = make(journal=journal)
    first.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    front.script(LOSE, methods="PATCH")
    with raises(EndpointError, "write-unanswered"):
        first.send("PATCH", DOC, RISE)
    assert states(first) == [("PUT", "done"), ("PATCH", "unanswered")]
    assert values(site)[0].startswith('"1"')
    first.close()

    asking = make(journal=journal, resume=True)
    assert asking.send("PUT", DOC, graph(f"<> <{P}> 0 .")).status == 201
    with raises(EndpointError, "write-unknown"):
        asking.send("PATCH", DOC, RISE)
    asking.close()
    assert values(site)[0].startswith('"1"')

    reported = make(journal=journal, resume=True, unanswered="done")
    reported.send("PATCH", DOC, RISE)
    reported.close()
    assert values(site)[0].startswith('"1"')
    assert states(reported) == [("PUT", "done"), ("PATCH", "done")]
    assert front.times("PATCH") == 1


def test_a_person_can_say_that_it_was_not_done(
    make: Callable[..., Runtime], front: Front, site: LDPServer, tmp_path: Path
) -> None:
    first = make(journal=tmp_path / "j")
    first.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    front.script(*[CUT] * 9, methods="PATCH HEAD")
    with pytest.raises(EndpointError):
        first.send("PATCH", DOC, RISE)
    first.close()
    front.script()
    again = make(journal=tmp_path / "j", resume=True, unanswered="again")
    again.send("PATCH", DOC, RISE)
    assert values(site)[0].startswith('"1"')


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_an_interrupted_write_is_settled_by_what_the_document_is(
    make: Callable[..., Runtime],
    front: Front,
    site: LDPServer,
    tmp_path: Path,
    done: bool,
    method: Any,
) -> None:
    body: Graph | str = graph(BLANK) if method == "POST" else RISE
    first = make(journal=tmp_path / "j", limits=Limits(tries=1))
    first.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    # The connection ends, and then nobody can look whether it was done.
    front.script(PASS, LOSE if done else CUT, GONE, methods="HEAD POST PATCH GET")
    with raises(EndpointError, "write-unanswered"):
        first.send(method, DOC, body)
    first.close()
    front.script()
    again = make(journal=tmp_path / "j", resume=True)
    if done and method == "PATCH":
        with raises(EndpointError, "write-unknown"):
            again.send(method, DOC, body)
    else:
        again.send(method, DOC, body)
        assert states(again)[-1] == (method, "done")
    if method == "POST":
        assert len(values(site)) == 3
    else:
        assert values(site)[0].startswith('"1"')


def test_a_server_without_etags_is_not_asked_twice_to_add(
    make: Callable[..., Runtime], front: Front
) -> None:
    runtime = make()
    front.script(
        answer(405), CUT, answer(200, "", Content_Type="text/turtle"), methods="HEAD POST GET"
    )
    with raises(EndpointError, "write-unanswered"):
        runtime.send("POST", DOC, graph(BLANK))
    assert front.times("POST") == 1


def test_a_document_that_somebody_else_changed_is_added_to_all_the_same(
    make: Callable[..., Runtime], front: Front, site: LDPServer
) -> None:
    runtime = make()
    runtime.send("PUT", DOC, graph(f"<> <{P}> 0 ."))
    meant = iter([f"<> <{P}> 7 ."])

    def change() -> None:
        turtle = next(meant, None)
        if turtle:
            httpx.put(f"{site.address}d", content=turtle, headers={"Content-Type": "text/turtle"})

    # Between the question for the ETag and the write.
    front.during = change
    runtime.send("POST", DOC, graph(f"<> <{P}> 1 ."))
    assert [value[1] for value in values(site)] == ["1", "7"]
    assert front.times("POST") == 2


def test_threads_that_add_to_one_document_lose_nothing(
    make: Callable[..., Runtime], site: LDPServer
) -> None:
    runtime = make()
    threads = [
        threading.Thread(target=runtime.send, args=("POST", DOC, graph(f"<> <{P}> {n} .")))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values(site)) == 8
    assert states(runtime) == [("POST", "done")] * 8


def test_busy_servers_get_a_write_later(
    make: Callable[..., Runtime], front: Front, site: LDPServer, pauses: list[float]
) -> None:
    front.script(answer(429, Retry_After="5"), answer(503), methods="PUT")
    make().send("PUT", DOC, graph(f"<> <{P}> 1 ."))
    assert pauses[0] == 5
    assert len(values(site)) == 1


def test_a_308_is_followed_within_the_bases_and_not_out_of_them(
    make: Callable[..., Runtime], front: Front, site: LDPServer
) -> None:
    runtime = make(allow_write=[f"{BASE}a/"])
    front.script(answer(308, Location="/a/new"), methods="PUT")
    runtime.send("PUT", f"{BASE}a/old", graph(f"<{BASE}a/old> <{P}> 1 ."))
    assert len(values(site, f"{BASE}a/new")) == 1
    assert front.bodies[0] == front.bodies[1] != b""
    front.script(answer(307, Location="/b"), methods="PUT")
    with raises(EndpointError, "write-not-sent"):
        runtime.send("PUT", f"{BASE}a/old", Graph())
    front.script(answer(301, Location="/a/x"), methods="POST")
    with raises(EndpointError, "write-refused"):
        runtime.send("POST", f"{BASE}a/old", Graph())
    assert states(runtime) == [("PUT", "done"), ("PUT", "not sent"), ("POST", "refused")]
    assert site.documents.read(f"{BASE}b") is None


def test_a_refusal_is_reported_and_noted(make: Callable[..., Runtime], front: Front) -> None:
    runtime = make()
    front.script(answer(403, "not you"), methods="PUT")
    with raises(EndpointError, "write-refused"):
        runtime.send("PUT", DOC, Graph())
    write = runtime.writes[0]
    assert (write.state, write.status, write.why) == ("refused", 403, "HTTP 403: not you")


def test_a_server_that_is_gone_halfway_and_a_run_that_goes_on(
    make: Callable[..., Runtime], front: Front, site: LDPServer, tmp_path: Path
) -> None:
    urls = [f"{BASE}{number}" for number in range(6)]

    def run(runtime: Runtime) -> None:
        for url in urls:
            runtime.send("PUT", url, graph(f"<{url}> <{P}> [ <{P}> '{url}' ] ."))
            runtime.send("POST", url, graph(f"<{url}> <{P}> [ <{P}> 2 ] ."))

    front.script(*[PASS] * 5, LOSE, GONE, methods="PUT POST")
    first = make(journal=tmp_path / "j", program="p")
    with pytest.raises(EndpointError):
        run(first)
    first.close()
    # Five were done, and the sixth without its answer; the run looked, and went on to the seventh.
    assert [write.state for write in first.writes] == ["done"] * 6 + ["unanswered"]

    front.script()
    seen = len(front.seen)
    again = make(journal=tmp_path / "j", program="p", resume=True)
    run(again)
    assert [write.state for write in again.writes] == ["done"] * 12
    assert [write.earlier for write in again.writes] == [True] * 6 + [False] * 6
    written = [where for method, where in front.seen[seen:] if method in ("PUT", "POST")]
    assert written == ["/3", "/3", "/4", "/4", "/5", "/5"]
    for url in urls:
        assert len(values(site, url)) == 4


def test_a_write_that_cannot_be_noted_is_not_sent(
    make: Callable[..., Runtime], front: Front, tmp_path: Path
) -> None:
    runtime = make(journal=tmp_path / "j")
    with full_disk(), raises(RecordError, "journal-unwritable"):
        runtime.send("PUT", DOC, Graph())
    assert front.times("PUT") == 0


def test_a_budget_that_ends_after_a_lost_answer_leaves_the_write_unanswered(
    make: Callable[..., Runtime], front: Front
) -> None:
    runtime = make(limits=Limits(requests=1))
    front.script(LOSE, methods="PUT")
    with raises(BudgetError, "budget"):
        runtime.send("PUT", DOC, Graph())
    assert states(runtime) == [("PUT", "unanswered")]


def test_a_budget_that_ends_stops_before_a_write(
    make: Callable[..., Runtime], front: Front, site: LDPServer
) -> None:
    runtime = make(limits=Limits(requests=1))
    runtime.send("PUT", DOC, graph(f"<> <{P}> 1 ."))
    with raises(BudgetError, "budget"):
        runtime.send("PUT", f"{BASE}e", Graph())
    assert states(runtime) == [("PUT", "done"), ("PUT", "not sent")]
    assert front.times("PUT") == 1


def test_a_created_document_is_named_as_people_know_it(
    make: Callable[..., Runtime], front: Front
) -> None:
    front.script(answer(201, Location=f"{front.url}items/7"), methods="POST")
    assert make().send("POST", BASE, Graph()).url == f"{BASE}items/7"
    front.script(answer(303, Location="done"), methods="POST")
    assert make().send("POST", f"{BASE}x/y", Graph()).url == f"{BASE}x/done"


def test_blank_nodes_are_named_anew_and_the_write_is_known_all_the_same(
    make: Callable[..., Runtime], front: Front, tmp_path: Path
) -> None:
    with make(journal=tmp_path / "j") as first:
        first.send("POST", DOC, graph(BLANK))
    again = make(journal=tmp_path / "j", resume=True)
    again.send("POST", DOC, graph(BLANK))
    assert front.times("POST") == 1
    again.send("POST", DOC, graph(BLANK.replace("1", "2")))
    assert front.times("POST") == 2
    assert Literal(2) in set(again.get(DOC).objects())
    assert URIRef(DOC) in set(again.get(DOC).subjects())


def test_a_blank_node_is_one_node_in_all_its_triples() -> None:
    data = "@prefix e: <http://e/> . <http://d> {} [ e:name 'Ada' ; e:age 7 ] ."
    wanted = Graph().parse(data=data.format("e:knows"), format="turtle")
    there = Graph().parse(data=data.format("e:knows"), format="turtle")
    assert entails(there, wanted)
    apart = "@prefix e: <http://e/> . <http://d> e:knows [ e:name 'Ada' ] , [ e:age 7 ] ."
    assert not entails(Graph().parse(data=apart, format="turtle"), wanted)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "writes.journal"


def on_disk(file: Path) -> list[tuple[str, str]]:
    """Return what a run would find that resumed from the file as it is now."""
    copy = file.with_suffix(".copy")
    copy.write_bytes(file.read_bytes())
    with closing(Journal(copy, resume=True)) as journal:
        return [(write.url, write.state) for write in journal.writes()]


def test_a_write_is_on_disk_before_it_is_sent(file: Path) -> None:
    with closing(Journal(file)) as journal:
        write = journal.begin("PUT", "http://e/ø", "d1", {})
        assert on_disk(file) == [("http://e/ø", "unanswered")]
        journal.update(write, state="done", status=201)
        assert on_disk(file) == [("http://e/ø", "done")]
        journal.update(write, condition={})
        assert on_disk(file) == [("http://e/ø", "unanswered")]


def test_a_resumed_run_knows_what_was_done_and_what_is_not_known(file: Path) -> None:
    with closing(Journal(file)) as journal:
        for number, state in enumerate(("done", "refused", "not sent", "unanswered")):
            write = journal.begin("POST", f"http://e/{number}", "d", {"If-Match": '"x"'})
            journal.update(write, state=state)
        journal.begin("POST", "http://e/4", "d", {})
    with closing(Journal(file, resume=True)) as again:
        known = [again.earlier("POST", f"http://e/{number}", "d") for number in range(5)]
        states = [write and write.state for write in known]
        assert states == ["done", None, None, "unanswered", "unanswered"]
        assert known[0] is not None
        assert known[0].condition == {"If-Match": '"x"'}
        assert known[0].earlier
        # Another body, another method or another document is another write.
        assert again.earlier("POST", "http://e/0", "other") is None
        assert again.earlier("PUT", "http://e/0", "d") is None


def test_equal_writes_are_taken_one_by_one_and_done_ones_first(file: Path) -> None:
    with closing(Journal(file)) as journal:
        journal.begin("POST", "http://e/", "d", {})
        for _ in range(2):
            journal.update(journal.begin("POST", "http://e/", "d", {}), state="done")
    with closing(Journal(file, resume=True)) as again:
        taken = [again.earlier("POST", "http://e/", "d") for _ in range(4)]
        assert [write and write.state for write in taken] == ["done", "done", "unanswered", None]


def test_a_repeated_write_keeps_its_number(file: Path) -> None:
    with closing(Journal(file)) as journal:
        journal.begin("POST", "http://e/", "d", {})
    with closing(Journal(file, resume=True)) as again:
        earlier = again.earlier("POST", "http://e/", "d")
        assert earlier is not None
        sent = again.update(earlier, condition={"If-Match": '"y"'}, earlier=False)
        again.update(sent, state="done", status=200)
        assert [(write.number, write.state) for write in again.writes()] == [(1, "done")]
    with closing(Journal(file, resume=True)) as last:
        assert [write.state for write in last.writes()] == ["done"]


def test_journals_are_not_mixed_up(file: Path) -> None:
    with closing(Journal(file, program="p")), raises(UsageError, "journal-in-use"):
        Journal(file, program="p", resume=True)
    with raises(UsageError, "journal-exists"):
        Journal(file, program="p")
    with raises(UsageError, "other-journal"):
        Journal(file, program="q", resume=True)
    with raises(UsageError, "no-journal"):
        Journal(file.parent / "other", resume=True)
    with raises(UsageError, "no-journal"):
        Journal(resume=True)
    notes = file.parent / "notes.txt"
    for text in ("not a journal\n", "[1]\n", '{"journal": 2}\n', '{"journal":'):
        notes.write_text(text)
        with raises(UsageError, "not-a-journal"):
            Journal(notes, resume=True)
        assert notes.read_text() == text


def test_a_damaged_journal_is_not_resumed(file: Path) -> None:
    with closing(Journal(file)) as journal:
        for number in range(20):
            journal.begin("POST", f"http://e/{number}/{'x' * 1_000}", "d", {})
    damaged = file.read_bytes()[:8_192]
    file.write_bytes(damaged)
    with raises(RecordError, "journal-unreadable"):
        Journal(file, resume=True)
    assert file.read_bytes() == damaged


def test_a_write_that_the_disk_does_not_take_is_not_recorded(file: Path) -> None:
    with closing(Journal(file)) as journal:
        with full_disk(), raises(RecordError, "journal-unwritable"):
            journal.begin("POST", "http://e/1", "d", {})
        journal.update(journal.begin("POST", "http://e/2", "d", {}), state="done")
    with closing(Journal(file, resume=True)) as again:
        assert [(write.url, write.state) for write in again.writes()] == [("http://e/2", "done")]


def test_no_journal_is_begun_on_a_full_disk(file: Path) -> None:
    with full_disk(), raises(RecordError, "journal-unwritable"):
        Journal(file)


def test_uuids_are_the_same_when_a_run_is_resumed(file: Path) -> None:
    with closing(Journal(file)) as journal:
        drawn = [journal.draw() for _ in range(3)]
    with closing(Journal(file, resume=True)) as again:
        assert [again.draw() for _ in range(3)] == drawn
    assert len(set(drawn)) == 3
    assert Journal().draw() not in drawn


def test_rows_draw_the_same_uuids_in_whatever_order_they_come(file: Path) -> None:
    places = [f"$.operation {row}" for row in range(4)]
    with closing(Journal(file)) as journal:
        drawn = {place: journal.draw(place) for place in places}
    with closing(Journal(file, resume=True)) as again:
        assert {place: again.draw(place) for place in reversed(places)} == drawn
