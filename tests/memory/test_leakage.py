"""Each kind of leak is planted and caught; what comes honestly from training passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasoningbank.corpus import (
    Task,
    load_pack,
    load_shacl_tasks,
    split_tasks,
)
from reasoningbank.corpus.splits import Split
from reasoningbank.memory import LeakageFilter, MemoryItem, Provenance, Turn

PACK = load_pack("uniprot")
HONEST = Provenance(task="t-train", group="trains", corpus="uniprot", trial="a/t-train.0")
TASK = Task(
    "t-own",
    "Which names do the proteins of Homo sapiens with mass above 9 have?",
    "SELECT ?n { ?p up:organism taxon:9606 ; up:sequence/up:mass ?m ; up:mnemonic ?n "
    "FILTER(?m > 9) }",
    "http://e/",
    corpus="uniprot",
    group="own-group",
)
HELD = Task(
    "t-held",
    "Which enzymes of Takifugu rubripes catalyse two or more reactions?",
    "SELECT ?p { ?p up:organism taxon:31033 ; up:enzyme ?e , ?f FILTER(?e != ?f) }",
    "http://e/",
    corpus="uniprot",
    group="held-group",
)


@pytest.fixture(scope="module")
def leakage() -> LeakageFilter:
    return LeakageFilter.of(TASK, [HELD], prefixes=PACK.prefixes)


@pytest.fixture(scope="module")
def split() -> Split:
    return split_tasks(load_shacl_tasks("uniprot"))


def item(**parts: object) -> MemoryItem:
    plain = MemoryItem(
        "Enzymes", "Enzymes are asked for", "Go over up:enzyme.", "success", provenance=HONEST
    )
    return replace(plain, **parts)  # type: ignore[arg-type]


def reason_of(leakage: LeakageFilter, leak: MemoryItem) -> tuple[str, str | None]:
    found = leakage.finding(leak)
    assert found is not None
    return found.code, found.fields.get("part")


def test_an_honest_item_passes(leakage: LeakageFilter) -> None:
    other = HELD.expected_sparql.replace("31033", "9606")
    assert leakage.finding(item()) is None
    assert (
        leakage.finding(item(pattern=other, question="Which enzymes of humans are there?")) is None
    )


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        (Provenance(task="t-own", corpus="uniprot"), "own-task"),
        (Provenance(task="t-own"), "own-task"),
        (Provenance(task="other", group="own-group"), "own-group"),
        (Provenance(group="own-group"), "own-group"),
        (Provenance(task="t-held", corpus="uniprot"), "evaluation-task"),
        (Provenance(task="other", group="held-group"), "evaluation-group"),
    ],
)
def test_items_of_own_task_group_or_evaluation_are_filtered(
    leakage: LeakageFilter, origin: Provenance, reason: str
) -> None:
    assert reason_of(leakage, item(provenance=origin)) == (reason, None)
    assert reason_of(leakage, item(evidence=(origin,))) == (reason, None), "merged evidence"


def test_the_same_id_in_another_corpus_is_another_task(leakage: LeakageFilter) -> None:
    assert leakage.finding(item(provenance=Provenance(task="t-own", corpus="trees"))) is None


def in_other_words(query: str) -> str:
    renamed = query.replace("?p", "?protein").replace(
        "taxon:", "<http://purl.uniprot.org/taxonomy/"
    )
    return renamed.replace("31033", "31033>").replace("9606 ", "9606> ").replace("{", "WHERE\n{\n")


@pytest.mark.parametrize("origin", [HONEST, Provenance()], ids=["wrong", "missing"])
@pytest.mark.parametrize("task", [TASK, HELD], ids=["own", "evaluation"])
def test_the_text_of_a_gold_is_caught_whatever_the_provenance(
    leakage: LeakageFilter, task: Task, origin: Provenance
) -> None:
    gold = in_other_words(task.expected_sparql)
    assert gold not in task.expected_sparql
    leaks = {
        "pattern": item(pattern=gold, provenance=origin),
        "query": item(query=gold, provenance=origin),
        "content": item(content=f"Run {gold} and look at the rows.", provenance=origin),
        "description": item(description=f"As in {gold}", provenance=origin),
        "turns": item(turns=(Turn("", f'r = sparql_query("""{gold}""")'),), provenance=origin),
        "tags": item(tags=("up:enzyme", gold), provenance=origin),
    }
    for where, leak in leaks.items():
        assert reason_of(leakage, leak) == ("gold-query", where)


def test_the_where_clause_of_a_gold_under_another_head_is_caught(leakage: LeakageFilter) -> None:
    for head, tail in (("SELECT (COUNT(?p) AS ?n)", ""), ("SELECT DISTINCT ?p ?e", " LIMIT 5")):
        pattern = HELD.expected_sparql.replace("SELECT ?p", head, 1) + tail
        assert reason_of(leakage, item(pattern=pattern)) == ("gold-query", "pattern")


def test_a_skeleton_of_a_gold_needs_a_provenance_to_pass(leakage: LeakageFilter) -> None:
    skeleton = HELD.expected_sparql.replace("taxon:31033", "<<taxon>>")
    assert leakage.finding(item(pattern=skeleton)) is None
    reason = reason_of(leakage, item(pattern=skeleton, provenance=Provenance()))
    assert reason == ("gold-shape", "pattern")


@pytest.mark.parametrize(
    "text",
    [
        HELD.query,
        HELD.query.lower().replace("?", ""),
        f"Here is what to do. {HELD.query} Look at enzymes.",
        "Tell me which enzymes in Takifugu rubripes catalyse two or more reactions, please",
    ],
)
def test_a_question_nearly_word_for_word_is_caught(leakage: LeakageFilter, text: str) -> None:
    for where in ("question", "description", "content", "title", "tags"):
        leak = item(**{where: (text,) if where == "tags" else text})
        assert reason_of(leakage, leak) == ("question", where)


_TWO = "Look at the enzymes of Takifugu rubripes. Which of them catalyse two or more reactions?"


@pytest.mark.parametrize(
    "text",
    [
        _TWO,
        f"Here is what to do, first of all, with any bank. {_TWO} Submit what you have then.",
        f"Ask:\n{_TWO.replace('. ', chr(10))}\nThen go over all the classes and their properties.",
    ],
)
def test_a_question_of_two_sentences_is_caught_among_others(text: str) -> None:
    leakage = LeakageFilter.of(None, [Task("t", _TWO, "", "")])
    for leak in (item(content=text), item(tags=(text,))):
        assert reason_of(leakage, leak)[0] == "question"
    for one in _TWO.split(". "):
        assert leakage.finding(item(content=one)) is None, "half of it is not the question"


@pytest.mark.parametrize(
    "text",
    [
        "Which enzymes of Homo sapiens catalyse two or more reactions?",
        "Enzymes that catalyse several reactions have several values of up:enzyme",
        "Which proteins of Takifugu rubripes are enzymes?",
    ],
)
def test_another_question_is_none(leakage: LeakageFilter, text: str) -> None:
    assert leakage.finding(item(question=text)) is None


def test_a_question_with_another_number_is_another() -> None:
    leakage = LeakageFilter.of(
        None, [Task("t", "What is the mass of the protein P05067 here?", "", "")]
    )
    leak = item(question="What is the mass of the protein P05067 here?")
    assert reason_of(leakage, leak) == ("question", "question")
    assert leakage.finding(item(question="What is the mass of the protein P04637 here?")) is None


def test_without_a_task_nothing_is_filtered() -> None:
    assert LeakageFilter().finding(item(provenance=Provenance(task="t-own"))) is None


def test_no_third_training_task_of_the_pack_is_taken_for_one_of_the_evaluation(
    split: Split,
) -> None:
    leakage = LeakageFilter.of(None, (*split.dev, *split.test), prefixes=PACK.prefixes)
    for task in split.train[::3]:
        example = _example(task, Provenance())
        assert leakage.finding(example) is None, task.id


def test_every_fourth_task_of_the_evaluation_is_caught_without_its_provenance(split: Split) -> None:
    held = (*split.dev, *split.test)[::4]
    leakage = LeakageFilter.of(None, held, prefixes=PACK.prefixes)
    wrong = Provenance(task=split.train[0].id, group=split.train[0].group, corpus="uniprot")
    for task in held:
        query = replace(_example(task, wrong), question="")
        assert reason_of(leakage, query)[0] == "gold-query", task.id
        asked = replace(_example(task, wrong), pattern="")
        assert reason_of(leakage, asked)[0] == "question", task.id


def _example(task: Task, origin: Provenance) -> MemoryItem:
    lines = task.expected_sparql.splitlines()
    query = "\n".join(line for line in lines if not line.lower().startswith("prefix"))
    return MemoryItem(
        "An example", "", "As asked.", "gold", query, question=task.query, provenance=origin
    )
