"""What a run reads from the web: documents in all forms, and what is not a document."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rdflib import BNode, Literal, URIRef

from reasoningbank.algebra.runtime import Limits, Runtime
from reasoningbank.algebra.web import Credential, credentials_from
from reasoningbank.errors import (
    BudgetError,
    EndpointError,
    QueryError,
    ReasoningBankError,
    UsageError,
)
from reasoningbank.ldp import LDPServer

from .faults import raises
from .front import CUT, Fault, Front, answer

P = URIRef("http://e/p")


@pytest.fixture
def front() -> Iterator[Front]:
    made = Front()
    yield made
    made.close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def runtime(front: Front, pauses: list[float]) -> Iterator[Runtime]:
    addresses = {"http://data.example/": front.url}
    with Runtime(addresses=addresses, pause=pauses.append) as made:
        yield made


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("text/turtle; charset=utf-8", "<#s> <http://e/p> 'é' ."),
        ("application/n-triples", '<http://data.example/d#s> <http://e/p> "\\u00e9" .'),
        ("application/ld+json", '{"@id": "#s", "http://e/p": "é"}'),
        ("application/trig", "<#g> { <#s> <http://e/p> 'é' }"),
        (
            "application/rdf+xml",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://e/">'
            '<rdf:Description rdf:about="#s"><p>é</p></rdf:Description></rdf:RDF>',
        ),
    ],
)
def test_a_document_in_each_format(
    front: Front, runtime: Runtime, media_type: str, body: str
) -> None:
    front.script(answer(200, body, Content_Type=media_type))
    assert list(runtime.get("http://data.example/d")) == [
        (URIRef("http://data.example/d#s"), P, Literal("é"))
    ]
    accept = front.headers[0]["accept"]
    assert "text/html" not in accept
    assert "application/n-triples" in accept
    assert front.headers[0]["accept-encoding"] == "identity"


def test_terms_stay_as_they_were_written(front: Front, runtime: Runtime) -> None:
    body = '<> <http://e/p> 01, "x"@en-GB, "y"^^<http://e/t>, _:b .'
    front.script(
        answer(200, body, Content_Type="text/turtle"), answer(200, body, Content_Type="text/turtle")
    )
    graph = runtime.get("http://data.example/d")
    objects = list(graph.objects())
    assert "01" in {str(term) for term in objects}
    assert Literal("x", lang="en-GB") in objects
    blank = next(term for term in objects if isinstance(term, BNode))
    # Another document's blank node is another one, however it is called.
    assert blank not in set(runtime.get("http://data.example/d").objects())


@pytest.mark.parametrize(
    ("fault", "reported"),
    [
        (answer(200, "<html><title>Home</title>", Content_Type="text/html"), "is text/html, not"),
        (answer(200, "%PDF", Content_Type="application/pdf"), "is application/pdf, not RDF"),
        (answer(200, "<a:a> <a:b> <a:c> ."), "not-rdf"),
        (answer(200, '{"rows": []}', Content_Type="application/json"), "not-rdf"),
        (answer(200, '{"@id": "http://e/"}', Content_Type="application/json"), "not-rdf"),
        (answer(200, "{}", Content_Type="application/activity+json"), "not-rdf"),
        (answer(200, '<feed xmlns="http://e/"/>', Content_Type="application/xml"), "not-rdf"),
        (answer(200, "", Content_Type="text/plain"), "not-rdf"),
        (answer(200, "<a> <b", Content_Type="text/turtle"), "bad-rdf"),
        (answer(200, '{"a":', Content_Type="application/ld+json"), "bad-rdf"),
        (answer(200, "", Content_Type="application/ld+json"), "bad-rdf"),
        (
            answer(200, '{"name": "Alice", "age": 3}', Content_Type="application/ld+json"),
            "unmapped",
        ),
        (
            answer(200, '{"@context": "http://e/c", "a": 1}', Content_Type="application/ld+json"),
            "bad-rdf",
        ),
        (
            answer(200, "<a:a> <a:b> <<( <a:a> <a:b> 1 )>> .", Content_Type="text/turtle"),
            "unsupported-term",
        ),
        (
            answer(
                200,
                '<!DOCTYPE r [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><r>&b;</r>',
                Content_Type="application/rdf+xml",
            ),
            "bad-rdf",
        ),
        (answer(200, b"x", Content_Type="text/turtle", Content_Encoding="gzip"), "compressed"),
        (answer(404, "gone\nfor good"), "HTTP 404: gone for good"),
        (answer(403, "<html><h1>No &amp; no</h1>", Content_Type="text/html"), "403: No & no"),
        (answer(406), "HTTP 406"),
        (answer(500, "x" * 9999), "HTTP 500: xxx"),
        (answer(204), "not-rdf"),
    ],
)
def test_what_is_not_a_graph_is_reported_in_one_line(
    front: Front, runtime: Runtime, fault: Fault, reported: str
) -> None:
    front.script(fault)
    with pytest.raises(EndpointError) as failed:
        runtime.get("http://data.example/d")
    line = str(failed.value)
    assert line.startswith("http://data.example/d: ")
    assert reported in f"{failed.value.code} {line}"
    assert "\n" not in line
    assert len(line) < 600
    assert len(front.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(front: Front, runtime: Runtime, status: int) -> None:
    front.script(
        answer(status, Location="/data/x"),
        answer(200, "<> <http://e/p> 1 .", Content_Type="text/turtle"),
    )
    # What came is of the address that answered, by its public name.
    subject = next(runtime.get("http://data.example/d").subjects())
    assert subject == URIRef("http://data.example/data/x")
    assert front.seen == [("GET", "/d"), ("GET", "/data/x")]


def test_redirects_lead_only_where_the_run_may_go(front: Front, pauses: list[float]) -> None:
    for target, reported in (
        ("file:///etc/passwd", "bad-url"),
        (f"{front.url}loop", "too-many-redirects"),
        ("http://elsewhere.example/", "read-not-allowed"),
    ):
        front.script(*[answer(302, Location=target)] * 20)
        runtime = Runtime(allow_read=[front.url], pause=pauses.append)
        with runtime, raises(ReasoningBankError, reported):
            runtime.get(f"{front.url}loop")


def test_only_web_addresses_are_read(runtime: Runtime) -> None:
    for url in ("file:///etc/passwd", "/etc/passwd", "ftp://e/"):
        with raises(UsageError, "bad-url"):
            runtime.get(url)


def test_what_the_run_may_not_read(front: Front) -> None:
    with Runtime(allow_read=["http://ok.example/"]) as runtime:
        for read in (runtime.get, lambda url: runtime.select(url, "SELECT * { ?s ?p ?o }")):
            with raises(UsageError, "read-not-allowed"):
                read(front.url)
    assert not front.seen


def test_queries_do_not_lead_where_the_run_may_not_read(front: Front) -> None:
    query = "SELECT * { SERVICE <http://elsewhere.example/sparql> { ?s ?p ?o } }"
    runtime = Runtime(allow_read=[front.url])
    with runtime, raises(QueryError, "service-refused"):
        runtime.select(f"{front.url}sparql", query)
    assert not front.seen


def test_busy_servers_are_asked_again_when_they_say(
    front: Front, runtime: Runtime, pauses: list[float]
) -> None:
    turtle = answer(200, "<> <http://e/p> 1 .", Content_Type="text/turtle")
    front.script(answer(429, Retry_After="7"), answer(503), CUT, turtle)
    assert len(runtime.get("http://data.example/d")) == 1
    assert len(pauses) == 3
    assert pauses[0] == 7
    assert runtime.requests == 4


def test_a_server_that_wants_too_long_a_pause_is_reported(
    front: Front, runtime: Runtime, pauses: list[float]
) -> None:
    front.script(answer(429, "slow down", Retry_After="3600"))
    with raises(EndpointError, "http"):
        runtime.get("http://data.example/d")
    assert pauses == []


def test_tries_end(front: Front, runtime: Runtime, pauses: list[float]) -> None:
    front.script(*[CUT] * 9)
    with raises(EndpointError, "no-reply"):
        runtime.get("http://data.example/d")
    assert (len(front.seen), len(pauses)) == (4, 3)


def test_a_server_that_is_not_there(runtime: Runtime, front: Front) -> None:
    front.close()
    with raises(EndpointError, "no-connection"):
        runtime.get("http://data.example/d")


def test_an_endpoint_is_reported_by_the_address_that_the_program_has() -> None:
    addresses = {"https://far.example/sparql": "http://127.0.0.1:1/query"}
    with (
        Runtime(addresses=addresses, limits=Limits(tries=1), pause=lambda _: None) as run,
        raises(EndpointError, "no-connection") as failed,
    ):
        run.select("https://far.example/sparql", "SELECT ?s WHERE { ?s ?p ?o }")
    assert failed.value.where == "https://far.example/sparql"


@pytest.mark.parametrize(
    "beginning",
    [b"HTTP/1.1 200 OK\r\nX-", b"HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\n\r\n#"],
)
def test_a_slow_drip_comes_to_an_end(front: Front, beginning: bytes) -> None:
    front.script(*[Fault("drip", body=beginning)] * 9)
    limits = Limits(request_seconds=1.0, tries=1)
    with Runtime(limits=limits) as runtime, raises(EndpointError, "no-reply"):
        runtime.get(front.url)


def test_a_huge_document_is_not_read_to_its_end(front: Front) -> None:
    front.script(Fault("drip", body=b"HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\n\r\n#"))
    limits = Limits(document_bytes=20)
    with Runtime(limits=limits) as runtime, raises(EndpointError, "too-large"):
        runtime.get(front.url)


def test_a_document_of_too_many_triples(front: Front) -> None:
    body = "".join(f"<> <http://e/p> {n} ." for n in range(9))
    front.script(answer(200, body, Content_Type="text/turtle"))
    runtime = Runtime(limits=Limits(rows=8))
    with runtime, raises(BudgetError, "budget"):
        runtime.get(front.url)


def test_budgets_end_a_run(front: Front) -> None:
    turtle = answer(200, "<> <http://e/p> 1 .", Content_Type="text/turtle")
    front.script(turtle, answer(302, Location="/"), turtle)
    with Runtime(limits=Limits(requests=2)) as runtime:
        runtime.get(front.url)
        with raises(BudgetError, "budget"):
            runtime.get(front.url)
    runtime = Runtime(limits=Limits(seconds=1e-9))
    with runtime, raises(BudgetError, "budget"):
        runtime.get(front.url)
    assert len(front.seen) == 2
    with raises(UsageError, "limits"):
        Limits(rows=0)


def test_a_run_tells_what_it_did(front: Front) -> None:
    events: list[Any] = []
    front.script(answer(200, "<> <http://e/p> 1 .", Content_Type="text/turtle"))
    with Runtime(record=events.append) as runtime:
        runtime.get(front.url)
    assert [(e["event"], e["method"], e["url"], e["status"]) for e in events] == [
        ("request", "GET", front.url, 200)
    ]


def test_secrets_go_where_they_belong(front: Front) -> None:
    other = Front()
    turtle = answer(200, "<> <http://e/p> 1 .", Content_Type="text/turtle")
    front.script(turtle, turtle, answer(302, Location=other.url))
    other.script(turtle)
    known = [
        Credential(f"{front.url}ada/", user="ada", password="ö"),
        Credential(f"{front.url}token/", token="secret"),
    ]
    with Runtime(credentials=known) as runtime:
        for path in ("ada/x", "other/x", "token/x"):
            runtime.get(f"{front.url}{path}")
    other.close()
    assert [headers.get("authorization") for headers in front.headers] == [
        "Basic YWRhOsO2",
        None,
        "Bearer secret",
    ]
    assert "authorization" not in other.headers[0]
    assert "secret" not in repr(known)


def test_credentials_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASS", "x")
    file = tmp_path / "credentials.toml"
    file.write_text(
        '[[credential]]\nbase = "https://localhost:4443/"\ncertificate = "me.pem"\n'
        '[[credential]]\nbase = "https://e/"\nuser = "ada"\npassword_env = "PASS"\n'
    )
    first, second = credentials_from(file)
    assert first.certificate == tmp_path / "me.pem"
    assert second.headers == {"Authorization": "Basic YWRhOng="}
    for text, reported in (
        ('[[credential]]\nuser = "a"', "bad-credential"),
        ('[[credential]]\nbase = "http://e/"\ntoken_env = "NO_SUCH"', "bad-credential"),
        ('[[credential]]\nbase = "http://e/"\ntokn = "NO"', "bad-credential"),
        ('[[credential]]\nbase = "http://e/"\npassword = "x"', "bad-credential"),
        ("credential = 1", "bad-credential"),
        ("[", "bad-credential"),
    ):
        file.write_text(text)
        with raises(UsageError, reported):
            credentials_from(file)


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a server called localhost and of a client, each its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here to make certificates with")
    folder = tmp_path_factory.mktemp("tls")
    for name, subject in (("server", "localhost"), ("client", "ada")):
        wanted = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={subject}"
        wanted += f" -addext subjectAltName=DNS:{subject} -keyout {name}.key -out {name}.pem"
        openssl(folder, *wanted.split())
    return folder


def test_tls_is_verified_and_clients_show_certificates(certificates: Path, front: Front) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
    context.load_verify_locations(certificates / "client.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    front.wrap(context)
    front.script(
        answer(200, "<> <http://e/p> 1 .", Content_Type="text/turtle"),
        answer(200, "?x\n1\n", Content_Type="text/tab-separated-values"),
        answer(302, Location="http://localhost/"),
    )
    limits = Limits(tries=1)
    runtime = Runtime(limits=limits)
    with runtime, raises(EndpointError, "no-connection") as failed:
        runtime.get(front.url)
    assert "certificate verify failed" in failed.value.what
    known = Credential(front.url, authorities=certificates / "server.pem")
    with Runtime(limits=limits, credentials=[known]) as runtime, pytest.raises(EndpointError):
        runtime.get(front.url)
    known = Credential(
        front.url,
        certificate=certificates / "client.pem",
        key=certificates / "client.key",
        authorities=certificates / "server.pem",
    )
    assert not front.seen
    with Runtime(limits=limits, credentials=[known]) as runtime:
        assert len(runtime.get(front.url)) == 1
        rows = list(runtime.select(f"{front.url}sparql", "SELECT ?x { ?s ?p ?x }").rows)
        assert str(rows[0]["x"]) == "1"
        with raises(EndpointError, "insecure-redirect"):
            runtime.get(front.url)
    with raises(UsageError, "bad-credential"):
        Runtime(credentials=[Credential(front.url, certificate=certificates / "no.pem")]).get(
            front.url
        )


def test_documents_of_a_real_server_stand_for_a_public_site() -> None:
    with (
        LDPServer("http://dbpedia.org/") as site,
        Runtime(
            addresses={"http://dbpedia.org/": site.address}, allow_write=["http://dbpedia.org/"]
        ) as runtime,
    ):
        graph = runtime.graph("http://dbpedia.org/sparql", "CONSTRUCT { } WHERE { }")
        graph.add((URIRef("http://dbpedia.org/resource/Malmö"), P, Literal("Malmö")))
        sent = runtime.send("PUT", "http://dbpedia.org/resource/Malmö", graph)
        assert (sent.status, sent.url) == (201, "http://dbpedia.org/resource/Malmö")
        assert set(runtime.get("http://dbpedia.org/resource/Malmö")) == set(graph)
        assert runtime.ask("http://dbpedia.org/sparql", "ASK { ?s ?p 'Malmö' }")
