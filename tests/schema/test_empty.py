"""The findings on queries of the sort a small model writes, on real endpoints."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.corpus import Pack, load_pack, open_endpoint
from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.schema import (
    Finding,
    Schema,
    as_lines,
    explain_empty,
    explain_error,
    explain_query,
    is_empty,
    lint,
    probe_run,
)
from reasoningbank.schema.diagnosis import MOST_CHARS, MOST_FINDINGS
from reasoningbank.sparql import EndpointConfig, OxigraphServer, Result, SPARQLClient, prepare

#: A wrong query, and the findings on it: code and some fields.
WRONG: list[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    ("SELECT ?p { ?p a up:protein }", [("unknown-class", {"replacements": ["up:Protein"]})]),
    ("SELECT ?p { ?p a up:Proteins }", [("unknown-class", {"replacements": ["up:Protein"]})]),
    (
        "SELECT ?p { ?p a <http://purl.uniprot.org/core#Protein> }",
        [("unknown-class", {"replacements": ["up:Protein"]})],
    ),
    (
        "SELECT ?p { ?p a <https://purl.uniprot.org/core/Protein> }",
        [("unknown-class", {"replacements": ["up:Protein"]})],
    ),
    (
        "SELECT ?k { ?p up:classifiedWith ?k . ?k a up:Keyword }",
        [("unknown-class", {"replacements": ["up:Concept"]})],
    ),
    (
        "SELECT ?c { ?c a up:PDB_Structure }",
        [("unknown-class", {"replacements": ["up:Structure_Resource", "up:Structured_Name"]})],
    ),
    (
        "SELECT ?c { ?c a up:Citation }",
        [("only-subclasses", {"subclasses": ["up:Journal_Citation", "up:Submission_Citation"]})],
    ),
    (
        "SELECT ?s ?e { ?x a up:Transmembrane_Segment ; up:start ?s ; up:end ?e }",
        [
            ("unknown-class", {"replacements": ["up:Transmembrane_Annotation"]}),
            ("unknown-property", {"name": "up:start"}),
            ("unknown-property", {"replacements": ["faldo:end"]}),
        ],
    ),
    (
        "SELECT ?n { uniprotkb:P04637 up:recommendedName ?n . ?n up:fullname ?x }",
        [("unknown-property", {"replacements": ["up:fullName"]})],
    ),
    (
        "SELECT ?m { ?p a up:Protein ; up:hasMass ?m }",
        [("unknown-property", {"replacements": ["up:sequence/up:mass"]})],
    ),
    (
        "ASK { uniprotkb:P05067 up:hasMass ?m }",
        [("unknown-property", {"replacements": ["up:sequence/up:mass"]})],
    ),
    (
        "SELECT ?g { uniprotkb:P04637 up:gene ?g }",
        [("unknown-property", {"replacements": ["up:encodedBy"]})],
    ),
    (
        "SELECT ?m { ?p a up:Protein ; up:weight ?m }",
        [("unknown-property", {"class": "up:Protein"})],
    ),
    (
        "SELECT ?n { ?o a up:Taxon ; up:proteinCount ?n }",
        [("unknown-property", {"counting": True})],
    ),
    (
        "SELECT ?l { ?d a up:Disease ; skos:seeAlso ?l }",
        [("unknown-property", {"replacements": ["rdfs:seeAlso"]})],
    ),
    (
        "SELECT ?t { ?t taxon:scientificName ?n }",
        [("unknown-property", {"replacements": ["up:scientificName"]})],
    ),
    (
        "SELECT ?b { ?a a up:Transmembrane_Annotation ; up:begin ?b }",
        [("unknown-property", {"replacements": ["up:range/faldo:begin"]})],
    ),
    (
        "SELECT ?m { ?p a up:Protein ; up:experimentalMethod ?m }",
        [
            (
                "unknown-property",
                {"replacements": ["rdfs:seeAlso/up:method", "up:interaction/up:experiments"]},
            )
        ],
    ),
    (
        "SELECT ?s { uniprotkb:P04637 up:encodedBy/skos:prefLabel ?g . ?g skos:altLabel ?s }",
        [
            (
                "missing-step",
                {
                    "instead": "uniprotkb:P04637 up:encodedBy ?other . "
                    "?other skos:prefLabel ?g ; skos:altLabel ?s"
                },
            )
        ],
    ),
    (
        'SELECT ?g { ?p up:encodedBy ?g . FILTER(?p = "uniprotkb:P04637") }',
        [("text-for-resource", {"instead": "uniprotkb:P04637"})],
    ),
    (
        "SELECT ?sign { uniprotkb:P04637 up:mnemonic ?m . ?m up:mass ?x }",
        [
            ("unbound-column", {"column": "sign", "unselected": ["?m", "?x"]}),
            ("misfit", {"variable": "m"}),
        ],
    ),
    (
        "SELECT ?m { ?p a uniprotkb:P04637 ; up:mass ?m }",
        [("resource-as-class", {"class": "up:Protein"})],
    ),
    (
        "SELECT ?d { ?d a disease:SIDBA1 }",
        [
            (
                "unknown-class",
                {
                    "owner": {
                        "value": '"SIDBA1"',
                        "property": "up:mnemonic",
                        "resource": "disease:120",
                    }
                },
            )
        ],
    ),
    ("SELECT ?p { ?p up:Protein ?x }", [("wrong-role", {"instead": "?p a up:Protein"})]),
    ("SELECT ?p { ?p a up:mnemonic }", [("wrong-role", {"instead": "?p up:mnemonic ?value"})]),
    (
        "PREFIX up: <http://www.uniprot.org/ontology/>\nSELECT ?p { ?p a up:Protein }",
        [("wrong-prefix", {"prefix": "up", "known": "http://purl.uniprot.org/core/"})],
    ),
    (
        "PREFIX up: <http://www.uniprot.org/ontology/>\nSELECT ?p { ?p a up:Kingdom }",
        [
            ("wrong-prefix", {"prefix": "up", "known": "http://purl.uniprot.org/core/"}),
            ("unknown-class", {"name": "up:Kingdom"}),
        ],
    ),
    (
        'SELECT ?p { ?p up:organism/up:scientificName "Homo sapiens"@en }',
        [("value-form", {"instead": 'up:scientificName "Homo sapiens"'})],
    ),
    (
        'SELECT ?p { ?p up:organism/up:scientificName "homo sapiens" }',
        [("value-form", {"instead": 'up:scientificName "Homo sapiens"'})],
    ),
    (
        'SELECT ?p { ?p up:mnemonic "p53_human" }',
        [("value-form", {"instead": 'up:mnemonic "P53_HUMAN"'})],
    ),
    ('SELECT ?p { ?p up:reviewed "true" }', [("value-form", {"instead": "up:reviewed true"})]),
    (
        'SELECT ?p { ?p up:created "2005" }',
        [("unknown-value", {"replacements": ['"2005-02-01"^^xsd:date']})],
    ),
    (
        'SELECT ?p { ?p up:organism "Homo sapiens" }',
        [("missing-step", {"instead": '?p up:organism/up:scientificName "Homo sapiens"'})],
    ),
    (
        'SELECT ?p { ?p a up:Protein ; rdfs:label "Arabidopsis thaliana" }',
        [
            (
                "unknown-value",
                {
                    "owner": {
                        "value": '"Arabidopsis thaliana"',
                        "property": "up:scientificName",
                        "resource": "taxon:3702",
                    }
                },
            )
        ],
    ),
    (
        'SELECT ?d { ?p up:recommendedName "P26367" ; up:annotation/up:disease ?d }',
        [("text-for-resource", {"class": "up:Protein", "resource": "uniprotkb:P26367"})],
    ),
    (
        'SELECT ?p { ?p up:enzyme "2.7.11.1" }',
        [
            (
                "text-for-resource",
                {"class": "up:Enzyme", "resource": "<http://purl.uniprot.org/enzyme/2.7.11.1>"},
            )
        ],
    ),
    (
        'SELECT ?p { ?p rdfs:seeAlso/up:database "PDB" }',
        [("missing-step", {"instead": '… up:database/up:abbreviation "PDB"'})],
    ),
    (
        'SELECT ?r { ?a up:range ?r . ?r faldo:begin "1" }',
        [("missing-step", {"instead": "?r faldo:begin/faldo:position 1"})],
    ),
    (
        'SELECT ?p { VALUES ?n { "human" } ?p up:organism/up:scientificName ?n }',
        [
            (
                "unknown-value",
                {
                    "owner": {
                        "value": '"Human"',
                        "property": "up:commonName",
                        "resource": "taxon:9606",
                    }
                },
            )
        ],
    ),
    (
        "SELECT ?p { ?p up:organism taxon:99999999 }",
        [("unknown-resource", {"name": "taxon:99999999"})],
    ),
    (
        "SELECT ?t { ?t up:rank up:Species }",
        [("unknown-resource", {"replacements": ["up:Taxonomic_Rank_Species"]})],
    ),
    (
        'SELECT ?t { ?t up:rank "Species" }',
        [("unknown-value", {"replacements": ["up:Taxonomic_Rank_Species"]})],
    ),
    (
        "SELECT ?s { ?s up:method up:NMR }",
        [("unknown-resource", {"replacements": ["up:NMR_Spectroscopy"]})],
    ),
    (
        "SELECT ?e { ?e up:database database:pdb }",
        [("unknown-resource", {"replacements": ["database:PDB"]})],
    ),
    (
        "ASK { uniprotkb:P04637 up:organism taxon:10090 }",
        [("other-value", {"values": ["taxon:9606"]})],
    ),
    ("DESCRIBE uniprotkb:P99999X", [("unknown-resource", {"name": "uniprotkb:P99999X"})]),
    ("SELECT ?p { ?p up:enzyme ec:2.7.11.111 }", [("unknown-resource", {"name": "ec:2.7.11.111"})]),
    (
        "SELECT ?m { uniprotkb:P04637 up:mass ?m }",
        [("missing-step", {"instead": "uniprotkb:P04637 up:sequence/up:mass ?m"})],
    ),
    (
        "SELECT ?m { ?p a up:Protein ; up:mass ?m }",
        [("missing-step", {"instead": "?p up:sequence/up:mass ?m"})],
    ),
    (
        "SELECT ?d { uniprotkb:P26367 up:disease ?d }",
        [("missing-step", {"instead": "uniprotkb:P26367 up:annotation/up:disease ?d"})],
    ),
    (
        "SELECT ?b { ?a a up:Transmembrane_Annotation ; faldo:begin ?b }",
        [("missing-step", {"instead": "?a up:range/faldo:begin ?b"})],
    ),
    (
        "SELECT ?n { ?p a up:Protein ; up:organism ?o . ?o rdfs:label ?n }",
        [("class-lacks-property", {"class": "up:Taxon"})],
    ),
    (
        "CONSTRUCT { ?p up:name ?n } WHERE { ?p up:recommendedName/up:name ?n }",
        [("class-lacks-property", {"class": "up:Structured_Name"})],
    ),
    (
        "SELECT ?g { ?g up:encodedBy uniprotkb:P04637 }",
        [("reversed-direction", {"instead": "uniprotkb:P04637 up:encodedBy ?g"})],
    ),
    (
        "SELECT ?g { ?g a up:Gene . ?g up:encodedBy ?p . ?p a up:Protein }",
        [("reversed-direction", {"instead": "?p up:encodedBy ?g"})],
    ),
    (
        "SELECT ?g { ?g up:encodedBy ?p . ?p a up:Protein }",
        [("reversed-direction", {"instead": "?p up:encodedBy ?g"})],
    ),
    ("SELECT ?a { ?a a up:Disease ; a up:Protein }", [("wrong-class", {"variable": "a"})]),
    ("SELECT ?x { ?x rdfs:label ?x }", [("same-variable", {})]),
    (
        'SELECT ?p { ?p up:scientificName ?n FILTER(?n = "Homo Sapiens") }',
        [("filter-removes-all", {"instead": 'FILTER(CONTAINS(LCASE(STR(?n)), "homo sapiens"))'})],
    ),
    (
        'SELECT ?p { ?p a up:Protein FILTER(?p = "P04637") }',
        [("text-for-resource", {"instead": "uniprotkb:P04637"})],
    ),
    (
        'SELECT ?p { ?p up:organism ?o FILTER(?o IN ("taxon:9606", "taxon:10090")) }',
        [("text-for-resource", {"instead": "taxon:9606"})],
    ),
    (
        'SELECT ?p { ?p up:organism "http://purl.uniprot.org/taxonomy/9606" }',
        [("text-for-resource", {"resource": "taxon:9606"})],
    ),
    (
        'SELECT ?m { "uniprotkb:P04637" up:mnemonic ?m }',
        [("text-for-resource", {"instead": "uniprotkb:P04637"})],
    ),
    (
        'SELECT ?m { VALUES ?p { "P04637" } ?p up:mnemonic ?m }',
        [("text-for-resource", {"instead": "uniprotkb:P04637"})],
    ),
    ('SELECT ?m { "nothing" up:mnemonic ?m }', [("text-for-resource", {"place": '"nothing"'})]),
    # The names of what a protein is classified with are not its own.
    (
        "SELECT ?n { ?p a up:Protein ; rdfs:label ?n }",
        [("class-lacks-property", {"class": "up:Protein", "property": "rdfs:label"})],
    ),
    (
        "SELECT ?p { ?p up:mnemonic up:P53_HUMAN }",
        [("resource-for-text", {"instead": 'up:mnemonic "P53_HUMAN"'})],
    ),
    (
        "SELECT ?p { ?p up:mnemonic ?m FILTER(?m = up:P53_HUMAN) }",
        [("resource-for-text", {"instead": '"P53_HUMAN"'})],
    ),
    # No property is named, so none has literals only.
    ("SELECT ?p { ?p ?q taxon:99999999 }", [("unknown-resource", {"name": "taxon:99999999"})]),
    (
        "SELECT ?p { ?p a GO:0005634 }",
        [("only-subclasses", {"instead": "?p rdfs:subClassOf GO:0005634"})],
    ),
    (
        'SELECT ?x { ?x a up:Disease ; skos:prefLabel ?name FILTER(CONTAINS(?label, "R")) }',
        [("filter-unbound", {"variable": "label"})],
    ),
    (
        "SELECT ?m { uniprotkb:P04637 up:sequence/up:mass ?m FILTER(?m > 1000000) }",
        [("filter-removes-all", {"variable": "m"})],
    ),
    *(
        (
            f"SELECT * {{ {pattern} FILTER({given}) }}",
            [("untyped-value", {"instead": f"FILTER({meant})"})],
        )
        for pattern, given, meant in (
            ("?s up:mass ?m", "?m > '500'", "?m > 500"),
            ("?s up:mass ?m", '"500"@en <= ?m', "500 <= ?m"),
            ("?c up:date ?d", "?d > '2000-05-06'^^xsd:date", '?d > "2000"^^xsd:gYear'),
            ("?c up:date ?d", "?d > 2000", '?d > "2000"^^xsd:gYear'),
            ("?p up:created ?d", "?d > 1990", '?d > "1990-01-01"^^xsd:date'),
            ("?p up:created ?d", "YEAR(?d) > '1990'", "YEAR(?d) > 1990"),
        )
    ),
    (
        "SELECT ?p (COUNT(?a) AS ?n) { ?p up:annotation ?a } GROUP BY ?p HAVING (?n > 1) LIMIT 3",
        [("having-alias", {"variable": "n", "instead": "HAVING (COUNT(?a) > 1)"})],
    ),
    *(
        (f"SELECT ?n {{ ?p up:mnemonic ?n FILTER({given}) }}", [("language-tag", {"tags": [""]})])
        for given in ("LANG(?n) = 'en'", "LANGMATCHES(LANG(?n), 'en')", "LANG(?n) IN ('en', 'it')")
    ),
    *(
        (
            f"SELECT ?n {{ ?p up:mnemonic ?n FILTER({given}) }}",
            [("filter-removes-all", {"variable": "n"})],
        )
        for given in ("STRAFTER(?n, '_') = 'human'", "?n IN ('a4_human', 'p53_human')")
    ),
    ("SELECT ?p { ?p a up:Protein MINUS { ?p a up:Protein } }", [("minus-removes-all", {})]),
    (
        "SELECT ?p { ?p a up:Protein } GROUP BY ?p HAVING (COUNT(*) > 5000)",
        [("having-removes-all", {})],
    ),
    ("SELECT ?p { ?p a up:Protein } OFFSET 9000000", [("offset-skips-all", {})]),
    (
        "SELECT ?e { GRAPH <http://sparql.uniprot.org/uniprot> { ?e a up:Taxon } }",
        [("wrong-graph", {"graph": "<http://sparql.uniprot.org/taxonomy>"})],
    ),
    (
        "SELECT ?e FROM <http://sparql.uniprot.org/taxonomy> { ?e a up:Protein }",
        [("wrong-graph", {"graph": "<http://sparql.uniprot.org/uniprot>"})],
    ),
    (
        'SELECT ?p { ?p a up:Protein { SELECT ?p { ?p up:mnemonic "NOPE" } } }',
        [("unknown-value", {"value": '"NOPE"'})],
    ),
    (
        'SELECT (COUNT(?p) AS ?n) { ?p up:organism/up:scientificName "Mouse" }',
        [
            (
                "unknown-value",
                {
                    "owner": {
                        "value": '"Mouse"',
                        "property": "up:commonName",
                        "resource": "taxon:10090",
                    }
                },
            )
        ],
    ),
]


@pytest.fixture(scope="module")
def names(sample: EndpointConfig, uniprot: Pack) -> Schema:
    """The schema of the sample, shared by all tests as by all trials of a run."""
    return Schema.of(sample, uniprot.schema)


@pytest.fixture
def trees_names() -> Schema:
    """The schema of the trees."""
    e, label = "http://e/", "http://www.w3.org/2000/01/rdf-schema#label"
    return Schema.of_terms([e + "Tree", e + "Moss"], [e + "height", e + "near", label])


def found(query: str, config: EndpointConfig, names: Schema) -> list[Finding]:
    """Run a query that returns nothing and explain it."""
    client = SPARQLClient(config)
    prepared = client.prepare(query, limit=100)
    assert is_empty(client.query(prepared), prepared), "the query is not wrong"
    findings = explain_empty(prepared, names, probe_run(config), namespaces=config.namespaces)
    lines = as_lines(findings)
    assert len(lines) <= MOST_FINDINGS
    assert all(0 < len(line) <= MOST_CHARS and "\n" not in line for line in lines)
    return findings


@pytest.mark.parametrize(("query", "expected"), WRONG)
def test_the_cause_is_found(
    query: str,
    expected: list[tuple[str, dict[str, Any]]],
    sample: EndpointConfig,
    names: Schema,
) -> None:
    findings = found(query, sample, names)
    assert [
        (f.code, {name: f.fields[name] for name in want})
        for f, (_, want) in zip(findings, expected, strict=True)
    ] == expected


@pytest.mark.parametrize(
    ("condition", "instead"),
    [
        ("STR(?o) = '9606'", "FILTER(?o = taxon:9606)"),
        ("LCASE(STR(?o)) = 'taxon:9606'", "FILTER(?o = taxon:9606)"),
        ("STR(?o) IN ('9606', '10090')", "FILTER(?o IN (taxon:9606, ...))"),
        ("CONTAINS(STR(?o), 'taxon:9606')", "FILTER(?o = taxon:9606)"),
        ("STRSTARTS(STR(?o), 'taxon:')", "FILTER(STRSTARTS(STR(?o), STR(taxon:)))"),
    ],
)
def test_the_text_of_a_resource_is_not_compared_with_its_short_name(
    condition: str, instead: str, sample: EndpointConfig, names: Schema
) -> None:
    (finding,) = found(f"SELECT ?p {{ ?p up:organism ?o FILTER({condition}) }}", sample, names)
    assert finding.code == "text-for-resource"
    assert instead in finding.hint


RHEA, GO = "https://sparql.rhea-db.org/sparql", "http://rdf.geneontology.org/blazegraph/sparql"

#: A pattern for another endpoint, and the finding on it.
ELSEWHERE = [
    (RHEA, "?c rh:chebi 'CHEBI:57353'", "text-for-resource", {"resource": "CHEBI:57353"}),
    (
        RHEA,
        "?c rh:accession CHEBI:57353",
        "resource-for-text",
        {"instead": 'rh:accession "CHEBI:57353"'},
    ),
    (
        RHEA,
        "?c rh:chebi ?x VALUES ?x { 'CHEBI:57353' }",
        "text-for-resource",
        {"instead": "CHEBI:57353"},
    ),
    (
        RHEA,
        "?c rh:accession ?x VALUES ?x { CHEBI:57353 }",
        "resource-for-text",
        {"instead": '"CHEBI:57353"'},
    ),
    (
        GO,
        "?g oboInOwl:id GO:0008150",
        "resource-for-text",
        {"instead": 'oboInOwl:id "GO:0008150"'},
    ),
    # It exists there, and has thousands of subclasses.
    (RHEA, "?r a rh:Reaction", "only-subclasses", {"instead": "?r rdfs:subClassOf rh:Reaction"}),
    (
        RHEA,
        "rh:10000 rh:equations ?e",
        "unknown-property",
        {"replacements": ["rh:equation"], "service": f"<{RHEA}>"},
    ),
    (RHEA, "rh:99999999 rh:equation ?e", "unknown-resource", {"name": "rh:99999999"}),
]


@pytest.fixture(scope="module")
def federated() -> Iterator[EndpointConfig]:
    """The sample together with the endpoints that it federates with."""
    with open_endpoint(load_pack("uniprot")) as config:
        yield config


@pytest.mark.parametrize(("service", "pattern", "code", "fields"), ELSEWHERE)
def test_existence_is_tested_at_the_endpoint_of_the_service(
    service: str,
    pattern: str,
    code: str,
    fields: dict[str, Any],
    federated: EndpointConfig,
    names: Schema,
) -> None:
    query = f"SELECT * {{ SERVICE <{service}> {{ {pattern} }} }}"
    (finding,) = found(query, federated, names)
    assert (finding.code, {name: finding.fields[name] for name in fields}) == (code, fields)


@pytest.mark.parametrize(
    "name", ["part", "g", "class", "value", "between", "link", "x", "p", "other"]
)
@pytest.mark.parametrize(
    "query",
    [
        'SELECT ?V { ?V up:organism "Homo sapiens" }',
        "SELECT ?V { GRAPH <http://sparql.uniprot.org/taxonomy> { ?V a up:Protein } }",
        "SELECT ?q { ?V up:organism ?q . ?q rdfs:label ?n }",
        'SELECT ?V { ?V up:enzyme "2.7.1.20" }',
        "SELECT ?V { uniprotkb:P04637 up:annotation ?V . ?V up:fullName ?n }",
        'SELECT ?n { ?n up:mass ?V FILTER(?V > "500") }',
        'SELECT ?n { ?V up:scientificName ?n . FILTER(CONTAINS(?n, "SAPIENS")) }',
    ],
)
def test_how_a_variable_is_called_does_not_matter(
    query: str, name: str, sample: EndpointConfig, names: Schema
) -> None:
    one, other = (found(query.replace("?V", f"?{n}"), sample, names) for n in (name, "mine"))
    assert one
    assert [re.sub(rf"\b{name}\b", "mine", str(f)) for f in one] == list(map(str, other))
    assert [f.code for f in one] == [f.code for f in other]


@pytest.mark.parametrize("pattern", ["?r a rh:Reaction", "?c rh:accession ?n"])
def test_what_a_federated_endpoint_has_needs_its_service(
    pattern: str, federated: EndpointConfig
) -> None:
    (finding,) = found(f"SELECT * {{ {pattern} }}", federated, Schema.of(federated))
    assert (finding.code, finding.fields["service"]) == ("missing-service", RHEA)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT * { ?d a up:Disease ; rdfs:label ?n }", "wrong-subject"),
        ("SELECT * { ?g up:encodedBy ?p . ?p a up:Protein }", "reversed-direction"),
        ("SELECT * { ?p a up:Gene ; up:encodedBy ?g }", "reversed-direction"),
        ("SELECT * { ?c a up:Catalytic_Activity ; rdfs:label ?n }", ""),
        # A resource may have several classes, and other ones elsewhere.
        ("SELECT * { ?p a up:Protein ; a up:Simple_Sequence }", ""),
        (
            "SELECT * { ?p a up:Protein "
            "SERVICE <https://sparql.rhea-db.org/sparql> { ?p a up:Taxon } }",
            "",
        ),
    ],
)
def test_a_direction_is_reversed_only_if_something_asks_for_it(
    query: str, code: str, sample: EndpointConfig, names: Schema
) -> None:
    prepared = prepare(query, prefixes=sample.namespaces)
    findings = lint(prepared, names, namespaces=sample.namespaces)
    assert [finding.code for finding in findings] == ([code] if code else [])


def test_findings_read_as_lines(sample: EndpointConfig, names: Schema) -> None:
    query = "SELECT ?m { ?x a up:protein ; up:mnemonic ?m . ?y a up:Proteins }"
    assert as_lines(found(query, sample, names)) == (
        "there is no class up:protein; try up:Protein; there is no class up:Proteins; "
        "try up:Protein",
    )
    query = 'SELECT ?p { ?p up:organism "Homo sapiens" }'
    assert as_lines(found(query, sample, names)) == (
        'no up:organism is "Homo sapiens"; write ?p up:organism/up:scientificName "Homo sapiens"',
    )


#: What is found without schema and statistics too, on any engine: code, and a field's value.
ANYWHERE = [
    ("SELECT ?p { ?p a up:protein }", "unknown-class", ["up:Protein"]),
    (
        'SELECT ?p { ?p up:organism "Homo sapiens" }',
        "missing-step",
        '?p up:organism/up:scientificName "Homo sapiens"',
    ),
    (
        'SELECT ?p { ?o up:scientificName "homo sapiens" }',
        "value-form",
        'up:scientificName "Homo sapiens"',
    ),
    ("SELECT ?m { ?p a up:Protein ; up:mass ?m }", "missing-step", "?p up:sequence/up:mass ?m"),
    (
        'SELECT ?o { ?o up:scientificName ?n FILTER(?n = "Homo Sapiens") }',
        "filter-removes-all",
        'FILTER(CONTAINS(LCASE(STR(?n)), "homo sapiens"))',
    ),
    ("SELECT ?t { ?t up:rank up:Species }", "unknown-resource", ["up:Taxonomic_Rank_Species"]),
    ('SELECT ?p { ?p up:reviewed "true" }', "value-form", "up:reviewed true"),
    (
        "SELECT ?e { GRAPH <http://sparql.uniprot.org/uniprot> { ?e a up:Taxon } }",
        "wrong-graph",
        "<http://sparql.uniprot.org/taxonomy>",
    ),
    (
        "SELECT ?p { ?p a up:Protein MINUS { ?p a up:Protein } }",
        "minus-removes-all",
        "MINUS { ?p a up:Protein }",
    ),
    ("ASK { uniprotkb:NOBODY up:organism ?o }", "unknown-resource", "uniprotkb:NOBODY"),
]


@pytest.mark.parametrize(("query", "code", "value"), ANYWHERE)
def test_a_foreign_engine_without_schema_and_statistics(
    query: str, code: str, value: object, foreign: EndpointConfig, foreign_names: Schema
) -> None:
    assert any(
        one.code == code and value in one.fields.values()
        for one in found(query, foreign, foreign_names)
    )


@pytest.fixture(scope="module")
def foreign_names(foreign: EndpointConfig) -> Schema:
    """What sampling the foreign engine's data gives."""
    return Schema.of(foreign)


def test_an_empty_default_graph_is_found(bare: EndpointConfig) -> None:
    query = "SELECT ?p { ?p a up:Protein ; up:organism ?o }"
    assert found(query, bare, Schema.of(bare))[0].code == "default-graph-empty"


def test_a_federated_query_is_followed_into_the_service(
    trees: EndpointConfig, trees_names: Schema, tmp_path: Path
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
        first = found(query, config, trees_names)[0]
        assert first.code == "unknown-property"
        assert first.fields["service"] == f"<{public}>"
        assert "<http://f/weight>" in first.hint
        query = f"SELECT * {{ ?t a t:Moss . SERVICE <{public}> {{ ?x <http://f/called> ?t }} }}"
        first = found(query, config, trees_names)[0]
        assert f"SERVICE <{public}>" in first.what
        assert other.url not in str(first)
        assert first.fields["here"] == "t:moss (a t:Moss)"


def test_an_unknown_name_in_an_optional_branch_is_found_although_there_are_rows(
    sample: EndpointConfig, names: Schema
) -> None:
    def run(query: str) -> Result:
        raise AssertionError("a complete schema needs no probe")

    for query in (
        "SELECT * { ?p a up:Protein OPTIONAL { ?p up:hasName ?n } } LIMIT 5",
        "SELECT * { { ?p a up:Protein } UNION { ?p up:hasName ?n } } LIMIT 5",
    ):
        prepared = SPARQLClient(sample).prepare(query)
        (one,) = lint(prepared, names, run, namespaces=sample.namespaces)
        assert (one.code, one.fields["name"]) == ("unknown-property", "up:hasName")
        assert "up:recommendedName" in str(one.fields["replacements"])


def test_what_an_incomplete_schema_lacks_is_looked_for_in_the_data(trees: EndpointConfig) -> None:
    class Partial(Schema):
        complete = False  # type: ignore[assignment]

    partial = Partial.of_terms(["http://e/Tree"], ["http://e/height"])
    prepared = SPARQLClient(trees).prepare("SELECT * { ?s t:near ?o OPTIONAL { ?s t:hight ?h } }")
    (one,) = lint(prepared, partial, probe_run(trees), namespaces=trees.namespaces)
    assert one.fields["name"] == "t:hight"
    assert lint(prepared, partial, namespaces=trees.namespaces) == []


def test_names_inside_a_service_are_not_judged(trees: EndpointConfig, trees_names: Schema) -> None:
    query = "SELECT * { ?s t:near ?o SERVICE <https://x.example/> { ?s t:unheard ?y } }"
    prepared = prepare(query, prefixes=trees.namespaces)
    assert lint(prepared, trees_names, probe_run(trees), namespaces=trees.namespaces) == []


@pytest.mark.parametrize(
    ("query", "code", "replacement"),
    [
        ("SELECT ?p { ?p uniprot:mnemonic ?m }", "unknown-prefix", "up:mnemonic"),
        ("SELECT ?p { ?p core:Protein ?m }", "unknown-prefix", "up:Protein"),
        ("SELECT ?p { uniprot:P04637 ?p ?m }", "unknown-prefix", "uniprotkb:"),
        ("SELECT ?p { ?p up:mnemonic RHEA:1 }", "resource-for-text", 'up:mnemonic "RHEA:1"'),
        ("SELECT ?p { ?p a up:protein . ", "unknown-name", "up:Protein"),
        (
            "PREFIX up: <http://www.uniprot.org/ontology/> SELECT ?p { ?p a up:Protein ",
            "wrong-prefix",
            "http://purl.uniprot.org/core/",
        ),
    ],
)
def test_a_query_that_cannot_be_sent_gets_the_nearest_names(
    query: str, code: str, replacement: str, sample: EndpointConfig, names: Schema
) -> None:
    with pytest.raises(QueryError) as failure:
        SPARQLClient(sample).prepare(query)
    (one,) = explain_error(query, failure.value, names, sample.namespaces)
    assert one.code == code
    given = (*one.fields.get("replacements", ()), one.fields.get("known"))
    assert replacement in (*given, one.fields.get("instead"))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?p { ?p a up:Protein ; up:organism taxon:9606 ",
        # Other names exist at another endpoint.
        "SELECT ?g { SERVICE <http://x.example/> { ?g up:unheard ?x } ",
        # A value is in no schema, which does not make it wrong.
        "SELECT ?p { ?p up:existence up:Evidence_at_Protein_Level_Existence . ",
    ],
)
def test_a_right_query_that_cannot_be_sent_gets_nothing_more(
    query: str, sample: EndpointConfig, names: Schema
) -> None:
    with pytest.raises(QueryError) as failure:
        SPARQLClient(sample).prepare(query)
    assert explain_error(query, failure.value, names, sample.namespaces) == []


@pytest.mark.parametrize("failure", [EndpointError("down"), QueryError("too slow")])
def test_trouble_while_probing_costs_only_what_it_would_have_found(
    failure: Exception, names: Schema, sample: EndpointConfig
) -> None:
    def run(query: str) -> Result:
        raise failure

    prepared = SPARQLClient(sample).prepare("SELECT * { ?p a up:protein ; up:organism taxon:9607 }")
    (one,) = explain_empty(prepared, names, run, namespaces=sample.namespaces)
    assert (one.code, one.fields["replacements"]) == ("unknown-class", ["up:Protein"])


@pytest.mark.parametrize("query", [query for query, _ in WRONG[::3]])
def test_a_diagnosis_survives_the_loss_of_any_probe(
    query: str, names: Schema, sample: EndpointConfig
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

        lines = as_lines(explain_empty(prepared, names, some, namespaces=sample.namespaces))
        assert len(lines) <= MOST_FINDINGS
        assert all(0 < len(line) <= MOST_CHARS for line in lines)


def test_requests_end_with_the_time_for_them(
    sample: EndpointConfig, names: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    def slow(run: Callable[[str], Result]) -> Callable[[str], Result]:
        def wait(query: str) -> Result:
            nonlocal count
            count += 1
            time.sleep(0.2)
            return run(query)

        return wait

    monkeypatch.setattr("reasoningbank.schema.lookups.MOST_SECONDS", 0.5)
    texts = " ".join(f'?p up:mnemonic "NOBODY{n}" .' for n in range(30))
    prepared = SPARQLClient(sample).prepare(f"SELECT * {{ {texts} }}")
    run = slow(probe_run(sample))
    assert len(explain_empty(prepared, names, run, namespaces=sample.namespaces)) <= MOST_FINDINGS
    assert count <= 3


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


@pytest.mark.parametrize(
    ("query", "empty", "code"),
    [
        ("SELECT ?x { ?x t:hight ?h }", True, "unknown-property"),
        ("SELECT ?x { ?x t:height 99 }", True, "unknown-value"),
        ("SELECT ?x { ?x a t:Tree OPTIONAL { ?x t:hight ?h } }", False, "unknown-property"),
        ("SELECT ?x { ?x tree:height ?h }", False, "unknown-prefix"),
    ],
)
def test_one_call_explains_any_query(
    trees: EndpointConfig, query: str, empty: bool, code: str
) -> None:
    with SPARQLClient(trees) as client:
        (one,) = explain_query(query, client, Schema.of(trees), empty=empty)
    assert one.code == code


def test_a_sound_query_and_an_unknown_endpoint_get_no_findings(trees: EndpointConfig) -> None:
    with SPARQLClient(trees) as client:
        names = Schema.of(trees)
        assert explain_query("SELECT ?x { ?x t:height ?h }", client, names, empty=False) == []
        assert explain_query("SELECT ?x { ?x t:hight ?h }", client, None, empty=True) == []
