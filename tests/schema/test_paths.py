"""Paths in the data from a resource to the values of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reasoningbank.errors import QueryTimeoutError
from reasoningbank.schema.paths import Patterns, paths_in_common, paths_to
from reasoningbank.schema.patterns import PatternSearch
from reasoningbank.sparql import EndpointConfig, SPARQLClient, TableResult


@pytest.fixture(scope="module")
def client(sample: EndpointConfig) -> Iterator[SPARQLClient]:
    with SPARQLClient(sample) as made:
        yield made


def column(client: SPARQLClient, pattern: str) -> list[str]:
    found = client.query(f"SELECT DISTINCT ?v WHERE {{ {pattern} }}")
    assert isinstance(found, TableResult)
    return [str(row[0]) for row in found.rows()]


@pytest.mark.parametrize(
    ("start", "pattern"),
    [
        ("uniprotkb:P05067", "uniprotkb:P05067 up:mnemonic ?v"),
        ("uniprotkb:P05067", "uniprotkb:P05067 up:encodedBy/skos:altLabel ?v"),
        ("uniprotkb:P05067", "uniprotkb:P05067 up:annotation/up:disease/skos:prefLabel ?v"),
        ("taxon:10116", "?v up:organism taxon:10116"),
        ("taxon:10116", "?x1 up:organism taxon:10116 . ?x1 up:sequence/up:mass ?v"),
    ],
)
def test_the_path_of_a_query_is_found_from_its_answer(
    client: SPARQLClient, start: str, pattern: str
) -> None:
    values = column(client, pattern)
    found = paths_to(client, start, values)
    found_texts = [Patterns((one.tree("v"),)).text(client.config.namespaces) for one in found]
    assert pattern in found_texts
    assert found[0].reached == len(values)


def test_a_path_that_fits_better_comes_first(client: SPARQLClient) -> None:
    values = column(client, "?v up:organism taxon:10116")
    found = paths_to(client, "taxon:10116", values)
    differences = [abs(one.reached - len(values)) for one in found]
    assert differences == sorted(differences)


def test_what_nothing_leads_to_has_no_path(client: SPARQLClient) -> None:
    assert paths_to(client, "uniprotkb:P05067", ['"of no protein"'], most_hops=2) == ()
    assert paths_to(client, "uniprotkb:P05067", []) == ()


def searched(
    client: SPARQLClient,
    gold: str,
    starts: list[str],
    question: str = "",
    texts: tuple[str, ...] = (),
) -> tuple[str, str, bool]:
    """Search for patterns that have the rows of a query; return text, order, whether exact."""
    result = client.query(gold)
    assert isinstance(result, TableResult)
    rows = result.rows()
    columns = {
        name: [None if row[at] is None else str(row[at]) for row in rows]
        for at, name in enumerate(result.variables)
    }
    found = PatternSearch(client, columns, [[one] for one in starts], question, texts).found()
    assert found is not None
    patterns, exact = found
    return patterns.text(client.config.namespaces), patterns.order, exact


def test_columns_share_what_their_paths_have_in_common(client: SPARQLClient) -> None:
    inside = "uniprotkb:P05067 up:citation ?x1 . ?x1 up:title ?title . ?x1 up:date ?date"
    gold = f"SELECT DISTINCT ?title ?date WHERE {{ {inside} }}"
    assert searched(client, gold, ["uniprotkb:P05067"]) == (inside, "", True)


def test_two_things_that_are_named_meet_in_the_rows(client: SPARQLClient) -> None:
    gold = (
        "SELECT ?entry WHERE { uniprotkb:P05067 rdfs:seeAlso ?entry . "
        "?entry up:database database:RefSeq }"
    )
    text, _, exact = searched(client, gold, ["uniprotkb:P05067", "database:RefSeq"])
    assert exact
    assert "database:RefSeq" in text


def test_what_is_named_and_not_wanted_is_left_out(client: SPARQLClient) -> None:
    other = "FILTER NOT EXISTS { ?protein up:classifiedWith keywords:297 }"
    gold = f"SELECT ?protein WHERE {{ ?protein up:organism taxon:31033 {other} }}"
    text, _, exact = searched(client, gold, ["taxon:31033", "keywords:297"])
    assert exact
    assert other in text


def test_a_bound_in_the_question_is_a_filter(client: SPARQLClient) -> None:
    inside = "?protein up:organism taxon:83333 . ?protein up:sequence/up:mass ?mass"
    gold = f"SELECT ?protein ?mass WHERE {{ {inside} FILTER(?mass > 150000) }}"
    question = "Which proteins are heavier than 150000?"
    text, _, exact = searched(client, gold, ["taxon:83333"], question)
    assert (text, exact) == (f"{inside} FILTER(?mass > 150000)", True)


def test_the_highest_number_is_taken_by_its_order(client: SPARQLClient) -> None:
    inside = "?protein up:organism taxon:83333 . ?protein up:sequence/up:mass ?mass"
    gold = f"SELECT ?protein ?mass WHERE {{ {inside} }} ORDER BY DESC(?mass) LIMIT 1"
    assert searched(client, gold, ["taxon:83333"]) == (
        inside,
        "ORDER BY DESC(?mass) LIMIT 1",
        True,
    )


def test_what_the_rows_have_in_common_is_found_without_a_start(client: SPARQLClient) -> None:
    gold = "SELECT ?protein WHERE { ?protein up:classifiedWith keywords:27 }"
    text, _, exact = searched(client, gold, [], "Which proteins have it?")
    assert exact
    assert "keywords:27" in text
    values = column(client, "?v up:classifiedWith keywords:27")
    assert "keywords:27" in [path.start for path in paths_in_common(client, values)]


def test_a_text_of_the_question_filters(client: SPARQLClient) -> None:
    inside = "?x1 up:organism taxon:10116 . ?x1 up:mnemonic ?name"
    gold = f'SELECT ?name WHERE {{ {inside} FILTER(STRSTARTS(?name, "A")) }}'
    text, _, exact = searched(client, gold, ["taxon:10116"], texts=("A",))
    assert exact
    assert 'FILTER(STRSTARTS(?name, "A"))' in text


def test_all_that_the_question_names_is_kept(client: SPARQLClient) -> None:
    # All proteins of this organism have the keyword.
    inside = "?protein up:organism taxon:6573 . ?protein up:classifiedWith keywords:844"
    gold = f"SELECT ?protein WHERE {{ {inside} }}"
    assert searched(client, gold, ["taxon:6573"])[0] == "?protein up:organism taxon:6573"
    text, _, exact = searched(client, gold, ["taxon:6573", "keywords:844"])
    assert (text, exact) == (inside, True)


def test_of_a_mention_with_several_meanings_one_is_used(client: SPARQLClient) -> None:
    gold = "SELECT ?protein WHERE { ?protein up:classifiedWith keywords:27 }"
    result = client.query(gold)
    assert isinstance(result, TableResult)
    columns = {"protein": [str(row[0]) for row in result.rows()]}
    meant = [["keywords:27", '"Amidation"']]
    patterns, exact = PatternSearch(client, columns, meant).found() or (None, False)
    assert exact
    assert patterns is not None
    assert patterns.text(client.config.namespaces) == "?protein up:classifiedWith keywords:27"


def test_a_longer_path_is_tried_if_the_shortest_has_more(client: SPARQLClient) -> None:
    way = "up:annotation/up:locatedIn/up:cellularComponent"
    gold = f"SELECT ?protein WHERE {{ ?protein {way} location:496 }}"
    text, _, exact = searched(client, gold, ["location:496"])
    assert (text, exact) == (f"?protein {way} location:496", True)


def test_a_busy_machine_finds_the_same(
    client: SPARQLClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if each query took 20 s.
    def slow(self: SPARQLClient, query: str, timeout_s: float = 30.0) -> Any:
        if timeout_s < 20:
            raise QueryTimeoutError("takes too long")
        return rows(self, query, timeout_s=timeout_s)

    rows = SPARQLClient.rows
    monkeypatch.setattr(SPARQLClient, "rows", slow)
    gold = "SELECT ?mass WHERE { uniprotkb:P05067 up:sequence/up:mass ?mass }"
    assert searched(client, gold, ["uniprotkb:P05067"])[2]


def test_the_class_of_the_question_is_kept(client: SPARQLClient) -> None:
    # The only annotation of this protein is a variant.
    gold = "SELECT ?variant WHERE { uniprotkb:Q9HBY8 up:annotation ?variant }"
    text, _, exact = searched(client, gold, ["uniprotkb:Q9HBY8"], "Which natural variants?")
    assert exact
    assert "?variant a up:Natural_Variant_Annotation" in text
    assert "a up:" not in searched(client, gold, ["uniprotkb:Q9HBY8"])[0]


def test_a_text_of_the_question_may_be_what_rows_have_in_common(client: SPARQLClient) -> None:
    gold = (
        "SELECT ?title WHERE { uniprotkb:P78314 up:citation ?paper . "
        '?paper up:title ?title ; up:name "Blood" }'
    )
    text, _, exact = searched(client, gold, ["uniprotkb:P78314"], "Which papers are in Blood?")
    assert exact
    assert 'up:name "Blood"' in text


def test_a_number_is_found_as_a_count_of_what_the_question_names(client: SPARQLClient) -> None:
    inside = "uniprotkb:Q9BYF1 up:annotation ?each . ?each a up:Natural_Variant_Annotation"
    (number,) = column(client, f"{{ SELECT (COUNT(?each) AS ?v) WHERE {{ {inside} }} }}")

    def counted(question: str) -> str | None:
        search = PatternSearch(client, {"n": [number]}, [["uniprotkb:Q9BYF1"]], question)
        found = search.counted()
        return found and found.text(client.config.namespaces)

    assert counted("How many natural variants are there?") == inside
    assert counted("How many things are there?") is None


def test_two_things_are_connected(client: SPARQLClient) -> None:
    def connected(*starts: str) -> str | None:
        found = PatternSearch(client, {}, [[one] for one in starts]).connected()
        return found and found.text(client.config.namespaces)

    assert connected("uniprotkb:P05067", "taxon:9606") == "uniprotkb:P05067 up:organism taxon:9606"
    assert connected("uniprotkb:P05067") is None
