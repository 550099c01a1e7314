"""One arm of a run as an `.eval` file, a trial as a sample: conversation, transcript, scores."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from inspect_ai import event as events
from inspect_ai import log as logs
from inspect_ai import model as models
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, ModelUsage
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from inspect_ai.tool import ToolCall, ToolCallError

from reasoningbank.analysis.inspect_log import ExportedLog
from reasoningbank.cache import writing
from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event

#: Scores of the execution judge, and Inspect's metric for each.
VERDICT_SCORERS = {"strict": "accuracy", "lenient": "accuracy", "f1": "mean"}

_ROLES = {"system": models.ChatMessageSystem, "assistant": ChatMessageAssistant}
#: Inspect's names of our budgets; others are `custom`.
_LIMITS: Mapping[str, Any] = {"tokens": "token", "seconds": "time", "dollars": "cost",
                              "lm_calls": "turn"}  # fmt: skip
_STOPS: Mapping[str, Any] = {"length": "max_tokens"} | {
    name: name for name in ("stop", "tool_calls", "content_filter")
}
#: Facts of a record, and of its usage, that a sample's metadata hold.
_FACTS = ("status", "complexity", "form", "group", "template", "level", "tries", "step", "memory")
_USED = ("iterations", "tool_calls", "cached_calls")


def write_arm(
    manifest: Mapping[str, Any],
    arm: Mapping[str, Any],
    tasks: list[str],
    trials: Iterable[TrialRecord],
    epochs: Mapping[int, int],
    folder: Path,
) -> ExportedLog:
    """Write the trials of an arm, which has the given planned tasks, as a log."""
    experiment, name = manifest.get("experiment", {}), str(arm["name"])
    task = str(experiment.get("name", "run"))
    config = models.GenerateConfig(
        temperature=arm.get("temperature"), max_tokens=arm.get("max_tokens")
    )
    run = identity(manifest.get("fingerprint", ""), manifest.get("created", ""))
    # Inspect lists logs by the parts of their names: when, what, which.
    parts = (str(manifest["created"]), f"{task}-{name}", identity(run, name))
    file = "_".join("".join(c if c.isalnum() else "-" for c in part) for part in parts)
    path = folder / f"{file}.eval"
    samples = [sample_of(record, epochs[record.key.seed], run, config) for record in trials]
    calls = Counter(model for sample in samples for model in sample.model_usage)
    model = next((model for model, _ in calls.most_common(1)), "none/none")
    times = [str(at) for sample in samples for at in (sample.started_at, sample.completed_at)]
    seeds = len(arm.get("seeds") or experiment.get("seeds") or (0,))
    tasks = tasks or list(dict.fromkeys(str(sample.id) for sample in samples))
    complete = len(samples) >= len(tasks) * seeds
    primary = str(experiment.get("metric") or "strict")
    scorers = (name for sample in samples for name in sample.scores or {})
    metrics = dict.fromkeys((*VERDICT_SCORERS, *scorers), "accuracy") | VERDICT_SCORERS
    # As data: Inspect does not export the classes of these.
    described: Any = [
        {"name": scorer, "metrics": [{"name": f"inspect_ai/{m}"} for m in (metric, "stderr")]}
        for scorer, metric in metrics.items()
    ]
    budget = arm.get("budget") or experiment.get("budget") or {}
    seconds = budget.get("seconds")
    # The arm is the solver: arms are listed side by side. The primary metric is the headline.
    spec = logs.EvalSpec(
        eval_set_id=run,
        run_id=run,
        eval_id=identity(run, name, "eval"),
        task_id=identity(run, name),
        created=moment(str(manifest["created"]), 0.0).isoformat(),
        task=task,
        task_version=experiment.get("version", 0),
        task_display_name=f"{task} · {name}",
        task_description=str(experiment.get("title") or "") or None,
        task_args={"arm": name},
        # The viewer's list of logs shows tags, and no solver.
        tags=[name],
        solver=name,
        solver_args=dict(arm),
        dataset=logs.EvalDataset(
            name=str(experiment.get("pack", "")), samples=len(tasks), sample_ids=list(tasks)
        ),
        model=model,
        model_generate_config=config,
        config=logs.EvalConfig(
            epochs=seeds,
            epochs_reducer=["mean"],
            fail_on_error=False,
            token_limit=budget.get("tokens"),
            time_limit=int(seconds) if seconds else None,
            cost_limit=budget.get("dollars"),
            turn_limit=budget.get("lm_calls"),
        ),
        packages=dict(manifest.get("versions", {})),
        metadata={
            k: manifest[k] for k in ("fingerprint", "hashes", "primary", "machine") if k in manifest
        },
        scorers=described,
        headline_metric=logs.HeadlineMetric(scorer=primary, metric=metrics[primary]),
    )
    log = logs.EvalLog(
        status="success" if complete else "cancelled",
        eval=spec,
        plan=logs.EvalPlan(steps=[logs.EvalPlanStep(solver=name, params=dict(arm))], config=config),
        stats=logs.EvalStats(
            started_at=min(times),
            completed_at=max(times),
            model_usage=_summed(one for s in samples for one in s.model_usage.items()),
            role_usage=_summed(one for s in samples for one in s.role_usage.items()),
        ),
        samples=samples,
    )
    with writing(path, "free space or choose another folder with --out"):
        logs.recompute_metrics(log)
        folder.mkdir(parents=True, exist_ok=True)
        logs.write_eval_log(log, path)
    errors = sum(sample.error is not None for sample in samples)
    return ExportedLog(name, path, len(samples), errors, complete)


def sample_of(
    record: TrialRecord, epoch: int, run: str, config: models.GenerateConfig
) -> logs.EvalSample:
    """Return a trial as a sample."""
    # Half a surrogate pair, as small models write it, cannot be written.
    record = TrialRecord.from_json(plain(record.to_json()))
    key, used = record.key, record.usage
    uuid = identity(run, key.arm, key.task, key.seed, record.started)
    trial = _Trial(record, uuid, config.model_copy(update={"seed": key.seed}))
    scores, limit, error = _scores(record), None, None
    if record.status == "exhausted":
        limits = [(one.get("fields") or {}).get("limit") for one in record.findings]
        limit = logs.EvalSampleLimit(
            type=_LIMITS.get(record.budget, "custom"),
            limit=next((float(limit) for limit in limits if limit is not None), 0.0),
            reason=record.error,
        )
    if record.failed:
        message = record.error or "the infrastructure failed"
        fields = (one.get("fields") or {} for one in record.findings)
        trace = next((str(one["traceback"]) for one in fields if "traceback" in one), message)
        error = logs.EvalError(message=message, traceback=trace, traceback_ansi=trace)
    calls = record.trajectory.of("lm_call")
    spent = [(one.data, call) for one in calls if (call := _call_usage(one.data)) is not None]
    usage = _summed((str(data.get("model", "")), call) for data, call in spent)
    facts = {
        "arm": key.arm,
        "seed": key.seed,
        "note": record.error,
        **{name: getattr(record, name) for name in _FACTS},
        **{name: getattr(used, name) for name in _USED},
    }
    total = used.seconds + record.judge_seconds
    return logs.EvalSample(
        id=key.task,
        epoch=epoch,
        input=record.question,
        target=record.gold,
        messages=trial.messages(),
        output=models.ModelOutput(
            model=next(iter(usage), ""),
            choices=[models.ChatCompletionChoice(message=trial.submission, stop_reason="stop")],
        ),
        scores=scores or None,
        metadata={k: v for k, v in facts.items() if v is not None and v != ""},
        events=trial.transcript(scores, limit, error),
        model_usage=usage,
        role_usage=_summed((str(data.get("role", "")), call) for data, call in spent),
        started_at=moment(record.started).isoformat(),
        completed_at=moment(record.started, total).isoformat(),
        total_time=total,
        working_time=used.seconds,
        uuid=uuid,
        error=error,
        limit=limit,
        turn_count=len(calls),
    )


def identity(*parts: object) -> str:
    """Return an id that the same parts always give, 22 characters like Inspect's own."""
    text = "\0".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:22]


def moment(started: str, seconds: float = 0.0) -> datetime:
    """Return the time `seconds` after `started` (ISO 8601), in UTC."""
    return datetime.fromisoformat(started).astimezone(UTC) + timedelta(seconds=seconds)


def _scores(record: TrialRecord) -> dict[str, Score]:
    """Return the scores of a trial by scorer; none after an infrastructure error."""
    if (verdict := record.verdict) is None:
        return {}

    def score(value: Any, said: Mapping[str, Any], metadata: Any, reason: str | None) -> Score:
        common = {"answer": record.sparql, "explanation": str(said.get("reason", ""))}
        common |= {"metadata": metadata, "reason": reason}
        if value is None:
            return Score.unscored(**common)
        right = CORRECT if value else INCORRECT
        return Score(value=str(right) if isinstance(value, bool) else value, **common)

    status = str(verdict.get("status", ""))
    defective, reason = status == "gold_defect", None if status == "judged" else status
    rest = {k: v for k, v in verdict.items() if k not in {*VERDICT_SCORERS, "reason"}}
    rest |= {"evidence": record.evidence} if record.evidence else {}
    details: dict[str, tuple[Any, Any]] = {
        "strict": (record.strict, rest),
        "lenient": (bool(verdict.get("lenient")), None),
        "f1": (record.f1, {k: verdict.get(k) for k in ("precision", "recall")}),
    }
    scores = {
        name: score(None if defective else value, verdict, None if defective else data, reason)
        for name, (value, data) in details.items()
    }
    for judge, said in record.judgements.items():
        success = said.get("success")
        known = isinstance(success, bool)
        rest = {k: v for k, v in said.items() if k not in {"success", "reason"}}
        reason = None if known else "grader_failed"
        scores[judge] = score(success if known else None, said, rest, reason)
    return scores


class _Trial:
    """A trial's messages and events in Inspect's terms."""

    def __init__(self, record: TrialRecord, uuid: str, config: models.GenerateConfig) -> None:
        self._record, self._config, self._id = record, config, partial(identity, uuid)
        self._events = record.trajectory.events
        self._data = [record.trajectory.resolve(event.data) for event in self._events]
        ends = {e.parent: e for e in self._events if e.kind == "tool_result"}
        #: Tool calls, and code as calls of `python`; none within code belongs to a message.
        self._calls = {
            event.index: self._call(event, ends.get(event.index))
            for event in self._events
            if event.kind in ("code", "tool_call")
        }
        self._replies = {
            event.index: ChatMessageAssistant(
                id=self._id("reply", event.index),
                content=_as_text(data.get("response")),
                model=str(data.get("model", "")),
                source="generate",
            )
            for event, data in zip(self._events, self._data, strict=True)
            if event.kind == "lm_call"
        }
        self.submission = ChatMessageAssistant(
            id=self._id("submission"),
            content=record.sparql or record.answer,
            metadata={"status": record.status},
        )

    def _call(self, event: Event, end: Event | None) -> events.ToolEvent:
        data, answer = self._data[event.index], self._data[end.index] if end else {}
        seconds = end.at + end.seconds - event.at if end else event.seconds
        function, arguments = str(data.get("tool", "")), data.get("arguments")
        if event.kind == "code":
            function, arguments = "python", {"code": _as_text(data.get("code"))}
            answer, seconds = {"result": data.get("output")}, event.seconds
        error = _as_text(answer.get("error"))
        parts = map(_as_text, (answer.get("result"), answer.get("note")))
        parent = self._events[event.parent].kind if event.parent is not None else ""
        within_code = parent == "code" and event.kind == "tool_call"
        return events.ToolEvent(
            id=f"call_{self._id('call', event.index)}",
            function=function,
            arguments=dict(arguments) if isinstance(arguments, Mapping) else {"value": arguments},
            result="\n".join(filter(None, parts)),
            error=ToolCallError("unknown", error) if error else None,
            completed=moment(self._record.started, event.at + seconds),
            working_time=seconds,
            message_id=None if within_code else self._id("answer", event.index),
        )

    def messages(self) -> list[ChatMessage]:
        """Return the conversation: question, replies, calls and answers, submission."""
        first = next(iter(self._replies), None)
        prompts = self._data[first].get("messages", []) if first is not None else []
        found = [one for one in _prompt_messages(prompts) if one.role == "system"][:1]
        question = self._record.question
        found.append(ChatMessageUser(id=self._id("question"), content=question, source="input"))
        reply: ChatMessageAssistant | None = None
        for event in self._events:
            if event.index in self._replies:
                reply = self._replies[event.index]
                found.append(reply)
            elif (call := self._calls.get(event.index)) is not None and call.message_id:
                # A call belongs to the reply before it; an agent without a model has none.
                if reply is not None:
                    asked = ToolCall(id=call.id, function=call.function, arguments=call.arguments)
                    reply.tool_calls = [*(reply.tool_calls or []), asked]
                answer = models.ChatMessageTool(
                    id=call.message_id,
                    content=str(call.result) or (call.error.message if call.error else ""),
                    tool_call_id=call.id,
                    function=call.function,
                    error=call.error,
                )
                found.append(answer)
        if self.submission.content or self._record.sparql is not None:
            found.append(self.submission)
        return found

    def transcript(
        self, scores: Mapping[str, Score], limit: Any, error: logs.EvalError | None
    ) -> list[events.Event]:
        """Return everything that happened, in order: set-up, the agent's work, scoring."""
        record, key = self._record, self._record.key
        end, stop = record.usage.seconds, record.usage.seconds + record.judge_seconds
        seed = {"seed": key.seed}
        sample = Sample(input=record.question, target=record.gold, id=key.task, metadata=seed)
        found: list[tuple[float, events.Event]] = [(0.0, events.SampleInitEvent(sample=sample))]
        for event in self._events:
            data = self._data[event.index]
            if event.kind == "lm_call":
                found.append((event.at, self._model(event, data)))
            elif event.index in self._calls:
                found.append((event.at, self._calls[event.index]))
            elif event.kind != "tool_result":
                # A result is with its call.
                found.append((event.at, events.InfoEvent(source=event.kind, data=data)))
        if limit is not None:
            said = {"type": limit.type, "limit": limit.limit, "message": limit.reason or ""}
            found.append((end, events.SampleLimitEvent(**said)))
        if error is not None:
            found.append((end, events.ErrorEvent(error=error)))
        for name, score in scores.items():
            found.append((stop, events.ScoreEvent(score=score, target=record.gold, scorer=name)))
        for number, (at, made) in enumerate(found, 1):
            made.uuid, made.working_start = self._id("event", number), at
            made.timestamp = moment(record.started, at)
        return [made for _, made in found]

    def _model(self, event: Event, data: Mapping[str, Any]) -> events.ModelEvent:
        model, failed = str(data.get("model", "")), data.get("error")
        stop = _STOPS.get(str(data.get("finish_reason", "")), "unknown")
        reply = models.ChatCompletionChoice(message=self._replies[event.index], stop_reason=stop)
        extra = {k: data[k] for k in ("prompt_s", "generation_s", "adaptations") if k in data}
        return events.ModelEvent(
            model=model,
            role=data.get("role"),
            input=_prompt_messages(data.get("messages", [])),
            tools=[],
            tool_choice="none",
            config=self._config,
            output=models.ModelOutput(
                model=model,
                choices=[] if failed else [reply],
                usage=_call_usage(data),
                time=event.seconds,
                error=failed,
            ),
            error=failed,
            cache="read" if data.get("from_cache") else None,
            completed=moment(self._record.started, event.at + event.seconds),
            working_time=event.seconds,
            metadata=extra or None,
        )


def _call_usage(data: Mapping[str, Any]) -> ModelUsage | None:
    """Return the usage of a call; None if a response cache answered or it failed."""
    sent, made = data.get("prompt_tokens"), data.get("completion_tokens")
    if data.get("from_cache") or (sent is None and made is None):
        return None
    sent, made, cached = (int(n or 0) for n in (sent, made, data.get("cached_prompt_tokens")))
    return ModelUsage(
        input_tokens=sent - cached,
        output_tokens=made,
        total_tokens=sent + made,
        input_tokens_cache_read=cached,
        total_cost=data.get("dollars"),
    )


def _summed(parts: Iterable[tuple[str, ModelUsage]]) -> dict[str, ModelUsage]:
    total: dict[str, ModelUsage] = defaultdict(ModelUsage)
    for name, used in parts:
        total[name] += used
    return dict(total)


def _prompt_messages(prompts: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """Return the messages of a prompt; equal ones have equal ids, so that a log keeps one."""
    pairs = [(str(p.get("role", "user")), _as_text(p.get("content"))) for p in prompts]
    return [
        _ROLES.get(role, ChatMessageUser)(id=identity("prompt", role, text), content=text)
        for role, text in pairs
    ]


def _as_text(value: Any) -> str:
    """Return a tool's result, or the content of a message, as text."""
    if value is None or isinstance(value, str):
        return value or ""
    parts = value if isinstance(value, list) else []
    texts = [p.get("text") for p in parts if isinstance(p, Mapping) and p.get("type") == "text"]
    if texts and len(texts) == len(parts):
        return "\n".join(map(str, texts))
    return json.dumps(value, ensure_ascii=False)
