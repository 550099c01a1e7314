"""A query is known again in other words, in prose and in code; another query is not."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.sparql.extraction import queries_in
from reasoningbank.sparql.shape import query_hashes, shape_hash

PREFIXES = (("up", "http://purl.uniprot.org/core/"), ("taxon", "http://t/"))
GOLD = """
PREFIX up: <http://purl.uniprot.org/core/>
SELECT ?protein ?mass WHERE {
  ?protein up:organism <http://t/9606> ;
           up:sequence/up:mass ?mass .
  FILTER(?mass > 5)
}
ORDER BY DESC(?mass)
LIMIT 10
"""


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?p ?m { ?p up:organism taxon:9606 ; up:sequence/up:mass ?m FILTER(?m > 5) }"
        " ORDER BY DESC(?m)",
        "select distinct ?x ?y where{?x up:sequence ?s.?s up:mass ?y.?x up:organism taxon:9606 "
        "filter(?y>5)}order by desc(?y) limit 3",
        "PREFIX u: <http://purl.uniprot.org/core/> SELECT ?x ?y # all\n WHERE { ?x u:sequence "
        "[ u:mass ?y ] ; u:organism <http://t/9606> . FILTER(?y > 5) } ORDER BY DESC(?y)",
    ],
)
def test_other_names_prefixes_layout_and_order_are_the_same_query(other: str) -> None:
    assert query_hashes(other, PREFIXES) == query_hashes(GOLD)
    assert len(query_hashes(GOLD)) == 2


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("SELECT ?mass", ""),
        ("SELECT (COUNT(*) AS ?n)", ""),
        ("SELECT ?protein (AVG(?mass) AS ?mean)", "GROUP BY ?protein HAVING (AVG(?mass) > 7)"),
        ("SELECT ?protein (2 * ?mass AS ?double)", ""),
        ("ASK", ""),
        ("CONSTRUCT { ?protein up:weighs ?mass }", ""),
    ],
)
def test_another_head_over_the_same_patterns_shares_the_where_clause(head: str, tail: str) -> None:
    where = GOLD[GOLD.index("WHERE") : GOLD.index("ORDER")]
    other = query_hashes(f"{head} {where} {tail}", PREFIXES)
    assert len(other) == 2
    assert len(other & query_hashes(GOLD)) == 1


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("9606", "10090"),
        ("> 5", "> 6"),
        ("up:mass", "up:version"),
        ("?mass > 5", "?protein > 5"),
        ("up:sequence/up:mass", "up:sequence|up:mass"),
    ],
)
def test_another_constant_property_or_join_is_another_query(what: str, instead: str) -> None:
    other = GOLD.replace(what, instead)
    assert other != GOLD
    assert query_hashes(other)
    assert query_hashes(other).isdisjoint(query_hashes(GOLD))


def test_one_pattern_alone_is_known_as_a_whole_query_only() -> None:
    whole = query_hashes("SELECT ?n { ?x up:name ?n }", PREFIXES)
    assert len(whole) == 1
    assert whole.isdisjoint(query_hashes("SELECT ?x { ?x up:name ?n }", PREFIXES))


@pytest.mark.parametrize("form", ["ASK", "CONSTRUCT { ?x up:a ?y }", "DESCRIBE ?x", "SELECT *"])
def test_every_form_has_its_hashes(form: str) -> None:
    query = f"{form} WHERE {{ ?x up:a ?y . ?y up:b 3 }}"
    renamed = query.replace("?x", "?first").replace("?y", "?second")
    assert len(query_hashes(query, PREFIXES)) == 2
    assert query_hashes(renamed, PREFIXES) == query_hashes(query, PREFIXES)
    other = query_hashes("SELECT ?y { ?x up:a ?y . ?y up:b 3 }", PREFIXES)
    assert len(query_hashes(query, PREFIXES) & other) == 1


def test_a_template_has_slots_for_its_constants() -> None:
    skeleton = GOLD.replace("<http://t/9606>", "<<taxon>>")
    assert shape_hash(skeleton) == shape_hash(GOLD) != ""
    assert shape_hash(GOLD.replace("up:mass", "up:version")) != shape_hash(GOLD)
    assert shape_hash("no query") == ""


@pytest.mark.parametrize(
    ("what", "instead", "same"),
    [
        ("> 5", "> 6", True),
        ("LIMIT 10", "LIMIT 20", True),
        ("up:sequence/up:mass ?mass .", "up:sequence ?s . ?s up:mass ?mass . ", True),
        ("FILTER", "VALUES ?mass { 1 2 } FILTER", False),
        ("LIMIT 10", "", False),
        ("?protein up:organism", "?protein a up:Protein ; up:organism", False),
        ("?mass > 5", "?protein > 5", False),
    ],
)
def test_a_shape_is_without_constants_and_with_all_else(
    what: str, instead: str, same: bool
) -> None:
    assert (shape_hash(GOLD.replace(what, instead)) == shape_hash(GOLD)) is same


def test_a_shape_keeps_classes_and_no_number_of_rows() -> None:
    query = "SELECT ?p { VALUES ?n { 'a' 'b' } ?p a up:Protein ; up:name ?n }"
    other = query.replace("'b'", "'c' 'd'")
    assert shape_hash(query, PREFIXES) == shape_hash(other, PREFIXES)
    assert shape_hash(query, PREFIXES) != shape_hash(
        query.replace("up:Protein", "up:Gene"), PREFIXES
    )


@pytest.mark.parametrize(
    "text",
    [
        GOLD,
        f"First select a class. Ask yourself what it needs. Then run {GOLD} and describe the rows.",
        f'query = """{GOLD}"""\nref = sparql_query(query)',
        "sparql_query('" + GOLD.replace("\n", "\\n") + "')",
        f"```sparql{GOLD}```",
    ],
)
def test_a_query_is_found_wherever_it_stands(text: str) -> None:
    found = [query_hashes(query, PREFIXES) for query in queries_in(text)]
    assert query_hashes(GOLD) in found


def test_what_is_cut_short_is_closed() -> None:
    cut = GOLD[: GOLD.index("FILTER")]
    (found,) = queries_in(cut)
    assert query_hashes(found, PREFIXES) == query_hashes(cut + "}", PREFIXES) != frozenset()


def test_a_describe_needs_no_group() -> None:
    (found,) = queries_in("Then: DESCRIBE taxon:9606")
    assert query_hashes(found, PREFIXES) == query_hashes("DESCRIBE <http://t/9606>")


@pytest.mark.parametrize("text", ["", "Select the best one; ask twice.", "SELECT", "{ ?a ?b ?c }"])
def test_prose_holds_no_query(text: str) -> None:
    assert not [query for query in queries_in(text) if query_hashes(query)]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="SELECTASKDRIB {}().;?<>\"'\\\nax:#|/^*@-", max_size=120))
def test_no_text_breaks_it(text: str) -> None:
    for query in queries_in(f"SELECT {text}"):
        query_hashes(query)
        shape_hash(query)


def test_long_prose_is_read_fast() -> None:
    text = "Select what you need and ask again. " * 2_000
    began = time.process_time()
    assert queries_in(text + GOLD) == (GOLD[GOLD.index("PREFIX") :].strip(),)
    assert time.process_time() - began < 10


def test_a_gold_with_a_service_is_known_by_other_names_and_layout() -> None:
    text = "SELECT ?{x} {{ ?{x} <p:a> ?{y} . SERVICE <http://r/> {{ ?{y} <p:b> ?{z}{blank} }} }}"
    gold = text.format(x="x", y="y", z="z", blank="")
    assert query_hashes(gold) == query_hashes(text.format(x="a", y="b", z="c", blank="   "))
    assert query_hashes(gold) != query_hashes(gold.replace("<p:b>", "<p:c>"))


_PARTS = [("p", "up:part", "c"), ("p", "up:part", "e"), ("c", "up:y", "2"), ("e", "up:x", "1")]
_TAXA = [
    ("p", "up:organism", "s"),
    ("q", "up:organism", "t"),
    ("s", "up:name", "'A'"),
    ("t", "up:name", "'B'"),
    ("p", "up:like", "q"),
]
_RING = [("a", "up:near", "b"), ("b", "up:near", "c"), ("c", "up:near", "a"), ("d", "up:near", "p")]


@pytest.mark.parametrize("triples", [_PARTS, _TAXA, _RING])
def test_what_variables_are_called_and_the_order_of_triples_is_no_part_of_a_hash(
    triples: list[tuple[str, str, str]],
) -> None:
    chance = random.Random(7)
    names = sorted({term for triple in triples for term in triple if len(term) == 1} - {*"12"})

    def written() -> str:
        called = dict(zip(names, chance.sample("abcdefghijklm", len(names)), strict=True))
        shown = {name: f"?{called[name]}" for name in names}
        body = " . ".join(
            " ".join(shown.get(term, term) for term in triple)
            for triple in chance.sample(triples, len(triples))
        )
        tail = f"FILTER(?{called['p']} != 3) }} GROUP BY ?{called['p']}"
        return f"SELECT ?{called['p']} (COUNT(*) AS ?n) {{ {body} {tail}"

    queries = [written() for _ in range(40)]
    hashes = {query_hashes(query, PREFIXES) for query in queries}
    assert len(hashes) == 1
    assert len(hashes.pop()) == 2
    assert len({shape_hash(query, PREFIXES) for query in queries}) == 1


def test_one_of_two_that_look_alike_is_not_the_other() -> None:
    query = "SELECT ?p { ?p up:part ?a , ?b . FILTER(?a < 5 && ?b > 7) }"
    turned = query.replace("?a <", "?b <").replace("&& ?b", "&& ?a")
    assert query_hashes(query, PREFIXES) == query_hashes(turned, PREFIXES)
    other = query_hashes(query.replace("&& ?b", "&& ?a"), PREFIXES)
    assert other.isdisjoint(query_hashes(query, PREFIXES))
