"""The namespaces and IRIs of LiITA and CompL-it.

Addresses are those of the public data; the numbers in them are the sample's own. They are made of
what they stand for, so that they stay the same when words are added, and lie above those that the
public lemma bank uses.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from ontology.uniprot.builder.terms import Namespace

__all__ = [
    "BANK",
    "DIALECTS",
    "ELITA",
    "ELITA_GRAPH",
    "INFLECTION",
    "LEMMA",
    "LEMMA_GRAPH",
    "LEX",
    "LEXICON_GRAPH",
    "LEXINFO",
    "LILA",
    "LIME",
    "LINKS_GRAPH",
    "MARL",
    "ONTOLEX",
    "RESOURCES",
    "SENTIX_GRAPH",
    "VARTRANS",
    "Dialect",
    "number",
    "tagged",
]

LILA = Namespace("http://lila-erc.eu/ontologies/lila/")
ONTOLEX = Namespace("http://www.w3.org/ns/lemon/ontolex#")
VARTRANS = Namespace("http://www.w3.org/ns/lemon/vartrans#")
LIME = Namespace("http://www.w3.org/ns/lemon/lime#")
LEXINFO = Namespace("http://www.lexinfo.net/ontology/3.0/lexinfo#")
ELITA = Namespace("http://w3id.org/elita/")
MARL = Namespace("http://www.gsi.upm.es/ontologies/marl/ns#")
LEX = Namespace("http://lexica/mylexicon#")
RESOURCES = Namespace("http://liita.it/data/id/LexicalResources/")
LEMMA = Namespace("http://liita.it/data/id/lemma/")
INFLECTION = Namespace("http://liita.it/data/id/inflection/")
BANK = LEMMA["LemmaBank"]

LEMMA_GRAPH = NamedNode("http://liita.it/data")
ELITA_GRAPH = NamedNode("http://w3id.org/elita")
SENTIX_GRAPH = RESOURCES["Sentix"]
LINKS_GRAPH = RESOURCES["CompL-it"]
LEXICON_GRAPH = NamedNode("http://lexica/mylexicon")


@dataclass(frozen=True)
class Dialect:
    """Where the public data keep a dialect.

    Args:
        key: How entries' addresses and the sample's table name it.
        title: What people call it.
        language: Its ISO 639-3 code.
        graph: Its named graph.
        lemma: What its lemmas' addresses begin with.
        entries: What its entries' addresses begin with.
        lexicon: The lexicon that holds the entries of both languages.
    """

    key: str
    title: str
    language: str
    graph: NamedNode
    lemma: Namespace
    entries: Namespace
    lexicon: NamedNode


#: The addresses differ as the public ones do: a slash here, `LexicalReources` there.
DIALECTS = (
    Dialect(
        "siciliano",
        "Siciliano",
        "scn",
        NamedNode("http://liita.it/data/id/DialettoSiciliano/"),
        Namespace("http://liita.it/data/id/DialettoSiciliano/lemma/"),
        Namespace(f"{RESOURCES}DialettoSiciliano/id/LexicalEntry/"),
        RESOURCES["DialettoSiciliano/Wikizziunariu"],
    ),
    Dialect(
        "parmigiano",
        "Parmigiano",
        "egl",
        NamedNode("http://liita.it/data/id/DialettoParmigiano"),
        Namespace("http://liita.it/data/id/DialettoParmigiano/lemma/"),
        Namespace("http://liita.it/data/id/LexicalReources/DialettoParmigiano/id/LexicalEntry/"),
        NamedNode("http://liita.it/data/id/LexicalReources/DialettoParmigiano/Lexicon"),
    ),
)


def number(*parts: str) -> int:
    """A number of seven digits that stands for some text.

    Examples:
        >>> number("cane", "n", "m")
        5500407
    """
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return 2_000_000 + int.from_bytes(digest[:8]) % 8_000_000


def tagged(value: str, language: str = "it") -> Literal:
    """Text with a language tag.

    Examples:
        >>> str(tagged("cane"))
        '"cane"@it'
    """
    return Literal(value, language=language)
