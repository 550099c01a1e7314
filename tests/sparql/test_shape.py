"""Query shape: canonical words, hashes, pattern keys and stable group ids."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from work import calls

from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.corpus.features import query_template
from reasoningbank.errors import QueryError
from reasoningbank.lm.reply import queries_in
from reasoningbank.schema import read_statements
from reasoningbank.sparql.shape import (
    Bag,
    Name,
    Node,
    Row,
    _hashes,
    canonical_words,
    names_in,
    pattern_key,
    pattern_names,
    query_hashes,
    shape_hash,
)
from reasoningbank.sparql.tree import read_query

Links = frozenset[tuple[str, str]]


@pytest.fixture(autouse=True)
def computed_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What another version of the code left in the user's cache proves nothing."""
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path_factory.getbasetemp() / "hashes"))


def tree(links: Iterable[tuple[str, str]]) -> Node:
    return Bag(tuple(Row((Name(a), "to", Name(b))) for a, b in links))


def renamed(links: Links, names: str, others: Iterable[str]) -> Links:
    called = dict(zip(names, others, strict=True))
    return frozenset((called[a], called[b]) for a, b in links)


def test_all_graphs_of_three_names_are_distinguished_by_their_words_alone() -> None:
    names = "abc"
    every = [(a, b) for a in names for b in names]
    graphs = [frozenset(some) for n in range(len(every) + 1) for some in combinations(every, n)]
    by_words: dict[tuple[str, ...], set[Links]] = {}
    for links in graphs:
        by_words.setdefault(canonical_words(tree(links)), set()).add(links)
    for alike in by_words.values():
        one = min(alike, key=sorted)
        assert alike <= {renamed(one, names, others) for others in permutations(names)}
    assert len(by_words) == 104, "as many as there are, loops included"


@pytest.mark.parametrize("seed", range(40))
def test_any_names_in_any_order_give_the_same_words(seed: int) -> None:
    chance = random.Random(seed)
    names = "abcdefghij"[: chance.randrange(3, 11)]
    links = [(chance.choice(names), chance.choice(names)) for _ in range(chance.randrange(3, 14))]
    reported = canonical_words(tree(links))
    for _ in range(8):
        others = dict(zip(names, chance.sample("klmnopqrstuvwxyz", len(names)), strict=True))
        shuffled = chance.sample(links, len(links))
        assert canonical_words(tree((others[a], others[b]) for a, b in shuffled)) == reported


def ring(names: str) -> list[tuple[str, str]]:
    return list(zip(names, names[1:] + names[0], strict=True))


def test_what_places_alone_do_not_distinguish_is_distinguished() -> None:
    six, threes = ring("abcdef"), ring("abc") + ring("def")
    assert canonical_words(tree(six)) != canonical_words(tree(threes))
    both = [*ring("abc"), *ring("def"), *ring("ghijkl")]
    turned = [*ring("lkjihg"), *ring("fab"), *ring("cde")]
    assert canonical_words(tree(both)) == canonical_words(tree(turned))


def test_kinds_of_names_and_the_order_of_rows_count() -> None:
    assert canonical_words(Row((Name("a"), Name("b", "<<")))) == ("?0", "<<1")
    assert canonical_words(Row(("x", Name("a")))) != canonical_words(Row((Name("a"), "x")))
    assert canonical_words(Bag(("x", "y", Name("a")))) == canonical_words(
        Bag((Name("b"), "y", "x"))
    )


@pytest.mark.parametrize(
    "links",
    [
        [("p", f"x{n}") for n in range(400)],
        [(f"x{n}", f"y{n}") for n in range(250)],
        [(f"x{n}", f"x{n + 1}") for n in range(400)],
        [(f"x{n}", f"x{(n + 1) % 200}") for n in range(200)],
    ],
    ids=["alike", "pairs", "chain", "ring"],
)
def test_names_that_look_alike_take_bounded_work(links: list[tuple[str, str]]) -> None:
    found: list[tuple[str, ...]] = []
    assert calls(lambda: found.append(canonical_words(tree(links)))) < 6_000_000
    words = found[0]
    assert len(set(words)) == 1 + len({name for link in links for name in link})


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


def test_hashes_are_computed_once_for_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT ?s { ?s <e:once> ?o . ?o u:computed 1 }"
    prefixes = (("u", "http://u/"),)
    found = shape_hash(query, prefixes), query_hashes(query, prefixes)
    _hashes.cache_clear()
    monkeypatch.setattr("reasoningbank.sparql.shape.prepare", None)
    more = ("unused", "http://else/")
    assert found == (shape_hash(query, (more, *prefixes)), query_hashes(query, (more, *prefixes)))
    with pytest.raises(TypeError):
        shape_hash(query, (("u", "http://v/"),))


def test_what_could_not_be_parsed_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # rdflib recurses, so that what it can parse depends on how deep its caller is.
    query = "SELECT ?s { ?s <e:again> ?o . ?o <e:deep> 1 }"
    with monkeypatch.context() as patch:
        patch.setattr("reasoningbank.sparql.query.parse_once", None)
        assert (shape_hash(query), query_hashes(query)) == ("", frozenset())
    _hashes.cache_clear()
    assert shape_hash(query)
    assert query_hashes(query)


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


def test_the_work_grows_with_the_length_of_the_prose() -> None:
    few, many = ("Select what you need and ask again. " * n for n in (150, 600))
    assert queries_in(many + GOLD) == (GOLD[GOLD.index("PREFIX") :].strip(),)
    assert calls(lambda: queries_in(many)) < 6 * calls(lambda: queries_in(few))


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
def test_what_variables_are_called_and_the_order_of_triples_is_not_part_of_a_hash(
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


ONE = "SELECT ?p ?n { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?o a up:Taxon }"


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?p ?n { ?o a up:Taxon . ?p up:name ?n ; up:organism ?o ; up:mass <<m>> }",
        "SELECT ?x ?y WHERE { ?t a up:Taxon . ?x up:organism ?t ; up:mass <<w>> ; up:name ?y . }",
        "PREFIX u: <http://e/> select $a $b { $a up:organism $c; up:mass <<w>>; up:name $b. "
        "$c rdf:type up:Taxon } # done",
    ],
)
def test_the_same(other: str) -> None:
    assert pattern_key(other) == pattern_key(ONE)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?n ?p { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n { ?p up:mass ?n ; up:name <<m>> . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n { ?p up:mass <<m>> . ?o up:name ?n . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?p a up:Taxon }",
        "SELECT ?p { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT DISTINCT ?p ?n { ?p up:mass <<m>> ; up:name ?n ; up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n {?p up:mass <<m>> ; up:organism ?o . ?o a up:Taxon OPTIONAL {?p up:name ?n}}",
        "SELECT ?p ?n { ?p up:mass <<m>> ; up:name ?n ; up:organism ?o . ?o a up:Taxon } LIMIT 5",
    ],
)
def test_not_the_same(other: str) -> None:
    assert pattern_key(other) != pattern_key(ONE)


def test_what_follows_and_what_filters_counts() -> None:
    reported = {
        pattern_key(f"SELECT ?a ?b {{ ?p up:x ?a ; up:y ?b {more}")
        for more in (
            "}",
            "FILTER(?a < ?b) }",
            "FILTER(?b < ?a) }",
            "} ORDER BY ?a",
            "} ORDER BY ?b",
            "} ORDER BY DESC(?a)",
            "FILTER NOT EXISTS { ?p up:z ?a } }",
            "FILTER NOT EXISTS { ?p up:z ?b } }",
            "MINUS { ?p up:z ?a } }",
            "BIND(?a + 1 AS ?c) }",
            "{ ?p up:z 1 } UNION { ?p up:z 2 } }",
            "SERVICE <http://e/> { ?p up:z 1 } }",
            "GRAPH <http://e/> { ?p up:z 1 } }",
            "VALUES ?a { <<a>> } }",
        )
    }
    assert len(reported) == 14


def test_two_groups_do_not_flow_together() -> None:
    apart = "SELECT ?p { ?p up:a ?x OPTIONAL { ?p up:b ?y } OPTIONAL { ?p up:c ?z } }"
    together = "SELECT ?p { ?p up:a ?x OPTIONAL { ?p up:b ?y . ?p up:c ?z } }"
    assert pattern_key(apart) != pattern_key(together)


def test_what_is_not_a_query_has_its_words_for_a_key() -> None:
    assert pattern_key("") == ""
    assert pattern_key("print(<<a>>)") == pattern_key("print(<<b>>)")
    assert pattern_key("SELECT ?x { ?x up:p <<a>>") == pattern_key("select ?y {?y up:p <<b>>")


def test_no_two_golds_of_the_training_split_are_one() -> None:
    train = split_tasks(load_shacl_tasks("uniprot")).train
    queries = {task.expected_sparql for task in train}
    assert len({pattern_key(query) for query in queries}) == len(queries) > 60


_TWO = "SELECT ?p { ?p up:mass ?a . ?p up:mass ?b . "
_BOUND = "SELECT ?p { ?p up:begin ?y . BIND(?y * 2 AS ?z) BIND(?y * 3 AS ?w) "
_INNER = "SELECT ?g { { SELECT ?g (COUNT(?a) AS ?n) (SUM(?a) AS ?s) { ?g up:x ?a } GROUP BY ?g } } "
_CHAIN = " . ".join(f"?{a} up:p ?{b}" for a, b in zip("abcdefghi", "bcdefghij", strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_TWO + "FILTER(?a < 5 && ?b > 7) }", _TWO + "FILTER(?a < 5 && ?a > 7) }"),
        (_BOUND + "FILTER(?z > ?w) }", _BOUND + "FILTER(?w > ?z) }"),
        (_INNER + "ORDER BY DESC(?n)", _INNER + "ORDER BY DESC(?s)"),
        (
            "SELECT ?p { ?p up:mass ?m FILTER(?m > <<least>> && ?m < <<most>>) }",
            "SELECT ?p { ?p up:mass ?m FILTER(?m > <<least>> && ?m < <<least>>) }",
        ),
        (
            f"SELECT ?a {{ {_CHAIN} FILTER(?e = <<x>>) }}",
            f"SELECT ?a {{ {_CHAIN} FILTER(?f = <<x>>) }}",
        ),
        (
            "SELECT ?p { ?p up:a ?x . OPTIONAL { ?x up:b ?y } ?y up:c ?z }",
            "SELECT ?p { ?p up:a ?x . ?y up:c ?z . OPTIONAL { ?x up:b ?y } }",
        ),
        (
            "SELECT ?p { ?p up:a ?x . MINUS { ?x up:b ?y } ?p up:c ?y }",
            "SELECT ?p { ?p up:a ?x . ?p up:c ?y . MINUS { ?x up:b ?y } }",
        ),
        (
            "SELECT ?p { ?p up:a <<x>> ; up:b <<y>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<x>>')) }",
            "SELECT ?p { ?p up:a <<x>> ; up:b <<y>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<y>>')) }",
        ),
    ],
    ids=["filter", "bind", "subselect", "slots", "far", "optional", "minus", "within"],
)
def test_variables_that_look_alike_are_still_two(one: str, other: str) -> None:
    assert pattern_key(one) != pattern_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            _TWO + "FILTER(?a < 5 && ?b > 7) }",
            "SELECT ?q { ?q up:mass ?x . ?q up:mass ?y . FILTER(?y < 5 && ?x > 7) }",
        ),
        (
            "SELECT ?p { ?p up:a ?x ; up:b ?n . OPTIONAL { ?x up:c ?y } }",
            "SELECT ?p { ?p up:b ?m ; up:a ?y . OPTIONAL { ?y up:c ?x } }",
        ),
        (
            "SELECT ?p { ?p up:a <<x>> ; up:b <<y>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<x>>')) }",
            "SELECT ?p { ?p up:b <<y>> ; up:a <<z>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<z>>')) }",
        ),
    ],
    ids=["filter", "optional", "within"],
)
def test_which_of_two_comes_first_is_wording(one: str, other: str) -> None:
    assert pattern_key(one) == pattern_key(other)


@pytest.mark.parametrize("seed", range(30))
def test_any_names_and_any_order_of_triples_give_one_key(seed: int) -> None:
    chance = random.Random(seed)
    names = "abcdefg"[: chance.randrange(3, 8)]
    triples = [
        (chance.choice(names), f"up:p{chance.randrange(2)}", chance.choice(names))
        for _ in range(chance.randrange(3, 9))
    ]
    first, second = names[0], names[1]

    def written() -> str:
        called = dict(zip(names, chance.sample("klmnopqrstu", len(names)), strict=True))
        body = " . ".join(
            f"?{called[s]} {p} ?{called[o]}" for s, p, o in chance.sample(triples, len(triples))
        )
        reported = f"?{called[first]} < ?{called[second]}"
        return (
            f"SELECT ?{called[names[2]]} {{ {body} FILTER({reported}) }} ORDER BY ?{called[first]}"
        )

    assert len({pattern_key(written()) for _ in range(10)}) == 1


UP = {"up": "http://purl.uniprot.org/core/"}
SLOTS = "SELECT ?p WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<limit>>"


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?x WHERE { ?x a up:Protein ; up:mass <<weight>> . } LIMIT <<n>>",
        "select $x\n{\n  $x a up:Protein ;\n  up:mass << heavy one >>\n}\nlimit <<n>> # five",
        "PREFIX c: <http://purl.uniprot.org/core/>\n"
        "SELECT ?p { ?p rdf:type c:Protein ; <http://purl.uniprot.org/core/mass> <<m>> }"
        " LIMIT <<l>>",
    ],
)
def test_wording_does_not_count(other: str) -> None:
    assert pattern_key(SLOTS, UP) == pattern_key(other, UP)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?p WHERE { ?p a up:Protein ; up:mass ?mass . } LIMIT <<limit>>",
        "SELECT ?p WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<mass>>",
        "SELECT ?p ?m WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<limit>>",
        "SELECT ?p WHERE { ?p a up:Gene ; up:mass <<mass>> . } LIMIT <<limit>>",
        "SELECT ?p WHERE { ?p a up:Protein ; up:mass 7 . } LIMIT <<limit>>",
        "",
    ],
)
def test_everything_else_does(other: str) -> None:
    assert pattern_key(SLOTS, UP) != pattern_key(other, UP)


def test_two_variables_are_not_one() -> None:
    swapped = pattern_key("SELECT ?a { ?a up:p ?b . ?b up:q ?a }")
    assert swapped != pattern_key("SELECT ?a { ?a up:p ?b . ?a up:q ?b }")
    assert swapped == pattern_key("SELECT ?b { ?b up:p ?a . ?a up:q ?b }")


def test_slots_within_strings_and_names_are_slots() -> None:
    first = 'ASK { ?x up:name "a <<name>>" ; up:is <http://e/<<id>>> }'
    second = 'ASK { ?y up:name "a <<label>>" ; up:is <http://e/<<number>>> }'
    assert pattern_key(first) == pattern_key(second)
    assert pattern_key(first) != pattern_key(first.replace("<<id>>", "<<name>>"))


def test_code_is_compared_word_by_word() -> None:
    first = 'rows = sparql_query("""SELECT ?x { ?x up:mass <<mass>> }""")\nSUBMIT(<<mass>>)'
    second = 'rows = sparql_query("""SELECT ?x { ?x up:mass <<m>> }""")\n\n  SUBMIT(<<m>>)'
    assert pattern_key(first) == pattern_key(second)
    assert pattern_key(first) != pattern_key(first.replace("rows", "found"))


def test_names_of_a_pattern_and_of_a_text() -> None:
    assert pattern_names(SLOTS, UP) == {UP["up"] + "Protein", UP["up"] + "mass"}
    text = "Never use up:weight, nor <http://e/w> (note: slow)."
    assert names_in(text, UP) == {UP["up"] + "weight", "http://e/w"}
    assert names_in(text) == {"up:weight", "http://e/w"}


@pytest.mark.parametrize(
    ("pack", "n", "digest"),
    [
        ("algebra", 69, "2eeae497a0c54e84"),
        ("liita", 214, "838f3ec4fa9357e4"),
        ("uniprot", 161, "c62e4a7bd0ea894f"),
    ],
)
def test_groups_and_templates_of_a_pack_do_not_change(pack: str, n: int, digest: str) -> None:
    tasks = sorted(load_shacl_tasks(pack), key=lambda task: task.id)
    found = [[t.id, t.group, query_template(t.expected_sparql)] for t in tasks]
    assert len(found) == n
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == digest


def test_a_text_that_ends_in_a_datatype_is_unreadable() -> None:
    with pytest.raises(QueryError, match="ends in the middle"):
        read_query('SELECT * { ?s ?p "a"^^')


@pytest.mark.parametrize("after", ["", "VALUES ?y { 1 }", "HAVING (EXISTS { ?y ?q ?z })"])
def test_a_subquery_with_groups_returns_several_rows(after: str) -> None:
    inner = f"SELECT ?y (COUNT(?x) AS ?n) {{ ?x <a:p> ?y }} GROUP BY ?y {after}"
    found = read_statements(f"SELECT * {{ {{ {inner} }} }}").statements
    assert {one.alone for one in found} == {0}
    counted = read_statements("SELECT * { { SELECT (COUNT(?x) AS ?n) { ?x <a:p> ?y } } }")
    assert all(one.alone for one in counted.statements)
