"""A trial as a sample of Inspect."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import ChatCompletionChoice, GenerateConfig, ModelOutput, ModelUsage

from reasoningbank.analysis.inspect_log.events import Transcript, call_usage
from reasoningbank.analysis.inspect_log.messages import Conversation
from reasoningbank.analysis.inspect_log.scores import scores_of
from reasoningbank.analysis.inspect_log.text import identity, moment
from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain

__all__ = ["sample_of"]

#: Inspect's names of our budgets; those without one are `custom`.
_LIMITS: Mapping[str, Any] = {
    "tokens": "token",
    "seconds": "time",
    "dollars": "cost",
    "LM calls": "turn",
}


def sample_of(record: TrialRecord, epoch: int, run: str, config: GenerateConfig) -> EvalSample:
    """Return a trial as a sample.

    An infrastructure error is the sample's error, and it then has no scores; whatever the agent did
    wrong is a score, never an error.

    Args:
        record: The trial.
        epoch: Number of its seed, from 1.
        run: Id of the run; ids of the sample and its events are made of it.
        config: How replies were sampled.
    """
    key = record.key
    config = config.model_copy(update={"seed": key.seed})
    uuid = identity(run, key.arm, key.task, key.seed, record.started)
    talk = Conversation(record, uuid)
    scores = scores_of(record)
    limit, error = _limit(record), _error(record)
    question, gold = plain(record.question), plain(record.gold)
    asked = Sample(input=question, target=gold, id=key.task, metadata={"seed": key.seed})
    events = Transcript(record, uuid, talk, config).events(asked, scores or {}, limit, error)
    usage, by_role = _usage(record)
    seconds = record.usage.seconds
    return EvalSample(
        id=key.task,
        epoch=epoch,
        input=question,
        target=gold,
        messages=talk.messages,
        output=ModelOutput(
            model=next(iter(usage), ""),
            choices=[ChatCompletionChoice(message=talk.submission, stop_reason="stop")],
        ),
        scores=scores,
        metadata=_metadata(record),
        events=events,
        model_usage=usage,
        role_usage=by_role,
        started_at=moment(record.started, 0.0).isoformat(),
        completed_at=moment(record.started, seconds + record.judge_seconds).isoformat(),
        total_time=seconds + record.judge_seconds,
        working_time=seconds,
        uuid=uuid,
        error=error,
        limit=limit,
        turn_count=len(record.trajectory.of("lm_call")),
    )


def _metadata(record: TrialRecord) -> dict[str, Any]:
    used = record.usage
    facts = {
        "arm": record.key.arm,
        "seed": record.key.seed,
        "status": record.status,
        "note": record.error,
        "complexity": record.complexity,
        "form": record.form,
        "group": record.group,
        "iterations": used.iterations,
        "tool_calls": used.tool_calls,
        "cached_calls": used.cached_calls,
        "tries": record.tries,
        "step": record.step,
        "memory": record.memory,
    }
    return {k: plain(v) for k, v in facts.items() if v is not None and v != ""}


def _usage(record: TrialRecord) -> tuple[dict[str, ModelUsage], dict[str, ModelUsage]]:
    models: dict[str, ModelUsage] = defaultdict(ModelUsage)
    roles: dict[str, ModelUsage] = defaultdict(ModelUsage)
    for event in record.trajectory.of("lm_call"):
        usage = call_usage(event.data)
        if usage is not None:
            models[str(event.data.get("model", ""))] += usage
            roles[str(event.data.get("role", ""))] += usage
    return dict(models), dict(roles)


def _error(record: TrialRecord) -> EvalError | None:
    if record.status != "error":
        return None
    message = plain(record.error or "the infrastructure failed")
    return EvalError(message=message, traceback=message, traceback_ansi=message)


def _limit(record: TrialRecord) -> EvalSampleLimit | None:
    if record.status != "exhausted":
        return None
    spent = re.search(r"the budget of ([\d.e+-]+) (.+?) is used up", record.error)
    if spent is None:
        return EvalSampleLimit(type="custom", limit=0, reason=record.error)
    kind = _LIMITS.get(spent[2], "custom")
    return EvalSampleLimit(type=kind, limit=float(spent[1]), reason=record.error)
