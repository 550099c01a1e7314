"""L1: the part of the schema near a question, joined, in a budget."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import load_notes
from reasoningbank.memory.schema_card import SchemaCard, SchemaIndex
from reasoningbank.schema import Schema, SchemaMap, observed_values
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import read_query

from .conftest import Known

DISEASES = "In which diseases is protein P26367 involved? Give the disease and its name."
#: Classes that UniProt declares and gives no instance.
UNTYPED = ("up:Subcellular_Location", "up:Protein_Existence", "up:Rank", "up:Method")
NAME = re.compile(r"\b([A-Za-z]\w*:[A-Za-z]\w*(?:-\w+)*)")


@pytest.fixture(scope="module")
def card(uniprot: Known) -> SchemaCard:
    return SchemaCard(uniprot.endpoint, uniprot.schema, uniprot.index, load_notes(uniprot.pack))


def test_the_card_of_a_question(card: SchemaCard) -> None:
    lines = card.about(DISEASES).text.splitlines()
    assert lines[0].startswith("Schema. Class (instances): ")
    protein = next(line for line in lines if line.startswith("up:Protein (1001): "))
    assert "up:annotation ×16 -> up:Disease_Annotation" in protein
    assert any(line.startswith("up:Disease_Annotation (467): up:disease -> ") for line in lines)
    assert any(line.startswith("up:Disease (454): skos:prefLabel text") for line in lines)
    assert any(line.startswith("Disease: ?protein up:annotation/up:disease ") for line in lines)


@pytest.mark.parametrize("budget", [0, 30, 100, 200, 400, 800])
def test_no_budget_is_exceeded(card: SchemaCard, budget: int) -> None:
    layer = card.about(DISEASES, budget)
    assert layer.tokens == count_tokens(layer.text) <= budget
    whole = set(NAME.findall(card.about(DISEASES, 5_000).text))
    assert set(NAME.findall(layer.text)) <= whole


def test_it_is_the_same_every_time(uniprot: Known) -> None:
    notes = load_notes(uniprot.pack)
    texts = set()
    for _ in range(2):
        index = SchemaIndex(uniprot.schema, [uniprot.vocabulary])
        texts.add(SchemaCard(uniprot.endpoint, uniprot.schema, index, notes).about(DISEASES).text)
    assert len(texts) == 1


def test_no_class_hangs_in_the_air(card: SchemaCard) -> None:
    """Each class with a line is the hub, or stands behind an arrow, or leads to one that does."""
    text = card.about("Where do the zinc fingers of P04637 begin?").text
    heads = [line.split(" (")[0] for line in text.splitlines() if re.match(r"\w+:\w+ \(", line)]
    assert "up:Zinc_Finger_Annotation" in heads
    for head in set(heads) - {"up:Protein"}:
        assert re.search(rf"(-> |\| ){re.escape(head)}\b", text), head


def test_another_endpoint_comes_in_by_its_name(card: SchemaCard) -> None:
    question = "Which compounds take part in the reaction? Give their names."
    asked = card.about(f"According to Rhea: {question}").text
    assert "In SERVICE <https://sparql.rhea-db.org/sparql>: " in asked
    assert asked.count("rh:") > card.about(question).text.count("rh:")


def test_a_question_in_italian_finds_the_same_classes(card: SchemaCard) -> None:
    text = card.about("In quali malattie è coinvolta la proteina P26367?").text
    assert "up:Disease_Annotation" in text
    assert "up:disease -> up:Disease" in text


def test_the_gold_names_are_found(uniprot: Known, card: SchemaCard) -> None:
    """On train and dev, more of the gold's names than a list of the most used ones has."""
    split = split_tasks(load_shacl_tasks("uniprot"))
    tasks = [*split.train, *split.dev][::4]
    prefixes = uniprot.endpoint.namespaces
    most = sorted(
        (*uniprot.vocabulary.classes.values(), *uniprot.vocabulary.properties.values()),
        key=lambda term: -(term.count or 0),
    )
    listed = " ".join(_short(term.iri, prefixes) for term in most)
    while count_tokens(listed) > 200:
        listed = listed.rpartition(" ")[0]
    ours, theirs = [], []
    for task in tasks:
        wanted = {
            token.text
            for pattern in read_query(task.expected_sparql).triple_patterns()
            for token in tokenize(pattern.predicate)
            if token.kind == "name"
        }
        found = set(NAME.findall(card.about(task.query, 200).text))
        ours.append(len(wanted & found) / len(wanted) if wanted else 1.0)
        theirs.append(len(wanted & set(listed.split())) / len(wanted) if wanted else 1.0)
    assert sum(ours) / len(ours) > 0.7 > 0.5 > sum(theirs) / len(theirs)


def _short(iri: str, prefixes: dict[str, str]) -> str:
    return next(
        (f"{name}:{iri.removeprefix(space)}" for name, space in prefixes.items()
         if iri.startswith(space)), iri)  # fmt: skip


def test_a_schema_of_ones_own(wood: Schema, tmp_path: Path) -> None:
    endpoint = EndpointConfig("https://wood.example/sparql", "Wood", prefixes={"w": "http://e/"})
    schema = SchemaMap.of(wood)
    card = SchemaCard(endpoint, schema, SchemaIndex(schema, [wood]))
    lines = card.about("What does it sing?").text.splitlines()
    assert "w:Bird: w:song text, w:near -> w:Bird" in lines
    assert "w:Nest: w:builtBy -> w:Bird" in lines


def test_a_federated_endpoint_with_the_same_names_hides_no_step(
    wood: Schema, tmp_path: Path
) -> None:
    other = EndpointConfig("https://grove.example/sparql", "Grove")
    endpoint = EndpointConfig(
        "https://wood.example/sparql", "Wood", prefixes={"w": "http://e/"}, federated=(other,)
    )
    joined = Schema.of_files(tmp_path / "wood.ttl", services={other.url: wood})
    schema = SchemaMap.of(joined)
    card = SchemaCard(endpoint, schema, SchemaIndex(schema, [joined]))
    lines = card.about("What does it sing?").text.splitlines()
    assert "w:Nest: w:builtBy -> w:Bird" in lines
    assert any(line.startswith(f"In SERVICE <{other.url}>: ") for line in lines)


def test_without_a_schema_the_data_tell(trees: EndpointConfig) -> None:
    vocabulary = Schema.of(trees)
    with SPARQLClient(trees) as client:
        seen = observed_values(client, vocabulary)
    assert seen["http://e/near"] == {"http://e/Tree": ("http://e/Tree",)}
    schema = SchemaMap.of(vocabulary, seen)
    card = SchemaCard(trees, schema, SchemaIndex(schema, [vocabulary]))
    lines = card.about("Which trees are the highest?").text.splitlines()
    assert lines[1].startswith("t:Tree (3): t:height integer, ")
    assert "t:near -> t:Tree" in lines[1]


def test_no_link_is_claimed_that_the_data_lack(uniprot: Known, card: SchemaCard) -> None:
    """Every arrow on some cards is one that instances follow."""
    arrows = set()
    for question in (DISEASES, "Which structures does P05067 have?", "Where is its signal?"):
        for line in card.about(question, 800).text.splitlines():
            head = re.match(r"([\w:-]+) \(\w+\): (.*)", line)
            for entry in head[2].split(", ") if head else ():
                name, _, targets = entry.partition(" -> ")
                arrows |= {(head[1], name.split()[0], t) for t in targets.split(" | ") if t}
    assert len(arrows) > 30
    with SPARQLClient(uniprot.endpoint) as client:
        for subject, name, target in sorted(arrows):
            typed = "" if target in UNTYPED else f"?o a {target}"
            query = f"ASK {{ ?s a {subject} ; {name} ?o . {typed} }}"
            assert client.query(query).value, query  # type: ignore[union-attr]


def test_properties_of_no_known_class(trees: EndpointConfig) -> None:
    vocabulary = Schema.of(trees)
    schema = SchemaMap.of(vocabulary)
    card = SchemaCard(trees, schema, SchemaIndex(schema, [vocabulary]))
    text = card.about("Which trees are the highest?").text
    assert text.splitlines()[1].startswith("Properties: t:height, ")
    assert SchemaCard(trees, SchemaMap(()), SchemaIndex(SchemaMap(()), [])).about("?").text == ""
