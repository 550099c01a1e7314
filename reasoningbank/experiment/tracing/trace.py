"""A trial as a trace: where it belongs, what it was, how it was judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from mlflow.entities import (
    Assessment,
    AssessmentError,
    AssessmentSource,
    Expectation,
    Feedback,
    TraceInfo,
    TraceLocation,
    TraceState,
)
from mlflow.tracing.constant import TraceMetadataKey, TraceTagKey

from reasoningbank.experiment.records import TrialKey, TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.experiment.tracing.spans import nanoseconds, token_usage

__all__ = ["EDITION_TAG", "RUN_TAG", "TRIAL_TAG", "trace_digits", "trace_info", "trial_name"]

#: Tags by which traces are found again.
RUN_TAG = "reasoningbank.run"
TRIAL_TAG = "reasoningbank.trial"
EDITION_TAG = "reasoningbank.edition"

#: MLflow keeps so many characters of a preview, and of a tag.
_PREVIEW, _TAG = 1_000, 250


def trial_name(key: TrialKey) -> str:
    """Return the name of a trial within its run: arm, task and seed."""
    name: str = plain(f"{key.arm}/{key.task}/{key.seed}")
    if len(name) <= _TAG:
        return name
    return f"{name[: _TAG - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def edition(record: TrialRecord) -> str:
    """Return what changes when a trial is run again, or judged again."""
    said = json.dumps([record.verdict, record.judgements], sort_keys=True, default=str)
    return f"{record.started} {hashlib.sha256(said.encode()).hexdigest()[:12]}"


def trace_digits(run: str, record: TrialRecord) -> str:
    """Return the id of a trial's trace, 32 hexadecimal digits: the same whenever it is logged."""
    parts = f"{run}\0{trial_name(record.key)}\0{edition(record)}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def trace_info(record: TrialRecord, run: str, experiment_id: str, mlflow_run: str) -> TraceInfo:
    """Return what MLflow keeps of a trial besides its spans.

    Args:
        record: The trial.
        run: Id of our run.
        experiment_id: MLflow's experiment.
        mlflow_run: MLflow's run.
    """
    used = record.usage
    answer = record.sparql if record.sparql is not None else record.answer
    began = nanoseconds(record.started)
    tokens = token_usage(used.prompt_tokens, used.completion_tokens, used.cached_prompt_tokens)
    return TraceInfo(
        trace_id=f"tr-{trace_digits(run, record)}",
        trace_location=TraceLocation.from_experiment_id(experiment_id),
        request_time=began // 10**6,
        execution_duration=round((used.seconds + record.judge_seconds) * 1_000),
        state=TraceState.ERROR if record.status == "error" else TraceState.OK,
        request_preview=plain(record.question)[:_PREVIEW],
        response_preview=plain(answer)[:_PREVIEW],
        client_request_id=trial_name(record.key),
        trace_metadata={
            TraceMetadataKey.SOURCE_RUN: mlflow_run,
            TraceMetadataKey.TOKEN_USAGE: json.dumps(tokens),
        },
        tags=_tags(record, run),
        assessments=list(_assessments(record, began // 10**6)),
    )


def _tags(record: TrialRecord, run: str) -> dict[str, str]:
    key = record.key
    facts: dict[str, Any] = {
        TraceTagKey.TRACE_NAME: f"{key.arm} · {key.task}",
        RUN_TAG: run,
        TRIAL_TAG: trial_name(key),
        EDITION_TAG: edition(record),
        "arm": key.arm,
        "task": key.task,
        "seed": key.seed,
        "status": record.status,
        "strict": str(record.strict).lower() if record.verdict is not None else None,
        "complexity": record.complexity,
        "form": record.form,
        "group": record.group,
        "note": record.error,
        "step": record.step,
        "memory": record.memory,
        "tries": record.tries if record.tries > 1 else None,
    }
    return {k: plain(str(v))[:_TAG] for k, v in facts.items() if v is not None and v != ""}


def _assessments(record: TrialRecord, at_ms: int) -> Iterator[Assessment]:
    code = AssessmentSource(source_type="CODE", source_id="execution judge")
    if record.gold:
        yield Expectation(name="gold", value=plain(record.gold), source=code, **_times(at_ms))
    verdict = record.verdict
    if verdict is not None:
        reason = plain(str(verdict.get("reason", "")))
        broken = verdict.get("status") == "gold_defect"
        for name, value in (
            ("strict", record.strict),
            ("lenient", bool(verdict.get("lenient"))),
            ("f1", record.f1),
        ):
            yield Feedback(
                name=name,
                value=None if broken else value,
                error=AssessmentError("gold_defect", reason) if broken else None,
                source=code,
                rationale=reason,
                **_times(at_ms),
            )
    for judge, judgement in record.judgements.items():
        success = judgement.get("success")
        said = plain(str(judgement.get("reason", "")))
        yield Feedback(
            name=judge,
            value=success,
            error=AssessmentError("no_verdict", said) if success is None else None,
            source=AssessmentSource(source_type="LLM_JUDGE", source_id=judge),
            rationale=said,
            **_times(at_ms),
        )


def _times(at_ms: int) -> dict[str, int]:
    return {"create_time_ms": at_ms, "last_update_time_ms": at_ms}
