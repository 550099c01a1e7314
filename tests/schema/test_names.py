"""The nearest names to one that does not exist."""

from __future__ import annotations

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.schema import NamedTerm, Schema, describe_names, nearest_names
from reasoningbank.schema.names import Role, nearest_prefixes, spoken
from reasoningbank.schema.schema import Contents
from reasoningbank.sparql import compact
from reasoningbank.sparql.terms import NamedNode

UP = "http://purl.uniprot.org/core/"


@pytest.fixture(scope="module")
def names(uniprot: Pack) -> Schema:
    """The names of the schema, without an endpoint."""
    assert uniprot.schema is not None
    return Schema.of_files(uniprot.schema)


@pytest.mark.parametrize(
    ("written", "role", "meant"),
    [
        (UP + "protein", "class", "up:Protein"),
        (UP + "Proteins", "class", "up:Protein"),
        (UP + "DiseaseAnnotation", "class", "up:Disease_Annotation"),
        (UP + "disease_annotation", "class", "up:Disease_Annotation"),
        (UP + "Transmembrane_Segment", "class", "up:Transmembrane_Annotation"),
        (UP + "Natural_Variant", "class", "up:Natural_Variant_Annotation"),
        (UP + "Taxonomy", "class", "up:Taxon"),
        (UP + "Keyword", "class", "up:Concept"),
        ("http://purl.uniprot.org/core#Protein", "class", "up:Protein"),
        ("https://www.purl.uniprot.org/core/Protein", "class", "up:Protein"),
        (UP + "hasMass", "property", "up:mass"),
        (UP + "hasEC", "property", "up:ecName"),
        (UP + "hasKeyword", "property", "up:classifiedWith"),
        (UP + "evidenceCode", "property", "up:evidence"),
        (UP + "experimental_method", "property", "up:method"),
        (UP + "alternateName", "property", "up:alternativeName"),
        (UP + "catalyzes", "property", "up:catalyzedReaction"),
        (UP + "location", "property", "up:locatedIn"),
        (UP + "taxon", "property", "up:organism"),
        ("http://www.w3.org/2004/02/skos/core#seeAlso", "property", "rdfs:seeAlso"),
        ("http://purl.uniprot.org/taxonomy/scientificName", "property", "up:scientificName"),
    ],
)
def test_what_was_meant_is_among_the_nearest(
    written: str, role: Role, meant: str, names: Schema, uniprot: Pack
) -> None:
    found = nearest_names(written, names, role=role)
    shown = [compact(NamedNode(term.iri), uniprot.prefixes) for term in found]
    assert meant in shown
    assert len(shown) <= 3


def test_nothing_is_better_than_anything(names: Schema) -> None:
    assert nearest_names(UP + "qwertz", names, role="property") == ()


def test_properties_of_the_class_at_hand_go_first(names: Schema) -> None:
    near = nearest_names(UP + "hasName", names, role="property", classes=[UP + "Taxon"])
    assert {term.iri for term in near} <= set(names.properties_of(UP + "Taxon"))
    assert UP + "scientificName" in {term.iri for term in near}


@pytest.mark.parametrize(
    ("written", "meant"),
    [("uniprot", "uniprotkb"), ("uniprot", "up"), ("go", "GO"), ("taxonomy", "taxon"),
     ("keyword", "keywords"), ("enzyme", "ec"), ("core", "up"), ("rhea", "rh"), ("dc", "dcterms")],
)  # fmt: skip
def test_the_prefix_that_was_meant(written: str, meant: str, uniprot: Pack) -> None:
    assert meant in nearest_prefixes(written, uniprot.prefixes)


E = "http://e/"
KNOWN = Contents(
    {E + "Tree": NamedTerm(E + "Tree", "Tree", "A tall plant.", count=3)},
    {
        E + "height": NamedTerm(E + "height", comment="x" * 300, domain=(E + "Tree",)),
        E + "near": NamedTerm(E + "near", label="near"),
    },
)


def test_the_schema_says_what_the_names_of_a_query_mean() -> None:
    schema = Schema(lambda: KNOWN)
    query = f"PREFIX e: <{E}> SELECT * {{ ?x a e:Tree ; t:height ?h ; e:heigth ?g ; <{E}near> ?y . "
    query += "?y rdfs:label ?l ; <http://other/p> 1 }"
    lines = list(describe_names(query, schema, {"t": E}))
    assert lines[0] == "t:Tree (class): A tall plant.; 3 in the data"
    assert lines[1].startswith("t:height (property): from t:Tree to anything; xxx")
    assert len(lines[1]) < 200
    assert lines[2] == "t:heigth: no class or property of this name is known"
    assert lines[3] == "t:near (property): near"
    assert len(lines) == 4
    assert list(describe_names("no query at all", schema, {})) == []


def test_a_local_name_is_spoken_with_all_its_letters() -> None:
    assert spoken("http://e/hasNomeCittà") == "has nome città"
    assert spoken("http://e/DNASequence2") == "dna sequence 2"
