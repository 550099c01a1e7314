"""Gold results: computed once, frozen, and checked when read."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery

from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError, RecordError
from reasoningbank.judge import Answer, Gold, GoldStore, Window
from reasoningbank.judge.gold import read_modifiers

TASK = Task("t/1", "Which?", "SELECT ?x { ?x ?p ?o }", "https://example.org/sparql")
ROWS = Answer.of_rows(["x", "n"], [["<http://e/a>", "1"], ["_:b", None]])


class Engine:
    """Answers by the text of the query and counts how often it is asked."""

    def __init__(self, answer: Answer | Exception, **by_part: Answer | Exception) -> None:
        self.answer = answer
        self.by_part = by_part
        self.asked: list[str] = []

    def __call__(self, query: str) -> Answer:
        self.asked.append(query)
        found = next((a for part, a in self.by_part.items() if part in query), self.answer)
        if isinstance(found, Exception):
            raise found
        return found


def test_a_gold_is_computed_once(tmp_path: Path) -> None:
    engine = Engine(ROWS)
    first = GoldStore(tmp_path / "gold", "h1").gold(TASK, engine)
    again = GoldStore(tmp_path / "gold", "h1").gold(TASK, engine)
    assert len(engine.asked) == 1
    assert first.answer.table.equals(again.answer.table)
    assert again == replace(first, answer=again.answer)
    assert [path.suffix for path in (tmp_path / "gold").iterdir()] == [".parquet"]


def test_another_store_query_or_task_is_another_gold(tmp_path: Path) -> None:
    engine = Engine(ROWS)
    GoldStore(tmp_path, "h1").gold(TASK, engine)
    GoldStore(tmp_path, "h2").gold(TASK, engine)
    GoldStore(tmp_path, "h1").gold(replace(TASK, expected_sparql="SELECT * { ?s ?p 1 }"), engine)
    GoldStore(tmp_path, "h1").gold(replace(TASK, id="t_1"), engine)
    assert len(engine.asked) == len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    "answer",
    [
        Answer.of_boolean(False),
        Answer.of_boolean(True),
        Answer.of_triples([("<http://e/a>", "<http://e/p>", "_:b")]),
        ROWS,
    ],
)
def test_every_form_survives_the_file(tmp_path: Path, answer: Answer) -> None:
    first = GoldStore(tmp_path, "h").gold(TASK, Engine(answer))
    again = GoldStore(tmp_path, "h").gold(TASK, Engine(QueryError("not asked again")))
    assert not first.defect
    assert (again.answer.form, again.answer.value) == (answer.form, answer.value)
    assert (again.answer.variables, again.answer.n_rows) == (answer.variables, answer.n_rows)


@pytest.mark.parametrize(
    "answer",
    [
        Answer.of_rows(["x"], []),
        Answer.of_rows(["x", "y"], [[None, None]]),
        Answer.of_triples([]),
    ],
)
def test_an_empty_gold_is_a_defect(tmp_path: Path, answer: Answer) -> None:
    for _ in range(2):
        assert defect(GoldStore(tmp_path, "h").gold(TASK, Engine(answer))) == "gold-empty"


def test_a_failing_gold_is_a_defect_and_tried_again_by_the_next_store(tmp_path: Path) -> None:
    engine = Engine(QueryError("'timed out' does not parse", where="E"))
    golds = GoldStore(tmp_path, "h")
    for _ in range(3):
        assert defect(golds.gold(TASK, engine)) == "gold-error"
    assert len(engine.asked) == 1
    assert not list(tmp_path.iterdir())
    assert not GoldStore(tmp_path, "h").gold(TASK, Engine(ROWS)).defect


def test_a_gold_that_a_busy_machine_made_late_is_not_a_permanent_defect(tmp_path: Path) -> None:
    slow = Engine(QueryTimeoutError("the query timed out", where="E"))
    golds = GoldStore(tmp_path, "h")
    assert defect(golds.gold(TASK, slow)) == "gold-timed-out"
    assert len(slow.asked) == 2
    assert not golds.gold(TASK, Engine(ROWS)).defect


def test_a_gold_that_the_caps_cut_is_a_defect(tmp_path: Path) -> None:
    found = GoldStore(tmp_path, "h").gold(TASK, Engine(replace(ROWS, truncated=True)))
    assert defect(found) == "gold-truncated"


def test_a_task_without_gold_is_a_defect(tmp_path: Path) -> None:
    engine = Engine(ROWS)
    found = GoldStore(tmp_path, "h").gold(TASK.blind(), engine)
    assert defect(found) == "gold-missing"
    assert not engine.asked


def test_an_endpoint_that_fails_says_nothing_about_the_gold(tmp_path: Path) -> None:
    golds = GoldStore(tmp_path, "h")
    with pytest.raises(EndpointError):
        golds.gold(TASK, Engine(EndpointError("down")))
    assert not golds.gold(TASK, Engine(ROWS)).defect


def defect(gold: Gold) -> str:
    return gold.defect.code if gold.defect else ""


def limited(modifiers: str) -> Task:
    return replace(TASK, expected_sparql=f"SELECT ?x ?n {{ ?x ?p ?n }} {modifiers}")


def test_a_limit_is_taken_off(tmp_path: Path) -> None:
    engine = Engine(ROWS, LIMIT=QueryError("asked with its LIMIT"))
    for _ in range(2):
        found = GoldStore(tmp_path, "h").gold(limited("ORDER BY ?n LIMIT 1 OFFSET 1"), engine)
        assert (found.answer.n_rows, found.window, found.note) == (2, Window(1, 1, ("n",)), None)
    assert len(engine.asked) == 1


def fallen_back(folder: Path, modifiers: str, engine: Callable[[str], Answer]) -> Gold:
    found = GoldStore(folder, "h").gold(limited(modifiers), engine)
    assert not found.window.is_slice
    assert found.answer.n_rows == 1
    return found


def test_a_gold_too_large_without_its_limit_is_used_as_it_is(tmp_path: Path) -> None:
    one = Answer.of_rows(["x", "n"], [["<http://e/a>", "1"]])
    cut = Engine(replace(ROWS, truncated=True), LIMIT=one)
    kept = fallen_back(tmp_path / "a", "LIMIT 1", cut).note
    assert kept is not None
    assert (kept.code, kept.fields["error"]) == ("gold-limit-kept", "result-truncated")
    slow = Engine(QueryTimeoutError("the query timed out"), LIMIT=one)
    kept = fallen_back(tmp_path / "b", "LIMIT 1", slow).note
    assert kept is not None
    assert kept.fields["error"] == "query-timeout"
    for keys in ("ORDER BY STR(?n)", "ORDER BY ?other"):
        whole = Engine(ROWS, LIMIT=one)
        for _ in range(2):
            note = fallen_back(tmp_path / "c", f"{keys} LIMIT 1", whole).note
            assert note is not None
            assert note.code == "gold-sort-hidden"


def test_the_limit_of_a_graph_counts_solutions(tmp_path: Path) -> None:
    def triples(n: int) -> Answer:
        return Answer.of_triples([("<http://e/a>", "<http://e/p>", str(i)) for i in range(n)])

    task = replace(TASK, expected_sparql="CONSTRUCT { ?s ?p ?o . ?o ?p ?s } { ?s ?p ?o } LIMIT 2")
    found = GoldStore(tmp_path, "h").gold(task, Engine(triples(10), LIMIT=triples(4)))
    assert (found.answer.n_rows, found.window) == (10, Window(0, 4, ()))


def test_an_offset_beyond_the_end_is_an_empty_gold(tmp_path: Path) -> None:
    found = GoldStore(tmp_path, "h").gold(limited("LIMIT 1 OFFSET 5"), Engine(ROWS))
    assert defect(found) == "gold-empty"


def test_half_a_file_is_computed_anew(tmp_path: Path) -> None:
    golds = GoldStore(tmp_path, "h")
    golds.gold(TASK, Engine(ROWS))
    path = golds.path(TASK)
    path.write_bytes(path.read_bytes()[:50])
    engine = Engine(ROWS)
    assert golds.gold(TASK, engine).answer.n_rows == 2
    assert len(engine.asked) == 1
    path.write_bytes(b"")
    assert golds.gold(TASK, engine).answer.n_rows == 2


def test_threads_compute_a_gold_once(tmp_path: Path) -> None:
    golds = GoldStore(tmp_path, "h")
    engine = Engine(ROWS)
    threads = [threading.Thread(target=golds.gold, args=(TASK, engine)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(engine.asked) == 1


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="check space and permissions"):
        GoldStore(tmp_path / "file" / "gold", "h").gold(TASK, Engine(ROWS))


def test_a_gold_that_is_late_without_its_limit_is_not_frozen(tmp_path: Path) -> None:
    task = replace(TASK, expected_sparql="SELECT ?x { ?x ?p ?o } LIMIT 2")

    def busy(query: str) -> Answer:
        if "LIMIT" not in query:
            raise QueryTimeoutError("the query timed out", where="E")
        return ROWS

    golds = GoldStore(tmp_path, "h")
    found = golds.gold(task, busy)
    assert found.timed_out
    assert found.note is not None
    assert found.note.code == "gold-limit-kept"
    assert not list(tmp_path.iterdir())
    assert golds.gold(task, Engine(ROWS)).window.length == 2


def test_a_sorted_graph_that_is_cut_is_taken_as_it_is(tmp_path: Path) -> None:
    query = "CONSTRUCT { ?s <p:p> ?object } { ?s <p:p> ?object } ORDER BY ?object LIMIT 1"
    # Triples do not show what solutions were sorted by, whatever the columns of a graph are called.
    graph = Answer.of_triples([("<a:a>", "<p:p>", "1")])
    found = GoldStore(tmp_path, "h").gold(replace(TASK, expected_sparql=query), Engine(graph))
    assert found.window.length is None


KTASK = Task("t1", "Which?", "SELECT ?x { ?x ?p ?o }", "https://example.org/sparql")
KROWS = Answer.of_rows(["x", "n"], [["<http://e/a>", "1"], ["_:b", None], ["é", ""]])
FACTS = b"reasoningbank.gold"


def rewritten(path: Path, change: Callable[[pa.Table, dict[str, object]], pa.Table]) -> None:
    """Change a gold and keep what its file says of itself, the hash included."""
    table = pq.read_table(path)
    facts = json.loads(table.schema.metadata[FACTS])
    changed = change(table, facts)
    pq.write_table(changed.replace_schema_metadata({FACTS: json.dumps(facts)}), path)


def other_value(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.set_column(0, "x", pa.array(["<http://e/z>", "_:b", "é"]))


def moved_null(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.set_column(1, "n", pa.array(["1", "", None]))


def moved_border(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.set_column(0, "x", pa.array(["<http://e/a>_", ":b", "é"]))


def row_less(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.slice(0, 2)


def other_fact(table: pa.Table, facts: dict[str, object]) -> pa.Table:
    facts["n_rows"] = 2
    return table


def without_hash(table: pa.Table, facts: dict[str, object]) -> pa.Table:
    del facts["hash"]
    return table


@pytest.mark.parametrize(
    "change", [other_value, moved_null, moved_border, row_less, other_fact, without_hash]
)
def test_a_gold_that_was_changed_is_computed_anew(
    tmp_path: Path,
    change: Callable[[pa.Table, dict[str, object]], pa.Table],
    caplog: pytest.LogCaptureFixture,
) -> None:
    golds = GoldStore(tmp_path, "h")
    golds.gold(KTASK, lambda _: KROWS)
    rewritten(golds.path(KTASK), lambda table, _: table)
    kept = GoldStore(tmp_path, "h").gold(KTASK, lambda _: Answer.of_boolean(True))
    assert kept.answer.table.equals(KROWS.table)
    rewritten(golds.path(KTASK), change)
    again = GoldStore(tmp_path, "h").gold(KTASK, lambda _: KROWS)
    assert again.answer.table.equals(KROWS.table)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    caplog.clear()
    assert GoldStore(tmp_path, "h").gold(KTASK, lambda _: KROWS).answer.n_rows == 3
    assert caplog.text == ""


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_part_of_a_gold_is_computed_anew(tmp_path: Path, share: float) -> None:
    golds = GoldStore(tmp_path, "h")
    golds.gold(KTASK, lambda _: KROWS)
    path = golds.path(KTASK)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert GoldStore(tmp_path, "h").gold(KTASK, lambda _: KROWS).answer.table.equals(KROWS.table)


def test_another_tasks_gold_under_its_name_is_computed_anew(tmp_path: Path) -> None:
    golds, other = GoldStore(tmp_path, "h"), replace(KTASK, id="t2")
    golds.gold(KTASK, lambda _: KROWS)
    golds.gold(other, lambda _: Answer.of_boolean(True))
    shutil.copyfile(golds.path(other), golds.path(KTASK))
    again = GoldStore(tmp_path, "h").gold(KTASK, lambda _: KROWS)
    assert again.answer.table.equals(KROWS.table)


def test_a_large_gold_is_checked_in_a_moment(tmp_path: Path) -> None:
    rows = Answer.of_rows(["x", "y"], [[f"<http://e/{n}>", None] for n in range(300_000)])
    GoldStore(tmp_path, "h").gold(KTASK, lambda _: rows)
    kept = GoldStore(tmp_path, "h").gold(KTASK, lambda _: Answer.of_boolean(True))
    assert kept.answer.table.equals(rows.table)


QUERIES = [
    ("SELECT ?x { ?x ?p ?o }", Window(keys=())),
    ("SELECT ?x { ?x ?p ?o } LIMIT 5", Window(0, 5, ())),
    ("select ?x { ?x ?p ?o } limit 5 offset 2", Window(2, 5, ())),
    ("SELECT ?x { ?x ?p ?o } OFFSET 2 LIMIT 5", Window(2, 5, ())),
    ("SELECT ?x { ?x ?p ?o } OFFSET 2", Window(2, None, ())),
    ("SELECT ?x { { SELECT ?x { ?x ?p ?o } LIMIT 5 } }", Window(keys=())),
    ("SELECT ?x { { SELECT ?x { ?x ?p ?o } ORDER BY ?x LIMIT 5 } } LIMIT 2", Window(0, 2, ())),
    ("SELECT ?limit { ?limit ?p 'LIMIT 3' } # LIMIT 4", Window(keys=())),
    ("PREFIX limit: <http://e/LIMIT#> SELECT ?x { ?x limit:limit 1 }LIMIT 7", Window(0, 7, ())),
    ("SELECT ?x { ?x ?p ?o } ORDER BY ?x", Window(keys=("x",))),
    ("SELECT ?x ?y { ?x ?p ?y } ORDER BY DESC(?y) asc ( $x ) LIMIT 3", Window(0, 3, ("y", "x"))),
    ("SELECT ?x { ?x ?p ?y } ORDER BY (?y) LIMIT 3", Window(0, 3, ("y",))),
    ("SELECT ?x { ?x ?p ?y } ORDER BY DESC(STR(?y)) LIMIT 3", Window(0, 3, None)),
    ("SELECT ?x { ?x ?p ?y } ORDER BY ?x STRLEN(?y)", Window(keys=None)),
    (
        "SELECT ?x (MAX(?y) AS ?m) (COUNT(?y) AS ?n) { ?x ?p ?y } GROUP BY ?x "
        "ORDER BY DESC(COUNT(?y)) MAX(?y) LIMIT 1",
        Window(0, 1, ("n", "m")),
    ),
    ("SELECT ?ab (?a AS ?c) { ?ab ?p ?a } ORDER BY ?ab LIMIT 1", Window(0, 1, ("ab",))),
    (
        "SELECT ?x (COUNT(*) AS ?n) { ?x ?p ?y } GROUP BY ?x HAVING (COUNT(*) > 2) "
        "ORDER BY DESC(?n) LIMIT 3 VALUES ?x { 1 2 }",
        Window(0, 3, ("n",)),
    ),
    ("SELECT ?x { ?x ?p ?y } ORDER BY EXISTS { ?x ?q 1 } LIMIT 3", Window(0, 3, None)),
    ("CONSTRUCT { ?x ?p ?y } WHERE { ?x ?p ?y } LIMIT 3", Window(0, 3, ())),
    ("DESCRIBE ?x { ?x ?p ?y } LIMIT 3", Window(0, 3, ())),
    ("ASK { ?x ?p ?y }", Window(keys=())),
]


@pytest.mark.parametrize(("query", "window"), QUERIES)
def test_modifiers_are_read_from_the_outermost_level(query: str, window: Window) -> None:
    found, unsliced = read_modifiers(query)
    assert found == window
    assert read_modifiers(unsliced)[0] == Window(keys=window.keys)


@pytest.mark.parametrize("query", [q for q, _ in QUERIES if not q.startswith("ASK")])
def test_a_full_parser_finds_the_same_slice(query: str) -> None:
    window, unsliced = read_modifiers(query)
    algebra = translateQuery(parseQuery(query)).algebra.p
    if algebra.name == "Slice":
        assert (algebra.start, algebra.length) == (window.start, window.length)
    else:
        assert not window.is_slice
    assert translateQuery(parseQuery(unsliced)).algebra.p.name != "Slice"


def test_a_window_at_the_end_is_short() -> None:
    assert Window(5, 10).size(8) == 3
    assert Window(9, 10).size(8) == 0
    assert Window(0, 0).size(8) == 0
    assert Window(3).size(8) == 5
