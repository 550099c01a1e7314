"""What an agent is told of queries of the sort a small model writes, on real endpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.sparql import EndpointConfig, OxigraphServer, Result, SPARQLClient, prepare
from reasoningbank.tools.diagnosis import (
    MOST_CHARS,
    MOST_LINES,
    diagnose,
    is_empty,
    probe_run,
    suggest_for_error,
    unknown_names,
)
from reasoningbank.tools.vocabulary import Vocabulary

#: A wrong query, and what its diagnosis must say: a phrase by phrase, in any line.
WRONG: list[tuple[str, tuple[str, ...]]] = [
    # a name that does not exist
    ("SELECT ?p { ?p a up:protein }", ("no class up:protein", "try up:Protein")),
    ("SELECT ?p { ?p a up:Proteins }", ("no class up:Proteins", "try up:Protein")),
    ("SELECT ?p { ?p a <http://purl.uniprot.org/core#Protein> }", ("try up:Protein",)),
    ("SELECT ?p { ?p a <https://purl.uniprot.org/core/Protein> }", ("try up:Protein",)),
    ("SELECT ?k { ?p up:classifiedWith ?k . ?k a up:Keyword }", ("try up:Concept",)),
    ("SELECT ?c { ?c a up:PDB_Structure }", ("try up:Structure_Resource",)),
    ("SELECT ?c { ?c a up:Citation }", ("only of its subclasses", "up:Journal_Citation")),
    (
        "SELECT ?s ?e { ?x a up:Transmembrane_Segment ; up:start ?s ; up:end ?e }",
        ("try up:Transmembrane_Annotation", "no property up:start", "faldo:end"),
    ),
    (
        "SELECT ?n { uniprotkb:P04637 up:recommendedName ?n . ?n up:fullname ?x }",
        ("no property up:fullname", "try up:fullName"),
    ),
    ("SELECT ?m { ?p a up:Protein ; up:hasMass ?m }", ("up:sequence/up:mass",)),
    ("ASK { uniprotkb:P05067 up:hasMass ?m }", ("up:sequence/up:mass",)),
    ("SELECT ?g { uniprotkb:P04637 up:gene ?g }", ("try up:encodedBy",)),
    ("SELECT ?m { ?p a up:Protein ; up:weight ?m }", ("no property up:weight", "a up:Protein has")),
    ("SELECT ?n { ?o a up:Taxon ; up:proteinCount ?n }", ("count with (COUNT(?x) AS ?n)",)),
    ("SELECT ?l { ?d a up:Disease ; skos:seeAlso ?l }", ("try rdfs:seeAlso",)),
    ("SELECT ?t { ?t taxon:scientificName ?n }", ("try up:scientificName",)),
    (
        "SELECT ?b { ?a a up:Transmembrane_Annotation ; up:begin ?b }",
        ("up:range/faldo:begin",),
    ),
    (
        "SELECT ?m { ?p a up:Protein ; up:experimentalMethod ?m }",
        ("rdfs:seeAlso/up:method",),
    ),
    # a path whose end is asked on as if it were its middle
    (
        "SELECT ?s { uniprotkb:P04637 up:encodedBy/skos:prefLabel ?g . ?g skos:altLabel ?s }",
        ("up:encodedBy ?other . ?other skos:prefLabel ?g ; skos:altLabel ?s",),
    ),
    # a resource in quotation marks, and a column that nothing binds
    (
        'SELECT ?g { ?p up:encodedBy ?g . FILTER(?p = "uniprotkb:P04637") }',
        ("write uniprotkb:P04637 without quotation marks",),
    ),
    (
        "SELECT ?sign { uniprotkb:P04637 up:mnemonic ?m . ?m up:mass ?x }",
        ("?sign is selected, and no pattern has it; not selected are ?m, ?x",),
    ),
    # a resource where a class stands, a class where a property stands, and so on
    (
        "SELECT ?m { ?p a uniprotkb:P04637 ; up:mass ?m }",
        ("uniprotkb:P04637 is no class but a up:Protein", "in place of ?p"),
    ),
    ("SELECT ?d { ?d a disease:SIDBA1 }", ('"SIDBA1" is the up:mnemonic of disease:',)),
    ("SELECT ?p { ?p up:Protein ?x }", ("up:Protein is a class, no property",)),
    ("SELECT ?p { ?p a up:mnemonic }", ("up:mnemonic is a property, no class",)),
    # a prefix declared for somewhere else
    (
        "PREFIX up: <http://www.uniprot.org/ontology/>\nSELECT ?p { ?p a up:Protein }",
        ("PREFIX up:", "is <http://purl.uniprot.org/core/>", "leave that line out"),
    ),
    (
        "PREFIX up: <http://www.uniprot.org/ontology/>\nSELECT ?p { ?p a up:Kingdom }",
        ("leave that line out", "no class up:Kingdom"),
    ),
    # a text that the data write otherwise, or elsewhere
    (
        'SELECT ?p { ?p up:organism/up:scientificName "Homo sapiens"@en }',
        ('write up:scientificName "Homo sapiens"',),
    ),
    (
        'SELECT ?p { ?p up:organism/up:scientificName "homo sapiens" }',
        ('write up:scientificName "Homo sapiens"',),
    ),
    ('SELECT ?p { ?p up:mnemonic "p53_human" }', ('write up:mnemonic "P53_HUMAN"',)),
    ('SELECT ?p { ?p up:reviewed "true" }', ("write up:reviewed true",)),
    ('SELECT ?p { ?p up:created "2005" }', ("the nearest is", "^^xsd:date")),
    (
        'SELECT ?p { ?p up:organism "Homo sapiens" }',
        ('write ?p up:organism/up:scientificName "Homo sapiens"',),
    ),
    (
        'SELECT ?p { ?p a up:Protein ; rdfs:label "Arabidopsis thaliana" }',
        ('"Arabidopsis thaliana" is the up:scientificName of taxon:3702',),
    ),
    (
        'SELECT ?d { ?p up:recommendedName "P26367" ; up:annotation/up:disease ?d }',
        ("uniprotkb:P26367 is a up:Protein", "in place of ?p"),
    ),
    ('SELECT ?p { ?p up:enzyme "2.7.11.1" }', ("is a up:Enzyme", 'in place of "2.7.11.1"')),
    (
        'SELECT ?p { ?p rdfs:seeAlso/up:database "PDB" }',
        ('up:database/up:abbreviation "PDB"',),
    ),
    (
        'SELECT ?r { ?a up:range ?r . ?r faldo:begin "1" }',
        ("write ?r faldo:begin/faldo:position 1",),
    ),
    (
        'SELECT ?p { VALUES ?n { "human" } ?p up:organism/up:scientificName ?n }',
        ('"Human" is the up:commonName of taxon:9606',),
    ),
    # a resource that is not there, or not there like this
    ("SELECT ?p { ?p up:organism taxon:99999999 }", ("taxon:99999999 does not exist here",)),
    ("SELECT ?t { ?t up:rank up:Species }", ("up:rank up:Taxonomic_Rank_Species",)),
    ('SELECT ?t { ?t up:rank "Species" }', ("up:Taxonomic_Rank_Species",)),
    ("SELECT ?s { ?s up:method up:NMR }", ("up:NMR_Spectroscopy",)),
    ("SELECT ?e { ?e up:database database:pdb }", ("up:database database:PDB",)),
    (
        "ASK { uniprotkb:P04637 up:organism taxon:10090 }",
        ("uniprotkb:P04637 up:organism is taxon:9606, not taxon:10090",),
    ),
    ("DESCRIBE uniprotkb:P99999X", ("uniprotkb:P99999X does not exist here",)),
    ("SELECT ?p { ?p up:enzyme ec:2.7.11.111 }", ("ec:2.7.11.111 does not exist here",)),
    # patterns that do not meet
    (
        "SELECT ?m { uniprotkb:P04637 up:mass ?m }",
        ("write uniprotkb:P04637 up:sequence/up:mass ?m",),
    ),
    ("SELECT ?m { ?p a up:Protein ; up:mass ?m }", ("write ?p up:sequence/up:mass ?m",)),
    (
        "SELECT ?d { uniprotkb:P26367 up:disease ?d }",
        ("write uniprotkb:P26367 up:annotation/up:disease ?d",),
    ),
    (
        "SELECT ?b { ?a a up:Transmembrane_Annotation ; faldo:begin ?b }",
        ("write ?a up:range/faldo:begin ?b",),
    ),
    (
        "SELECT ?n { ?p a up:Protein ; up:organism ?o . ?o rdfs:label ?n }",
        ("?o is a up:Taxon here, which has no rdfs:label but", "up:scientificName"),
    ),
    (
        "CONSTRUCT { ?p up:name ?n } WHERE { ?p up:recommendedName/up:name ?n }",
        ("the value of up:recommendedName is a up:Structured_Name", "up:fullName"),
    ),
    (
        "SELECT ?g { ?g up:encodedBy uniprotkb:P04637 }",
        ("write uniprotkb:P04637 up:encodedBy ?g",),
    ),
    (
        "SELECT ?g { ?g a up:Gene . ?g up:encodedBy ?p . ?p a up:Protein }",
        ("points the wrong way: write ?p up:encodedBy ?g",),
    ),
    (
        "SELECT ?g { ?g up:encodedBy ?p . ?p a up:Protein }",
        ("points the wrong way: write ?p up:encodedBy ?g",),
    ),
    ("SELECT ?a { ?a a up:Disease ; a up:Protein }", ("so ?a a up:Protein does not fit",)),
    ("SELECT ?x { ?x rdfs:label ?x }", ("the same variable",)),
    # conditions
    (
        'SELECT ?p { ?p up:scientificName ?n FILTER(?n = "Homo Sapiens") }',
        ("takes every row away", 'CONTAINS(LCASE(STR(?n)), "homo sapiens")'),
    ),
    (
        'SELECT ?p { ?p a up:Protein FILTER(?p = "P04637") }',
        ("takes every row away", "STR(?p)", "P04637"),
    ),
    (
        'SELECT ?x { ?x a up:Disease ; skos:prefLabel ?name FILTER(CONTAINS(?label, "R")) }',
        ("?label, which no pattern binds",),
    ),
    (
        "SELECT ?m { uniprotkb:P04637 up:sequence/up:mass ?m FILTER(?m > 1000000) }",
        ("?m is such as 43653",),
    ),
    ("SELECT ?p { ?p a up:Protein MINUS { ?p a up:Protein } }", ("MINUS", "takes every row away")),
    (
        "SELECT ?p { ?p a up:Protein } GROUP BY ?p HAVING (COUNT(*) > 5000)",
        ("HAVING that leaves no group",),
    ),
    ("SELECT ?p { ?p a up:Protein } OFFSET 9000000", ("OFFSET skips",)),
    # graphs, groups and counts
    (
        "SELECT ?e { GRAPH <http://sparql.uniprot.org/uniprot> { ?e a up:Taxon } }",
        ("it is in <http://sparql.uniprot.org/taxonomy>",),
    ),
    (
        "SELECT ?e FROM <http://sparql.uniprot.org/taxonomy> { ?e a up:Protein }",
        ("in the graphs of FROM: it is in <http://sparql.uniprot.org/uniprot>",),
    ),
    (
        'SELECT ?p { ?p a up:Protein { SELECT ?p { ?p up:mnemonic "NOPE" } } }',
        ('no up:mnemonic is "NOPE"',),
    ),
    (
        'SELECT (COUNT(?p) AS ?n) { ?p up:organism/up:scientificName "Mouse" }',
        ('"Mouse" is the up:commonName of taxon:10090',),
    ),
]


@pytest.fixture(scope="module")
def names(sample: EndpointConfig, uniprot: Pack) -> Vocabulary:
    """The vocabulary of the sample, shared by all tests as by all trials of a run."""
    return Vocabulary.of(sample, uniprot.schema)


@pytest.fixture
def trees_names() -> Vocabulary:
    """The vocabulary of the trees."""
    e, label = "http://e/", "http://www.w3.org/2000/01/rdf-schema#label"
    return Vocabulary.of_terms([e + "Tree", e + "Moss"], [e + "height", e + "near", label])


def told(query: str, config: EndpointConfig, names: Vocabulary) -> tuple[str, ...]:
    """Run a query that gives nothing and return its diagnosis."""
    client = SPARQLClient(config)
    prepared = client.prepare(query, limit=100)
    assert is_empty(client.query(prepared), prepared), "the query is not wrong"
    lines = diagnose(prepared, probe_run(config), names, namespaces=config.namespaces)
    assert len(lines) <= MOST_LINES
    assert all(0 < len(line) <= MOST_CHARS and "\n" not in line for line in lines)
    return lines


@pytest.mark.parametrize(("query", "phrases"), WRONG)
def test_the_culprit_is_named(
    query: str, phrases: tuple[str, ...], sample: EndpointConfig, names: Vocabulary
) -> None:
    lines = " | ".join(told(query, sample, names))
    assert all(phrase in lines for phrase in phrases), lines


#: What must be told without schema and statistics too, by whatever engine.
ANYWHERE = [
    ("SELECT ?p { ?p a up:protein }", "try up:Protein"),
    ('SELECT ?p { ?p up:organism "Homo sapiens" }', "up:organism/up:scientificName"),
    ('SELECT ?p { ?o up:scientificName "homo sapiens" }', 'write up:scientificName "Homo sapiens"'),
    ("SELECT ?m { ?p a up:Protein ; up:mass ?m }", "write ?p up:sequence/up:mass ?m"),
    (
        'SELECT ?o { ?o up:scientificName ?n FILTER(?n = "Homo Sapiens") }',
        "CONTAINS(LCASE(STR(?n))",
    ),
    ("SELECT ?t { ?t up:rank up:Species }", "up:Taxonomic_Rank_Species"),
    ('SELECT ?p { ?p up:reviewed "true" }', "write up:reviewed true"),
    (
        "SELECT ?e { GRAPH <http://sparql.uniprot.org/uniprot> { ?e a up:Taxon } }",
        "it is in <http://sparql.uniprot.org/taxonomy>",
    ),
    ("SELECT ?p { ?p a up:Protein MINUS { ?p a up:Protein } }", "MINUS"),
    ("ASK { uniprotkb:NOBODY up:organism ?o }", "uniprotkb:NOBODY does not exist here"),
]


@pytest.mark.parametrize(("query", "phrase"), ANYWHERE)
def test_a_foreign_engine_without_schema_and_statistics(
    query: str, phrase: str, foreign: EndpointConfig, foreign_names: Vocabulary
) -> None:
    assert phrase in " | ".join(told(query, foreign, foreign_names))


@pytest.fixture(scope="module")
def foreign_names(foreign: EndpointConfig) -> Vocabulary:
    """What a look at the foreign engine's data tells."""
    return Vocabulary.of(foreign)


def test_an_empty_default_graph_is_told(bare: EndpointConfig) -> None:
    lines = told("SELECT ?p { ?p a up:Protein ; up:organism ?o }", bare, Vocabulary.of(bare))
    assert "GRAPH ?g" in lines[0]


def test_a_federated_query_is_followed_into_the_service(
    trees: EndpointConfig, trees_names: Vocabulary, tmp_path: Path
) -> None:
    public = "https://elsewhere.example/sparql"
    file = tmp_path / "elsewhere.ttl"
    file.write_bytes(b"@prefix : <http://f/> . :a :weight 3 ; :called <http://e/oak> .")
    with OxigraphServer([file]) as other:
        config = EndpointConfig(
            trees.url,
            "Trees",
            prefixes=trees.prefixes,
            query_url=trees.query_url,
            aliases={public: other.url},
            retries=0,
        )
        query = f"SELECT * {{ ?t a t:Tree . SERVICE <{public}> {{ ?x <http://f/heavy> ?w }} }}"
        lines = told(query, config, trees_names)
        assert f"nothing matches ?x <http://f/heavy> ?w in SERVICE <{public}>" in lines[0]
        assert "<http://f/weight>" in lines[0]
        query = f"SELECT * {{ ?t a t:Moss . SERVICE <{public}> {{ ?x <http://f/called> ?t }} }}"
        lines = told(query, config, trees_names)
        assert f"SERVICE <{public}>" in lines[0]
        assert other.url not in lines[0]
        assert "t:moss (a t:Moss)" in lines[0]


def test_a_name_in_an_optional_branch_is_told_although_there_are_rows(
    sample: EndpointConfig, names: Vocabulary
) -> None:
    asked: list[str] = []

    def run(query: str) -> Result:
        asked.append(query)
        raise AssertionError("a complete vocabulary needs no probe")

    for query in (
        "SELECT * { ?p a up:Protein OPTIONAL { ?p up:hasName ?n } } LIMIT 5",
        "SELECT * { { ?p a up:Protein } UNION { ?p up:hasName ?n } } LIMIT 5",
    ):
        prepared = SPARQLClient(sample).prepare(query)
        (line,) = unknown_names(prepared, names, run, namespaces=sample.namespaces)
        assert "no property up:hasName" in line
        assert "up:recommendedName" in line
    assert not asked


def test_what_an_incomplete_vocabulary_lacks_is_looked_for_in_the_data(
    trees: EndpointConfig,
) -> None:
    class Partial(Vocabulary):
        complete = False  # type: ignore[assignment]

    base = Vocabulary.of_terms(["http://e/Tree"], ["http://e/height"])
    partial = Partial(base._fill)
    client, run = SPARQLClient(trees), probe_run(trees)
    known = client.prepare("SELECT * { ?s t:near ?o OPTIONAL { ?s t:hight ?h } }")
    (line,) = unknown_names(known, partial, run, namespaces=trees.namespaces)
    assert "t:hight" in line
    assert "t:near" not in line


def test_names_inside_a_service_are_not_judged(
    trees: EndpointConfig, trees_names: Vocabulary
) -> None:
    query = "SELECT * { ?s t:near ?o SERVICE <https://x.example/> { ?s t:unheard ?y } }"
    prepared = prepare(query, prefixes=trees.namespaces)
    run = probe_run(trees)
    assert unknown_names(prepared, trees_names, run, namespaces=trees.namespaces) == ()


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ("SELECT ?p { ?p uniprot:mnemonic ?m }", "up:mnemonic"),
        ("SELECT ?p { ?p core:Protein ?m }", "up:Protein"),
        ("SELECT ?p { uniprot:P04637 ?p ?m }", "uniprotkb:"),
        ("SELECT ?p { ?p a up:protein . ", "there is no up:protein (nearest: up:Protein)"),
        (
            "PREFIX up: <http://www.uniprot.org/ontology/> SELECT ?p { ?p a up:Protein ",
            "PREFIX up: is <http://purl.uniprot.org/core/> here",
        ),
    ],
)
def test_a_query_that_cannot_be_sent_gets_the_nearest_names(
    query: str, phrase: str, sample: EndpointConfig, names: Vocabulary
) -> None:
    with pytest.raises(QueryError) as failure:
        SPARQLClient(sample).prepare(query)
    assert phrase in suggest_for_error(query, failure.value, names, sample.namespaces)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?p { ?p a up:Protein ; up:organism taxon:9606 ",
        # A value is in no vocabulary, and not wrong for that.
        "SELECT ?p { ?p up:existence up:Evidence_at_Protein_Level_Existence . ",
    ],
)
def test_a_right_query_that_cannot_be_sent_gets_nothing_more(
    query: str, sample: EndpointConfig, names: Vocabulary
) -> None:
    with pytest.raises(QueryError) as failure:
        SPARQLClient(sample).prepare(query)
    assert suggest_for_error(query, failure.value, names, sample.namespaces) == ""


@pytest.mark.parametrize("failure", [EndpointError("down"), QueryError("too slow")])
def test_trouble_while_probing_costs_only_what_it_would_have_told(
    failure: Exception, names: Vocabulary, sample: EndpointConfig
) -> None:
    def run(query: str) -> Result:
        raise failure

    prepared = SPARQLClient(sample).prepare("SELECT * { ?p a up:protein ; up:organism taxon:9607 }")
    lines = diagnose(prepared, run, names, namespaces=sample.namespaces)
    assert lines == ("there is no class up:protein: try up:Protein",)


@pytest.mark.parametrize("query", [query for query, _ in WRONG[::3]])
def test_a_diagnosis_survives_the_loss_of_any_probe(
    query: str, names: Vocabulary, sample: EndpointConfig
) -> None:
    run, prepared = probe_run(sample), SPARQLClient(sample).prepare(query)
    for lost in range(6):
        sent = 0

        def some(text: str, lost: int = lost) -> Result:
            nonlocal sent
            sent += 1
            if sent % 6 == lost:
                raise EndpointError("busy")
            return run(text)

        lines = diagnose(prepared, some, names, namespaces=sample.namespaces)
        assert len(lines) <= MOST_LINES
        assert all(0 < len(line) <= MOST_CHARS for line in lines)


def test_requests_and_seconds_are_bounded(
    sample: EndpointConfig, names: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    def slow(run: Callable[[str], Result]) -> Callable[[str], Result]:
        def wait(query: str) -> Result:
            nonlocal count
            count += 1
            time.sleep(0.2)
            return run(query)

        return wait

    monkeypatch.setattr("reasoningbank.tools.diagnosis.empty_results.MOST_SECONDS", 0.5)
    texts = " ".join(f'?p up:mnemonic "NOBODY{n}" .' for n in range(30))
    prepared = SPARQLClient(sample).prepare(f"SELECT * {{ {texts} }}")
    began = time.monotonic()
    lines = diagnose(prepared, slow(probe_run(sample)), names, namespaces=sample.namespaces)
    assert time.monotonic() - began < 10
    assert count <= 3
    assert len(lines) <= MOST_LINES


def test_a_zero_count_is_empty_and_a_zero_value_is_not(trees: EndpointConfig) -> None:
    client = SPARQLClient(trees)

    def empty(query: str) -> bool:
        prepared = client.prepare(query)
        return is_empty(client.query(prepared), prepared)

    assert empty("SELECT (COUNT(*) AS ?n) { ?s a t:tree }")
    assert empty("SELECT (SUM(?h) AS ?n) (MIN(?h) AS ?m) { ?s t:hight ?h }")
    assert not empty("SELECT (COUNT(*) AS ?n) { ?s a t:Tree }")
    assert not empty("SELECT (0 AS ?n) {}")
    assert empty("ASK { ?s a t:tree }")
    assert empty("CONSTRUCT { ?s a t:tree } WHERE { ?s a t:tree }")
    assert not empty("ASK { ?s a t:Tree }")
