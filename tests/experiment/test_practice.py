"""What a teacher says between attempts at a training task, over the UniProt sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal

from reasoningbank.corpus import Task, load_pack, open_endpoint
from reasoningbank.experiment.sampling import COUNTED, EXACT, HOLDS, NO_GRAPH, PATHS, Teacher
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.schema import Schema, explainer
from reasoningbank.sparql import SPARQLClient, TableResult
from reasoningbank.sparql.entity_linking import EntityLinker

GOLD = "SELECT ?mass WHERE { uniprotkb:P05067 up:sequence/up:mass ?mass }"
WRONG = "SELECT ?m WHERE { uniprotkb:P05067 up:sequence ?m }"
TASK = Task("mass", "What is the mass of P05067?", GOLD, "https://sparql.uniprot.org/sparql/")


@pytest.fixture(scope="module")
def client() -> Iterator[SPARQLClient]:
    with open_endpoint(load_pack("uniprot")) as config, SPARQLClient(config) as made:
        yield made


@pytest.fixture
def teacher_of(client: SPARQLClient, tmp_path: Path) -> Callable[[Task], Teacher]:
    judge = ExecutionJudge(client, GoldStore(tmp_path, "uniprot"))
    schema = Schema.of(client.config, load_pack("uniprot").schema)
    linker = EntityLinker(client, client.config)
    explain = explainer(client, schema)
    return lambda task: Teacher(
        judge, client, task, metric="strict", linker=linker, explain=explain
    )


@pytest.fixture
def teacher(teacher_of: Callable[[Task], Teacher]) -> Teacher:
    return teacher_of(TASK)


def test_it_judges_by_the_answer(teacher: Teacher) -> None:
    other = "SELECT ?m WHERE { uniprotkb:P05067 up:sequence ?s . ?s up:mass ?m }"
    assert [teacher.right(query) for query in (GOLD, other, WRONG, None)] == [1, 1, 0, 0]


@pytest.mark.parametrize("number", [1, 2])
def test_a_note_holds_the_path_and_no_row(
    teacher: Teacher, client: SPARQLClient, number: int
) -> None:
    note = teacher.note(number, WRONG)
    assert "WHERE { uniprotkb:P05067 up:sequence/up:mass ?mass }" in note
    assert EXACT.format(graph="") in note
    assert (WRONG in note) == (number == 2)
    assert teacher.alone == (number == 1)
    result = client.query(GOLD)
    assert isinstance(result, TableResult)
    (mass,) = result.rows()[0]
    assert isinstance(mass, Literal)
    assert mass.value not in note


def test_a_query_with_graph_is_warned(teacher: Teacher) -> None:
    note = teacher.note(2, "SELECT ?m WHERE { GRAPH ?g { uniprotkb:P05067 up:sequence ?m } }")
    assert NO_GRAPH in note


def test_a_yes_or_no_needs_an_ask(teacher_of: Callable[[Task], Teacher]) -> None:
    task = Task("none", "Is it so?", "ASK { ?s ?p ?o }", TASK.endpoint)
    query = "SELECT ?x WHERE { ?x up:nothing ?y }"
    alone, whole = (teacher_of(task).note(number, query) for number in (1, 2))
    assert "ASK" in alone
    assert query not in alone
    assert "up:nothing" in whole
    assert PATHS.format(graph="") not in alone + whole


def test_rows_of_another_endpoint_are_found_there(tmp_path: Path) -> None:
    pack = load_pack("liita-instances")
    with open_endpoint(pack) as config, SPARQLClient(config) as client:
        (other,) = config.federated
        text = (
            f'SELECT ?definition WHERE {{ SERVICE <{other.url}> {{ ?word rdfs:label "viso"@it ; '
            "ontolex:sense/skos:definition ?definition } }"
        )
        task = Task("viso", 'Define the senses of "viso".', text, config.url)
        teacher = Teacher(
            ExecutionJudge(client, GoldStore(tmp_path, "liita")),
            client,
            task,
            metric="strict",
            linker=EntityLinker(client, config),
            explain=explainer(client, Schema.of(config, pack.schema)),
        )
        note = teacher.note(1, "SELECT ?x WHERE { ?x a ?y }")
        assert EXACT.format(graph="") in note
        where = note.splitlines()[-1]
        assert where.startswith(f"WHERE {{ SERVICE <{other.url}>")
        assert teacher.right(f"SELECT ?definition {where}")


@pytest.mark.parametrize(
    ("question", "gold", "head"),
    [
        (
            "How many natural variants of Q9BYF1 are known?",
            "SELECT (COUNT(?v) AS ?n) WHERE { uniprotkb:Q9BYF1 up:annotation ?v . "
            "?v a up:Natural_Variant_Annotation }",
            COUNTED,
        ),
        ("Is P05067 from Homo sapiens?", "ASK { uniprotkb:P05067 up:organism taxon:9606 }", HOLDS),
    ],
)
def test_a_number_and_a_yes_have_patterns_too(
    teacher_of: Callable[[Task], Teacher], question: str, gold: str, head: str
) -> None:
    teacher = teacher_of(Task("one", question, gold, TASK.endpoint))
    note = teacher.note(1, "SELECT ?x WHERE { ?x up:nothing ?y }")
    assert head.format(graph="") in note
    assert teacher.alone
    where = note.splitlines()[-1]
    query = f"ASK {where}" if head == HOLDS else f"SELECT (COUNT(DISTINCT ?each) AS ?n) {where}"
    assert teacher.right(query)
