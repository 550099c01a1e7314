"""Distillation: one task's judged attempts in, checked items out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from reasoningbank.corpus import Pack, Task
from reasoningbank.corpus.splits import SplitName
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.memory.contrast import contrast_draft
from reasoningbank.memory.experience import Distilled, Draft, Experience, Rejected, uncertain
from reasoningbank.memory.facts import Facts
from reasoningbank.memory.grounding import Grounding
from reasoningbank.memory.item import ItemSource, Scope
from reasoningbank.memory.pitfalls import failure_drafts
from reasoningbank.memory.skeleton import parsed_skeleton, shortened
from reasoningbank.memory.success import made_skeleton, success_draft, terms_in, title_of
from reasoningbank.memory.wording import reworded, words_for
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, PreparedQuery, Result
from reasoningbank.sparql.query import prepare
from reasoningbank.trajectory import Usage

if TYPE_CHECKING:
    import dspy


_ALL: frozenset[ItemSource] = frozenset(get_args(ItemSource))


class Distiller:
    """Makes items from attempts by rules, worded by a language model if one is given.

    Args:
        vocabulary: Classes and properties of the endpoint.
        endpoint: Its prefixes, and where to ask what the vocabulary lacks.
        pack: The domain pack that the items hold for; None restricts them to the endpoint.
        lm: The model that words one item a task, made for the role ``distiller``; None keeps the
            rules' own words.
        kinds: The kinds of items to make.
        author: The model's name in provenance, e.g. ``lm:local``.
        run: Sends a query; by default to the endpoint.

    Raises:
        UsageError: If a kind is unknown.
    """

    def __init__(
        self,
        *,
        vocabulary: Schema,
        endpoint: EndpointConfig,
        pack: Pack | None = None,
        lm: dspy.BaseLM | None = None,
        kinds: frozenset[ItemSource] = _ALL,
        author: str = "",
        run: Callable[[str], Result] | None = None,
    ) -> None:
        unknown = sorted(kinds - _ALL)
        if unknown:
            hint = f"use {', '.join(sorted(_ALL))}"
            raise UsageError(
                f"unknown kind {unknown[0]!r} of items", hint=hint, code="unknown-source"
            )
        languages = pack.languages if pack is not None else ("en",)
        self._facts = Facts(vocabulary, endpoint, run, languages)
        self._grounding = Grounding(self._facts)
        self._scope = Scope(pack=pack.key if pack is not None else "", endpoint=endpoint.url)
        self._lm = lm
        self._author = author or (f"lm:{lm.model}" if lm is not None else "rules")
        self._kinds = kinds

    def distil(self, experiences: Sequence[Experience]) -> Distilled:
        """Return what the attempts at one task teach.

        Each success gives a strategy and each failure up to two pitfalls; if there are both, a
        contrast follows. What several attempts teach comes once.

        Args:
            experiences: Judged attempts at one task.

        Raises:
            UsageError: If they are of several tasks.
            ModelError: If the model cannot be reached.
        """
        if len({experience.task for experience in experiences}) > 1:
            hint = "distil one task at a time"
            raise UsageError("attempts at several tasks", hint=hint, code="several-tasks")
        drafts = [d for d in self._drafts(experiences) if d is not None]
        return self._checked([d for d in drafts if _kind(d) in self._kinds])

    def from_gold(self, task: Task, split: SplitName | None) -> Distilled:
        """Return the few-shot example of a training task.

        Args:
            task: The task, with its gold.
            split: The split that it is in.

        Raises:
            UsageError: If that is not ``train``, or the task has no gold.
        """
        if split != "train":
            raise UsageError(
                f"few-shot examples come from the training split only, not from {split or 'none'}",
                where=task.id,
                hint="choose tasks of split 'train'",
                code="not-training",
                split=split,
            )
        if not task.expected_sparql.strip():
            raise UsageError("the task has no gold query", where=task.id, code="no-gold")
        return self._checked([_example(task, self._facts)], words=False)

    def _drafts(self, experiences: Sequence[Experience]) -> Iterator[Draft | Rejected | None]:
        seen: set[str] = set()
        for experience in experiences:
            if experience.success:
                made = success_draft(experience, self._facts)
                text = made.pattern if isinstance(made, Draft) else made.text
                if text not in seen:
                    yield made
                seen.add(text)
        for experience in experiences:
            if not experience.success:
                drafts = failure_drafts(experience, self._facts)
                yield from drafts
                if not drafts:
                    yield uncertain(
                        experience, "failure", "unknown-cause", "its mistake is unknown"
                    )
        if len(experiences) > 1:
            # The strategy of the same task already has the skeleton.
            yield contrast_draft(experiences, self._facts, skeleton="success" not in self._kinds)

    def _checked(self, drafts: Sequence[Draft | Rejected], *, words: bool = True) -> Distilled:
        rejected = [draft for draft in drafts if isinstance(draft, Rejected)]
        kept: list[Draft] = []
        for draft in drafts:
            if isinstance(draft, Rejected):
                continue
            findings = self._grounding.findings(draft, self._parsed(draft))
            if findings:
                rejected.append(draft.rejected(findings))
            else:
                kept.append(draft)
        usage = Usage()
        if words and kept and self._lm is not None:
            # The first is the most valuable: a success if there was one.
            said = words_for(self._lm, kept[0])
            usage = said.usage
            kept[0] = reworded(kept[0], said, self._author, self._grounding.of_text)
        return Distilled.of((draft.item(self._scope) for draft in kept), rejected, usage)

    def _parsed(self, draft: Draft) -> PreparedQuery | QueryError | None:
        """Return a draft's skeleton, parsed with its slots filled."""
        if not draft.pattern:
            return None
        try:
            if draft.src == "gold":
                return prepare(draft.pattern, prefixes=self._facts.namespaces)
            skeleton = made_skeleton(draft.experience.sparql or "", self._facts)
            return parsed_skeleton(replace(skeleton, text=draft.pattern), self._facts.namespaces)
        except QueryError as error:
            return error


def _example(task: Task, facts: Facts) -> Draft | Rejected:
    """Return a training task's question and gold query as a draft."""
    experience = Experience(
        task=task.id,
        group=task.group,
        corpus=task.corpus,
        question=task.query,
        sparql=task.expected_sparql,
        success=True,
        judge="",
        ran=True,
    )
    try:
        query = shortened(task.expected_sparql, facts.namespaces)
    except QueryError as error:
        return uncertain(experience, "gold", error.code, error.what)
    return Draft(
        title=title_of(query),
        description="",
        content="",
        src="gold",
        experience=experience,
        pattern=query,
        tags=(*terms_in(query, facts), *task.features),
        question=task.query,
        author="gold",
    )


def _kind(draft: Draft | Rejected) -> ItemSource:
    return draft.src if isinstance(draft, Draft) else draft.kind
