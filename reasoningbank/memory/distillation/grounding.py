"""What a draft claims, checked before it is stored.

An item that names what is not there, or that tells a training task's answer, does harm for as
long as it is kept; so what is not known to hold is rejected, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reasoningbank.errors import QueryError
from reasoningbank.memory.distillation.answers import Answers
from reasoningbank.memory.distillation.experience import Draft
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.secrets import secret_in
from reasoningbank.memory.distillation.skeleton import slot_names
from reasoningbank.schema import namespace_of
from reasoningbank.schema.names import used_names
from reasoningbank.sparql.query import PreparedQuery
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import outline, read_query

__all__ = ["MOST_CHARS", "Grounding", "names_in", "services_names"]

#: Characters of the texts of an item; whole items are packed into a few hundred tokens.
MOST_CHARS = {"title": 120, "description": 400, "content": 1_200, "pattern": 1_500}

_NEGATIONS = frozenset({"no", "not", "never", "without", "nothing"})
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+", re.UNICODE)


class Grounding:
    """Checks drafts against schema, data, and what their attempts saw.

    Args:
        facts: What is known of the endpoint's names.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def objections(self, draft: Draft, parsed: PreparedQuery | QueryError | None) -> list[str]:
        """Return what is wrong with a draft, a line each; nothing where it may be stored.

        Args:
            draft: The draft.
            parsed: Its skeleton, parsed with its slots filled, or why that failed; None where
                it has none.
        """
        found = [
            *_bounds(draft),
            *self._of_pattern(draft, parsed),
            *self._of_prose(draft),
            *self._secrets(draft),
        ]
        return list(dict.fromkeys(found))

    def objections_to_text(self, draft: Draft, text: str) -> list[str]:
        """Return what is wrong with a text that is to be part of a draft."""
        found = [*self._names(draft, text), *_answers(draft, text)]
        secret = secret_in(text, self._facts.endpoint)
        found += [f"holds {secret}"] if secret else []
        strange = [name for name in slot_names(text) if name not in slot_names(draft.pattern)]
        found += [f"speaks of <<{strange[0]}>>, which is no slot of it"] if strange else []
        return found

    # -- the skeleton ---------------------------------------------------------------------

    def _of_pattern(self, draft: Draft, parsed: PreparedQuery | QueryError | None) -> Iterator[str]:
        if isinstance(parsed, QueryError):
            yield f"its skeleton does not parse: {parsed.what}"
            return
        if parsed is None:
            return
        try:
            used = used_names(read_query(parsed.text))
        except QueryError as error:
            yield f"its skeleton cannot be read: {error.what}"
            return
        for name in used:
            if name.role == "resource" or name.iri.startswith("urn:slot"):
                continue
            there = self._facts.exists(name.iri)
            if there is False:
                yield f"its skeleton has the {name.role} {name.written}, which the data lack"
            elif there is None:
                yield f"whether the {name.role} {name.written} exists could not be found out"
            elif name.role == "class" and self._is_property(name.iri):
                yield f"its skeleton has the property {name.written} where a class stands"

    def _is_property(self, name: str) -> bool:
        vocabulary = self._facts.vocabulary
        return name in vocabulary.properties and name not in vocabulary.classes

    # -- the texts ------------------------------------------------------------------------

    def _of_prose(self, draft: Draft) -> Iterator[str]:
        yield from self.objections_to_text(draft, draft.prose)
        if _plain(draft.description + draft.content) == _plain(draft.experience.question) and (
            not draft.pattern
        ):
            yield "it says nothing but the question"

    def _names(self, draft: Draft, text: str) -> Iterator[str]:
        for sentence in _SENTENCE.split(text):
            negated = False
            for kind, word in _words(sentence):
                if kind == "word":
                    negated = negated or word.casefold() in _NEGATIONS
                    continue
                yield from self._name(draft, word, negated=negated)

    def _name(self, draft: Draft, written: str, *, negated: bool) -> Iterator[str]:
        if written in draft.denied:
            if not negated:
                yield f"names {written}, which does not exist, without saying so"
            elif self._exists(written):
                yield f"says that {written} does not exist, and it does"
            return
        name = self._facts.iri_of(written)
        if name is None:
            if not written.startswith("<"):
                yield f"names {written}, whose prefix is not known"
            return
        if name.startswith("urn:") or self._of_service(draft, written):
            return
        there = self._facts.exists(name)
        if there is False:
            kind = "class" if written.partition(":")[2][:1].isupper() else "property"
            home = namespace_of(name) in self._facts.homes
            yield f"names the {kind if home else 'resource'} {written}, which the data lack"
        elif there is None:
            yield f"names {written}, and whether it exists could not be found out"
        elif not self._facts.is_term(name) and not self._may_name(draft, written, name):
            yield f"names {written}, which is not in the question's query: it may be an answer"

    def _exists(self, written: str) -> bool:
        name = self._facts.iri_of(written)
        return name is not None and self._facts.exists(name) is True

    def _may_name(self, draft: Draft, written: str, name: str) -> bool:
        # An individual of the vocabulary, such as a rank or a method, is part of the schema.
        return written in draft.constants or namespace_of(name) in self._facts.homes

    def _of_service(self, draft: Draft, written: str) -> bool:
        """Say whether a name stands in a right query's SERVICE, which another endpoint answers."""
        if not draft.experience.success:
            return False
        query = draft.experience.sparql or ""
        return written in services_names(draft.pattern) or written in services_names(query)

    def _secrets(self, draft: Draft) -> Iterator[str]:
        turns = "\n".join(f"{t.reasoning}\n{t.code}\n{t.output}" for t in draft.turns)
        kept = "\n".join((draft.pattern, draft.question, draft.query, turns))
        secret = secret_in(kept, self._facts.endpoint)
        if secret:
            yield f"holds {secret}"


def _bounds(draft: Draft) -> Iterator[str]:
    if not draft.title.strip():
        yield "it has no title"
    if not draft.content.strip() and not draft.pattern.strip():
        yield "it says nothing"
    for part, most in MOST_CHARS.items():
        length = len(getattr(draft, part))
        if length > most:
            yield f"its {part} has {length:,} characters, more than {most:,}"


def _answers(draft: Draft, text: str) -> Iterator[str]:
    told = Answers.of(draft.experience).told_in(text, draft.constants)
    if told:
        yield f"tells what the attempt found: {told!r:.60}"


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words and the names of a text, in their order."""
    for token in tokenize(text):
        # In prose a colon may follow a name, and stand in a time of day.
        written = token.text.rstrip(":") if token.kind == "name" else token.text
        if token.kind == "iri" or (token.kind == "name" and ":" in written[1:]):
            yield "name", written
        elif token.kind in ("word", "name"):
            yield "word", written


def names_in(text: str) -> tuple[str, ...]:
    """Return the prefixed names and IRIs in a text, each once.

    Examples:
        >>> names_in("Use up:mass, not up:weight: there is none. See <http://e/a>.")
        ('up:mass', 'up:weight', '<http://e/a>')
    """
    return tuple(dict.fromkeys(word for kind, word in _words(text) if kind == "name"))


def services_names(query: str) -> frozenset[str]:
    """Return the names in a query's SERVICE clauses, and the addresses of these.

    Examples:
        >>> sorted(services_names("ASK { ?s e:p ?x SERVICE <http://r/> { ?x r:q 1 } }"))
        ['<http://r/>', 'r:q']
    """
    if not query:
        return frozenset()
    try:
        body = outline(query).body
    except QueryError:
        return frozenset()
    found: set[str] = set()
    depth = inside = 0
    waiting = False
    for token in body:
        if token.is_word("SERVICE"):
            waiting = True
        elif token.text == "{":
            depth += 1
            inside, waiting = (depth, False) if waiting and not inside else (inside, waiting)
        elif token.text == "}":
            inside = 0 if depth == inside else inside
            depth -= 1
        elif (waiting or inside) and token.kind in ("iri", "name"):
            found.add(token.text)
    return frozenset(found)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
