"""The distiller: one task's judged attempts in, checked items of memory out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import get_args

import dspy

from reasoningbank.corpus import Pack, Task
from reasoningbank.corpus.splits import SplitName
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.memory.distillation.contrast import contrast_draft
from reasoningbank.memory.distillation.experience import Distilled, Draft, Experience, Rejected
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.failure import failure_drafts
from reasoningbank.memory.distillation.gold import exemplar_draft
from reasoningbank.memory.distillation.grounding import Grounding
from reasoningbank.memory.distillation.skeleton import parsed_skeleton
from reasoningbank.memory.distillation.success import made_skeleton, success_draft
from reasoningbank.memory.distillation.wording import reworded, words_for
from reasoningbank.memory.item import ItemSource, MemoryItem, Scope
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, PreparedQuery, Result
from reasoningbank.sparql.query import prepare
from reasoningbank.trajectory import Usage

__all__ = ["Distiller"]

_ALL: frozenset[ItemSource] = frozenset(get_args(ItemSource))


class Distiller:
    """Makes items of attempts: by rules, in a model's words where one is given.

    Args:
        vocabulary: Classes and properties of the endpoint.
        endpoint: Its prefixes, and where to ask what the vocabulary does not say.
        pack: The domain pack that the items hold for; None restricts them to the endpoint.
        lm: The model that words an item a task, made for the role ``distiller``; None for the
            rules' own words.
        kinds: The kinds of items to make.
        author: What the model is called in provenance, e.g. ``lm:local``.
        run: Sends a query; by default to the endpoint.
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
            raise UsageError(
                f"unknown kind {unknown[0]!r} of items", hint=f"use {', '.join(sorted(_ALL))}"
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

        Each success gives a strategy, each failure up to two pitfalls; where there are both, the
        contrast of the two follows. What several attempts teach alike comes once.

        Args:
            experiences: Judged attempts at one task.

        Raises:
            UsageError: If they are of several tasks.
            ModelError: If the model cannot be reached.
        """
        if len({experience.task for experience in experiences}) > 1:
            raise UsageError("attempts at several tasks", hint="distil one task at a time")
        drafts = [d for d in self._drafts(experiences) if d is not None]
        return self._checked([d for d in drafts if _kind(d) in self._kinds])

    def from_gold(self, task: Task, split: SplitName | None) -> Distilled:
        """Return the exemplar of a training task.

        Args:
            task: The task, with its gold.
            split: The part of the corpus that it is in.

        Raises:
            UsageError: If that is not ``train``: what is evaluated on is not shown.
        """
        return self._checked([exemplar_draft(task, split, self._facts)], words=False)

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
                    yield _untold(experience)
        if len(experiences) > 1:
            # The strategy of the same task has the skeleton already.
            alone = "success" not in self._kinds
            yield contrast_draft(experiences, self._facts, skeleton=alone)

    def _checked(self, drafts: Sequence[Draft | Rejected], *, words: bool = True) -> Distilled:
        rejected = [draft for draft in drafts if isinstance(draft, Rejected)]
        kept: list[Draft] = []
        for draft in drafts:
            if isinstance(draft, Rejected):
                continue
            objections = self._grounding.objections(draft, self._parsed(draft))
            if objections:
                rejected.append(draft.rejected("; ".join(objections[:2])))
            else:
                kept.append(draft)
        usage = Usage()
        if words and kept and self._lm is not None:
            # The first is the best there is: a success where there was one.
            said = words_for(self._lm, kept[0])
            usage = said.usage
            check = self._grounding.objections_to_text
            kept[0] = reworded(kept[0], said, self._author, check)
        return Distilled.of(_items(kept, self._scope), rejected, usage)

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


def _untold(experience: Experience) -> Rejected:
    reason = "what was wrong with it could not be told"
    return Rejected(experience.question[:110], reason, "failure", experience.sparql or "")


def _kind(draft: Draft | Rejected) -> ItemSource:
    return draft.src if isinstance(draft, Draft) else draft.kind


def _items(drafts: Sequence[Draft], scope: Scope) -> Iterator[MemoryItem]:
    for draft in drafts:
        yield draft.item(scope)
