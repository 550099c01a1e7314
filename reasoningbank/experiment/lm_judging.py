"""Letting a language model judge a trial, after the execution judge and without the gold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reasoningbank.errors import QueryError
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.world import World
from reasoningbank.judge import LMJudge, Sample, case_of
from reasoningbank.judge.lm_judge import MAX_REPLY_TOKENS
from reasoningbank.lm import parse_name
from reasoningbank.trajectory import Trajectory

__all__ = ["judge_attempts", "judge_record", "judge_with_lm", "reply_tokens"]


def judge_record(world: World, model: str, record: TrialRecord) -> TrialRecord:
    """Let a model judge a trial; return its record with the judgement under ``lm:MODEL``.

    Raises:
        ModelError: If the model cannot be reached.
        EndpointError: If the query must be run and the endpoint fails.
    """
    said = judge_with_lm(
        world,
        model,
        record.question,
        record.sparql,
        record.trajectory,
        verdict=record.verdict,
        evidence=record.evidence,
    )
    return replace(record, judgements={**record.judgements, f"lm:{model}": said})


def judge_attempts(world: World, model: str, record: TrialRecord) -> TrialRecord:
    """Let a model judge all attempts of a trial that it has not judged yet.

    Returns:
        The record with what is new; the record itself where nothing was missing.

    Raises:
        ModelError: If the model cannot be reached.
        EndpointError: If a query must be run and the endpoint fails.
    """
    name = f"lm:{model}"
    if name not in record.judgements:
        record = judge_record(world, model, record)
    if all(name in (one.get("judgements") or {}) for one in record.rollouts):
        return record
    return replace(
        record, rollouts=tuple(_judged(world, model, record, one) for one in record.rollouts)
    )


def _judged(
    world: World, model: str, record: TrialRecord, attempt: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return an attempt that was not chosen with a model's judgement."""
    known = attempt.get("judgements") or {}
    if f"lm:{model}" in known:
        return attempt
    said = judge_with_lm(
        world,
        model,
        record.question,
        attempt.get("sparql"),
        Trajectory.from_json(attempt["trajectory"]),
        verdict=attempt.get("verdict"),
    )
    return {**attempt, "judgements": {**known, f"lm:{model}": said}}


def judge_with_lm(
    world: World,
    model: str,
    question: str,
    sparql: str | None,
    trajectory: Trajectory,
    *,
    verdict: Mapping[str, Any] | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Let a model judge an attempt without the gold.

    Args:
        world: What trials share, with the model open in it.
        model: The model's name.
        question: The task's question.
        sparql: The submitted query; None where there was none.
        trajectory: What the agent did.
        verdict: The execution judge's verdict as records keep it. Whether the query ran is all
            that is read of it.
        evidence: The execution judge's evidence as records keep it. Rows of the prediction are
            all that is read of it; without them the query is run.

    Returns:
        The judgement as records keep it, under ``lm:MODEL`` in `judgements`.

    Raises:
        ModelError: If the model cannot be reached.
        EndpointError: If the query must be run and the endpoint fails.
    """
    result, failure = _result(world, sparql, verdict or {}, evidence or {})
    case = case_of(
        question,
        sparql,
        trajectory,
        result=result,
        failure=failure,
        known=world.vocabulary,
        prefixes=world.endpoint.prefixes,
    )
    lm = world.models[model].lm(role="judge", temperature=0.0, max_tokens=reply_tokens(model))
    return LMJudge(lm).judge(case).to_json()


def reply_tokens(model: str) -> int | None:
    """Return the most tokens of a judge's reply; None for a hosted model's own bound.

    A hosted model that thinks before it answers needs more than its answer takes.
    """
    return MAX_REPLY_TOKENS if parse_name(model).is_local else None


def _result(
    world: World, sparql: str | None, verdict: Mapping[str, Any], evidence: Mapping[str, Any]
) -> tuple[Sample | None, str]:
    """Return rows of the query's result, or why there are none."""
    status = verdict.get("status")
    if sparql is None or not sparql.strip():
        return None, "no query was submitted"
    if status in ("query_error", "query_timeout"):
        return None, str(verdict.get("reason") or "the query did not run")
    if status in ("judged", "wrong_form") and "predicted" in evidence:
        return Sample.from_json(evidence["predicted"]), ""
    try:
        return world.judge.sample(sparql), ""
    except QueryError as error:
        return None, str(error)
