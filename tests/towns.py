"""A small pack whose tasks read towns and write documents."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.corpus import Pack, load_pack

DATA = """\
@prefix t: <http://towns.example/id/> .
@prefix p: <http://towns.example/p/> .
t:Ribe p:name "Ribe"@da ; p:people 8295 ; p:region t:Jutland .
t:Køge p:name "Køge"@da ; p:people 38588 ; p:region t:Zealand .
t:Aarhus p:name "Aarhus"@da ; p:people 290598 ; p:region t:Jutland .
"""
INITIAL = """\
<http://docs.example/old> {
  <http://docs.example/old> <http://purl.org/dc/terms/title> "Old" .
  <http://docs.example/old> <http://towns.example/p/people> 1 .
}
"""
EXAMPLES = """\
@prefix ex: <urn:example:> .
@prefix rb: <urn:reasoningbank:ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .

ex:1_big_towns a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
    rdfs:comment "Which towns have more than 10000 people? Give the name."@en ;
    sh:select "SELECT ?name WHERE { ?town p:people ?n ; p:name ?name FILTER(?n > 10000) }" ;
    schema:target <https://towns.example/sparql> ; schema:keywords "towns" ; rb:group "big" .

ex:2_write_towns a sh:SPARQLExecutable, sh:SPARQLUpdateExecutable ;
    rdfs:comment "Write a document below http://docs.example/towns/ for each town of Jutland."@en ;
    sh:update \"\"\"INSERT { GRAPH ?doc { ?town ?p ?o } } WHERE {
  ?town p:region t:Jutland ; p:name ?name ; ?p ?o
  BIND(IRI(CONCAT("http://docs.example/towns/", ENCODE_FOR_URI(?name))) AS ?doc) }\"\"\" ;
    schema:target <https://towns.example/sparql> ; schema:keywords "towns" ; rb:group "write" .
"""
PACK = """\
name = "Towns"
endpoint = "https://towns.example/sparql"
data = ["towns.ttl"]
union_default_graph = false
[prefixes]
t = "http://towns.example/id/"
p = "http://towns.example/p/"
dct = "http://purl.org/dc/terms/"
[documents]
base = "http://docs.example/"
initial = "documents.trig"
resources = "http://towns.example/id/"
"""


def write_towns(folder: Path) -> Pack:
    """Write the pack into a folder that does not exist yet, and load it."""
    (folder / "examples").mkdir(parents=True)
    (folder / "pack.toml").write_text(PACK, "utf-8")
    (folder / "towns.ttl").write_text(DATA, "utf-8")
    (folder / "documents.trig").write_text(INITIAL, "utf-8")
    (folder / "examples" / "towns.ttl").write_text(EXAMPLES, "utf-8")
    return load_pack(folder)
