"""A trial as a sample of Inspect: conversation, transcript, scores, usage."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

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

__all__ = ["VERDICT_SCORERS", "identity", "moment", "sample_of"]

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
    """Return a trial as a sample.

    An infrastructure error is the sample's error, and the sample then has no scores; a mistake of
    the agent is a score, never an error.

    Args:
        record: The trial.
        epoch: Epoch of its seed, from 1.
        run: Id of the run, from which the ids of sample and events are made.
        config: How replies were sampled.
    """
    key = record.key
    config = config.model_copy(update={"seed": key.seed})
    uuid = identity(run, key.arm, key.task, key.seed, record.started)
    talk = _Conversation(record, uuid)
    scores = _scores(record)
    limit, error = _limit(record), _error(record)
    question, gold = plain(record.question), plain(record.gold)
    asked = Sample(input=question, target=gold, id=key.task, metadata={"seed": key.seed})
    transcript = _Transcript(record, uuid, talk, config)
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
        messages=talk.messages,
        output=ModelOutput(
            model=next(iter(usage), ""),
            choices=[ChatCompletionChoice(message=talk.submission, stop_reason="stop")],
        ),
        scores=scores,
        metadata=_metadata(record),
        events=transcript.events(asked, scores or {}, limit, error),
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
    """Return the scores of a trial by scorer; None after an infrastructure error.

    A defective gold query gives scores without a value, which Inspect leaves out of metrics.
    """
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


class _Conversation:
    """The messages of a trial: the question, the model's replies, the answers of its tools.

    Prompts, which repeat everything before, are in the model events; here each reply appears once,
    with its calls and their answers.

    Attributes:
        messages: All messages in order, the submitted query last.
        replies: The model's reply, by index of its event.
        answers: The answer to a call, by index of the calling event.
        submission: The submitted query, or the answer in words.
    """

    def __init__(self, record: TrialRecord, uuid: str) -> None:
        self._uuid = uuid
        self._record = record
        self.replies: dict[int, ChatMessageAssistant] = {}
        self.answers: dict[int, ChatMessageTool] = {}
        events = record.trajectory.events
        results = {e.parent: e for e in events if e.kind == "tool_result"}
        first = next((e for e in events if e.kind == "lm_call"), None)
        prompts = self._resolved(first.data).get("messages", []) if first else []
        self.messages: list[ChatMessage] = [
            message for message in _prompt_messages(prompts) if message.role == "system"
        ][:1]
        question = plain(record.question)
        asked = ChatMessageUser(id=identity(uuid, "question"), content=question, source="input")
        self.messages.append(asked)
        for event in events:
            if event.kind == "lm_call":
                self._reply(event)
            elif event.kind == "code":
                self._call(event, event.data, event.data.get("output"))
            elif event.kind == "tool_call" and event.parent is None:
                data = results[event.index].data if event.index in results else {}
                self._call(event, event.data, data.get("result"), data.get("error"))
        self.submission = ChatMessageAssistant(
            id=identity(uuid, "submission"),
            content=plain(record.sparql or record.answer or ""),
            metadata={"status": record.status},
        )
        if record.sparql is not None or record.answer:
            self.messages.append(self.submission)

    def _reply(self, event: Event) -> None:
        data = self._resolved(event.data)
        reply = ChatMessageAssistant(
            id=identity(self._uuid, "reply", event.index),
            content=_as_text(data.get("response")),
            model=str(data.get("model", "")),
            source="generate",
        )
        self.replies[event.index] = reply
        self.messages.append(reply)

    def _call(
        self, event: Event, data: Mapping[str, Any], result: Any, error: str | None = None
    ) -> None:
        call = self._resolved(data)
        function = str(call.get("tool", _PYTHON))
        arguments = _named(call.get("arguments", {"code": call.get("code", "")}))
        number = _call_id(self._uuid, event)
        # A call belongs to the reply before it; an agent without a model calls by itself.
        if self.replies:
            reply = next(reversed(self.replies.values()))
            asked = ToolCall(id=number, function=function, arguments=arguments)
            reply.tool_calls = [*(reply.tool_calls or []), asked]
        failure = _as_text(self._resolved(error))
        answer = ChatMessageTool(
            id=identity(self._uuid, "answer", event.index),
            content=_as_text(self._resolved(result)) or failure,
            tool_call_id=number,
            function=function,
            error=ToolCallError("unknown", failure) if failure else None,
        )
        self.answers[event.index] = answer
        self.messages.append(answer)

    def _resolved(self, value: Any) -> Any:
        return plain(self._record.trajectory.resolve(value))


class _Transcript:
    """The events of a trial in Inspect's terms: spans, model calls, tool calls, scores."""

    def __init__(
        self, record: TrialRecord, uuid: str, talk: _Conversation, config: GenerateConfig
    ) -> None:
        self._record = record
        self._uuid = uuid
        self._talk = talk
        self._config = config
        self._count = 0
        self._results = {e.parent: e for e in record.trajectory.events if e.kind == "tool_result"}

    def events(
        self,
        sample: Sample,
        scores: Mapping[str, Score],
        limit: EvalSampleLimit | None,
        error: EvalError | None,
    ) -> list[InspectEvent]:
        """Return everything that happened, in order."""
        return [
            *self._span("init", 0.0, 0.0, [SampleInitEvent(sample=sample, **self._at(0.0))]),
            *self._agent(limit, error),
            *self._scoring(scores),
        ]

    def _agent(
        self, limit: EvalSampleLimit | None, error: EvalError | None
    ) -> Iterator[InspectEvent]:
        end = self._record.usage.seconds
        inner: list[InspectEvent] = []
        arm = self._record.key.arm
        span = identity(self._uuid, "span", "agent", arm)
        for event in self._record.trajectory.events:
            inner += self._event(event, span)
        if limit is not None:
            kind = "custom" if limit.type == "context" else limit.type
            at = self._at(end, span)
            inner.append(
                SampleLimitEvent(type=kind, message=limit.reason or "", limit=limit.limit, **at)
            )
        if error is not None:
            inner.append(ErrorEvent(error=error, **self._at(end, span)))
        # Inspect's viewer opens a span of this name and folds other agents.
        outer = identity(self._uuid, "span", "solvers")
        agent = self._span(arm, 0.0, end, inner, "agent", span, parent=outer)
        yield from self._span("solvers", 0.0, end, list(agent), span=outer)

    def _event(self, event: Event, span: str) -> list[InspectEvent]:
        if event.kind == "lm_call":
            return [self._model(event, span)]
        if event.kind == "code":
            return self._code(event, span)
        if event.kind == "tool_call":
            # Calls from code are within the code's own span.
            return [] if self._within_code(event) else self._tool(event, span)
        if event.kind == "tool_result":
            return []
        data = self._resolved(event.data)
        return [InfoEvent(source=event.kind, data=data, **self._at(event.at, span))]

    def _within_code(self, event: Event) -> bool:
        events = self._record.trajectory.events
        return event.parent is not None and events[event.parent].kind == "code"

    def _model(self, event: Event, span: str) -> ModelEvent:
        data = self._resolved(event.data)
        model = str(data.get("model", ""))
        stop = _STOPS.get(str(data.get("finish_reason", "")), "unknown")
        failed = data.get("error")
        reply = ChatCompletionChoice(message=self._talk.replies[event.index], stop_reason=stop)
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

    def _code(self, event: Event, span: str) -> list[InspectEvent]:
        inner = identity(self._uuid, "span", event.index)
        data = self._resolved(event.data)
        called: list[InspectEvent] = [
            self._tool_event(
                event,
                inner,
                function=_PYTHON,
                arguments={"code": _as_text(data.get("code"))},
                result=_as_text(data.get("output")),
                seconds=event.seconds,
            )
        ]
        for child in self._record.trajectory.of("tool_call"):
            if child.parent == event.index:
                called += self._tool(child, inner)
        end = event.at + event.seconds
        return list(self._span(_PYTHON, event.at, end, called, "tool", inner, parent=span))

    def _tool(self, event: Event, span: str) -> list[InspectEvent]:
        inner = identity(self._uuid, "span", event.index)
        data = self._resolved(event.data)
        end = self._results.get(event.index)
        result = self._resolved(end.data) if end else {}
        seconds = end.at + end.seconds - event.at if end else event.seconds
        name = str(data.get("tool", ""))
        called = self._tool_event(
            event,
            inner,
            function=name,
            arguments=_named(data.get("arguments")),
            result=_as_text(result.get("result")),
            seconds=seconds,
            error=_as_text(result.get("error")),
        )
        stop = event.at + seconds
        return list(self._span(name, event.at, stop, [called], "tool", inner, parent=span))

    def _tool_event(
        self,
        event: Event,
        span: str,
        *,
        function: str,
        arguments: dict[str, Any],
        result: str,
        seconds: float,
        error: str = "",
    ) -> ToolEvent:
        answer = self._talk.answers.get(event.index)
        return ToolEvent(
            id=_call_id(self._uuid, event),
            function=function,
            arguments=arguments,
            result=result,
            error=ToolCallError("unknown", error) if error else None,
            completed=moment(self._record.started, event.at + seconds),
            working_time=seconds,
            message_id=answer.id if answer else None,
            **self._at(event.at, span),
        )

    def _scoring(self, scores: Mapping[str, Score]) -> Iterator[InspectEvent]:
        if not scores:
            return
        began = self._record.usage.seconds
        end = began + self._record.judge_seconds
        inner: list[InspectEvent] = []
        outer = identity(self._uuid, "span", "scorers")
        for name, score in scores.items():
            span = identity(self._uuid, "span", "scorer", name)
            target, at = plain(self._record.gold), self._at(end, span)
            event = ScoreEvent(score=score, target=target, scorer=name, **at)
            inner += self._span(name, began, end, [event], "scorer", span, parent=outer)
        yield from self._span("scorers", began, end, inner, span=outer)

    def _span(
        self,
        name: str,
        began: float,
        end: float,
        inner: list[InspectEvent],
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

    def _resolved(self, value: Any) -> Any:
        return plain(self._record.trajectory.resolve(value))


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


def _call_id(uuid: str, event: Event) -> str:
    return f"call_{identity(uuid, 'call', event.index)}"


def _named(arguments: Any) -> dict[str, Any]:
    return dict(arguments) if isinstance(arguments, Mapping) else {"value": arguments}
