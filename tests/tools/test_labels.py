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
    assert "more than 300 labels contain this" in many["note"]


def test_only_label_properties_are_searched(odd: EndpointConfig) -> None:
    assert SPARQLTools(odd).sparql_find("Oaks")["results"] == []
    other = replace(odd, label_properties=("http://e/n",))
    assert SPARQLTools(other).sparql_find("oaks")["results"][0]["uri"] == "e:note"
    none = replace(odd, label_properties=())
    assert "label property" in SPARQLTools(none).sparql_find("oaks")["note"]


def test_a_label_property_that_is_no_iri_never_reaches_a_query(odd: EndpointConfig) -> None:
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
