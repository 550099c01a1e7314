"""What queries are made of."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from rdflib.term import URIRef

from reasoningbank.cache import DiskCache
from reasoningbank.corpus import load_shacl_tasks, query_features
from reasoningbank.corpus.features import query_template
from reasoningbank.corpus.questions import constants_of, unmentioned
from reasoningbank.errors import QueryError
from reasoningbank.sparql.tree import read_query

P = "PREFIX up: <http://u/> "


@pytest.mark.parametrize(
    ("query", "patterns", "features"),
    [
        ("SELECT ?s WHERE { ?s up:a ?o }", 1, ()),
        ("SELECT DISTINCT ?s WHERE { ?s up:a/up:b ?o } LIMIT 3", 2, ("path", "limit", "distinct")),
        ("SELECT ?s WHERE { ?s ^up:a ?o }", 1, ()),
        ("SELECT ?s WHERE { ?s up:a* ?o }", 1, ("path", "recursion")),
        ("SELECT ?s WHERE { ?s up:a|up:b ?o }", 1, ("path", "recursion")),
        ("SELECT ?s WHERE { ?s up:a ?o OPTIONAL { ?o up:b ?x } }", 2, ("optional",)),
        ("SELECT ?s WHERE { { ?s up:a 1 } UNION { ?s up:b 2 } }", 2, ("union",)),
        ("SELECT (COUNT(?s) AS ?n) WHERE { ?s up:a 1 }", 1, ("aggregate",)),
        ("SELECT ?s WHERE { { SELECT ?s WHERE { ?s up:a 1 } } }", 1, ("subquery",)),
        ("SELECT ?s WHERE { GRAPH ?g { ?s up:a 1 } }", 1, ("graph",)),
        ("SELECT ?s WHERE { SERVICE <http://e/> { ?s up:a 1 } }", 1, ("service",)),
        ("SELECT ?s WHERE { ?s up:a ?o FILTER(?o > 1) }", 1, ("filter",)),
        (
            "SELECT ?s WHERE { ?s up:a ?o FILTER NOT EXISTS { ?s up:b 1 } }",
            2,
            ("filter", "not-exists"),
        ),
        ("SELECT ?s WHERE { ?s up:a ?o MINUS { ?s up:b 1 } }", 2, ("minus",)),
        ("SELECT ?s WHERE { VALUES ?o { 1 2 } ?s up:a ?o }", 1, ("values",)),
        ("SELECT ?s WHERE { ?s up:a ?o BIND(?o + 1 AS ?x) }", 1, ("bind",)),
        ("SELECT ?s WHERE { ?s up:a ?o } ORDER BY ?o", 1, ("order",)),
        ("CONSTRUCT { ?s up:x ?o . ?s up:y ?o } WHERE { ?s up:a ?o }", 1, ()),
        ("DESCRIBE <http://u/x>", 0, ()),
        ("ASK { ?s up:a 1 }", 1, ()),
    ],
)
def test_features(query: str, patterns: int, features: tuple[str, ...]) -> None:
    found = query_features(P + query)
    assert found.parsed
    assert (found.patterns, found.features) == (patterns, features)


def test_length_and_prefixes_do_not_make_a_query_hard() -> None:
    short = P + "SELECT ?s WHERE { ?s up:a ?o }"
    long = P * 30 + "# a comment\n" * 30 + "SELECT ?subject WHERE { ?subject up:a ?object }"
    assert query_features(short).score == query_features(long).score
    assert query_template(short) == query_template(long)


def test_complexity_rises_with_what_is_asked() -> None:
    base = "SELECT ?s (COUNT(?o) AS ?n) WHERE { ?s up:a ?o . ?o up:b ?x . %s } GROUP BY ?s"
    more = "OPTIONAL { ?s up:c ?y } { SELECT ?s WHERE { ?s up:d 1 } }"
    for bare in ("?flag", "true"):
        # A filter may be a variable or a constant, and has no name then.
        optional = f"SELECT ?s {{ ?s up:a ?o OPTIONAL {{ ?s up:b ?flag FILTER({bare}) }} }}"
        assert query_features(P + optional).features == ("optional", "filter")
    assert query_features(P + "ASK { ?s up:a 1 }").complexity == "simple"
    assert query_features(P + base % "?x up:c 1").complexity == "moderate"
    assert query_features(P + base % more).complexity == "complex"


@pytest.mark.parametrize(
    ("pack", "digest"),
    [
        ("algebra", "8b88480c0e3754ce"),
        ("liita", "94097022ad6d9e54"),
        ("uniprot", "d828aee477d8128b"),
    ],
)
def test_features_of_golds_do_not_change_and_need_no_rdflib(
    pack: str, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasoningbank.corpus.features.parse_algebra", None)
    query_features.cache_clear()
    tasks = sorted(load_shacl_tasks(pack), key=lambda task: task.id)
    found = [(query_features(task.expected_sparql), task) for task in tasks]
    rows = [(t.id, f.patterns, f.features, f.score, f.parsed, t.complexity) for f, t in found]
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    ("query", "patterns", "features", "score"),
    [
        # What is in a SERVICE counts, without the modifiers of its subqueries.
        (
            "ASK { SERVICE <http://e/> { { SELECT (COUNT(?s) AS ?n) { ?s up:a 1 FILTER(?s > 1) "
            "FILTER(?s < 9) } GROUP BY ?s LIMIT 2 } } }",
            1, ("subquery", "service", "filter"), 9.0,
        ),
        ("SELECT (STR(?s) AS ?n) ((SUM(?o) + 1) AS ?m) (MAX(?o) AS ?x) { ?s up:a ?o } GROUP BY ?s "
         "(STR(?o) AS ?g) HAVING (COUNT(?o) > 1)", 1, ("aggregate", "filter", "bind"), 7.0),
        ("ASK { ?s !(up:a|^up:b)/^(up:c/up:d)+ ?o }", 3, ("path", "recursion"), 6.0),
        # The filters of a group are one condition; an EXISTS is part of it.
        ("ASK { ?s up:a ?o FILTER(?o > 1) FILTER EXISTS { ?s up:b ?x FILTER(?x > 1) } }", 2,
         ("filter",), 3.0),
        ("SELECT * { ?s up:a ?o } VALUES ?o { 1 }", 1, ("values",), 1.5),
        ("DESCRIBE ?s { ?s up:a 1 }", 1, ("distinct",), 1.0),
    ],
)  # fmt: skip
def test_what_counts_once(
    query: str, patterns: int, features: tuple[str, ...], score: float
) -> None:
    found = query_features(P + query)
    assert (found.patterns, found.features, found.score) == (patterns, features, score)


def test_a_template_abstracts_constants_and_names() -> None:
    def template(query: str) -> str:
        return query_template(P + query)

    one = template("SELECT ?s WHERE { ?s a up:T ; up:a <http://x/1> FILTER(?s > 5) } LIMIT 3")
    assert one == template("SELECT ?q { ?q a up:T ; up:a <http://x/2> FILTER(?q > 7) } LIMIT 9")
    assert one != template("SELECT ?s { ?s a up:T ; up:b <http://x/1> FILTER(?s > 5) } LIMIT 3")
    assert one != template("SELECT ?s { ?s a up:U ; up:a <http://x/1> FILTER(?s > 5) } LIMIT 3")
    values = "SELECT ?s {{ VALUES ?o {{ {} }} ?s up:a ?o }}"
    assert template(values.format("1 2")) == template(values.format("1 2 3"))


def test_what_rdflib_rejects_is_described_from_its_words() -> None:
    broken = (
        "SELECT ?s WHERE { ?s up:a ?o . OPTIONAL { ?o up:b 'UNION' } MINUS { { SELECT ?s WHERE {} }"
    )
    found = query_features(broken)
    assert not found.parsed
    assert found.features == ("optional", "subquery", "minus")
    long = f"ASK {{ ?s ?p {', '.join(map(str, range(4_000)))} }}"
    assert all(query_template(query).startswith("text-") for query in (broken, long))


def test_entries_are_kept_on_disk_and_a_broken_file_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "features.sqlite"
    first = DiskCache(file)
    first.put({"k": b"1"})
    first.close()
    assert first.get(["k"]) == {}
    assert DiskCache(file).get(["k", "other"]) == {"k": b"1"}
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"this is no database" * 100)
    cache = DiskCache(broken)
    cache.put({"k": b"1"})
    assert cache.get(["k"]) == {"k": b"1"}
    assert broken.with_name("broken.sqlite.damaged").read_bytes() == b"this is no database" * 100
    assert DiskCache(tmp_path).get(["k"]) == {}


@pytest.mark.parametrize("value", [b"", b"1", b"12345678", b"123456789"])
def test_an_entry_that_was_changed_on_disk_is_missing(tmp_path: Path, value: bytes) -> None:
    file = tmp_path / "features.sqlite"
    cache = DiskCache(file)
    cache.put({"k": b"1"})
    with contextlib.closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE entries SET value = ?", (value,))
    assert cache.get(["k"]) == {}
    cache.put({"k": b"1"})
    assert cache.get(["k"]) == {"k": b"1"}


SERVICE = (
    "SELECT ?{x} WHERE {{ ?{x} up:a ?{y} SERVICE <http://r/> {{ ?{y} up:b <http://c/{n}> {z} }} }}"
)


def test_what_stands_in_a_service_is_part_of_the_shape_and_not_of_the_text() -> None:
    one, other = (
        query_template(P + SERVICE.format(x=x, y=y, n=n, z=z))
        for x, y, n, z in (("x", "y", 1, ""), ("item", "of", 2, "   "))
    )
    assert one == other
    more = query_template(P + SERVICE.format(x="x", y="y", n=1, z=". ?y up:c 1"))
    assert more != one


def test_all_columns_are_the_same_in_every_process() -> None:
    code = (
        "from reasoningbank.sparql.shape import group_id\n"
        "from reasoningbank.sparql import prepare\n"
        "q = 'SELECT * { ?aa <p:p> ?bb . ?bb <p:q> ?cc . ?cc <p:r> ?dd }'\n"
        "print(group_id(prepare(q).parsed.algebra))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(said) == 1


HARD = """PREFIX up: <http://u/> # ?no a up:pattern
SELECT ?p (COUNT(DISTINCT ?x) AS ?n) WHERE {
  VALUES (?k) { (1) (2) }
  ?p a up:Protein ; up:a/^up:b+ ?x , "x . y"@en ; up:c [ up:d ?d ; up:e 2.5 , -1 ] .
  { ?p up:f 1 } UNION { ?p up:g 'two'^^up:T . }
  OPTIONAL { ?p up:h ?h FILTER(?h > 3 && EXISTS { ?h up:i ?i }) }
  GRAPH <http://g> { ?p (up:j|!up:k)* ?j }
  SERVICE SILENT <http://e/> { ?p up:l ?l }
  { SELECT ?p WHERE { ?p up:m ?m } GROUP BY ?p HAVING (COUNT(?m) > 1) LIMIT 5 }
  FILTER NOT EXISTS { ?p up:n true }
  BIND(STR(?p) AS ?s)
  MINUS { ?p ?any up:o }
} GROUP BY ?p"""


def test_every_pattern_is_found_in_written_order() -> None:
    assert [str(p) for p in read_query(HARD).triple_patterns()] == [
        "?p a up:Protein",
        "?p up:a/^up:b+ ?x",
        '?p up:a/^up:b+ "x . y"@en',
        "?p up:c _:bracket1",
        "_:bracket1 up:d ?d",
        "_:bracket1 up:e 2.5",
        "_:bracket1 up:e -1",
        "?p up:f 1",
        "?p up:g 'two'^^up:T",
        "?p up:h ?h",
        "?h up:i ?i",
        "?p (up:j|!up:k)* ?j",
        "?p up:l ?l",
        "?p up:m ?m",
        "?p up:n true",
        "?p ?any up:o",
    ]


def test_a_construct_template_is_not_a_pattern() -> None:
    query = "CONSTRUCT { ?s <http://u/x> ?o . ?o <http://u/y> 1 } WHERE { ?s <http://u/a> ?o }"
    assert len(read_query(query).triple_patterns()) == 1


@pytest.mark.parametrize("query", ["ASK { ?s", "ASK { ?s ?p (1 2) }", "ASK { ?s 5 6 }"])
def test_what_is_not_a_query_is_one_error(query: str) -> None:
    with pytest.raises(QueryError):
        read_query(query).triple_patterns()


PREFIXED = (
    "PREFIX up: <http://u/> PREFIX x: <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
)
NAMES = {URIRef("http://x/9606"): ["Homo sapiens", "Human"]}


def names(iri: URIRef) -> list[str]:
    return NAMES.get(iri, [])


@pytest.mark.parametrize(
    ("query", "constants"),
    [
        ("SELECT ?s { ?s a up:Protein ; up:organism x:9606 }", ["http://x/9606"]),
        ("SELECT ?s { ?s up:a/up:b* 'kinase' } LIMIT 5", ["5", "kinase"]),
        (
            "SELECT ?s { ?s up:a ?b FILTER(xsd:integer(?b) > 10 && ?b != x:1) }",
            ["10", "http://x/1"],
        ),
        ("SELECT ?s { VALUES ?v { x:1 'two' } ?s up:a ?v }", ["http://x/1", "two"]),
        ("SELECT ?s { ?s up:a ?b FILTER NOT EXISTS { ?b up:c 3 } }", ["3"]),
        ("SELECT ?s { GRAPH x:graph { ?s up:a x:1 } }", ["http://x/1"]),
        ("SELECT ?s { ?s up:a ?b } GROUP BY ?s HAVING (COUNT(?b) > 4)", ["4"]),
        ("CONSTRUCT { ?s up:made x:here } WHERE { ?s up:a x:1 }", ["http://x/1"]),
        ("DESCRIBE x:1", ["http://x/1"]),
    ],
)
def test_constants(query: str, constants: list[str]) -> None:
    assert sorted(str(c) for c in constants_of(PREFIXED + query)) == constants


def test_a_query_that_does_not_parse_is_one_error() -> None:
    with pytest.raises(QueryError, match="does not parse"):
        constants_of("SELECT {")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Which proteins of taxon 9606 are kinases, at least three?", []),
        ("Which human proteins are kinases in 3 or more?", []),
        ("Which Homo sapiens proteins are (kinase), 3?", []),
        ("Which inhuman proteins are kinases, 3?", ["http://x/9606"]),
        ("Which human proteins are there?", ["3", "Kinase"]),
        ("Which human kinases have 30?", ["3"]),
    ],
)
def test_what_a_question_leaves_out(question: str, missing: list[str]) -> None:
    query = PREFIXED + "SELECT ?s { ?s up:organism x:9606 ; up:name 'Kinase' ; up:n 3 }"
    assert sorted(str(c) for c in unmentioned(question, query, names)) == missing


@pytest.mark.parametrize(
    ("question", "language", "missing"),
    [
        ("Quali aggettivi hanno più di tre sensi?", "it", []),
        ("Quale aggettivo ha più di 3 sensi?", "it", []),
        ("Quale avverbio ha più di tre sensi?", "it", ["aggettivo"]),
        ("Quali aggettivi hanno più di tre sensi?", "en", ["3", "aggettivo"]),
    ],
)
def test_inflection_and_number_words_go_by_the_language(
    question: str, language: str, missing: list[str]
) -> None:
    query = PREFIXED + "SELECT ?s { ?s up:pos 'aggettivo' ; up:n ?n FILTER(?n > 3) }"
    left = unmentioned(question, query, names, language=language)
    assert sorted(map(str, left)) == missing


def test_a_negative_number_is_one_constant() -> None:
    query = "SELECT ?s { ?s <p> ?v FILTER(?v < -0.8) }"
    assert unmentioned("Which are below -0.8?", query, names) == []
    assert [str(c) for c in unmentioned("Which are below 0.8?", query, names)] == ["-0.8"]
