"""Pitfalls: what went wrong, how it shows, and what stands for it in the schema."""

from __future__ import annotations

import pytest

from reasoningbank.corpus import Task
from reasoningbank.findings import Finding
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.memory import MemoryItem
from reasoningbank.memory.distill import Distiller
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.trajectory import Recorder

from .attempts import MASS, MASS_QUESTION, attempt, by_turns


def pitfalls(distiller: Distiller, sparql: str | None, **rest: object) -> list[MemoryItem]:
    given: dict[str, object] = {"ran": False, "rows": None}
    distilled = distiller.distil([attempt(sparql, **(given | rest))])
    assert all(item.src == "failure" for item in distilled.items)
    return list(distilled.items)


RUNAWAY = "SELECT ?g { " + "\n".join(f"?g up:near u:P{n} ." for n in range(9)) + "\n?g up"


@pytest.mark.parametrize(
    ("query", "title", "sign"),
    [
        ("\n".join(f"PREFIX p{n}: <http://p{n}/>" for n in range(9)) + "\nPREFIX p: <http",
         "leave PREFIX lines out", "one PREFIX line after the other"),
        ("PREFIX ec : <http://e/>\nASK { ?s ec:p ?o }", "leave PREFIX lines out", "PREFIX line"),
        (RUNAWAY, "Write each triple pattern once", "over and over"),
        ("SELECT skos:prefLabel WHERE { ?s ?p ?o }", "SELECT takes variables", "near SELECT"),
        ("SELECT ?x WHERE ?x up:name ?n", "patterns of WHERE into braces", "near WHERE"),
        ("SELECT ?x { ?x up:mnemonic ?n FILTER(?n = 'a' AND ?n = 'b') }", "&& for AND", "parsed"),
        ("SELECT ?x { ?x up:organism <<taxon>> }", "in place of each slot", "slot was copied"),
        ("SELECT ?x { ?x a uniprot:Protein }", "write up:Protein, not uniprot:Protein",
         "'uniprot:' is not declared"),
    ],
)  # fmt: skip
def test_a_query_that_does_not_parse_has_a_pitfall(
    distiller: Distiller, query: str, title: str, sign: str
) -> None:
    first = pitfalls(distiller, query)[0]

    assert title in first.title
    assert sign in first.content
    assert not first.pattern


def test_equal_mistakes_at_several_tasks_are_one_item(distiller: Distiller) -> None:
    one = pitfalls(distiller, RUNAWAY)[0]
    other = pitfalls(distiller, RUNAWAY.replace("P", "Q"), question="And which else?")[0]

    assert one.id == other.id


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("SELECT ?m { ?p a up:Protein ; up:hasMolecularMass ?m }",
         "up:sequence/up:mass", "There is no property up:hasMolecularMass."),
        ("SELECT ?p { ?p a up:Protein ; up:hasTaxon ?t }",
         "up:organism", "There is no property up:hasTaxon."),
        # the class of its subject follows from another property, or from the data
        ("SELECT ?m { ?p up:organism ?t ; up:hasMass ?m }",
         "up:sequence/up:mass", "There is no property up:hasMass."),
        ("SELECT ?m { uniprotkb:P04637 up:hasMass ?m .\n# so\n }",
         "up:sequence/up:mass", "There is no property up:hasMass."),
        ("SELECT ?m { ?p up:hasMass ?m }", "up:mass", "There is no property up:hasMass."),
        ("SELECT ?p { ?p a uniprotkb:Protein }", "up:Protein", "no class uniprotkb:Protein."),
        # in a text that does not parse as well
        ("SELECT ?p WHERE { ?p up:geneSymbol ?g",
         "up:encodedBy/skos:prefLabel", "no property up:geneSymbol."),
    ],
)  # fmt: skip
def test_an_invented_name_is_replaced_by_one_that_exists(
    distiller: Distiller, query: str, right: str, wrong: str
) -> None:
    shown = [
        item for item in pitfalls(distiller, query, ran=True, rows=0) if "There" in item.content
    ]

    assert right in shown[0].content.partition("There is no")[0]
    assert wrong in shown[0].content
    assert right in shown[0].title
    assert right.rpartition("/")[2] in shown[0].tags


@pytest.mark.parametrize("name", ["up:isPartOf", "up:hasProtein", "up:entry_name", "up:isAbout"])
def test_a_name_that_only_sounds_alike_is_not_offered(distiller: Distiller, name: str) -> None:
    query = f"SELECT ?x {{ ?p a up:Protein ; {name} ?x }}"

    assert not [i for i in pitfalls(distiller, query, ran=True, rows=0) if name in i.content]


def test_a_property_is_shown_with_its_class(distiller: Distiller) -> None:
    (item,) = pitfalls(distiller, "SELECT ?m { ?p up:hasMass ?m }", ran=True, rows=0)

    assert "up:mass (of a up:Simple_Sequence)" in item.content


def test_a_prefix_with_another_namespace_is_needless(distiller: Distiller) -> None:
    query = "PREFIX up: <http://www.uniprot.org/core/>\nSELECT ?p { ?p a up:Protein }"
    (item,) = pitfalls(distiller, query, ran=True, rows=0)

    assert "leave PREFIX lines out" in item.title
    assert "uniprot.org" not in item.content


def test_counts_are_counted(distiller: Distiller) -> None:
    query = "SELECT ?o ?n { ?o a up:Taxon ; up:proteinCount ?n }"

    assert "COUNT" in pitfalls(distiller, query, ran=True, rows=0)[0].title


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("SELECT ?m { uniprotkb:P04637 up:mass ?m }", "write uniprotkb:P04637 up:sequence/up:mass"),
        ('SELECT ?p { ?p up:organism "Mus musculus" }', 'up:scientificName "Mus musculus"'),
    ],
)
def test_no_rows_are_explained(distiller: Distiller, query: str, cause: str) -> None:
    (item,) = pitfalls(distiller, query, ran=True, rows=0)

    assert cause in item.content
    assert item.description == f"Questions such as: {MASS_QUESTION}"


def test_a_missing_condition_is_found(distiller: Distiller) -> None:
    (item,) = pitfalls(
        distiller,
        "SELECT ?p { ?p a up:Protein }",
        question="List the proteins of Drosophila melanogaster.",
        ran=True,
        rows=1001,
    )

    assert '"Drosophila" was left out' in item.title


def test_a_name_that_the_data_lack_is_not_a_condition(distiller: Distiller) -> None:
    query = "SELECT ?p { ?p a up:Protein }"
    question = "Which proteins does Swissprotland record?"

    assert not pitfalls(distiller, query, question=question, ran=True, rows=1001)


def test_a_condition_that_is_there_by_another_name_is_not_missed(distiller: Distiller) -> None:
    query = "SELECT ?p { ?p up:organism taxon:7227 ; up:reviewed false }"
    question = "List the proteins of Drosophila melanogaster."

    assert not pitfalls(distiller, query, question=question, ran=True, rows=3)


@pytest.mark.parametrize(
    ("gold", "query", "title"),
    [
        ("ASK { uniprotkb:P04637 up:sequence/up:mass ?m }", MASS, "takes ASK"),
        ("DESCRIBE uniprotkb:P04637", MASS, "DESCRIBE or CONSTRUCT"),
        (MASS, "ASK { uniprotkb:P04637 ?p ?o }", "takes SELECT"),
        (MASS.replace("?mass", "?mass ?p", 1).replace("}", "uniprotkb:P04637 up:mnemonic ?p }"),
         MASS, "A column for everything"),
        (MASS, MASS.replace("?mass", "*", 1).replace("}", "uniprotkb:P04637 up:mnemonic ?p }"),
         "No column that"),
    ],
)  # fmt: skip
def test_what_the_judge_says_of_form_and_columns_is_understood(
    distiller: Distiller,
    endpoint: EndpointConfig,
    tmp_path: object,
    gold: str,
    query: str,
    title: str,
) -> None:
    task = Task("t1", MASS_QUESTION, gold, endpoint.url)
    with SPARQLClient(endpoint) as client:
        verdict = ExecutionJudge(client, GoldStore(tmp_path, "store")).judge(task, query)  # type: ignore[arg-type]
    assert not verdict.strict
    found = pitfalls(
        distiller, query, ran=True, rows=verdict.n_predicted, findings=verdict.findings
    )

    assert [item for item in found if title in item.title]


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("columns-missing", {}),
        ("columns-extra", {}),
        ("form-mismatch", {"gold": "boolean"}),
        ("wrong-order", {}),
    ],
)
def test_findings_are_read_and_reasons_are_not(
    distiller: Distiller, code: str, fields: dict[str, str]
) -> None:
    finding = Finding(code, "1 of 2 columns missing", fields=fields)

    assert not pitfalls(distiller, MASS, ran=True, rows=1)
    assert pitfalls(distiller, MASS, ran=True, rows=1, findings=(finding,))


@pytest.mark.parametrize(
    ("turns", "title"),
    [
        ([("I look.", "look()", "…"), ("Again.", "look()", "[Repeated] You already ran this code")],
         "Do not run again"),
        ([("I look.", "look()", "…")], "Submit before"),
        ([], "Answer with the query alone"),
    ],
)  # fmt: skip
def test_no_query_at_all(
    distiller: Distiller, turns: list[tuple[str, str, str]], title: str
) -> None:
    (item,) = pitfalls(distiller, None, trajectory=by_turns(*turns))

    assert title in item.title


def test_an_unexplained_failure_is_rejected(distiller: Distiller) -> None:
    distilled = distiller.distil([attempt("SELECT ?s { ?s a up:Protein } LIMIT 3", rows=3)])

    assert not distilled.items or "P04637" in distilled.items[0].title
    odd = distiller.distil([attempt("ASK { ?s ?p ?o }", question="Is it so?")])
    assert odd.rejected[0].code == "unknown-cause"


def test_two_pitfalls_of_one_attempt_at_most(distiller: Distiller) -> None:
    recorder = Recorder()
    recorder.add("code", {"code": "x", "output": "[Repeated] …", "repeated": True})
    query = "SELECT ?m WHERE ?p up:hasMolecularMass ?m"

    assert len(pitfalls(distiller, query, trajectory=recorder.trajectory())) == 2
