"""Addresses and prefixes on the Web."""

from __future__ import annotations

import pyoxigraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.algebra import Runtime
from reasoningbank.algebra.web import checked, inside, moved, within
from reasoningbank.algebra.writes import digest
from reasoningbank.errors import UsageError
from reasoningbank.ldp.documents import document_url

from .faults import raises


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("http://e", "http://e/"),
        ("http://E:80/a b", "http://e/a%20b"),
        ("http://e/København?q=ø", "http://e/K%C3%B8benhavn?q=%C3%B8"),
        ("http://e/a%2Fb", "http://e/a%2Fb"),
        ("http://e/a/./b/../c", "http://e/a/c"),
        ("http://e/a#b", "http://e/a"),
        ("https://[::1]:4443/x", "https://[::1]:4443/x"),
    ],
)
def test_an_address_as_it_is_sent(url: str, sent: str) -> None:
    assert checked(url) == sent


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a/b",
        "//e/a",
        "file:///etc/passwd",
        "ftp://e/",
        "http:///a",
        "http://u:p@e/",
        "http://e/%2e%2e/a",
        "http://e/a/%2E",
        "http://e:port/",
        "javascript:alert(1)",
        "http://e/\x00",
    ],
)
def test_what_is_not_an_address_is_reported_in_a_line(url: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked(url)
    assert "\n" not in str(refused.value)
    assert "u:p" not in str(refused.value)


def test_a_fragment_is_not_written() -> None:
    with raises(UsageError, "bad-url"):
        checked("http://e/a#b", exactly=True)


@pytest.mark.parametrize(
    "url", ["http://e/a/..", "http://e/./a", "http://e/a/../b/", "http://e/.."]
)
def test_what_is_written_is_named_exactly(url: str) -> None:
    with raises(UsageError, "bad-url"):
        checked(url, exactly=True)


@pytest.mark.parametrize(
    ("base", "url", "under"),
    [
        ("http://e/", "http://e/a", True),
        ("http://e/a", "http://e/a", True),
        ("http://e/a", "http://e/a/b", True),
        ("http://e/a/", "http://e/a", False),
        ("http://e/a", "http://e/ab", False),
        ("http://e/a/", "http://e/b/", False),
        ("http://e/", "https://e/", False),
        ("http://e/", "http://e:8080/", False),
        ("http://e/", "http://e.evil/", False),
        ("http://e/", "http://x/?http://e/", False),
    ],
)
def test_what_lies_under_a_base(base: str, url: str, under: bool) -> None:
    assert inside(checked(base), checked(url)) is under


def test_tricks_do_not_lead_out_of_a_base() -> None:
    base = checked("http://e/mine/")
    for url in ("http://e/mine/../x", "http://e\\@evil/mine/", "http://e/mine/..%2fx/../../x"):
        try:
            assert not inside(base, checked(url)), url
        except UsageError:
            continue


@pytest.mark.parametrize(
    "name", ["..%2Fx", "%2e%2E%2fx", "a%2F..%2Fx", "..;/x", "..;v=1/x", "..%5Cx", "a%5c..", r"..\x"]
)
def test_what_some_servers_take_for_dot_segments_is_refused(name: str) -> None:
    with raises(UsageError, "bad-url"):
        checked(f"http://e/mine/{name}")


@pytest.mark.parametrize("name", ["AC%2FDC", "..x", "x..", "a;b", "...", "1%2F.5", "?x=/../"])
def test_names_with_dots_and_slashes_are_names(name: str) -> None:
    assert checked(f"http://e/mine/{name}") == f"http://e/mine/{name}"


def test_the_longest_base_counts() -> None:
    assert within(["http://e/", "http://e/a/", "http://x/"], "http://e/a/b") == "http://e/a/"
    assert within([], "http://e/") is None


def test_public_addresses_are_asked_elsewhere() -> None:
    real = {
        "http://dbpedia.org/": "http://127.0.0.1:1/",
        "http://dbpedia.org/data": "http://127.0.0.1:2/d/",
        "https://q.example/sparql": "http://127.0.0.1:3/query",
    }
    assert moved(real, "http://dbpedia.org/resource/x?y") == "http://127.0.0.1:1/resource/x?y"
    assert moved(real, "http://dbpedia.org/data/x") == "http://127.0.0.1:2/d/x"
    assert moved(real, "http://dbpedia.org/database") == "http://127.0.0.1:1/database"
    assert moved(real, "https://q.example/sparql") == "http://127.0.0.1:3/query"
    assert moved(real, "http://dbpedia.org.evil/") == "http://dbpedia.org.evil/"
    with raises(UsageError, "bad-url"):
        Runtime(addresses={"dbpedia": "http://127.0.0.1:1/"})


BASE = "http://e/mine/"
NODES = st.sampled_from(["_:a", "_:b", "_:c", "<http://e/x>", '"y"@en'])
STATEMENTS = st.lists(
    st.tuples(NODES.filter(lambda n: n[0] != '"'), st.sampled_from("pq"), NODES), max_size=6
)


@given(st.text(max_size=20))
@settings(deadline=None)
def test_what_lies_under_a_base_is_sent_there(name: str) -> None:
    try:
        url = checked(BASE + name, exactly=True)
    except UsageError:
        return
    assert checked(url) == url
    assert url.isascii()
    # Whatever is written below a base is sent to below that base.
    assert inside(BASE, url)
    assert url.startswith(BASE)


@given(st.text(max_size=20))
@settings(deadline=None)
def test_a_document_has_one_address_and_it_is_below_the_base(name: str) -> None:
    url = document_url(BASE, f"/mine/{name}")
    if url is not None:
        assert url.startswith(BASE)
        assert ".." not in url.split("/")
        assert document_url(BASE, url.removeprefix("http://e")) == url
        assert pyoxigraph.NamedNode(url).value == url


@given(STATEMENTS, st.permutations(["_:a", "_:b", "_:c"]), st.randoms())
@settings(deadline=None)
def test_a_graph_is_known_whatever_its_blank_nodes_are_called(
    statements: list[tuple[str, str, str]], names: list[str], random: object
) -> None:
    renamed = dict(zip(["_:a", "_:b", "_:c"], names, strict=True))
    lines = [f"{s} <http://e/{p}> {o} ." for s, p, o in statements]
    others = [f"{renamed.get(s, s)} <http://e/{p}> {renamed.get(o, o)} ." for s, p, o in statements]
    random.shuffle(others)  # type: ignore[attr-defined]
    # Without blank nodes a body is taken as it is: `written` has its lines in order.
    one, other = ("\n".join(sorted(found)).encode() for found in (lines, others))
    assert digest(one) == digest(other)


@given(STATEMENTS)
@settings(deadline=None)
def test_another_graph_is_another_one(statements: list[tuple[str, str, str]]) -> None:
    text = "\n".join(f"{s} <http://e/{p}> {o} ." for s, p, o in statements)
    more = f"{text}\n_:a <http://e/more> _:b ."
    assert digest(text.encode()) != digest(more.encode())
