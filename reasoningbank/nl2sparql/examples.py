"""The example queries of a pack, as retrieval uses them, and their queries with other entities."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from reasoningbank.corpus import Pack, Task, load_corpus, load_pack
from reasoningbank.nl2sparql.detection import patterns_of_query
from reasoningbank.nl2sparql.hints import PatternSet, load_patterns
from reasoningbank.nl2sparql.words import (
    QuestionToken,
    content_words,
    folded,
    language_of,
    masked,
    read_tokens,
    stream,
)
from reasoningbank.sparql import string_literal
from reasoningbank.sparql.tokens import Edit, apply_edits, tokenize
from reasoningbank.sparql.tokens import Token as QueryToken


@dataclass(frozen=True)
class PackExample:
    """A question with the query that answers it."""

    id: str  #: The task's id
    nl: str  #: The question, in the first language it comes in
    sparql: str  #: The query
    #: What it needs: the example's keywords that are patterns; derived from the query if there are
    #: none
    patterns: tuple[str, ...] = ()
    group: str = ""  #: Examples of one group have one template
    questions: tuple[tuple[str, str], ...] = ()  #: The question by language

    def question(self, language: str = "") -> str:
        """Return the question in a language; the first one if it does not exist in it."""
        return dict(self.questions).get(language, self.nl)


def example_pack(pack: Pack) -> Pack:
    """Return the pack whose examples may be shown: for a test set, the pack it belongs to."""
    return load_pack(pack.root) if pack.test is not None and pack.examples == pack.test else pack


def load_examples(pack: Pack) -> tuple[PackExample, ...]:
    """Read the examples of a pack with their questions in all of the pack's languages."""
    languages = pack.languages or ("en",)
    corpora = {language: load_corpus(pack, language=language).tasks for language in languages}
    questions: dict[str, tuple[tuple[str, str], ...]] = {}
    for language, tasks in corpora.items():
        for task in tasks:
            if task.language == language:
                questions[task.id] = (*questions.get(task.id, ()), (language, task.query))
    # An update of documents is not an example of a query.
    queries = [task for task in corpora[languages[0]] if task.form != "UPDATE"]
    return examples_of(queries, load_patterns(pack), questions)


def examples_of(
    tasks: Iterable[Task],
    patterns: PatternSet,
    questions: dict[str, tuple[tuple[str, str], ...]] | None = None,
) -> tuple[PackExample, ...]:
    """Return tasks as examples."""
    return tuple(
        PackExample(
            task.id,
            task.query,
            task.expected_sparql,
            # Case matters: `gene` is any keyword, `GENE` is a pattern.
            tuple(name for name in patterns.names if name in task.keywords)
            or patterns_of_query(task.expected_sparql, patterns),
            task.group or f"task-{task.id}",
            (questions or {}).get(task.id) or ((task.language, task.query),),
        )
        for task in tasks
    )


#: From here a model changes the example's query instead of writing a new one.
NEAR = 0.8

_QUOTES = re.compile(r"\"{3}|'{3}|\"|'")
#: Special characters of a regular expression.
_SIGNS = re.compile(r"[\\.\[\]{}()*+?^$|]")


def question_similarity(one: str, other: str) -> float:
    """Return the share of words that two questions have in common, entities masked: 0 to 1."""
    first, second = (set(content_words(masked(text)).split()) - {"x"} for text in (one, other))
    if not first or not second:
        return 0.0
    return round(2 * len(first & second) / (len(first) + len(second)), 6)


def nearest_question(question: str, example: PackExample) -> tuple[str, float]:
    """Return the form of an example's question most similar to a question, and the similarity."""
    texts = [text for _, text in example.questions] or [example.nl]
    best = max(texts, key=lambda text: question_similarity(question, text))
    return best, question_similarity(question, best)


def swap_entities(question: str, example: PackExample) -> str | None:
    """Return an example's query with the entities of a question instead of its own."""
    asked, like = nearest_question(question, example)
    if like < 1.0 or _wording(asked) != _wording(question):
        return None
    # The same wording has as many entities, though perhaps of other kinds.
    old, new = _entities(asked), _entities(question)
    if [one.kind for one in old] != [one.kind for one in new]:
        return None
    pairs: dict[str, str] = {}
    for own, other in zip(old, new, strict=True):
        if pairs.setdefault(own.text, other.text) != other.text:
            return None
    pairs = {before: after for before, after in pairs.items() if before != after}
    numbers = {token.text for token in old if token.kind == "number"}
    tokens = tokenize(example.sparql)
    words = {token.text.upper() for token in tokens if token.kind == "word"}
    edits: list[Edit] = []
    found: set[str] = set()
    for place, token in enumerate(tokens):
        for before, after in pairs.items():
            text = _changed(token, words, before, after)
            if text is None:
                continue
            counts = place > 0 and tokens[place - 1].is_word("LIMIT", "OFFSET")
            if before in numbers and (counts or before in found):
                return None
            edits.append(Edit(token.start, token.end, text))
            found.add(before)
            break
    return apply_edits(example.sparql, edits) if found == pairs.keys() else None


def _wording(question: str) -> list[str]:
    """Return all words in order; function words and positions matter here."""
    plain = masked(question)
    return [word for _, word in stream(read_tokens(plain), language_of(plain))]


def _entities(question: str) -> list[QuestionToken]:
    return [token for token in read_tokens(question) if token.kind != "word"]


def _changed(token: QueryToken, words: set[str], before: str, after: str) -> str | None:
    """Return a token of a query with another entity in it; None if it contains another one."""
    if token.kind == "string":
        return _text(token.text, words, before.strip("-"), after.strip("-"))
    if token.kind == "name":
        prefix, _, local = token.text.partition(":")
        fits = local == before and after.replace("_", "").isalnum()
        return f"{prefix}:{after}" if fits else None
    same = token.kind == "number" and token.text == before.replace(",", ".")
    return after.replace(",", ".") if same else None


def _text(written: str, words: set[str], before: str, after: str) -> str | None:
    """Return a string with another text in it; None where its function might need another form."""
    quotes = _QUOTES.match(written)
    assert quotes is not None
    inside = written[quotes.end() : -quotes.end()]
    bare = inside.removeprefix("^").removesuffix("$")
    if folded(bare) != folded(before):
        return None
    # Lower case if the query has the example's entity in lower case.
    if bare == bare.lower() and before != before.lower():
        after = after.lower()
    folds = words & {"LCASE", "UCASE"} and after != after.lower()
    matches = (words & {"REGEX", "REPLACE"} or bare != inside) and _SIGNS.search(after)
    return None if folds or matches else string_literal(inside.replace(bare, after))
