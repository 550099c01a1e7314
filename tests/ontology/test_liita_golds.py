"""Every gold of the LiITA pack answers on its two endpoints, and is judged right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reasoningbank.corpus import load_corpus, load_pack, open_endpoint
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.sparql import SPARQLClient

MOST_ROWS = 300


@pytest.fixture(scope="module")
def client() -> Iterator[SPARQLClient]:
    with open_endpoint(load_pack("liita")) as config:
        yield SPARQLClient(config)


@pytest.fixture(scope="module")
def judge(client: SPARQLClient, tmp_path_factory: pytest.TempPathFactory) -> ExecutionJudge:
    return ExecutionJudge(client, GoldStore(tmp_path_factory.mktemp("golds"), "sample"))


@pytest.mark.parametrize("name", ["liita", "liita-test"])
def test_the_oracle_scores_full_marks(name: str, judge: ExecutionJudge) -> None:
    for task in load_corpus(name).tasks:
        verdict = judge.judge(task, task.expected_sparql)
        assert (verdict.strict, verdict.f1, verdict.status) == (True, 1.0, "judged"), task.id
        assert not verdict.truncated
        assert 0 < verdict.n_gold <= MOST_ROWS or task.form == "ASK", task.id


@pytest.mark.parametrize(
    ("task_id", "wrong"),
    [
        ("hypernyms_of_vipera", ("lexinfo:hyponym/", "lexinfo:hypernym/")),
        ("meronyms_of_automobile", ("lexinfo:partMeronym", "lexinfo:partHolonym")),
        ("loving_but_negative", ("?polarityEntry", "?emotionEntry")),
        ("words_of_sadness", ("GRAPH <http://w3id.org/elita>", "GRAPH <http://liita.it/data>")),
        ("definitions_of_cane", ('"cane"@it', '"cane"')),
    ],
)
def test_the_mistakes_that_the_layout_invites_are_judged_wrong(
    task_id: str, wrong: tuple[str, str], judge: ExecutionJudge
) -> None:
    (task,) = (t for t in load_corpus("liita").tasks if t.id.partition("_")[2] == task_id)
    assert wrong[0] in task.expected_sparql
    assert not judge.judge(task, task.expected_sparql.replace(*wrong)).lenient


@pytest.mark.parametrize("name", ["liita", "liita-test"])
def test_a_text_looked_for_in_definitions_begins_a_word(name: str, client: SPARQLClient) -> None:
    """A fruit that is "grosso" must not pass for one that is "rosso"."""
    looked_for = re.compile(r'(?:CONTAINS|REGEX)\(STR\(\?definition\), "([^"]+)"')
    seen = 0
    for task in load_corpus(name).tasks:
        text = looked_for.search(task.expected_sparql)
        if text is None or "?definition" not in task.expected_sparql.partition("WHERE")[0]:
            continue
        seen += 1
        result = client.query(task.expected_sparql)
        column = result.variables.index("definition")
        for row in result.rows(0, MOST_ROWS):
            reported = row[column].value
            assert re.search(rf"\b(?:{text[1]})", reported), (task.id, reported)
    assert seen >= (10 if name == "liita" else 1)


def test_golds_are_files_of_their_own() -> None:
    pack = load_pack("liita")
    assert pack.test is not None
    for folder in (pack.examples, pack.test):
        examples = sorted(path.stem for path in Path(folder).glob("*.ttl"))
        assert examples.pop() == "prefixes"
        assert [name.partition("_")[0] for name in examples] == [
            f"{number:03}" for number in range(1, len(examples) + 1)
        ]
