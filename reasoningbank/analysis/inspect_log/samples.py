"""A trial as a sample of Inspect: conversation, transcript, scores, usage."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from inspect_ai.dataset import Sample
from inspect_ai.event import (
    ErrorEvent,
    InfoEvent,
    ModelEvent,
    SampleInitEvent,
    SampleLimitEvent,
    ScoreEvent,
    SpanBeginEvent,
    SpanEndEvent,
    ToolEvent,
)
from inspect_ai.event import Event as InspectEvent
from inspect_ai.log import EvalError, EvalSample, EvalSampleLimit
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from inspect_ai.tool import ToolCall, ToolCallError

from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event

#: Scores of the execution judge, and Inspect's metric for each.
VERDICT_SCORERS = {"strict": "accuracy", "lenient": "accuracy", "f1": "mean"}

#: Name of the tool that stands for the agent's code.
_PYTHON = "python"
_ROLES = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant}
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


def sample_of(record: TrialRecord, epoch: int, run: str, config: GenerateConfig) -> EvalSample:
    """Return a trial as a sample."""
    key = record.key
    config = config.model_copy(update={"seed": key.seed})
    uuid = identity(run, key.arm, key.task, key.seed, record.started)
    trial = _Trial(record, uuid, config)
    scores = _scores(record)
    limit, error = _limit(record), _error(record)
    question, gold = plain(record.question), plain(record.gold)
    asked = Sample(input=question, target=gold, id=key.task, metadata={"seed": key.seed})
    usage: dict[str, ModelUsage] = defaultdict(ModelUsage)
    by_role: dict[str, ModelUsage] = defaultdict(ModelUsage)
    for event in record.trajectory.of("lm_call"):
        if (used := _call_usage(event.data)) is not None:
            usage[str(event.data.get("model", ""))] += used
            by_role[str(event.data.get("role", ""))] += used
    seconds = record.usage.seconds
    return EvalSample(
        id=key.task,
        epoch=epoch,
        input=question,
        target=gold,
        messages=trial.messages(),
        output=ModelOutput(
            model=next(iter(usage), ""),
            choices=[ChatCompletionChoice(message=trial.submission, stop_reason="stop")],
        ),
        scores=scores,
        metadata=_metadata(record),
        events=trial.events(asked, scores or {}, limit, error),
        model_usage=dict(usage),
        role_usage=dict(by_role),
        started_at=moment(record.started, 0.0).isoformat(),
        completed_at=moment(record.started, seconds + record.judge_seconds).isoformat(),
        total_time=seconds + record.judge_seconds,
        working_time=seconds,
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


def _error(record: TrialRecord) -> EvalError | None:
    if record.status != "error":
        return None
    message = plain(record.error or "the infrastructure failed")
    return EvalError(message=message, traceback=message, traceback_ansi=message)


def _limit(record: TrialRecord) -> EvalSampleLimit | None:
    if record.status != "exhausted":
        return None
    limits = [(one.get("fields") or {}).get("limit") for one in record.findings]
    limit = next((float(limit) for limit in limits if limit is not None), 0.0)
    kind = _LIMITS.get(record.budget, "custom")
    return EvalSampleLimit(type=kind, limit=limit, reason=record.error)


def _scores(record: TrialRecord) -> dict[str, Score] | None:
    """Return the scores of a trial by scorer; None after an infrastructure error."""
    verdict = record.verdict
    if verdict is None:
        return None
    status = str(verdict.get("status", ""))
    common = {
        "answer": plain(record.sparql),
        "explanation": plain(str(verdict.get("reason", ""))),
        "reason": None if status == "judged" else status,
    }
    if status == "gold_defect":
        scores = {name: Score.unscored(**common) for name in VERDICT_SCORERS}
    else:
        rest = {k: v for k, v in verdict.items() if k not in {*VERDICT_SCORERS, "reason"}}
        details = plain({**rest, "evidence": record.evidence} if record.evidence else rest)
        rates = {k: verdict.get(k) for k in ("precision", "recall")}
        scores = {
            "strict": Score(value=_mark(record.strict), metadata=details, **common),
            "lenient": Score(value=_mark(bool(verdict.get("lenient"))), **common),
            "f1": Score(value=record.f1, metadata=rates, **common),
        }
    for judge, judgement in record.judgements.items():
        success = judgement.get("success")
        common = {
            "answer": plain(record.sparql),
            "explanation": plain(str(judgement.get("reason", ""))),
            "metadata": plain(
                {k: v for k, v in judgement.items() if k not in {"success", "reason"}}
            ),
        }
        if isinstance(success, bool):
            scores[judge] = Score(value=_mark(success), **common)
        else:
            scores[judge] = Score.unscored(**{**common, "reason": "grader_failed"})
    return scores


def _mark(right: bool) -> str:
    return str(CORRECT if right else INCORRECT)


class _Call(NamedTuple):
    """A call of a tool, or the agent's code as a call of `python`."""

    event: Event
    id: str
    function: str
    arguments: dict[str, Any]
    result: str
    error: str
    seconds: float

    @property
    def failure(self) -> ToolCallError | None:
        return ToolCallError("unknown", self.error) if self.error else None


class _Trial:
    """A trial's messages and events in Inspect's terms."""

    def __init__(self, record: TrialRecord, uuid: str, config: GenerateConfig) -> None:
        self._record = record
        self._uuid = uuid
        self._config = config
        self._count = 0
        self._events = record.trajectory.events
        self._data = [plain(record.trajectory.resolve(event.data)) for event in self._events]
        results = {e.parent: e for e in self._events if e.kind == "tool_result"}
        calls = [e for e in self._events if e.kind in ("code", "tool_call")]
        self._calls = {e.index: self._call(e, results.get(e.index)) for e in calls}
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
        data = self._data[event.index]
        number = f"call_{identity(self._uuid, 'call', event.index)}"
        if event.kind == "code":
            code, output = _as_text(data.get("code")), _as_text(data.get("output"))
            return _Call(event, number, _PYTHON, {"code": code}, output, "", event.seconds)
        arguments = data.get("arguments")
        named = dict(arguments) if isinstance(arguments, Mapping) else {"value": arguments}
        answer = self._data[end.index] if end else {}
        seconds = end.at + end.seconds - event.at if end else event.seconds
        result, error = _as_text(answer.get("result")), _as_text(answer.get("error"))
        return _Call(event, number, str(data.get("tool", "")), named, result, error, seconds)

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
                    asked = ToolCall(id=call.id, function=call.function, arguments=call.arguments)
                    reply.tool_calls = [*(reply.tool_calls or []), asked]
                answer = ChatMessageTool(
                    id=identity(self._uuid, "answer", event.index),
                    content=call.result or call.error,
                    tool_call_id=call.id,
                    function=call.function,
                    error=call.failure,
                )
                found.append(answer)
        if self.submission.content or self._record.sparql is not None:
            found.append(self.submission)
        return found

    def events(
        self, sample: Sample, scores: Mapping[str, Score], limit: Any, error: EvalError | None
    ) -> list[InspectEvent]:
        """Return everything that happened, in order: set-up, the agent's work, scoring."""
        record, arm = self._record, self._record.key.arm
        end = record.usage.seconds
        span = identity(self._uuid, "span", "agent", arm)
        init = self._span("init", 0.0, 0.0, [SampleInitEvent(sample=sample, **self._at(0.0))])
        inner = [made for event in self._events for made in self._event(event, span)]
        if limit is not None:
            at = self._at(end, span)
            reason = limit.reason or ""
            made = SampleLimitEvent(type=limit.type, message=reason, limit=limit.limit, **at)
            inner.append(made)
        if error is not None:
            inner.append(ErrorEvent(error=error, **self._at(end, span)))
        # Inspect's viewer opens a span of this name and folds other agents.
        outer = identity(self._uuid, "span", "solvers")
        agent = self._span(arm, 0.0, end, inner, "agent", span, parent=outer)
        found = [*init, *self._span("solvers", 0.0, end, list(agent), span=outer)]
        if scores:
            stop = end + record.judge_seconds
            outer = identity(self._uuid, "span", "scorers")
            judged: list[InspectEvent] = []
            for name, score in scores.items():
                span = identity(self._uuid, "span", "scorer", name)
                target, at = plain(record.gold), self._at(stop, span)
                event = ScoreEvent(score=score, target=target, scorer=name, **at)
                judged += self._span(name, end, stop, [event], "scorer", span, parent=outer)
            found += self._span("scorers", end, stop, judged, span=outer)
        return found

    def _event(self, event: Event, span: str) -> list[InspectEvent]:
        if event.kind == "lm_call":
            return [self._model(event, span)]
        if event.kind == "tool_result" or self._within_code(event):
            # Results are with their calls, and calls from code in the code's own span.
            return []
        if event.index in self._calls:
            return self._called(self._calls[event.index], span)
        data = self._data[event.index]
        return [InfoEvent(source=event.kind, data=data, **self._at(event.at, span))]

    def _within_code(self, event: Event) -> bool:
        parent = event.parent
        inside = parent is not None and self._events[parent].kind == "code"
        return inside and event.kind == "tool_call"

    def _model(self, event: Event, span: str) -> ModelEvent:
        data = self._data[event.index]
        model, failed = str(data.get("model", "")), data.get("error")
        stop = _STOPS.get(str(data.get("finish_reason", "")), "unknown")
        reply = ChatCompletionChoice(message=self._replies[event.index], stop_reason=stop)
        extra = {k: data[k] for k in ("prompt_s", "generation_s", "adaptations") if k in data}
        return ModelEvent(
            model=model,
            role=data.get("role"),
            input=_prompt_messages(data.get("messages", [])),
            tools=[],
            tool_choice="none",
            config=self._config,
            output=ModelOutput(
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

    def _called(self, call: _Call, span: str) -> list[InspectEvent]:
        event = call.event
        inner, end = identity(self._uuid, "span", event.index), event.at + call.seconds
        answered = not self._within_code(event)
        made: list[InspectEvent] = [
            ToolEvent(
                id=call.id,
                function=call.function,
                arguments=call.arguments,
                result=call.result,
                error=call.failure,
                completed=moment(self._record.started, end),
                working_time=call.seconds,
                message_id=identity(self._uuid, "answer", event.index) if answered else None,
                **self._at(event.at, inner),
            )
        ]
        for child in self._calls.values():
            if child.event.parent == event.index:
                made += self._called(child, inner)
        return list(self._span(call.function, event.at, end, made, "tool", inner, parent=span))

    def _span(
        self,
        name: str,
        began: float,
        end: float,
        inner: Sequence[InspectEvent],
        kind: str = "",
        span: str = "",
        parent: str | None = None,
    ) -> Iterator[InspectEvent]:
        span = span or identity(self._uuid, "span", name)
        at = self._at(began, span)
        yield SpanBeginEvent(id=span, parent_id=parent, type=kind or name, name=name, **at)
        for event in inner:
            if event.span_id is None:
                event.span_id = span
            yield event
        yield SpanEndEvent(id=span, **self._at(end, span))

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
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_text_part(part) for part in value):
        return "\n".join(str(part["text"]) for part in value)
    return json.dumps(value, ensure_ascii=False)


def _is_text_part(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text" and "text" in part
