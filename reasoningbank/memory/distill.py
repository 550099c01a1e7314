"""Distillation: one task's judged attempts in, checked items out.

The rules make the lessons; a language model, if there is one, words one of them in a short call,
and where its words do not hold, those of the rules stay. The static part of the prompt comes first,
so that a local model caches it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import dspy

from reasoningbank.corpus import Pack, Task
from reasoningbank.corpus.splits import SplitName
from reasoningbank.errors import BudgetError, QueryError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.judge.lm_judge import called, reply_of
from reasoningbank.lm import UsageCounter
from reasoningbank.memory.experience import Distilled, Draft, Experience, Rejected
from reasoningbank.memory.grounding import Facts, Grounding
from reasoningbank.memory.item import SLOT, ItemSource, Scope
from reasoningbank.memory.pitfalls import failure_drafts
from reasoningbank.memory.success import Lesson, contrast_draft, success_draft, terms_in, title_of
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, Result
from reasoningbank.trajectory import Usage

_ALL: frozenset[ItemSource] = frozenset(get_args(ItemSource))


@dataclass(kw_only=True, eq=False)
class Distiller:
    """Makes items from attempts by rules, worded by a language model if one is given."""

    vocabulary: Schema  #: Classes and properties of the endpoint, which `run` asks what they lack
    endpoint: EndpointConfig
    #: The domain pack that the items hold for; None restricts them to the endpoint
    pack: Pack | None = None
    #: The model that words one item a task, made for the role ``distiller``
    lm: dspy.BaseLM | None = None
    kinds: frozenset[ItemSource] = _ALL  #: The kinds of items to make
    author: str = ""  #: The name in provenance
    #: A function of one task's attempts that makes the drafts instead of the rules. They are
    #: checked as those of the rules are.
    own: Callable[[Sequence[Experience]], Iterable[Draft]] | None = None
    run: Callable[[str], Result] | None = None

    def __post_init__(self) -> None:
        for kind in sorted(self.kinds - _ALL):
            hint = f"use {', '.join(sorted(_ALL))}"
            raise UsageError(f"unknown kind {kind!r} of items", hint=hint, code="unknown-source")
        pack, languages = (self.pack.key, self.pack.languages) if self.pack else ("", ("en",))
        self._facts = Facts(self.vocabulary, self.endpoint, self.run, languages)
        self._grounding = Grounding(self._facts)
        self._scope = Scope(pack=pack, endpoint=self.endpoint.url)
        self.author = self.author or (f"lm:{self.lm.model}" if self.lm is not None else "rules")

    def distil(self, experiences: Sequence[Experience]) -> Distilled:
        """Return what the attempts at one task teach.

        Each success gives a strategy and each failure up to two pitfalls; if there are both, a
        contrast follows. What several attempts teach comes once.
        """
        if len({experience.task for experience in experiences}) > 1:
            hint = "distil one task at a time"
            raise UsageError("attempts at several tasks", hint=hint, code="several-tasks")
        if (own := self.own) is None:
            return self._checked(list(self._drafts(experiences)), self.lm)
        drafts = called(self.author, lambda: list(own(experiences)))
        if not all(isinstance(draft, Draft) for draft in drafts):
            what = f"{self.author} returned something else than drafts of items"
            raise UsageError(what, hint="return reasoningbank.memory.Draft(…)", code="wrong-type")
        return self._checked([replace(draft, author=self.author) for draft in drafts])

    def from_gold(self, task: Task, split: SplitName | None) -> Distilled:
        """Return the few-shot example of a training task."""
        if split != "train":
            raise UsageError(
                f"few-shot examples come from the training split only, not from {split or 'none'}",
                where=task.id,
                hint="choose tasks of split 'train'",
                code="not-training",
                split=split,
            )
        gold = task.expected_sparql
        if not gold.strip():
            raise UsageError("the task has no gold query", where=task.id, code="no-gold")
        of = Experience(task.id, task.group, task.corpus, task.query, gold, True, "", ran=True)
        try:
            lesson = Lesson(of, self._facts)
        except QueryError as error:
            return self._checked([of.uncertain("gold", error.code, error.what)])
        query = lesson.query
        example = Draft(
            title=title_of(query),
            # Only the query has slots, so their names stand alone.
            description=SLOT.sub(r"\1", lesson.description),
            content="",
            src="gold",
            experience=of,
            pattern=query,
            tags=(*terms_in(query, self._facts), *task.features),
            question=task.query,
            probe=query,
            author="gold",
        )
        return self._checked([example])

    def _drafts(self, experiences: Sequence[Experience]) -> Iterator[Draft | Rejected]:
        if "success" in self.kinds:
            successes = (success_draft(one, self._facts) for one in experiences if one.success)
            once: dict[str, Draft | Rejected] = {}
            for made in successes:
                once.setdefault(made.pattern if isinstance(made, Draft) else made.text, made)
            yield from once.values()
        for experience in experiences if "failure" in self.kinds else ():
            if not experience.success:
                drafts: Sequence[Draft | Rejected] = failure_drafts(experience, self._facts)
                why = "its mistake is unknown"
                yield from drafts or [experience.uncertain("failure", "unknown-cause", why)]
        if "contrast" in self.kinds:
            # The strategy of the same task already has the skeleton.
            skeleton = "success" not in self.kinds
            if contrast := contrast_draft(experiences, self._facts, skeleton=skeleton):
                yield contrast

    def _checked(
        self, drafts: Sequence[Draft | Rejected], lm: dspy.BaseLM | None = None
    ) -> Distilled:
        rejected = [one for one in drafts if isinstance(one, Rejected)]
        checked = [(one, self._grounding.findings(one)) for one in drafts if isinstance(one, Draft)]
        rejected += [draft.rejected(findings) for draft, findings in checked if findings]
        kept = [draft for draft, findings in checked if not findings]
        usage = Usage()
        if kept and lm is not None:
            # The first is the most valuable: a success if there was one.
            kept[0], usage = reworded(lm, kept[0], self.author, self._grounding.of_text)
        once = {item.id: item for item in (draft.item(self._scope) for draft in kept)}
        return Distilled(tuple(once.values()), tuple(rejected), usage)


# -- wording ------------------------------------------------------------------------------

#: Maximum characters of what is shown, and bounds of what is accepted.
_QUERY_CHARS, _LESSON_CHARS = 900, 500
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


def reworded(
    lm: dspy.BaseLM, draft: Draft, author: str, findings: Callable[[Draft, str], list[Finding]]
) -> tuple[Draft, Usage]:
    """Return a draft in a model's words, those that `findings` allows, and what that consumed."""
    counter = UsageCounter(role="distiller")
    inputs = {
        "question": " ".join(draft.experience.question.split()),
        "query": draft.pattern[:_QUERY_CHARS] or "none",
        "lesson": draft.content[:_LESSON_CHARS],
    }
    try:
        said = reply_of(lm, PutInWords, [_CASE], inputs, counter)
    except BudgetError:
        # The draft does not fit the model's context: keep the rules' words.
        return draft, counter.usage
    asked = _WORD.findall(draft.experience.question.casefold())
    texts = {}
    for name, (field, least, most) in _FIELDS.items():
        if name == "steps" and not draft.pattern:
            continue
        text = str(said.get(name) or "").strip().strip('`"').strip()
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        text = "\n".join(lines) if name == "steps" else " ".join(" ".join(lines).split())
        if not least <= len(text) <= most or _WORD.findall(text.casefold()) == asked:
            continue
        # Only the rules say which names do not exist, so that they cannot be mistaken.
        if not any(absent in text for absent in draft.denied) and not findings(draft, text):
            texts[field] = text
    if "content" in texts and draft.slots:
        texts["content"] += f"\n{draft.slots}"
    worded = replace(draft, author=author, **texts) if texts else draft  # type: ignore[arg-type]
    return worded, counter.usage
