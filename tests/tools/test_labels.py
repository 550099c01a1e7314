"""Names are searched safely, completely where possible, and what was not searched is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, serialize

from reasoningbank.schema import EndpointProfile
from reasoningbank.sparql import EndpointConfig, OxigraphServer
from reasoningbank.tools import SPARQLTools, labels
from reasoningbank.tools.labels import DIALECTS, LabelMatch, words_of

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ODD = {
    "quotes": "say \"hi\" and 'ho'",
    "backslash": "a\\b \\u0041",
    "breakout": 'x")) } } #',
    "pattern": "it's {?s ?p ?o} ${x}",
    "text": "'kin*' AND \"OR\" NEAR bif:contains",
    "regex": "a.*b[c]?",
    "accents": "été à Zürich",
    "emoji": "🧬 gene 🌿",
    "wide": "蛋白质 キナーゼ",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EndpointConfig]:
    """Things with labels that hold what queries and text searches are written with."""
    triples = [
        Triple(NamedNode(f"http://e/{key}"), NamedNode(LABEL), Literal(f"<{text}>"))
        for key, text in ODD.items()
    ]
    tagged = [("de", "Eiche"), ("fr", "chêne"), ("en", "Oak tree")]
    triples += [
        Triple(NamedNode("http://e/oak"), NamedNode(LABEL), Literal(text, language=tag))
        for tag, text in tagged
    ]
    triples += [
        Triple(NamedNode(f"http://e/n{i}"), NamedNode(LABEL), Literal(f"Oaken thing {i}"))
        for i in range(400)
    ]
    triples.append(Triple(NamedNode("http://e/note"), NamedNode("http://e/n"), Literal("Oaks")))
    file = tmp_path_factory.mktemp("odd") / "odd.nt"
    file.write_bytes(serialize(triples, format=RdfFormat.N_TRIPLES) or b"")
    with OxigraphServer([file], timeout_s=10) as server:
        yield EndpointConfig(
            "https://odd.example/sparql", "Odd", query_url=server.url, prefixes={"e": "http://e/"}
        )


@pytest.fixture(params=[1_000_000, 20])
def tools(request: pytest.FixtureRequest, odd: EndpointConfig) -> SPARQLTools:
    """The tools where all labels can be looked at, and where only five of each property can."""
    return SPARQLTools(odd, profile=EndpointProfile(odd, look=request.param))


@pytest.mark.parametrize("key", ODD)
def test_every_text_is_searched_as_it_is(odd: EndpointConfig, key: str) -> None:
    found = SPARQLTools(odd).sparql_find(f" {ODD[key].upper()} ")
    assert [row["uri"] for row in found["results"]] == [f"e:{key}"]


@pytest.mark.parametrize("text", [*ODD.values(), "\\", '"', "'", "*", "}", "\x00a", "%s", "?x"])
def test_no_text_breaks_any_way_of_searching(tools: SPARQLTools, text: str) -> None:
    found = tools.sparql_find(text)
    assert found["count"] == len(found["results"])


@pytest.mark.parametrize("text", ["", "  ", "\x00\n", "\ud800", "x" * 301, None, 7])
def test_what_cannot_be_a_name_is_refused(odd: EndpointConfig, text: object) -> None:
    with pytest.raises(Exception, match="give a part of a name"):
        SPARQLTools(odd).sparql_find(text)  # type: ignore[arg-type]


def test_a_whole_label_is_found_in_any_language_and_spelling(tools: SPARQLTools) -> None:
    for text in ("eiche", "EICHE", "chêne", "oak tree", "Oak Tree"):
        assert tools.sparql_find(text)["results"][0]["uri"] == "e:oak"


def test_the_best_is_not_lost_among_more_hits_than_are_fetched(odd: EndpointConfig) -> None:
    found = SPARQLTools(odd).sparql_find("Oaken thing 399")
    assert found["results"][0]["uri"] == "e:n399"
    many = SPARQLTools(odd).sparql_find("oaken", 50)
    assert many["count"] == 50
    assert "300 labels or more contain this" in many["note"]


def test_only_label_properties_are_searched(odd: EndpointConfig) -> None:
    assert SPARQLTools(odd).sparql_find("Oaks")["results"] == []
    other = replace(odd, label_properties=("http://e/n",))
    assert SPARQLTools(other).sparql_find("oaks")["results"][0]["uri"] == "e:note"
    none = replace(odd, label_properties=())
    assert "label property" in SPARQLTools(none).sparql_find("oaks")["note"]


def test_a_label_property_that_is_not_an_iri_never_reaches_a_query(odd: EndpointConfig) -> None:
    bad = replace(odd, label_properties=("http://e/> ?x . ?y <http://e/",))
    with pytest.raises(Exception, match="not an IRI"):
        SPARQLTools(bad).sparql_find("oak")


def test_an_incomplete_search_says_what_it_did(odd: EndpointConfig) -> None:
    tools = SPARQLTools(odd, profile=EndpointProfile(odd, look=20))
    found = tools.sparql_find("thing 39")
    assert found["via"] == "whole labels, the first 5 labels"
    assert "parts of labels only in the first 5 labels" in found["note"]
    assert tools.sparql_find("Oaken Thing 390")["results"][0]["uri"] == "e:n390"


def test_text_search_is_used_where_an_engine_has_it(foreign: EndpointConfig) -> None:
    tools = SPARQLTools(foreign, profile=EndpointProfile(foreign, look=70))
    found = tools.sparql_find("sapiens homo")
    assert found["via"] == "text search (Virtuoso)"
    assert found["results"][0]["uri"] == "taxon:9606"
    assert tools.sparql_find("sapie")["results"][0]["uri"] == "taxon:9606"
    for text in ODD.values():
        assert "results" in tools.sparql_find(text)


def test_an_engine_without_text_search_is_not_taken_for_one(odd: EndpointConfig) -> None:
    profile = EndpointProfile(odd, look=20)
    assert labels.LabelSearch(profile, "oak").text_search() is None


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.engine)
@pytest.mark.parametrize("text", ODD.values())
def test_no_dialect_can_be_broken_out_of(
    odd: EndpointConfig, dialect: object, text: str, tmp_path: Path
) -> None:
    words = words_of(text)
    assert all(word.isalnum() for word in words)
    pattern = dialect.pattern(words, LABEL)  # type: ignore[attr-defined]
    profile = EndpointProfile(odd)
    assert profile.ask()(f"SELECT ?uri ?label {{ {pattern} }} LIMIT 5").n_rows == 0


def test_the_whole_label_comes_first_then_its_beginning_then_a_word() -> None:
    texts = ["Protokinase", "A kinase", "Kinases", "kinase", "Kinase of a kind", "other"]
    name = NamedNode(LABEL)
    ranked = labels.rank([LabelMatch(name, Literal(text), name) for text in texts], "Kinase")
    assert [match.label.value for match in ranked] == [  # type: ignore[union-attr]
        "kinase",
        "Kinases",
        "Kinase of a kind",
        "A kinase",
        "Protokinase",
        "other",
    ]


KINDS = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix up: <http://v/> . @prefix dct: <http://purl.org/dc/terms/> . @prefix d: <http://d/> .
:paper1 a up:Citation ; dct:title "Alzheimer's disease: its causes." .
:paper2 a up:Citation ; dct:title "Kinase suppressors." .
d:85 a up:Disease ; rdfs:label "Alzheimer disease 1" .
:P05067 a up:Protein ; up:mnemonic "A4_HUMAN" ; up:name <http://e/P05067#n1> ;
  up:component <http://e/P05067#c1> .
<http://e/P05067#n1> a up:Name ; rdfs:label "Amyloid kinase protein" .
<http://e/P05067#c1> up:name <http://e/P05067#n2> .
<http://e/P05067#n2> rdfs:label "Soluble APP" .
:ABC a up:Protein ; up:mnemonic "AA4_HUMANOID" .
d:kw a up:Keyword ; rdfs:label "Kinase" , "kinase" ; rdfs:seeAlso <http://e/mim/104300> .
:ABC up:keyword d:kw .
"""


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SPARQLTools]:
    """Papers, diseases, a protein with nodes that hold its names."""
    file = tmp_path_factory.mktemp("kinds") / "kinds.ttl"
    zinc = '<http://e/keywords/862> <http://www.w3.org/2000/01/rdf-schema#label> "Zinc" .'
    file.write_text(f"{KINDS}\n{zinc}", encoding="utf-8")
    names = (LABEL, "http://v/mnemonic", "http://purl.org/dc/terms/title")
    prefixes = {"kb": "http://e/", "up": "http://v/", "DIS": "http://d/", "tax": "http://e/tax/"}
    prefixes["keyword"] = "http://e/keywords/"
    with OxigraphServer([file], timeout_s=10) as server:
        yield SPARQLTools(
            EndpointConfig(
                "https://kinds.example/sparql",
                query_url=server.url,
                label_properties=names,
                prefixes=prefixes,
            )
        )


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Alzheimer's disease", "DIS:85"),
        ("disease alzheimer", "DIS:85"),
        ("alzheimers diseases", "DIS:85"),
        ("P05067", "kb:P05067"),
        ("p05067", "kb:P05067"),
        ("kb:P05067", "kb:P05067"),
        ("KB P05067", "kb:P05067"),
        ('"kb:P05067"', "kb:P05067"),
        ("http://e/P05067", "kb:P05067"),
        ("<http://e/P05067>", "kb:P05067"),
        ("A4_HUMAN", "kb:P05067"),
        ("85", "DIS:85"),
        ("dis:85", "DIS:85"),
        ("illness 85", "DIS:85"),
        ("MIM:104300", "<http://e/mim/104300>"),
        ("mim 104300", "<http://e/mim/104300>"),
        ("KW-0862", "keyword:862"),
        ("Protein", "up:Protein"),
        ("mnemonic", "up:mnemonic"),
        ("kinase", "DIS:kw"),
        ("kinases", "DIS:kw"),
        ("kinase suppressor", "kb:paper2"),
    ],
)
def test_the_thing_that_is_meant_comes_first(kinds: SPARQLTools, text: str, first: str) -> None:
    found = kinds.sparql_find(text)
    assert found["results"][0]["uri"] == first
    end = text.lower()[-2:].strip('>"')
    assert ("identifiers" in found["via"]) == (end in first.lower()[-4:])


def test_a_number_of_another_authority_is_not_a_thing_of_the_data(kinds: SPARQLTools) -> None:
    # KEGG's gene 85 of mouse; disease 85 is another thing.
    assert not kinds.sparql_find("mmu:85")["results"]
    assert kinds.sparql_find("disease:85")["results"][0]["uri"] == "DIS:85"


def test_a_match_says_what_it_is_and_whose(kinds: SPARQLTools) -> None:
    (protein,) = kinds.sparql_find("P05067")["results"]
    assert protein == {
        "uri": "kb:P05067",
        "label": "A4_HUMAN",
        "property": "up:mnemonic",
        "class": "up:Protein",
    }
    for name, kind in (("up:Protein", "rdfs:Class"), ("up:mnemonic", "rdf:Property")):
        assert kinds.sparql_find(name)["results"] == [{"uri": name, "class": kind}]
    (node,) = kinds.sparql_find("Amyloid kinase")["results"]
    assert node["class"] == "up:Name"
    assert (node["owner"], node["owner_property"]) == ("kb:P05067", "up:name")
    (inner,) = kinds.sparql_find("Soluble APP")["results"]
    assert inner["owner"] == "kb:P05067"
    # Only one thing points to the keyword, which is nobody's all the same.
    keyword, *_ = kinds.sparql_find("kinase")["results"]
    assert (keyword["label"], "owner" in keyword) == ("Kinase", False)
    assert [row["uri"] for row in kinds.sparql_find("kinase")["results"]] == [
        "DIS:kw",
        "<http://e/P05067#n1>",
        "kb:paper2",
    ]
