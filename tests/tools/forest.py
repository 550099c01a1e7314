"""A pack whose examples reach many endpoints and graphs, one hidden, one private, one broken."""

from __future__ import annotations

from pathlib import Path

__all__ = ["MANY", "write_forest"]

#: Endpoints that only one example each reaches; graphs that one example names.
MANY = 70

HEAD = """
@prefix ex: <urn:forest/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
EXAMPLE = '''
ex:{id} a sh:SPARQLSelectExecutable ; rdfs:comment "{question}"@en ; sh:select """{query}""" ;
  schema:target <https://forest.example/sparql/> .
'''
PACK = """
name = "Forest"
endpoint = "https://forest.example/sparql/"
authority = "The Foresters"
[prefixes]
t = "http://e/"
[[federated]]
url = "https://river.example/sparql"
name = "River"
"""


def write_forest(root: Path) -> None:
    """Write the pack into a folder."""
    (root / "examples").mkdir(parents=True)
    (root / "pack.toml").write_text(PACK, encoding="utf-8")
    services = [
        (f"s{i:02}", f"SELECT * {{ SERVICE <https://n{i:02}.example/sparql> {{ ?s ?p ?o }} }}")
        for i in range(MANY)
    ]
    graphs = " ".join(f"FROM <http://g/{'x' * 90}{i:02}>" for i in range(MANY))
    others = [
        ("graphs", f"SELECT * {graphs} {{ ?s ?p ?o }}"),
        ("river", "SELECT ?gold { SERVICE <http://river.example/sparql/> { ?s t:flows ?gold } }"),
        ("secret", "SELECT * { SERVICE <https://secret.example/> { GRAPH <http://secret/> {} } }"),
        ("private", "SELECT * { SERVICE <http://127.0.0.1:5000/secrets> { ?s ?p ?o } }"),
        ("broken", "SELECT * {"),
    ]
    text = HEAD + "".join(
        EXAMPLE.format(id=name, question=f"What of {name}?", query=query)
        for name, query in (*services, *others)
    )
    (root / "examples" / "all.ttl").write_text(text, encoding="utf-8")
