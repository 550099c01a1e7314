"""A language model's wording of a lesson: one short call, checked like everything else.

The rules make the lesson, and the model only words it; where its words do not hold, those of the
rules stay. The static part of the prompt comes first, so that a local model caches it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.errors import BudgetError
from reasoningbank.findings import Finding
from reasoningbank.lm import UsageCounter, lm_failure
from reasoningbank.memory.experience import Draft
from reasoningbank.trajectory import Usage

#: Maximum characters of what is shown, and bounds of what is accepted.
_QUERY_CHARS, _LESSON_CHARS = 900, 500
_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
_WORD = re.compile(r"\w+")
#: Field of the reply → field of the draft, and bounds of its characters.
_FIELDS = {
    "title": ("title", 8, 90),
    "applies": ("description", 15, 200),
    "steps": ("content", 15, 400),
}


class PutInWords(dspy.Signature):  # type: ignore[misc]
    """Put a lesson about writing SPARQL queries into a few plain words, for similar questions.

    Use only names that occur in the query or the lesson. Never mention one question's values:
    write <<name>> where the query has a slot.
    """

    question: str = dspy.InputField()
    query: str = dspy.InputField(desc="with slots <<name>>; none if the lesson is a mistake")
    lesson: str = dspy.InputField(desc="what is known, to be put shortly")
    title: str = dspy.OutputField(desc="what the lesson is about, at most 10 words")
    applies: str = dspy.OutputField(desc="to which questions, one sentence")
    steps: str = dspy.OutputField(desc="two or three numbered steps, one line each")


#: A worked case of a domain without a pack.
_CASE = dspy.Example(
    question="How many books did Jane Austen write?",
    query="SELECT (COUNT(?book) AS ?n) WHERE { ?book ex:author/ex:name <<name>> }",
    lesson="ex:author from ex:Book to ex:Person; ex:name is full name",
    title="Count the books of an author by name",
    applies="Questions for how many works a person wrote, where the person is named.",
    steps="1. Reach the name by ex:author/ex:name from the book.\n"
    "2. Put the name where <<name>> stands, and COUNT the books.",
)


def words_for(lm: dspy.BaseLM, draft: Draft) -> tuple[dict[str, str], Usage]:
    """Ask a model to word a draft, and return its fields, and what that consumed."""
    counter = UsageCounter(role="distiller")
    predict = dspy.Predict(PutInWords)
    predict.demos = [_CASE]
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    said: Mapping[str, Any] = {}
    with dspy.context(lm=lm, adapter=adapter, callbacks=[counter]):
        try:
            said = predict(
                question=" ".join(draft.experience.question.split()),
                query=draft.pattern[:_QUERY_CHARS] or "none",
                lesson=draft.content[:_LESSON_CHARS],
            ).toDict()
        except AdapterParseError as error:
            # A small model leaves fields out; the others are still useful.
            parts = _FIELD.split(str(error.lm_response))
            said = dict(zip(parts[1::2], parts[2::2], strict=False))
        except Exception as error:
            failure = lm_failure(error)
            if isinstance(failure, BudgetError):
                # The draft does not fit the model's context: keep the rules' words.
                return {}, counter.usage
            if failure is None or failure is error:
                raise
            raise failure from error
    words = {}
    for name in _FIELDS:
        text = str(said.get(name) or "").strip().strip('`"').strip()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        words[name] = "\n".join(lines) if name == "steps" else " ".join(" ".join(lines).split())
    return words, counter.usage


def reworded(
    draft: Draft,
    words: Mapping[str, str],
    author: str,
    findings: Callable[[Draft, str], list[Finding]],
) -> Draft:
    """Return a draft with those of a model's words that `findings` has nothing against."""
    asked = _WORD.findall(draft.experience.question.casefold())
    texts = {}
    for name, text in words.items():
        field, least, most = _FIELDS[name]
        if not least <= len(text) <= most or _WORD.findall(text.casefold()) == asked:
            continue
        if name == "steps" and not draft.pattern:
            continue
        # Only the rules say which names do not exist, so that they cannot be mistaken.
        if not any(absent in text for absent in draft.denied) and not findings(draft, text):
            texts[field] = text
    if "content" in texts and draft.slots:
        texts["content"] += f"\n{draft.slots}"
    return replace(draft, author=author, **texts) if texts else draft  # type: ignore[arg-type]


def prompt_hash() -> str:
    """Return a hash of the static part of the prompt, 16 hexadecimal digits."""
    empty = dict.fromkeys(PutInWords.input_fields, "")
    messages = dspy.ChatAdapter().format(PutInWords, [_CASE], empty)
    return hashlib.sha256(repr(messages).encode()).hexdigest()[:16]
