"""Verdicts as Inspect scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import CORRECT, INCORRECT, Score

from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain

__all__ = ["VERDICT_SCORERS", "scores_of"]

#: Scores of the execution judge and how Inspect sums each up.
VERDICT_SCORERS = {"strict": "accuracy", "lenient": "accuracy", "f1": "mean"}


def scores_of(record: TrialRecord) -> dict[str, Score] | None:
    """Return the scores of a trial by scorer; None where an infrastructure error ended it.

    ``strict``, ``lenient`` and ``f1`` are the execution judge's; every other judge is a scorer of
    its own name. A broken gold gives scores without a value, which Inspect leaves out of metrics.
    """
    if record.verdict is None:
        return None
    scores = dict(_verdict_scores(record, record.verdict))
    for judge, judgement in record.judgements.items():
        scores[judge] = _judgement_score(record, judgement)
    return scores


def _verdict_scores(record: TrialRecord, verdict: Mapping[str, Any]) -> dict[str, Score]:
    status = str(verdict.get("status", ""))
    common = {
        "answer": plain(record.sparql),
        "explanation": plain(str(verdict.get("reason", ""))),
        "reason": None if status == "judged" else status,
    }
    if status == "gold_defect":
        return {name: Score.unscored(**common) for name in VERDICT_SCORERS}
    left = {k: v for k, v in verdict.items() if k not in {*VERDICT_SCORERS, "reason"}}
    details = plain({**left, "evidence": record.evidence} if record.evidence else left)
    return {
        "strict": Score(value=_mark(record.strict), metadata=details, **common),
        "lenient": Score(value=_mark(bool(verdict.get("lenient"))), **common),
        "f1": Score(
            value=record.f1,
            metadata={k: verdict.get(k) for k in ("precision", "recall")},
            **common,
        ),
    }


def _judgement_score(record: TrialRecord, judgement: Mapping[str, Any]) -> Score:
    success = judgement.get("success")
    left = {k: v for k, v in judgement.items() if k not in {"success", "reason"}}
    common = {
        "answer": plain(record.sparql),
        "explanation": plain(str(judgement.get("reason", ""))),
        "metadata": plain(left),
    }
    if not isinstance(success, bool):
        return Score.unscored(reason="grader_failed", **common)
    return Score(value=_mark(success), **common)


def _mark(right: bool) -> str:
    return str(CORRECT if right else INCORRECT)
