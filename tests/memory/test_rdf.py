"""Items to RDF and back: nothing is lost, and nothing bad comes in."""

from __future__ import annotations

from dataclasses import fields, replace

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.errors import UsageError
from reasoningbank.memory import Counters, MemoryItem, Provenance, Scope, Turn
from reasoningbank.memory import rdf as terms
from reasoningbank.memory.rdf import RdfName, from_rdf, to_rdf

from .coded import raises

BOTH = pytest.mark.parametrize("name", ["turtle", "nquads"])

#: Everything but halves of characters, which RDF has no form for.
ANY = st.text(st.characters(exclude_categories=("Cs",)), max_size=12) | st.sampled_from(
    [
        *("", " ", "\n", "\r\n", "\x00", "\x1f", "\u2028", "\ufeff", "e\u0301", "\U0001f9ec"),
        *('"""', "'''", "\\", "\\u0041", "<<slot>>", "<http://e/>", '{?s ?p "x"@en}'),
        *("a#b", "%41:/?", "_:b"),
    ]
)
SAID = ANY.filter(lambda text: bool(text.strip()))
COUNT = st.integers(0, 2**53)

ITEMS = st.builds(
    MemoryItem,
    title=SAID,
    description=ANY,
    content=SAID,
    src=st.sampled_from(["success", "failure", "contrast", "seed", "gold"]),
    pattern=ANY,
    tags=st.lists(ANY, max_size=12).map(tuple),
    scope=st.builds(Scope, ANY, ANY),
    provenance=st.builds(Provenance, *[ANY] * 8),
    evidence=st.lists(st.builds(Provenance, *[ANY] * 8), max_size=3).map(tuple),
    counters=st.builds(Counters, *[COUNT] * 5),
    question=ANY,
    query=ANY,
    turns=st.lists(st.builds(Turn, ANY, ANY, ANY), max_size=3).map(tuple),
    status=st.sampled_from(["active", "superseded", "retired"]),
    superseded_by=ANY,
)

WHOLE = MemoryItem(
    "Mass of a protein",
    "Questions for masses",
    "Two steps:\n1. up:sequence\n2. up:mass",
    "success",
    pattern="SELECT ?m { <<protein>> up:sequence/up:mass ?m }",
    tags=("up:sequence", "up:mass", "up:sequence"),
    scope=Scope("uniprot", "https://sparql.uniprot.org/sparql"),
    provenance=Provenance(
        "t1", "masses", "uniprot", "one/t1.0", "execution", "local", "2026-01-02T03:04:05Z", "rules"
    ),
    evidence=(Provenance(task="t2", corpus="uniprot"),),
    counters=Counters(5, 4, 1, 1, 0),
    question="What is the mass of P05067?",
    query="SELECT ?m { uniprotkb:P05067 up:sequence/up:mass ?m }",
    turns=(Turn("Look.", "print(1)", "1"), Turn("", "SUBMIT(1)")),
    status="superseded",
    superseded_by="0123456789abcdef",
)


@BOTH
@settings(max_examples=25, deadline=None)
@given(items=st.lists(ITEMS, min_size=1, max_size=3, unique_by=lambda item: item.id))
def test_nothing_is_lost(items: list[MemoryItem], name: RdfName) -> None:
    written = to_rdf(items, name)
    assert from_rdf(written, name) == sorted(items, key=lambda item: item.id)
    assert to_rdf(reversed(items), name) == written


def test_every_field_has_a_property() -> None:
    shown = {*terms.ITEM_TEXTS, "scope", "counters", "superseded_by", "tags", "turns"}
    assert shown | {"provenance", "evidence"} == {f.name for f in fields(MemoryItem) if f.init}
    assert set(terms.COUNTERS) == {f.name for f in fields(Counters)}


def test_provenance_in_prov() -> None:
    store = ox.Store()
    store.load(to_rdf([WHOLE]), ox.RdfFormat.TURTLE)
    rows = store.query(
        """PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX rb: <urn:reasoningbank:ontology#>
        SELECT ?trial ?task ?model ?author ?time {
            ?item a prov:Entity ; prov:wasDerivedFrom ?trial ; prov:wasGeneratedBy ?activity ;
                prov:wasAttributedTo ?author ; prov:generatedAtTime ?time .
            ?activity a prov:Activity ; prov:used ?trial ; prov:wasAssociatedWith ?author .
            ?trial a rb:Trial ; prov:wasDerivedFrom ?task ; prov:wasAttributedTo ?model
        }"""
    )
    assert isinstance(rows, ox.QuerySolutions)
    ((*found,),) = [[term.value for term in row if term is not None] for row in rows]
    assert found == [
        "urn:reasoningbank:trial:uniprot:one%2Ft1.0",
        "urn:reasoningbank:task:uniprot:t1",
        "urn:reasoningbank:agent:local",
        "urn:reasoningbank:agent:rules",
        "2026-01-02T03:04:05Z",
    ]


@pytest.mark.parametrize("time", ["", "yesterday", "2026-01-02", "2026-01-02T03:04:05", "٣"])
def test_a_time_that_is_none_is_kept_as_text(time: str) -> None:
    item = replace(WHOLE, provenance=replace(WHOLE.provenance, time=time))
    written = to_rdf([item])
    assert b"generatedAtTime" not in written
    assert from_rdf(written) == [item]


def test_files_can_be_joined() -> None:
    other = replace(WHOLE, title="Another")
    joined = to_rdf([WHOLE], "nquads") + to_rdf([other], "nquads") + to_rdf([WHOLE], "nquads")
    assert {item.id for item in from_rdf(joined, "nquads")} == {WHOLE.id, other.id}


def test_what_others_say_beside_is_passed_over() -> None:
    me = f"<urn:reasoningbank:item:{WHOLE.id}>"
    more = f'{me} <http://e/liked> "by me"@en ; <http://e/x> [ <http://e/y> 1.5 ] .'
    assert from_rdf(to_rdf([WHOLE]) + more.encode()) == [WHOLE]


def test_half_a_character_cannot_be_written() -> None:
    with raises(UsageError, "not-rdf"):
        to_rdf([replace(WHOLE, tags=("\ud800",))])


ME = f"<urn:reasoningbank:item:{WHOLE.id}>"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dcterms:title", "dcterms:subject"),
        ('dcterms:title "Mass of a protein"', 'dcterms:title "Mass"@en'),
        ('dcterms:title "Mass of a protein"', 'dcterms:title "  "'),
        ('rb:source "success"', 'rb:source "luck"'),
        ('rb:status "superseded"', 'rb:status "active", "retired"'),
        ("rb:retrieved 5", "rb:retrieved -5"),
        ("rb:retrieved 5", 'rb:retrieved "5"'),
        ("rb:retrieved 5", 'rb:retrieved "many"^^xsd:integer'),
        ("rb:position 1", "rb:position 0"),
        ("rb:position 1 ;", ""),
        ('rdf:value "up:mass"', "rdf:value 5"),
        ('rb:code "print(1)"', 'rb:code "print(1)", "print(2)"'),
        ("a rb:MemoryItem , prov:Entity", "a rb:MemoryItem"),
        ("prov:wasGeneratedBy", "prov:wasInvalidatedBy"),
        (f"{WHOLE.id}>", "0>"),
        ("0123456789abcdef", ""),
        ("2026-01-02T03:04:05+00:00", "soon"),
    ],
)
def test_a_file_that_violates_the_shapes_is_refused(old: str, new: str) -> None:
    good = to_rdf([WHOLE]).decode()
    assert old in good
    with raises(UsageError, "bad-shape") as raised:
        from_rdf(good.replace(old, new).encode(), where="items.ttl")
    assert raised.value.where == "items.ttl"


@pytest.mark.parametrize("old", ["Mass of a protein", f"item:{WHOLE.id}"])
def test_changed_content_is_refused(old: str) -> None:
    new = "item:0123456789abcdef" if old.startswith("item") else "Mass"
    with raises(UsageError, "item-changed"):
        from_rdf(to_rdf([WHOLE]).decode().replace(old, new).encode())


def test_an_item_without_its_class_is_refused() -> None:
    two = to_rdf([WHOLE]).decode() + to_rdf([replace(WHOLE, title="B")]).decode().replace(
        "rb:MemoryItem , prov:Entity", "prov:Entity"
    )
    with raises(UsageError, "bad-shape"):
        from_rdf(two.encode())


@BOTH
@pytest.mark.parametrize("data", [b"", b"<a> <b", b"\xff\xfe", b"<urn:a> <urn:b> <urn:c> ."])
def test_a_file_without_items_is_refused(data: bytes, name: RdfName) -> None:
    with pytest.raises(UsageError) as raised:
        from_rdf(data, name, where="x")
    assert raised.value.code in ("not-rdf", "no-items")
