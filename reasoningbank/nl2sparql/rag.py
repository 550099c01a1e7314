"""The retrieval-augmented pipeline as an agent: few calls, always in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reasoningbank.agents.calling import asking
from reasoningbank.agents.protocol import Attempt, Episode, conclude, used_up
from reasoningbank.agents.recording import RecordedClient
from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.nl2sparql.confidence import Confidence, confidence_score, load_calibration
from reasoningbank.nl2sparql.hybrid import shown_examples
from reasoningbank.nl2sparql.pipeline import NL2SPARQL, Translation
from reasoningbank.nl2sparql.validation import LEVELS
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX
from reasoningbank.schema import Schema, explainer


class RAGAgent:
    """Detect → retrieve → adapt the best example or write → validate → fix with the error.

    `NL2SPARQL` with a budget and a record. A turn is a query that is made and validated. Nothing of
    a hidden task's group is retrieved.

    Args:
        top_k: Examples shown; 0 for none.
        adapt: Whether an example that is nearly the question is changed instead.
        max_fixes: Rounds in which a query with problems is written again.
        retrieval: How examples are found: one of `hybrid.RETRIEVALS`.
        levels: Levels of validation: of ``syntax``, ``semantic`` and ``endpoint``, as names or as
            one text with commas; empty for none.
        diagnose: Whether a query that fails or returns nothing is probed for the reason.
        embedding: The embedding model, as named for `retrieval.open_embedder`.
        index: What compares vectors, one of `retrieval.INDEXES`.
        whole_groups: Whether the groups of hidden tasks are hidden too (leave-group-out).

    Raises:
        UsageError: If there is no such level.
    """

    name = "rag"
    uses_lm = True
    sees_gold = False

    def __init__(
        self,
        top_k: int = 3,
        adapt: bool = True,
        max_fixes: int = 2,
        retrieval: str = "hybrid",
        levels: Sequence[str] | str = LEVELS,
        diagnose: bool = True,
        embedding: str = DEFAULT_EMBEDDER,
        index: str = DEFAULT_INDEX,
        whole_groups: bool = True,
    ) -> None:
        if isinstance(levels, str):
            # The options of an experiment file are words and numbers.
            levels = [level.strip() for level in levels.split(",") if level.strip()]
        for level in levels:
            if level not in LEVELS:
                hint = f"choose from {', '.join(LEVELS)}"
                raise UsageError(f"unknown level {level!r}", where="agent rag", hint=hint)
        self._levels = tuple(level for level in LEVELS if level in levels)
        self._top_k, self._adapt, self._max_fixes = top_k, adapt, max_fixes
        self._diagnose = diagnose
        self._retrieval: dict[str, Any] = {"retrieval": retrieval, "embedding": embedding}
        self._retrieval |= {"index": index, "whole_groups": whole_groups}

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first valid query, or the best one."""
        pack = episode.required_pack(self.name)
        shown = shown_examples(pack, episode.hidden, **self._retrieval)
        meter, turns = episode.meter, episode.budget.iterations

        def on_call(is_turn: bool) -> None:
            if is_turn and meter.usage().iterations >= turns:
                raise used_up("iterations", turns)
            (meter.turn if is_turn else meter.check)()

        def on_step(name: str, detail: Mapping[str, Any]) -> None:
            episode.recorder.add("step", {"step": name, **detail})

        client = RecordedClient(episode)
        vocabulary = Schema.of(client.config, pack.schema)
        explain = explainer(client, vocabulary) if self._diagnose else None
        try:
            with asking(episode), client:
                found = NL2SPARQL(
                    pack,
                    episode.lm,
                    endpoint=client,
                    retriever=shown.retriever,
                    detector=shown.detector,
                    top_k=self._top_k,
                    adapt=self._adapt,
                    max_fixes=min(self._max_fixes, turns - 1),
                    levels=self._levels,
                    timeout=episode.endpoint.timeout_s,
                    explain=explain,
                ).translate(
                    task.query,
                    without_groups=shown.without_groups,
                    without_ids=shown.without_ids,
                    advice=episode.context,
                    on_step=on_step,
                    on_call=on_call,
                )
        except BudgetError as error:
            return conclude(episode, None, "exhausted", [error])
        if found.stopped is not None and "budget" in found.stopped.fields:
            return conclude(episode, found.sparql, "exhausted", [found.stopped])
        if client.exhausted is not None:
            return conclude(episode, found.sparql, "exhausted", [client.exhausted])
        on_step(
            "output", vars(translation_confidence(found, pack, getattr(episode.lm, "model", "")))
        )
        if found.is_valid:
            return conclude(episode, found.sparql, "submitted")
        findings = [found.stopped] if found.stopped else []
        return conclude(episode, found.sparql, "fallback", [*findings, *found.problems])


def translation_confidence(found: Translation, pack: Pack, model: str = "") -> Confidence:
    """Return the confidence in a translation, with an explanation."""
    table = load_calibration(pack, "rag", model)
    needs = ", ".join(one.pattern for one in found.patterns) or "no known pattern"
    best = found.best
    if best is None:
        why = f"It needs {needs}. There is no query: {found.stopped}."
        return Confidence(0.0, 0.0, table is not None, why)
    similarity = max((one.score for one in found.retrieved), default=0.0)
    attempts = found.candidates.index(best) + 1
    score = confidence_score(valid=found.is_valid, similarity=similarity, attempts=attempts)
    used = ", ".join(one.example.id for one in found.retrieved)
    how = best.how.capitalize() + (f" after the examples {used}" if used else "")
    noun = "row" if best.rows == 1 else "rows"
    rows = "" if best.rows is None else f"It returns {best.rows} {noun}. "
    problems = "; ".join(map(str, found.problems)) or "none found"
    why = f"It needs {needs}. {how}; queries: {len(found.candidates)}. {rows}Problems: {problems}."
    return Confidence.of(score, table, why)
