"""What makes a query hard, and which queries share a template."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from reasoningbank.cache import DiskCache
from reasoningbank.corpus import query_features

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
    short = query_features(P + "SELECT ?s WHERE { ?s up:a ?o }")
    long = query_features(
        P * 30 + "# a comment\n" * 30 + "SELECT ?subject WHERE { ?subject up:a ?object }"
    )
    assert (short.score, short.template) == (long.score, long.template)


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


def test_a_template_abstracts_constants_and_names() -> None:
    def template(query: str) -> str:
        return query_features(P + query).template

    one = template("SELECT ?s WHERE { ?s a up:T ; up:a <http://x/1> FILTER(?s > 5) } LIMIT 3")
    assert one == template("SELECT ?q { ?q a up:T ; up:a <http://x/2> FILTER(?q > 7) } LIMIT 9")
    assert one != template("SELECT ?s { ?s a up:T ; up:b <http://x/1> FILTER(?s > 5) } LIMIT 3")
    assert one != template("SELECT ?s { ?s a up:U ; up:a <http://x/1> FILTER(?s > 5) } LIMIT 3")
    values = "SELECT ?s {{ VALUES ?o {{ {} }} ?s up:a ?o }}"
    assert template(values.format("1 2")) == template(values.format("1 2 3"))


def test_what_rdflib_rejects_is_described_from_its_words() -> None:
    found = query_features(
        "SELECT ?s WHERE { ?s up:a ?o . OPTIONAL { ?o up:b 'UNION' } MINUS { { SELECT ?s WHERE {} }"
    )
    assert not found.parsed
    assert found.features == ("optional", "subquery", "minus")
    assert found.template.startswith("text-")


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
        query_features(P + SERVICE.format(x=x, y=y, n=n, z=z))
        for x, y, n, z in (("x", "y", 1, ""), ("item", "of", 2, "   "))
    )
    assert one.template == other.template
    more = query_features(P + SERVICE.format(x="x", y="y", n=1, z=". ?y up:c 1"))
    assert more.template != one.template


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
