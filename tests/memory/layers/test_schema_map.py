"""The schema as a map: links, steps, and the ways between classes."""

from __future__ import annotations

from reasoningbank.schema import Schema, SchemaMap
from reasoningbank.schema.links import SchemaStep

from .conftest import Known

E = "http://e/"
UP = "http://purl.uniprot.org/core/"


def names(way: tuple[SchemaStep, ...] | None) -> str:
    assert way is not None
    return " ".join(
        ("^" if step.backwards else "") + step.property.replace("#", "/").rpartition("/")[2]
        for step in way
    )


def test_a_way_goes_over_the_classes_between(wood: Schema) -> None:
    schema = SchemaMap.of(wood)
    assert schema.hub in (E + "Nest", E + "Tree")
    assert names(schema.way({E + "Tree"}, E + "Bird")) == "holds builtBy"
    assert names(schema.way({E + "Bird"}, E + "Tree")) == "^builtBy ^holds"
    assert schema.way({E + "Tree", E + "Bird"}, E + "Bird") == ()
    assert schema.way({E + "Tree"}, E + "Stone") is None


def test_what_leads_back_to_its_own_classes_leads_each_to_itself(wood: Schema) -> None:
    near = {x.subject: x.objects for x in SchemaMap.of(wood).links if x.property == E + "near"}
    assert near == {E + "Tree": (E + "Tree",), E + "Bird": (E + "Bird",)}


def test_ways_of_uniprot(uniprot: Known) -> None:
    schema = uniprot.schema
    assert schema.hub == UP + "Protein"
    hub = {schema.hub}
    ways = {
        "Disease": "annotation disease",
        "Cellular_Component": "annotation locatedIn cellularComponent",
        "Database": "seeAlso database",
        "Gene": "encodedBy",
        "Catalytic_Activity": "annotation catalyticActivity",
    }
    for name, way in ways.items():
        assert names(schema.way(hub, UP + name)) == way


def test_a_detour_leads_by_the_class_that_is_meant(uniprot: Known) -> None:
    region = "http://biohackathon.org/resource/faldo#Region"
    meant = UP + "Zinc_Finger_Annotation"
    way = uniprot.schema.way({uniprot.schema.hub}, region, lambda name: float(name != meant))
    assert way is not None
    assert [step.target for step in way] == [meant, region]


def test_counts_are_those_of_the_class(uniprot: Known) -> None:
    links = {(x.subject, x.property): x for x in uniprot.schema.links}
    assert links[UP + "Protein", UP + "organism"].triples == 1001
    assert links[UP + "Disease", UP + "mnemonic"].triples == 454
    # Declared, and in no instance.
    assert (UP + "Structured_Name", UP + "allergenName") not in links


def test_properties_of_other_endpoints_say_where_they_are(uniprot: Known) -> None:
    rhea = [x for x in uniprot.schema.links if "rhea" in x.service]
    assert "http://rdf.rhea-db.org/equation" in {x.property for x in rhea}
    assert not any(
        step.property.startswith("http://rdf.rhea-db.org/")
        for steps in uniprot.schema.steps.values()
        for step in steps
    )
