"""A trial as a sample of Inspect: conversation, transcript, scores, usage."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from inspect_ai import event as events
from inspect_ai import model as models
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser, ModelUsage
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from inspect_ai.tool import ToolCall, ToolCallError

from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event

#: Scores of the execution judge, and Inspect's metric for each.
VERDICT_SCORERS = {"strict": "accuracy", "lenient": "accuracy", "f1": "mean"}

#: Name of the tool that stands for the agent's code.
_PYTHON = "python"
_ROLES = {"system": models.ChatMessageSystem, "assistant": ChatMessageAssistant}
#: Inspect's names of our budgets; others are `custom`.
_LIMITS: Mapping[str, Any] = {
    "tokens": "token",
    "seconds": "time",
    "dollars": "cost",
    "lm_calls": "turn",
}
_STOPS: Mapping[str, Any] = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


def sample_of(
    record: TrialRecord, epoch: int, run: str, config: models.GenerateConfig
) -> EvalSample:
    """Return a trial as a sample."""
    key, used = record.key, record.usage
    config = config.model_copy(update={"seed": key.seed})
    uuid = identity(run, key.arm, key.task, key.seed, record.started)
    trial = _Trial(record, uuid, config)
    scores, limit, error = _scores(record), _limit(record), None
    if record.failed:
        message = plain(record.error or "the infrastructure failed")
        fields = (one.get("fields") or {} for one in record.findings)
        trace = next((str(one["traceback"]) for one in fields if "traceback" in one), message)
        error = EvalError(message=message, traceback=trace, traceback_ansi=trace)
    question, gold = plain(record.question), plain(record.gold)
    asked = Sample(input=question, target=gold, id=key.task, metadata={"seed": key.seed})
    usage: dict[str, ModelUsage] = defaultdict(ModelUsage)
    by_role: dict[str, ModelUsage] = defaultdict(ModelUsage)
    for event in record.trajectory.of("lm_call"):
        if (call := _call_usage(event.data)) is not None:
            usage[str(event.data.get("model", ""))] += call
            by_role[str(event.data.get("role", ""))] += call
    facts = {
        "arm": key.arm,
        "seed": key.seed,
        "status": record.status,
        "note": record.error,
        **{
            name: getattr(record, name)
            for name in ("complexity", "form", "group", "template", "level")
        },
        **{name: getattr(used, name) for name in ("iterations", "tool_calls", "cached_calls")},
        **{name: getattr(record, name) for name in ("tries", "step", "memory")},
    }
    total = used.seconds + record.judge_seconds
    return EvalSample(
        id=key.task,
        epoch=epoch,
        input=question,
        target=gold,
        messages=trial.messages(),
        output=models.ModelOutput(
            model=next(iter(usage), ""),
            choices=[models.ChatCompletionChoice(message=trial.submission, stop_reason="stop")],
        ),
        scores=scores or None,
        metadata={k: plain(v) for k, v in facts.items() if v is not None and v != ""},
        events=trial.transcript(asked, scores, limit, error),
        model_usage=dict(usage),
        role_usage=dict(by_role),
        started_at=moment(record.started, 0.0).isoformat(),
        completed_at=moment(record.started, total).isoformat(),
        total_time=total,
        working_time=used.seconds,
        uuid=uuid,
        error=error,
        limit=limit,
        turn_count=len(record.trajectory.of("lm_call")),
    )


def identity(*parts: object) -> str:
    """Return an id that the same parts always give, 22 characters like Inspect's own."""
    text = "\0".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:22]


def moment(started: str, seconds: float) -> datetime:
    """Return the time `seconds` after `started` (ISO 8601), in UTC."""
    return datetime.fromisoformat(started).astimezone(UTC) + timedelta(seconds=seconds)


def _limit(record: TrialRecord) -> EvalSampleLimit | None:
    if record.status != "exhausted":
        return None
    limits = [(one.get("fields") or {}).get("limit") for one in record.findings]
    limit = next((float(limit) for limit in limits if limit is not None), 0.0)
    kind = _LIMITS.get(record.budget, "custom")
    return EvalSampleLimit(type=kind, limit=limit, reason=record.error)


def _scores(record: TrialRecord) -> dict[str, Score]:
    """Return the scores of a trial by scorer; none after an infrastructure error."""
    verdict = record.verdict
    if verdict is None:
        return {}
    status, answer = str(verdict.get("status", "")), plain(record.sparql)
    rest = {k: v for k, v in verdict.items() if k not in {*VERDICT_SCORERS, "reason"}}
    evidence = {"evidence": record.evidence} if record.evidence else {}
    found = {
        "strict": (_mark(record.strict), plain({**rest, **evidence})),
        "lenient": (_mark(bool(verdict.get("lenient"))), None),
        "f1": (record.f1, {k: verdict.get(k) for k in ("precision", "recall")}),
    }
    common = {
        "answer": answer,
        "explanation": plain(str(verdict.get("reason", ""))),
        "reason": None if status == "judged" else status,
    }
    scores = {
        name: Score.unscored(**common)
        if status == "gold_defect"
        else Score(value=value, metadata=metadata, **common)
        for name, (value, metadata) in found.items()
    }
    for judge, judgement in record.judgements.items():
        success = judgement.get("success")
        rest = {k: v for k, v in judgement.items() if k not in {"success", "reason"}}
        common = {
            "answer": answer,
            "explanation": plain(str(judgement.get("reason", ""))),
            "metadata": plain(rest),
        }
        if isinstance(success, bool):
            scores[judge] = Score(value=_mark(success), **common)
        else:
            scores[judge] = Score.unscored(reason="grader_failed", **common)
    return scores


def _mark(right: bool) -> str:
    return str(CORRECT if right else INCORRECT)


class _Call(NamedTuple):
    """A call of a tool, or the agent's code as a call of `python`."""

    event: Event
    asked: ToolCall
    result: str
    error: ToolCallError | None
    seconds: float


class _Trial:
    """A trial's messages and events in Inspect's terms."""

    def __init__(self, record: TrialRecord, uuid: str, config: models.GenerateConfig) -> None:
        self._record = record
        self._uuid = uuid
        self._config = config
        self._count = 0
        self._events = record.trajectory.events
        self._data = [plain(record.trajectory.resolve(event.data)) for event in self._events]
        results = {e.parent: e for e in self._events if e.kind == "tool_result"}
        self._calls = {
            event.index: self._call(event, results.get(event.index))
            for event in self._events
            if event.kind in ("code", "tool_call")
        }
        self._replies = {
            event.index: ChatMessageAssistant(
                id=identity(uuid, "reply", event.index),
                content=_as_text(self._data[event.index].get("response")),
                model=str(self._data[event.index].get("model", "")),
                source="generate",
            )
            for event in self._events
            if event.kind == "lm_call"
        }
        self.submission = ChatMessageAssistant(
            id=identity(uuid, "submission"),
            content=plain(record.sparql or record.answer or ""),
            metadata={"status": record.status},
        )

    def _call(self, event: Event, end: Event | None) -> _Call:
        data, answer = self._data[event.index], self._data[end.index] if end else {}
        if event.kind == "code":
            function, arguments = _PYTHON, {"code": _as_text(data.get("code"))}
            answer, seconds = {"result": data.get("output")}, event.seconds
        else:
            function, arguments = str(data.get("tool", "")), data.get("arguments")
            seconds = end.at + end.seconds - event.at if end else event.seconds
        named = dict(arguments) if isinstance(arguments, Mapping) else {"value": arguments}
        number = f"call_{identity(self._uuid, 'call', event.index)}"
        asked = ToolCall(id=number, function=function, arguments=named)
        error = _as_text(answer.get("error"))
        failure = ToolCallError("unknown", error) if error else None
        return _Call(event, asked, _as_text(answer.get("result")), failure, seconds)

    def messages(self) -> list[ChatMessage]:
        """Return the conversation: question, replies, calls and answers, submission."""
        first = next(iter(self._replies), None)
        prompts = self._data[first].get("messages", []) if first is not None else []
        found = [one for one in _prompt_messages(prompts) if one.role == "system"][:1]
        question = plain(self._record.question)
        name = identity(self._uuid, "question")
        found.append(ChatMessageUser(id=name, content=question, source="input"))
        reply: ChatMessageAssistant | None = None
        for event in self._events:
            if event.index in self._replies:
                reply = self._replies[event.index]
                found.append(reply)
            elif event.index in self._calls and not self._within_code(event):
                call = self._calls[event.index]
                # A call belongs to the reply before it; an agent without a model has none.
                if reply is not None:
                    reply.tool_calls = [*(reply.tool_calls or []), call.asked]
                answer = models.ChatMessageTool(
                    id=identity(self._uuid, "answer", event.index),
                    content=call.result or (call.error.message if call.error else ""),
                    tool_call_id=call.asked.id,
                    function=call.asked.function,
                    error=call.error,
                )
                found.append(answer)
        if self.submission.content or self._record.sparql is not None:
            found.append(self.submission)
        return found

    def transcript(
        self, sample: Sample, scores: Mapping[str, Score], limit: Any, error: EvalError | None
    ) -> list[events.Event]:
        """Return everything that happened, in order: set-up, the agent's work, scoring."""
        record, arm = self._record, self._record.key.arm
        end = record.usage.seconds
        span = identity(self._uuid, "span", "agent", arm)
        init = self._span(
            "init", 0.0, 0.0, [events.SampleInitEvent(sample=sample, **self._at(0.0))]
        )
        inner = [made for event in self._events for made in self._event(event, span)]
        if limit is not None:
            at = self._at(end, span)
            reason = limit.reason or ""
            made = events.SampleLimitEvent(type=limit.type, message=reason, limit=limit.limit, **at)
            inner.append(made)
        if error is not None:
            inner.append(events.ErrorEvent(error=error, **self._at(end, span)))
        # Inspect's viewer opens a span of this name and folds other agents.
        outer = identity(self._uuid, "span", "solvers")
        agent = self._span(arm, 0.0, end, inner, "agent", span, parent=outer)
        found = [*init, *self._span("solvers", 0.0, end, agent, span=outer)]
        if scores:
            stop = end + record.judge_seconds
            outer = identity(self._uuid, "span", "scorers")
            judged: list[events.Event] = []
            for name, score in scores.items():
                span = identity(self._uuid, "span", "scorer", name)
                target, at = plain(record.gold), self._at(stop, span)
                event = events.ScoreEvent(score=score, target=target, scorer=name, **at)
                judged += self._span(name, end, stop, [event], "scorer", span, parent=outer)
            found += self._span("scorers", end, stop, judged, span=outer)
        return found

    def _event(self, event: Event, span: str) -> list[events.Event]:
        if event.kind == "lm_call":
            return [self._model(event, span)]
        if event.kind == "tool_result" or self._within_code(event):
            # Results are with their calls, and calls from code in the code's own span.
            return []
        if event.index in self._calls:
            return self._called(self._calls[event.index], span)
        data = self._data[event.index]
        return [events.InfoEvent(source=event.kind, data=data, **self._at(event.at, span))]

    def _within_code(self, event: Event) -> bool:
        parent = event.parent
        inside = parent is not None and self._events[parent].kind == "code"
        return inside and event.kind == "tool_call"

    def _model(self, event: Event, span: str) -> events.ModelEvent:
        data = self._data[event.index]
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
            **self._at(event.at, span),
            metadata=extra or None,
        )

    def _called(self, call: _Call, span: str) -> list[events.Event]:
        event, asked = call.event, call.asked
        inner, end = identity(self._uuid, "span", event.index), event.at + call.seconds
        answered = not self._within_code(event)
        made: list[events.Event] = [
            events.ToolEvent(
                id=asked.id,
                function=asked.function,
                arguments=asked.arguments,
                result=call.result,
                error=call.error,
                completed=moment(self._record.started, end),
                working_time=call.seconds,
                message_id=identity(self._uuid, "answer", event.index) if answered else None,
                **self._at(event.at, inner),
            )
        ]
        for child in self._calls.values():
            if child.event.parent == event.index:
                made += self._called(child, inner)
        return self._span(asked.function, event.at, end, made, "tool", inner, parent=span)

    def _span(
        self,
        name: str,
        began: float,
        end: float,
        inner: Sequence[events.Event],
        kind: str = "",
        span: str = "",
        parent: str | None = None,
    ) -> list[events.Event]:
        span = span or identity(self._uuid, "span", name)
        begin = events.SpanBeginEvent(
            id=span, parent_id=parent, type=kind or name, name=name, **self._at(began, span)
        )
        for event in inner:
            event.span_id = event.span_id or span
        return [begin, *inner, events.SpanEndEvent(id=span, **self._at(end, span))]

    def _at(self, seconds: float, span: str | None = None) -> dict[str, Any]:
        self._count += 1
        return {
            "uuid": identity(self._uuid, "event", self._count),
            "timestamp": moment(self._record.started, seconds),
            "working_start": seconds,
            "span_id": span,
        }


def _call_usage(data: Mapping[str, Any]) -> ModelUsage | None:
    """Return the usage of a call; None if a response cache answered or it failed."""
    sent, made = data.get("prompt_tokens"), data.get("completion_tokens")
    if data.get("from_cache") or (sent is None and made is None):
        return None
    cached = int(data.get("cached_prompt_tokens") or 0)
    return ModelUsage(
        input_tokens=int(sent or 0) - cached,
        output_tokens=int(made or 0),
        total_tokens=int(sent or 0) + int(made or 0),
        input_tokens_cache_read=cached,
        total_cost=data.get("dollars"),
    )


def _prompt_messages(prompts: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """Return the messages of a prompt; equal ones have equal ids, so that a log keeps one."""
    found: list[ChatMessage] = []
    for prompt in prompts:
        role, content = str(prompt.get("role", "user")), _as_text(prompt.get("content"))
        kind = _ROLES.get(role, ChatMessageUser)
        found.append(kind(id=identity("prompt", role, content), content=content))
    return found


def _as_text(value: Any) -> str:
    """Return a tool's result, or the content of a message, as text."""
    if value is None or isinstance(value, str):
        return value or ""
    parts = value if isinstance(value, list) else []
    texts = [p.get("text") for p in parts if isinstance(p, Mapping) and p.get("type") == "text"]
    if texts and len(texts) == len(parts):
        return "\n".join(map(str, texts))
    return json.dumps(value, ensure_ascii=False)
