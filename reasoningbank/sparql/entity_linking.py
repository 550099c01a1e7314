"""Entity linking: the resources that a question names, by exact lookup.

Nothing is guessed: words that are not found exactly stay as they are. Entity linking is the first
step of most question answering systems over knowledge graphs (Diefenbach et al., Core techniques of
question answering systems over knowledge bases, KAIS 2018, section 5).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql.client import SPARQLClient
from reasoningbank.sparql.endpoint import EndpointConfig
from reasoningbank.sparql.terms import SCHEMA_NAMESPACES, last_part, written

logger = logging.getLogger(__name__)

#: Most words of a name, candidates looked up, and mentions returned.
MOST_WORDS = 10
MOST_CANDIDATES = 800
MOST_MENTIONS = 5
#: A name of more resources than this is an ordinary word.
MOST_MEANT = 3

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")
_TOKEN = re.compile(r"[^\s\"“”„«»‘’?!;,()]+")
#: Properties that name things, by their own names.
_NAMING = re.compile(r"(?i)(?:label|name|symbol|title)$")
#: An IRI may end with it.
_LOCAL_NAME = re.compile(r"[\w.~:/+-]+")
#: What ends a word without belonging to it.
_FINAL = ".:'"
_CLOSING = re.compile(r"[\"”»’]?")
_QUOTED = re.compile(r"[\"“„«‘]([^\"“”„«»‘’]+)[\"”»’]")


@dataclass(frozen=True)
class EntityMention:
    """Words of a question that name one resource."""

    words: str  #: The words, as in the question
    name: str  #: The resource as a query may write it; several, if the words name each of them
    classes: tuple[str, ...] = ()  #: Its classes, as IRIs

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.name.split(", "))


class EntityLinker:
    """Finds the resources that questions name; thread-safe.

    Results are cached, except those of a query that failed, which finds nothing.

    Args:
        client: Sends two queries per question.
        endpoint: Its namespaces are tried for identifiers.
        languages: Language tags of the names; names without a tag are always included.
    """

    def __init__(
        self, client: SPARQLClient, endpoint: EndpointConfig, languages: Sequence[str] = ()
    ) -> None:
        self._client = client
        self._namespaces = endpoint.namespaces
        self._spaces = tuple(dict.fromkeys(endpoint.prefixes.values()))
        self._labels = frozenset(endpoint.label_properties)
        self._languages = tuple(languages)
        self._known: dict[str, tuple[EntityMention, ...]] = {}

    def mentions(self, question: str) -> tuple[EntityMention, ...]:
        """Return the mentions of a question in the order of its words, at most five.

        Identifiers are tried in every namespace of the endpoint's prefixes. Of overlapping mentions
        the longest is used.
        """
        known = self._known.get(question)
        if known is None:
            known, whole = self._found(question)
            if whole:
                self._known[question] = known
        return known

    def kinds(self, question: str) -> frozenset[str]:
        """Return the classes of the resources that a question names, as IRIs."""
        return frozenset(of for mention in self.mentions(question) for of in mention.classes)

    def annotated(self, question: str) -> str:
        """Return a question with the names of its resources written after their words."""
        for mention in reversed(self.mentions(question)):
            end = _place(mention.words, question).stop
            end += len(_CLOSING.match(question, end)[0])  # type: ignore[index]
            question = f"{question[:end]} ({mention.name}){question[end:]}"
        return question

    def generalized(self, question: str) -> str:
        """Return a question with the classes of its resources in place of their names."""
        for mention in reversed(self.mentions(question)):
            at = _place(mention.words, question)
            kinds = [kind for kind in mention.classes if not kind.startswith(SCHEMA_NAMESPACES)]
            kind = _CAMEL.sub(" ", last_part(kinds[0])).lower() if kinds else "resource"
            question = f"{question[: at.start]}{kind}{question[at.stop :]}"
        return question

    def _found(self, question: str) -> tuple[tuple[EntityMention, ...], bool]:
        """Return the mentions of a question, and whether all queries succeeded."""
        whole = True
        found: dict[str, EntityMention] = {}
        for ask in (self._names, self._identifiers):
            try:
                found |= {mention.words: mention for mention in ask(question)}
            except QueryError as error:
                # The question can be used without; the endpoint may answer the next time.
                logger.warning("entity linking failed for a question: %s", error)
                whole = False
        kept: dict[int, EntityMention] = {}
        taken: set[int] = set()
        for words in sorted(found, key=lambda words: (-len(words), words)):
            span = _place(words, question)
            if len(kept) < MOST_MENTIONS and taken.isdisjoint(span):
                kept[span.start] = found[words]
                taken.update(span)
        return tuple(kept[start] for start in sorted(kept)), whole

    def _identifiers(self, question: str) -> list[EntityMention]:
        tokens = (token.rstrip(_FINAL) for token in _TOKEN.findall(question))
        spelled = {
            space + name: token
            for token in dict.fromkeys(tokens)
            if any(map(str.isdigit, token))
            for space in self._spaces
            for name in dict.fromkeys((token, token.rpartition(":")[2]))
            if _LOCAL_NAME.fullmatch(name)
        }
        if not spelled:
            return []
        candidates = list(spelled)[:MOST_CANDIDATES]
        rows = self._client.rows(
            f"""SELECT DISTINCT ?x ?class WHERE {{
                VALUES ?x {{ {" ".join(f"<{iri}>" for iri in candidates)} }}
                ?x ?p ?o . OPTIONAL {{ ?x a ?class }} }}"""
        )
        classes: dict[NamedNode, list[str]] = {}
        for x, of in rows:
            # An engine may spell an IRI differently in its answer.
            if isinstance(x, NamedNode) and x.value in spelled:
                classes.setdefault(x, []).extend([of.value] if isinstance(of, NamedNode) else [])
        return [
            EntityMention(spelled[x.value], written(x, self._namespaces), tuple(of))
            for x, of in classes.items()
        ]

    def _names(self, question: str) -> list[EntityMention]:
        spelled = _spellings(question)
        candidates = list(spelled)[:MOST_CANDIDATES]
        if not candidates:
            return []
        tags = (None, *self._languages)
        names = [str(Literal(text, language=tag)) for tag in tags for text in candidates]
        rows = self._client.rows(
            f"""SELECT ?name ?p ?class (COUNT(DISTINCT ?x) AS ?n) (SAMPLE(?x) AS ?one) WHERE {{
                VALUES ?name {{ {" ".join(names)} }}
                ?x ?p ?name ; a ?class }} GROUP BY ?name ?p ?class"""
        )
        named: dict[str, dict[str, dict[str, None]]] = {}
        for name, p, of, n, one in rows:
            if not (isinstance(name, Literal) and isinstance(p, NamedNode)):
                continue
            # A name that several resources have identifies no single one.
            if not (isinstance(n, Literal) and int(n.value) == 1 and isinstance(one, NamedNode)):
                continue
            if name.value in spelled and (p.value in self._labels or _NAMING.search(p.value)):
                resources = named.setdefault(spelled[name.value], {})
                classes = resources.setdefault(written(one, self._namespaces), {})
                classes |= {of.value: None} if isinstance(of, NamedNode) else {}
        return [
            EntityMention(
                words, ", ".join(sorted(found)), tuple(c for of in found.values() for c in of)
            )
            for words, found in named.items()
            if len(found) <= MOST_MEANT
        ]


def _place(words: str, question: str) -> range:
    """Return the position of the first occurrence of words as whole words."""
    whole = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", question)
    start = whole.start() if whole else question.index(words)
    return range(start, start + len(words))


def _spellings(question: str) -> dict[str, str]:
    """Return the names that a question may contain, each with the words it comes from."""
    spans = [match.span() for match in _TOKEN.finditer(question)]
    found = {quoted: quoted for quoted in _QUOTED.findall(question)}
    for length in range(MOST_WORDS, 0, -1):
        for (start, _), (_, end) in zip(spans, spans[length - 1 :], strict=False):
            words = question[start:end].rstrip(_FINAL)
            if len(words) > 2 and not words.isnumeric():
                for spelled in (words, words[0].upper() + words[1:]):
                    found.setdefault(spelled, words)
    return found
