"""The script that checks golds finds what it is there to find."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox
import pytest

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tree import read_query

from .conftest import HEAD
from .test_features import HARD

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_golds.py"
NAMES = runpy.run_path(str(SCRIPT))
MAIN: Callable[[Sequence[str]], int] = NAMES["main"]
without_pattern: Callable[[str, int], str] = NAMES["without_pattern"]
schema_names_in: Callable[[str, Sequence[str]], list[str]] = NAMES["schema_names_in"]

TOML = """
endpoint = "https://example.org/sparql/"
data = ["things.ttl"]
schema = "schema.ttl"
[prefixes]
t = "http://t/"
"""
DATA = """
@prefix t: <http://t/> .
t:1 a t:Thing ; t:partOf t:whole ; t:size 1 .
t:2 a t:Thing ; t:partOf t:whole ; t:size 2 .
t:3 t:partOf t:whole .
"""
SCHEMA = "@prefix t: <http://t/> . t:partOf a t:Property . t:size a t:Property ."


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "examples").mkdir()
    (tmp_path / "pack.toml").write_text(TOML)
    (tmp_path / "things.ttl").write_text(DATA)
    (tmp_path / "schema.ttl").write_text(SCHEMA)
    return tmp_path


def add(pack: Path, name: str, question: str, query: str, group: str = "g") -> None:
    form = query.split()[0].capitalize()
    (pack / "examples" / f"{name}.ttl").write_text(
        HEAD
        + f'''ex:{name} a sh:SPARQLExecutable, sh:SPARQL{form}Executable ;
        rdfs:comment "{question}"@en ; sh:{form.lower()} """{query}""" ;
        schema:target <https://example.org/sparql/> ; schema:keywords "k" ; rb:group "{group}" .'''
    )


@dataclass(frozen=True)
class Said:
    status: int
    out: str


Check = Callable[..., Said]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """Return what checks a pack."""

    def run(pack: Path, *options: str) -> Said:
        status = MAIN([str(pack), *options])
        return Said(status, capsys.readouterr().out)

    return run


def test_a_good_gold_passes(pack: Path, check: Check) -> None:
    query = "SELECT ?p WHERE { ?p t:partOf t:whole ; a t:Thing }"
    (pack / "things.ttl").write_text(DATA + "t:4 a t:Thing .")
    add(pack, "good", "Which things are parts of the whole?", query)
    done = check(pack, "--only", "good")
    assert done.status == 0, done.out
    assert "every pattern counts in 1 of 1 tasks (100.0%)" in done.out


@pytest.mark.parametrize(
    ("question", "query", "says"),
    [
        (
            "Which parts has the whole?",
            "SELECT ?p WHERE { ?p t:partOf t:whole ; t:size ?s ; a t:Thing }",
            "keeps its answer without: ?p",
        ),
        ("Which has 9?", "SELECT ?p WHERE { ?p t:size 9 }", "the gold answers nothing"),
        ("Which is it?", "SELECT ?p WHERE { ?p t:size 2 }", "does not mention 2"),
        ("What is partOf the whole?", "SELECT ?p { ?p t:partOf t:whole }", "schema's name partOf"),
        ("What is it?", "SELECT ?p { ?p t:partOf", "bad: the query does not parse"),
    ],
)
def test_each_breach_is_named(
    pack: Path, check: Check, question: str, query: str, says: str
) -> None:
    add(pack, "bad", question, query)
    done = check(pack)
    assert done.status == 1
    assert says in done.out, done.out


def test_groups_and_topics_are_counted(pack: Path, check: Check) -> None:
    for i in range(6):
        query = f"SELECT ?p WHERE {{ ?p t:size {i} }}"
        add(pack, f"many{i}", f"Which has {i}?", query, "a" if i else "b")
    done = check(pack, "--rules")
    assert "one template is in several groups: a, b" in done.out
    assert "topic k is in 2 groups only" in done.out
    add(pack, "many6", "Which has 6?", "SELECT ?p WHERE { ?p t:size 6 }", "a")
    assert "group a has 6 tasks, more than 5" in check(pack, "--rules").out


def test_questions_are_checked_in_each_of_the_pack_s_languages(pack: Path, check: Check) -> None:
    (pack / "pack.toml").write_text('languages = ["en", "it"]\n' + TOML)
    query = "SELECT ?p WHERE { ?p t:partOf t:whole }"
    add(pack, "good", "Which are parts of the whole?", query)
    assert "good: there is no question in 'it'" in check(pack, "--rules").out
    file = pack / "examples" / "good.ttl"
    file.write_text(file.read_text() + 'ex:good rdfs:comment "Quali sono le parti del tutto?"@it .')
    assert "good: the question does not mention http://t/whole" in check(pack, "--rules").out
    with (pack / "schema.ttl").open("a") as schema:
        schema.write('t:whole <http://www.w3.org/2004/02/skos/core#altLabel> "tutto"@it .')
    assert "does not mention" not in check(pack, "--rules").out


@pytest.mark.parametrize("name", ["uniprot", "liita", "liita-test", "algebra"])
def test_our_packs_keep_the_rules(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert MAIN([name, "--rules"]) == 0, capsys.readouterr().out


def test_missing_data_is_one_line(pack: Path) -> None:
    add(pack, "good", "Which parts has the whole?", "SELECT ?p WHERE { ?p t:partOf t:whole }")
    (pack / "things.ttl").unlink()
    command = [sys.executable, str(SCRIPT), str(pack)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "things.ttl" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_deletion_is_valid_and_loses_exactly_that_pattern() -> None:
    patterns = read_query(HARD).triple_patterns()
    store = ox.Store()
    for index in range(len(patterns)):
        shorter = without_pattern(HARD, index)
        expected = [str(p) for i, p in enumerate(patterns) if i != index]
        found = [str(p) for p in read_query(shorter).triple_patterns()]
        # A bracket that was written out keeps its label, the next one starts at 1 again.
        assert found == expected
        store.query(shorter.replace("SERVICE SILENT <http://e/>", ""))


def test_what_a_deletion_changes_shows_in_the_answer() -> None:
    store = ox.Store()
    store.load(
        b"<http://u/1> a <http://u/T> ; <http://u/a> 1 . <http://u/2> a <http://u/T> .",
        format=ox.RdfFormat.TURTLE,
    )
    query = "SELECT ?s WHERE { ?s a <http://u/T> ; <http://u/a> 1 }"

    def answers(shorter: str) -> int:
        found = store.query(shorter)
        assert isinstance(found, ox.QuerySolutions)
        return len(list(found))

    counts = [answers(without_pattern(query, i)) for i in range(2)]
    assert counts == [1, 2]


def test_an_index_without_a_pattern_is_an_error() -> None:
    for index in (-1, 1):
        with pytest.raises(QueryError, match="no triple pattern"):
            without_pattern("ASK { ?s ?p ?o }", index)


def test_only_names_that_no_biologist_uses_are_schema_names() -> None:
    schema = ["http://u/organism", "http://u/scientificName", "http://u/Disease_Annotation"]
    assert schema_names_in("Which organism and disease annotation?", schema) == []
    assert schema_names_in("The scientificName of Disease_Annotation?", schema) == [
        "scientificName",
        "Disease_Annotation",
    ]
    assert schema_names_in("Which up:organism?", schema) == ["up:organism"]
