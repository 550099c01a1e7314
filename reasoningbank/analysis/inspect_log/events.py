"""A trajectory as a transcript of Inspect: spans, model calls, tool calls, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from inspect_ai.log import EvalError, EvalSampleLimit
from inspect_ai.model import ChatCompletionChoice, GenerateConfig, ModelOutput, ModelUsage
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCallError

from reasoningbank.analysis.inspect_log.messages import (
    PYTHON,
    Conversation,
    call_id,
    prompt_messages,
)
from reasoningbank.analysis.inspect_log.text import as_text, identity, moment
from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event

__all__ = ["Transcript", "call_usage"]

_STOPS: Mapping[str, Any] = {
    "stop": "stop",
    "length": "max_tokens",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}


class Transcript:
    """Writes the events of a trial in Inspect's terms.

    Args:
        record: The trial.
        uuid: Id of the sample; those of its events are made of it.
        talk: The trial's messages.
        config: How replies were sampled.
    """

    def __init__(
        self, record: TrialRecord, uuid: str, talk: Conversation, config: GenerateConfig
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
        """Return everything that happened, in order.

        Args:
            sample: What was asked.
            scores: What the judges said.
            limit: The budget that ended the trial, if one did.
            error: The infrastructure error that ended it, if one did.
        """
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
            inner.append(
                SampleLimitEvent(
                    type=kind,
                    message=limit.reason or "",
                    limit=limit.limit,
                    **self._at(end, span),
                )
            )
        if error is not None:
            inner.append(ErrorEvent(error=error, **self._at(end, span)))
        # Inspect's viewer opens what it finds in a span of this name, and folds other agents up.
        outer = identity(self._uuid, "span", "solvers")
        agent = self._span(arm, 0.0, end, inner, "agent", span, parent=outer)
        yield from self._span("solvers", 0.0, end, list(agent), span=outer)

    def _event(self, event: Event, span: str) -> list[InspectEvent]:
        if event.kind == "lm_call":
            return [self._model(event, span)]
        if event.kind == "code":
            return self._code(event, span)
        if event.kind == "tool_call":
            # A call from code stands within the code's own span.
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
            input=prompt_messages(data.get("messages", [])),
            tools=[],
            tool_choice="none",
            config=self._config,
            output=ModelOutput(
                model=model,
                choices=[] if failed else [reply],
                usage=call_usage(data),
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
                function=PYTHON,
                arguments={"code": as_text(data.get("code"))},
                result=as_text(data.get("output")),
                seconds=event.seconds,
            )
        ]
        for child in self._record.trajectory.of("tool_call"):
            if child.parent == event.index:
                called += self._tool(child, inner)
        return list(
            self._span(
                PYTHON, event.at, event.at + event.seconds, called, "tool", inner, parent=span
            )
        )

    def _tool(self, event: Event, span: str) -> list[InspectEvent]:
        inner = identity(self._uuid, "span", event.index)
        data = self._resolved(event.data)
        end = self._results.get(event.index)
        said = self._resolved(end.data) if end else {}
        seconds = end.at + end.seconds - event.at if end else event.seconds
        name = str(data.get("tool", ""))
        arguments = data.get("arguments")
        called = self._tool_event(
            event,
            inner,
            function=name,
            arguments=arguments if isinstance(arguments, dict) else {"value": arguments},
            result=as_text(said.get("result")),
            seconds=seconds,
            error=as_text(said.get("error")),
        )
        return list(
            self._span(name, event.at, event.at + seconds, [called], "tool", inner, parent=span)
        )

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
            id=call_id(self._uuid, event),
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
            event = ScoreEvent(
                score=score,
                target=plain(self._record.gold),
                scorer=name,
                **self._at(end, span),
            )
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
        yield SpanBeginEvent(
            id=span, parent_id=parent, type=kind or name, name=name, **self._at(began, span)
        )
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


def call_usage(data: Mapping[str, Any]) -> ModelUsage | None:
    """Return what a call consumed in Inspect's terms: cached tokens apart from the others.

    A call that a response cache answered, or that failed, consumed nothing.
    """
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
