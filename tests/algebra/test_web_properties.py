"""What holds of every address and every graph."""

from __future__ import annotations

import pyoxigraph
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.algebra.web import checked, inside
from reasoningbank.algebra.writes import digest
from reasoningbank.errors import UsageError
from reasoningbank.ldp.documents import document_url

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
