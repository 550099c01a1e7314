"""What updates change in documents is what is judged, in an engine of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from towns import write_towns

from reasoningbank.corpus import DocumentSpace, Pack, load_shacl_tasks, open_endpoint
from reasoningbank.errors import QueryError
from reasoningbank.judge import DocumentChanges, ExecutionJudge, GoldStore, compare, documents
from reasoningbank.sparql import SPARQLClient

DOC = "http://docs.example/new"
OLD = "http://docs.example/old"


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return write_towns(tmp_path_factory.mktemp("documents") / "towns")


@pytest.fixture(scope="module")
def changes(towns: Pack) -> DocumentChanges:
    found = DocumentChanges.of(towns)
    assert found is not None
    return found


def insert(triples: str, document: str = DOC) -> str:
    written = re.sub(r"\be:(\w+)", r"<http://e/\1>", triples)
    return f"INSERT DATA {{ GRAPH <{document}> {{ {written} }} }}"


def test_what_came_and_what_went_is_the_answer(changes: DocumentChanges) -> None:
    update = (
        "PREFIX p: <http://towns.example/p/> DELETE { GRAPH ?d { ?s p:people ?n } } "
        "INSERT { GRAPH ?d { ?s p:people 2 } } WHERE { GRAPH ?d { ?s p:people ?n } } ; "
        f"{insert('e:a e:b _:x . _:x e:c 1')}"
    )
    answer = changes.answer(update, timeout_s=20)
    assert (answer.form, answer.n_rows) == ("graph", 4)
    reported = answer.table.column("predicate").to_pylist()
    assert sum("removed" in text for text in reported) == 1
    assert sum("document=http%3A%2F%2Fdocs.example%2Fnew" in text for text in reported) == 2


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (insert("e:a e:b _:y . _:y e:c 1"), True),
        (f"CLEAR SILENT GRAPH <{DOC}> ; {insert('e:a e:b _:y . _:y e:c 1')}", True),
        (insert("e:a e:b _:y . _:z e:c 1"), False),
        (insert("e:a e:b _:y . _:y e:c 1", OLD), False),
        (insert("e:a e:b _:y . _:y e:c 1 , 2"), False),
        (insert("_:y e:b e:a . e:one e:c _:y"), False),
    ],
)
def test_documents_are_compared_as_graphs(changes: DocumentChanges, other: str, same: bool) -> None:
    gold = changes.answer(insert("e:a e:b _:x . _:x e:c 1"), timeout_s=20)
    assert compare(gold, changes.answer(other, timeout_s=20)).strict is same


def test_a_turned_triple_is_another_one(changes: DocumentChanges) -> None:
    gold = changes.answer(insert("e:a e:knows e:b"), timeout_s=20)
    assert not compare(gold, changes.answer(insert("e:b e:knows e:a"), timeout_s=20)).lenient


def test_what_is_not_a_document_does_not_count(changes: DocumentChanges) -> None:
    elsewhere = insert("e:a e:b 1", "http://elsewhere.example/x")
    update = f"{elsewhere} ; INSERT DATA {{ <http://e/a> <http://e/b> 2 }}"
    assert changes.answer(update, timeout_s=20).is_empty


def test_what_was_there_is_no_change_however_it_is_spelled(tmp_path: Path) -> None:
    initial = tmp_path / "documents.trig"
    held = '<http://e/p> 007 , 1.50 , 1e0 , "colour"@en-GB ; <http://e/q> [ a <http://e/T> ]'
    initial.write_text(f"<{OLD}> {{ <{OLD}> {held} }}", "utf-8")
    changes = DocumentChanges([], DocumentSpace("http://docs.example/", initial))
    assert changes.answer(insert("e:a e:b 1", "http://elsewhere.example/"), timeout_s=20).is_empty
    one = changes.answer(insert("e:a e:b 1", OLD), timeout_s=20)
    assert one.n_rows == 1
    put = f"DELETE WHERE {{ GRAPH <{OLD}> {{ ?s <http://e/p> ?o }} }} ; " + insert(
        f'e:a e:b 1 . <{OLD}> e:p 7 , 1.5 , "1"^^<http://www.w3.org/2001/XMLSchema#double> , '
        '"colour"@en-gb',
        OLD,
    )
    assert compare(one, changes.answer(put, timeout_s=20)).strict


def test_more_than_can_be_compared_is_reported(
    changes: DocumentChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_MOST_TRIPLES", 3)
    assert changes.answer(insert("e:a e:b 1"), timeout_s=20).n_rows == 1
    with pytest.raises(QueryError, match="more than 3 triples"):
        changes.answer(insert("e:a e:b 1 , 2"), timeout_s=20)


@pytest.mark.parametrize(
    ("update", "reported"),
    [
        ("INSERT DATA { GRAPH", "does not run"),
        ("SELECT * WHERE { ?s ?p ?o }", "does not run"),
        ("LOAD <http://127.0.0.1:1/x> INTO GRAPH <http://docs.example/x>", "LOAD reaches"),
        (r"\u004COAD <http://127.0.0.1:1/x>", "LOAD reaches"),
        (
            "INSERT { GRAPH <http://docs.example/x> { ?s ?p ?o } } "
            "WHERE { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
            "SERVICE reaches",
        ),
    ],
)
def test_a_wrong_update_is_reported(changes: DocumentChanges, update: str, reported: str) -> None:
    with pytest.raises(QueryError, match=reported):
        changes.answer(update, timeout_s=20)


def test_an_update_that_does_not_end_is_ended(changes: DocumentChanges) -> None:
    many = " ".join(f"?a{n} ?b{n} ?c{n} ." for n in range(12))
    update = (
        "INSERT { GRAPH <http://docs.example/x> { <http://e/a> <http://e/b> ?n } } "
        f"WHERE {{ SELECT (COUNT(*) AS ?n) WHERE {{ {many} }} }}"
    )
    with pytest.raises(QueryError):
        changes.answer(update, timeout_s=1)


def test_tasks_that_write_are_judged_by_their_documents(towns: Pack, tmp_path: Path) -> None:
    reads, writes = load_shacl_tasks(towns)
    assert (reads.form, writes.form) == ("SELECT", "UPDATE")
    with open_endpoint(towns) as config, SPARQLClient(config) as client:
        judge = ExecutionJudge(
            client, GoldStore(tmp_path, "towns"), documents=DocumentChanges.of(towns)
        )
        gold = writes.expected_sparql
        right = judge.judge(writes, gold)
        assert (right.strict, right.n_gold, right.status) == (True, 6, "judged")
        one = judge.judge(writes, gold.replace("t:Jutland", "t:Zealand"))
        assert (one.strict, one.f1, one.status) == (False, 0.0, "judged")
        # Neither form stands in for the other.
        assert judge.judge(writes, "SELECT * WHERE { ?s ?p ?o }").status == "query_error"
        assert judge.judge(reads, gold).status == "query_error"
        assert judge.judge(reads, reads.expected_sparql).strict
        alone = ExecutionJudge(client, GoldStore(tmp_path / "other", "towns"))
        assert alone.judge(writes, gold).status == "gold_defect"


def test_a_pack_without_documents_has_none(towns: Pack) -> None:
    assert DocumentChanges.of(replace(towns, documents=None)) is None
