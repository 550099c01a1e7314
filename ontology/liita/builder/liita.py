"""The facts that stand for LiITA's endpoint."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from pyoxigraph import Literal, NamedNode

from ontology.uniprot.builder.terms import RDFS, XSD, Fact, Graph, Namespace, text

from .complit import word_nodes
from .names import (
    BANK,
    DIALECTS,
    ELITA,
    ELITA_GRAPH,
    INFLECTION,
    LEMMA,
    LEMMA_GRAPH,
    LILA,
    LIME,
    LINKS_GRAPH,
    MARL,
    ONTOLEX,
    RESOURCES,
    SENTIX_GRAPH,
    VARTRANS,
    Dialect,
    number,
    tagged,
)
from .tables import TableError
from .words import GENDERS, INFLECTIONS, PARTS_OF_SPEECH, Lemma, Translation, Words

__all__ = ["liita_facts"]

DCTERMS = Namespace("http://purl.org/dc/terms/")
VOID = Namespace("http://rdfs.org/ns/void#")
CANONICAL_FORM = ONTOLEX["canonicalForm"]


def liita_facts(words: Words) -> set[Fact]:
    """Makes the facts of LiITA's endpoint.

    Raises:
        TableError: Two lemmas get the same number, which then must be made longer.
    """
    facts: set[Fact] = set()
    _lemmas(Graph(LEMMA_GRAPH, facts), words.lemmas)
    _emotions(Graph(ELITA_GRAPH, facts), words)
    _polarities(Graph(SENTIX_GRAPH, facts), words)
    for dialect in DIALECTS:
        _translations(Graph(dialect.graph, facts), dialect, words.dialects[dialect.key])
    links = Graph(LINKS_GRAPH, facts)
    for lemma, word in word_nodes(words).items():
        links.add(word, CANONICAL_FORM, _node(lemma))
    return facts


def _node(lemma: Lemma) -> NamedNode:
    return LEMMA[number(*lemma.key)]


def _lemmas(graph: Graph, lemmas: Iterable[Lemma]) -> None:
    taken: dict[NamedNode, Lemma] = {}
    for lemma in lemmas:
        node = _node(lemma)
        if node in taken:
            raise TableError(f"{lemma.key} and {taken[node].key} get the same number")
        taken[node] = lemma
        _lemma(graph, node, lemma.forms, lemma.pos, lemma.gender, BANK)
        if lemma.degree:
            graph.add(node, LILA["hasDegree"], LILA[lemma.degree])
        if lemma.inflection:
            graph.add(node, LILA["hasInflectionType"], INFLECTION[lemma.inflection])
    for name in PARTS_OF_SPEECH.values():
        graph.add(LILA[name], RDFS["label"], tagged(name.replace("_", " "), "en"))
    for name in ("masculine", "feminine", "positive", "comparative", "superlative"):
        graph.add(LILA[name], RDFS["label"], tagged(name, "en"))
    for name, (italian, english) in INFLECTIONS.items():
        graph.type(INFLECTION[name], LILA["InflectionType"])
        graph.add(INFLECTION[name], RDFS["label"], tagged(italian))
        graph.add(INFLECTION[name], RDFS["label"], tagged(english, "en"))
    _bank(graph, BANK, "LiITA Lemma Bank (sample)", "Italian lemmas of the sample.")


def _lemma(
    graph: Graph, node: NamedNode, forms: Iterable[str], pos: str, gender: str, bank: NamedNode
) -> None:
    first, *others = forms
    graph.type(node, LILA["Lemma"])
    graph.add(node, RDFS["label"], text(first))
    for form in (first, *others):
        graph.add(node, ONTOLEX["writtenRep"], text(form))
    graph.add(node, LILA["hasPOS"], LILA[PARTS_OF_SPEECH[pos]])
    for name in GENDERS[gender]:
        graph.add(node, LILA["hasGender"], LILA[name])
    graph.add(node, DCTERMS["isPartOf"], bank)


def _bank(graph: Graph, node: NamedNode, title: str, description: str) -> None:
    graph.type(node, VOID["Dataset"])
    _about(graph, node, title, description)


def _lexicon(graph: Graph, node: NamedNode, language: str, title: str, description: str) -> None:
    graph.type(node, LIME["Lexicon"])
    graph.add(node, LIME["language"], text(language))
    _about(graph, node, title, description)


def _about(graph: Graph, node: NamedNode, title: str, description: str) -> None:
    graph.add(node, DCTERMS["title"], tagged(title, "en"))
    graph.add(node, DCTERMS["description"], tagged(description, "en"))


def _entry(graph: Graph, node: NamedNode, label: str, lemma: NamedNode, lexicon: NamedNode) -> None:
    graph.type(node, ONTOLEX["LexicalEntry"])
    graph.add(node, RDFS["label"], text(label))
    graph.add(node, CANONICAL_FORM, lemma)
    graph.add(lexicon, LIME["entry"], node)


def _emotions(graph: Graph, words: Words) -> None:
    lexicon = ELITA["Lexicon"]
    _lexicon(graph, lexicon, "it", "ELITA (sample)", "Emotions of Italian words of the sample.")
    for affect in words.affects:
        if not affect.emotions:
            continue
        entry = ELITA[f"LexicalEntry/{number(*affect.lemma.key)}"]
        _entry(graph, entry, affect.lemma.label, _node(affect.lemma), lexicon)
        for emotion in affect.emotions:
            graph.add(entry, ELITA["HasEmotion"], ELITA[emotion])
            graph.type(ELITA[emotion], ELITA["Emotion"])
            graph.add(ELITA[emotion], RDFS["label"], text(emotion))


def _polarities(graph: Graph, words: Words) -> None:
    lexicon = RESOURCES["Sentix/Lexicon"]
    _lexicon(graph, lexicon, "it", "Sentix (sample)", "Polarity of Italian words of the sample.")
    for affect in words.affects:
        if affect.polarity is None:
            continue
        entry = RESOURCES[f"Sentix/LexicalEntry/{number(*affect.lemma.key)}"]
        _entry(graph, entry, affect.lemma.label, _node(affect.lemma), lexicon)
        polarity = _polarity(affect.polarity)
        graph.add(entry, MARL["hasPolarity"], MARL[polarity])
        value = Literal(str(affect.polarity), datatype=XSD["decimal"])
        graph.add(entry, MARL["hasPolarityValue"], value)
        graph.type(MARL[polarity], MARL["Polarity"])
        graph.add(MARL[polarity], RDFS["label"], text(polarity))


def _polarity(value: Decimal) -> str:
    if value == 0:
        return "Neutral"
    return "Positive" if value > 0 else "Negative"


def _translations(graph: Graph, dialect: Dialect, translations: Iterable[Translation]) -> None:
    bank = dialect.lemma["LemmaBank"]
    _bank(
        graph,
        bank,
        f"{dialect.title} Lemma Bank (sample)",
        f"Lemmas of {dialect.title} of the sample.",
    )
    _lexicon(
        graph,
        dialect.lexicon,
        dialect.language,
        f"Italian and {dialect.title} (sample)",
        f"Translations of Italian words of the sample into {dialect.title}.",
    )
    for each in translations:
        own = number(each.forms[0], each.lemma.pos, each.gender)
        lemma = dialect.lemma[own]
        _lemma(graph, lemma, each.forms, each.lemma.pos, each.gender, bank)
        there = dialect.entries[f"{dialect.key}/{own}"]
        _entry(graph, there, each.forms[0], lemma, dialect.lexicon)
        here = dialect.entries[f"italian/{number(*each.lemma.key)}"]
        _entry(graph, here, each.lemma.label, _node(each.lemma), dialect.lexicon)
        graph.add(here, VARTRANS["translatableAs"], there)
