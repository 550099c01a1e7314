"""The facts that stand for CompL-it's endpoint: words, their senses, and how senses are related."""

from __future__ import annotations

from collections import Counter

from pyoxigraph import NamedNode

from ontology.uniprot.builder.terms import RDFS, SKOS, Fact, Graph

from .names import LEX, LEXICON_GRAPH, LEXINFO, ONTOLEX, tagged
from .words import PARTS_OF_SPEECH, Lemma, Sense, Words

__all__ = ["complit_facts", "word_nodes"]

#: What the subject of the inverse is: every fact is told both ways, as CompL-it's reasoner does.
_INVERSE = {
    "hyponym": "hypernym",
    "partMeronym": "partHolonym",
    "approximateSynonym": "approximateSynonym",
    "antonym": "antonym",
}


def word_nodes(words: Words) -> dict[Lemma, NamedNode]:
    """The CompL-it word of each lemma that has senses: the same address at both endpoints."""
    nodes: dict[Lemma, NamedNode] = {}
    # Lemmas that only their gender tells apart are numbered.
    alike: Counter[str] = Counter()
    for lemma in words.senses:
        name = f"{lemma.label}{PARTS_OF_SPEECH[lemma.pos].upper()}"
        alike[name] += 1
        nodes[lemma] = LEX[f"MUS{name}{alike[name] if alike[name] > 1 else ''}"]
    return nodes


def complit_facts(words: Words) -> set[Fact]:
    """Makes the facts of CompL-it's endpoint."""
    facts: set[Fact] = set()
    graph = Graph(LEXICON_GRAPH, facts)
    nodes = word_nodes(words)
    for lemma, senses in words.senses.items():
        _word(graph, nodes[lemma], lemma, senses)
    for relation in words.relations:
        subject = _sense(nodes[relation.subject.lemma], relation.subject)
        of = _sense(nodes[relation.of.lemma], relation.of)
        graph.add(subject, LEXINFO[relation.kind], of)
        graph.add(of, LEXINFO[_INVERSE[relation.kind]], subject)
    return facts


def _word(graph: Graph, word: NamedNode, lemma: Lemma, senses: list[Sense]) -> None:
    form = NamedNode(f"{word.value}_lemma")
    name = PARTS_OF_SPEECH[lemma.pos]
    graph.type(word, ONTOLEX["Word"])
    graph.add(word, RDFS["label"], tagged(lemma.label))
    graph.add(word, LEXINFO["partOfSpeech"], LEXINFO[name])
    graph.add(LEXINFO[name], RDFS["label"], tagged(name, "en"))
    graph.add(word, ONTOLEX["canonicalForm"], form)
    graph.type(form, ONTOLEX["Form"])
    graph.add(form, ONTOLEX["writtenRep"], tagged(lemma.label))
    for each in senses:
        sense = _sense(word, each)
        graph.type(sense, ONTOLEX["LexicalSense"])
        graph.add(word, ONTOLEX["sense"], sense)
        graph.add(sense, ONTOLEX["isSenseOf"], word)
        graph.add(sense, SKOS["definition"], tagged(each.definition))


def _sense(word: NamedNode, sense: Sense) -> NamedNode:
    name = word.value.removeprefix(f"{LEX}MUS")
    return LEX[f"USem{name}_{sense.number}"]
