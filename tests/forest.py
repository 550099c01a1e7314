"""A small pack with patterns, rules and examples in groups: four plants, seven questions."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.corpus import Pack, load_pack

PACK = """
name = "Trees"
endpoint = "https://trees.example/sparql/"
authority = "The Forest"
data = ["trees.ttl"]
hints = "hints"
schema = "schema.ttl"
languages = ["en"]

[prefixes]
t = "http://e/"
"""

SCHEMA = """
@prefix t: <http://e/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
t:Tree a owl:Class . t:Moss a owl:Class .
t:height a owl:DatatypeProperty . t:near a owl:ObjectProperty .
"""

PATTERNS = """
[[pattern]]
name = "KIND"
title = "plants of a kind"
family = "kinds"
strong.en = ["tree", "moss", "kind"]
query = [{ classes = ["t:Tree", "t:Moss"] }]

[[pattern]]
name = "HEIGHT"
title = "how high plants are"
family = "measures"
strong.en = ["high", "height", "tall"]
query = [{ properties = ["t:height"] }]

[[pattern]]
name = "NEAR"
title = "what stands near what"
family = "places"
strong.en = ["near", "beside"]
query = [{ properties = ["t:near"] }]
"""

CONSTRAINTS = """
[base]
text = "Plants are named by rdfs:label."

[[property]]
name = "t:height"
use = "?plant t:height ?metres"
patterns = ["HEIGHT"]

[[rule]]
title = "near"
text = "t:near leads from a plant to those around it."
patterns = ["NEAR"]
"""

HEAD = """
@prefix ex: <urn:forest/> .
@prefix rb: <urn:reasoningbank:ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix schema: <https://schema.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""

#: Id, group, pattern, form, question, query.
EXAMPLES = (
    ("trees", "of-kind", "KIND", "select", "Which plants are trees?",
     "SELECT ?plant WHERE { ?plant a t:Tree }"),
    ("mosses", "of-kind", "KIND", "select", "Which plants are moss?",
     "SELECT ?plant WHERE { ?plant a t:Moss }"),
    ("oak_height", "height", "HEIGHT", "select", 'How high is \\"Oak\\"?',
     "SELECT ?metres WHERE { ?plant rdfs:label 'Oak' ; t:height ?metres }"),
    ("ash_height", "height", "HEIGHT", "select", 'How high is \\"Mountain ash tree\\"?',
     "SELECT ?metres WHERE { ?plant rdfs:label 'Mountain ash tree' ; t:height ?metres }"),
    ("above", "above", "HEIGHT", "select", "Which plants are higher than 30 metres?",
     "SELECT ?plant WHERE { ?plant t:height ?metres FILTER(?metres > 30) }"),
    ("near_oak", "near", "NEAR", "select", 'What stands near \\"Oak\\"?',
     "SELECT ?other WHERE { ?plant rdfs:label 'Oak' ; t:near ?other }"),
    ("is_tree", "is", "KIND", "ask", 'Is \\"Oak\\" a tree?',
     "ASK { ?plant rdfs:label 'Oak' ; a t:Tree }"),
)  # fmt: skip


def write_forest(root: Path, trees: str) -> Pack:
    """Write the pack into a folder and load it."""
    for folder in ("examples", "hints"):
        (root / folder).mkdir(parents=True)
    files = {
        "pack.toml": PACK,
        "trees.ttl": trees,
        "schema.ttl": SCHEMA,
        "hints/patterns.toml": PATTERNS,
        "hints/constraints.toml": CONSTRAINTS,
        "examples/all.ttl": HEAD + "".join(_example(*one) for one in EXAMPLES),
    }
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    return load_pack(root)


def _example(name: str, group: str, pattern: str, form: str, question: str, query: str) -> str:
    return (
        f"ex:{name} a sh:SPARQLExecutable, sh:SPARQL{form.capitalize()}Executable ;\n"
        f'  rdfs:comment "{question}"@en ;\n'
        f'  sh:{form} """{query}""" ;\n'
        f'  schema:keywords "{pattern}" ; rb:group "{group}" ;\n'
        "  schema:target <https://trees.example/sparql/> .\n"
    )
