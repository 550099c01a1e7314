"""The committed LiITA sample holds what its description says."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest
from liita_sample import DIALECT, LEXICON, PACK, PREFIXES, ask, load, rows
from pyoxigraph import NamedNode, Store

from ontology.liita.builder.__main__ import main
from ontology.liita.builder.names import DIALECTS
from ontology.liita.builder.words import read_words

NAMED_GRAPHS = {
    "http://liita.it/data",
    "http://w3id.org/elita",
    "http://liita.it/data/id/LexicalResources/Sentix",
    "http://liita.it/data/id/LexicalResources/CompL-it",
    "http://liita.it/data/id/DialettoSiciliano/",
    "http://liita.it/data/id/DialettoParmigiano",
}
VENOMOUS = {
    "ape",
    "calabrone",
    "cobra",
    "ornitorinco",
    "rospo",
    "salamandra",
    "scorfano",
    "scorpione",
    "tarantola",
    "tracina",
    "vespa",
    "vipera",
}


@pytest.fixture(scope="module")
def liita() -> Store:
    return load(PACK / "data" / "liita.nq.gz")


@pytest.fixture(scope="module")
def complit() -> Store:
    return load(PACK / "data" / "complit.nq.gz")


def number(store: Store, query: str) -> int:
    return int(rows(store, query)[0][0])


def test_the_data_are_what_the_tables_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    for name in ("data/liita.nq.gz", "data/complit.nq.gz", "void.ttl", "complit.void.ttl"):
        assert (tmp_path / name).read_bytes() == (PACK / name).read_bytes(), name
    assert "lemmas with emotions" in capsys.readouterr().out


def test_pack_file_names_files_that_exist() -> None:
    described = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))
    (other,) = described["federated"]
    for name in (*described["data"], described["schema"], described["void"]):
        assert (PACK / name).is_file(), name
    for name in (*other["data"], other["void"]):
        assert (PACK / name).is_file(), name
    assert described["endpoint"] == "https://liita.it/sparql"
    assert other["url"] == "https://klab.ilc.cnr.it/graphdb-compl-it/"
    assert described["languages"] == ["it", "en"]
    assert sum(path.stat().st_size for path in (PACK / "data").iterdir()) < 500_000


def test_every_quad_is_in_one_of_the_named_graphs(liita: Store, complit: Store) -> None:
    assert {graph.value for graph in liita.named_graphs()} == NAMED_GRAPHS
    assert {graph.value for graph in complit.named_graphs()} == {"http://lexica/mylexicon"}
    for store in (liita, complit):
        assert not bool(store.query("ASK { ?s ?p ?o }"))


@pytest.mark.parametrize(
    ("least", "pattern"),
    [
        (300, "GRAPH <http://liita.it/data> { ?x a lila:Lemma ; lila:hasPOS ?pos }"),
        (100, "GRAPH <http://w3id.org/elita> { ?x elita:HasEmotion ?emotion }"),
        (150, "?x marl:hasPolarity ?polarity ; marl:hasPolarityValue ?value"),
        (150, f"?x vartrans:translatableAs/ontolex:canonicalForm/dcterms:isPartOf {DIALECT[0]}"),
        (100, f"?x vartrans:translatableAs/ontolex:canonicalForm/dcterms:isPartOf {DIALECT[1]}"),
    ],
)
def test_there_are_as_many_as_questions_need(liita: Store, least: int, pattern: str) -> None:
    assert number(liita, f"SELECT (COUNT(DISTINCT ?x) AS ?n) {{ {pattern} }}") >= least


@pytest.mark.parametrize(
    ("least", "pattern"),
    [
        (150, "?x a ontolex:LexicalSense ; skos:definition ?text"),
        (200, "?x lexinfo:hyponym ?other"),
        (90, "?x lexinfo:partMeronym ?other"),
        (80, "?x lexinfo:antonym ?other"),
        (20, "?x lexinfo:approximateSynonym ?other"),
    ],
)
def test_there_are_enough_senses_and_relations(complit: Store, least: int, pattern: str) -> None:
    assert number(complit, f"SELECT (COUNT(DISTINCT ?x) AS ?n) {{ {pattern} }}") >= least


def test_every_part_of_speech_and_emotion_has_words(liita: Store) -> None:
    poses = rows(liita, "SELECT DISTINCT ?p { ?l lila:hasPOS/rdfs:label ?p }")
    assert len(poses) == 12
    query = """SELECT ?e (COUNT(*) AS ?n) { GRAPH <http://w3id.org/elita> {
        ?x elita:HasEmotion/rdfs:label ?e } } GROUP BY ?e"""
    found = dict(rows(liita, query))
    assert len(found) == 9
    assert all(int(count) >= 5 for count in found.values()), found
    many = """SELECT ?w (COUNT(?s) AS ?n) { ?w ontolex:sense ?s } GROUP BY ?w
        HAVING (COUNT(?s) > 1)"""
    assert len(rows(load(PACK / "data" / "complit.nq.gz"), many)) >= 30


@pytest.mark.parametrize(
    "pattern",
    [
        'GRAPH <http://liita.it/data> { ?l ontolex:writtenRep "cane" ; lila:hasPOS lila:noun ; '
        "lila:hasGender lila:masculine ; dcterms:isPartOf "
        "<http://liita.it/data/id/lemma/LemmaBank> }",
        '?l rdfs:label "amare" ; lila:hasInflectionType <http://liita.it/data/id/inflection/v-are>',
        '?l rdfs:label "ottimo" ; lila:hasDegree lila:superlative',
        '?l ontolex:writtenRep "obiettivo", "obbiettivo"',
        '?a rdfs:label "fine" ; lila:hasGender lila:masculine . '
        '?b rdfs:label "fine" ; lila:hasGender lila:feminine',
        '?e ontolex:canonicalForm/rdfs:label "cane" ; '
        'vartrans:translatableAs/ontolex:canonicalForm/ontolex:writtenRep "cani"',
        '?e ontolex:canonicalForm/rdfs:label "mangiare" ; '
        'vartrans:translatableAs/ontolex:canonicalForm/ontolex:writtenRep "magnär"',
        '?l ontolex:writtenRep "dito" . lex:MUSditoNOUN ontolex:canonicalForm ?l',
        '<http://w3id.org/elita/Lexicon> a lime:Lexicon ; dcterms:title ?t ; lime:language "it"',
    ],
)
def test_facts_that_questions_ask_for(liita: Store, pattern: str) -> None:
    assert ask(liita, pattern)


@pytest.mark.parametrize(
    ("special", "general"),
    [("cane", "mammifero"), ("vipera", "serpente"), ("rosso", "colore"), ("ira", "rabbia")],
)
def test_kinds_run_from_the_special_to_the_general(
    complit: Store, special: str, general: str
) -> None:
    reported = f'?s ontolex:isSenseOf/rdfs:label "{special}"@it . '
    reported += f'?g ontolex:isSenseOf/rdfs:label "{general}"@it . '
    assert ask(complit, reported + "?s lexinfo:hyponym ?g . ?g lexinfo:hypernym ?s")
    assert not ask(complit, reported + "?s lexinfo:hypernym+ ?g")


@pytest.mark.parametrize(("part", "whole"), [("dito", "mano"), ("foglia", "pianta")])
def test_parts_run_from_the_part_to_the_whole(complit: Store, part: str, whole: str) -> None:
    reported = f'?p ontolex:isSenseOf/rdfs:label "{part}"@it . '
    reported += f'?w ontolex:isSenseOf/rdfs:label "{whole}"@it . '
    assert ask(complit, reported + "?p lexinfo:partMeronym ?w . ?w lexinfo:partHolonym ?p")
    assert not ask(complit, reported + "?p lexinfo:partHolonym+ ?w")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("hyponym", "hypernym"),
        ("partMeronym", "partHolonym"),
        ("antonym", "antonym"),
        ("approximateSynonym", "approximateSynonym"),
    ],
)
def test_relations_are_reported_both_ways(complit: Store, first: str, second: str) -> None:
    for one, other in ((first, second), (second, first)):
        lonely = f"?a lexinfo:{one} ?b FILTER NOT EXISTS {{ ?b lexinfo:{other} ?a }}"
        assert not ask(complit, lonely)


@pytest.mark.parametrize("up", ["hyponym", "partMeronym"])
def test_hierarchies_have_no_circles_and_direct_steps_only(complit: Store, up: str) -> None:
    assert not ask(complit, f"?a lexinfo:{up}+ ?a")
    shortcut = f"?a lexinfo:{up} ?b . ?b lexinfo:{up}+ ?c . ?a lexinfo:{up} ?c"
    assert up == "partMeronym" or not ask(complit, shortcut)


def test_venomous_animals_are_found_by_their_definitions(complit: Store) -> None:
    query = """SELECT DISTINCT ?name { ?animale ontolex:isSenseOf/rdfs:label "animale"@it .
        ?s lexinfo:hyponym+ ?animale ; skos:definition ?d ; ontolex:isSenseOf/rdfs:label ?name
        FILTER (CONTAINS(?d, "velen")) }"""
    assert {name for (name,) in rows(complit, query)} == VENOMOUS
    plants = query.replace('"animale"', '"pianta"')
    assert {name for (name,) in rows(complit, plants)} == {"belladonna", "cicuta", "oleandro"}


def test_an_entry_belongs_to_one_resource(liita: Store) -> None:
    kinds = ("elita:HasEmotion", "marl:hasPolarityValue", "vartrans:translatableAs")
    for one in kinds:
        for other in kinds:
            assert one == other or not ask(liita, f"?e {one} ?a ; {other} ?b")
    assert not ask(liita, f"?e vartrans:translatableAs ?a, ?b . {LEXICON[0]} lime:entry ?a . "
                          f"{LEXICON[1]} lime:entry ?b")  # fmt: skip
    assert not ask(liita, "?lemma a lila:Lemma ; ontolex:canonicalForm|elita:HasEmotion ?x")


def test_facts_are_in_the_graphs_that_the_readme_names(liita: Store) -> None:
    query = "SELECT DISTINCT ?g { GRAPH ?g { ?s %s ?o } }"
    one = {
        "elita:HasEmotion": "http://w3id.org/elita",
        "lila:hasInflectionType": "http://liita.it/data",
        "marl:hasPolarityValue": "http://liita.it/data/id/LexicalResources/Sentix",
    }
    for name, graph in one.items():
        assert rows(liita, query % name) == [(graph,)]
    assert len(rows(liita, query % "vartrans:translatableAs")) == 2
    assert not ask(liita, "GRAPH <http://liita.it/data> { ?e ontolex:canonicalForm ?l }")


def test_everything_has_its_name_and_its_place(liita: Store, complit: Store) -> None:
    for needed in (
        "rdfs:label ?x",
        "ontolex:writtenRep ?x",
        "lila:hasPOS ?x",
        "dcterms:isPartOf ?x",
    ):
        assert not ask(liita, f"?l a lila:Lemma FILTER NOT EXISTS {{ ?l {needed} }}")
    many = "SELECT ?l { ?l a lila:Lemma ; %s ?x } GROUP BY ?l HAVING (COUNT(?x) > 1)"
    assert rows(liita, many % "rdfs:label") == []
    assert rows(liita, many % "lila:hasPOS") == []
    unsexed = "?l lila:hasPOS lila:noun FILTER NOT EXISTS { ?l lila:hasGender ?g }"
    assert not ask(liita, unsexed)
    alone = "?e a ontolex:LexicalEntry FILTER NOT EXISTS { ?e ontolex:canonicalForm/a lila:Lemma }"
    assert not ask(liita, alone)
    unlisted = "?e a ontolex:LexicalEntry FILTER NOT EXISTS { ?lexicon lime:entry ?e }"
    assert not ask(liita, unlisted)
    two = "SELECT ?s { ?s skos:definition ?d } GROUP BY ?s HAVING (COUNT(?d) > 1)"
    assert rows(complit, two) == []
    bare = "?s a ontolex:LexicalSense FILTER NOT EXISTS { %s }"
    bare %= "?s skos:definition ?d ; ontolex:isSenseOf ?w"
    assert not ask(complit, bare)
    assert not ask(complit, "?s skos:definition ?d FILTER (LANG(?d) != 'it')")


def test_the_endpoints_share_the_words_addresses(liita: Store, complit: Store) -> None:
    graph = "<http://liita.it/data/id/LexicalResources/CompL-it>"
    linked = rows(liita, f"SELECT ?w {{ GRAPH {graph} {{ ?w ontolex:canonicalForm ?l }} }}")
    known = rows(complit, "SELECT ?w { ?w a ontolex:Word }")
    assert sorted(linked) == sorted(known)
    assert len(set(linked)) == len(linked)
    # Parts of speech agree: lila: here, lexinfo: there.
    query = f"""SELECT ?w ?p {{ GRAPH {graph} {{ ?w ontolex:canonicalForm ?l }}
        ?l lila:hasPOS/rdfs:label ?p }}"""
    there = rows(complit, "SELECT ?w ?p { ?w lexinfo:partOfSpeech/rdfs:label ?p }")
    assert sorted(rows(liita, query)) == sorted(there)


def test_schema_covers_every_class_and_property_in_use(liita: Store, complit: Store) -> None:
    schema = load(PACK / "schema.ttl")
    comment = NamedNode("http://www.w3.org/2000/01/rdf-schema#comment")
    used = "SELECT DISTINCT ?x { { ?s a ?x } UNION { ?s ?x ?o } }"
    names = {name for store in (liita, complit) for (name,) in rows(store, used)}
    assert [
        name
        for name in sorted(names)
        if not any(schema.quads_for_pattern(NamedNode(name), comment, None))
    ] == []
    named = rows(schema, "SELECT DISTINCT ?s { ?s rdfs:comment ?c }")
    assert [name for (name,) in named if name not in names] == []


@pytest.mark.parametrize(("data", "void"), [("liita", "void.ttl"), ("complit", "complit.void.ttl")])
def test_statistics_equal_the_data(data: str, void: str) -> None:
    store, reported = load(PACK / "data" / f"{data}.nq.gz"), load(PACK / void)
    graphs = rows(reported, "SELECT ?g ?n { [] sd:name ?g ; sd:graph/void:triples ?n }")
    counted = rows(store, "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g")
    assert sorted(graphs) == sorted(counted)
    query = """SELECT ?g ?p ?n { [] sd:name ?g ; sd:graph/void:propertyPartition ?part .
        ?part void:property ?p ; void:triples ?n }"""
    counted = rows(store, "SELECT ?g ?p (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ?p")
    assert sorted(rows(reported, query)) == sorted(counted)
    query = """SELECT ?g ?c ?n { [] sd:name ?g ; sd:graph/void:classPartition ?part .
        ?part void:class ?c ; void:entities ?n }"""
    counted = rows(store, "SELECT ?g ?c (COUNT(?s) AS ?n) { GRAPH ?g { ?s a ?c } } GROUP BY ?g ?c")
    assert sorted(rows(reported, query)) == sorted(counted)


def test_the_prefixes_of_the_readme_are_the_pack_s() -> None:
    described = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))["prefixes"]
    readme = (PACK / "README.md").read_text(encoding="utf-8")
    for prefix in ("lila", "ontolex", "vartrans", "lime", "lexinfo", "elita", "marl", "lex"):
        assert f"<{described[prefix]}>" in readme
        assert f"PREFIX {prefix}: <{described[prefix]}>" in PREFIXES


def test_the_readme_s_numbers_are_the_tables() -> None:
    words = read_words(dialects=tuple(dialect.key for dialect in DIALECTS))
    of_kind = Counter(relation.kind for relation in words.relations)
    readme = (PACK / "README.md").read_text(encoding="utf-8")
    emotions = sum(bool(each.emotions) for each in words.affects)
    polarities = sum(each.polarity is not None for each in words.affects)
    for table, reported in {
        "lemmas.tsv": str(len(words.lemmas)),
        "affect.tsv": f"{emotions} / {polarities}",
        "siciliano.tsv": str(len(words.dialects["siciliano"])),
        "parmigiano.tsv": str(len(words.dialects["parmigiano"])),
        "senses.tsv": str(sum(map(len, words.senses.values()))),
        "kinds.tsv": str(of_kind["hyponym"]),
        "parts.tsv": str(of_kind["partMeronym"]),
        "pairs.tsv": str(of_kind["antonym"] + of_kind["approximateSynonym"]),
    }.items():
        assert f"| {reported} | `{table}` |" in readme, table
