"""A trajectory as spans of MLflow, with the times at which things happened."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from mlflow.entities import Span, SpanType
from mlflow.tracing.constant import CostKey, SpanAttributeKey, TokenUsageKey

from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event

__all__ = ["nanoseconds", "spans_of", "token_usage"]

_OK, _ERROR = "STATUS_CODE_OK", "STATUS_CODE_ERROR"


def nanoseconds(started: str, seconds: float = 0.0) -> int:
    """Return the time `seconds` after `started` (ISO 8601), in nanoseconds since 1970.

    Examples:
        >>> nanoseconds("1970-01-01T00:00:01+00:00", 0.25)
        1250000000
    """
    began = datetime.fromisoformat(started).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    whole = began.days * 86_400 + began.seconds
    return whole * 10**9 + began.microseconds * 1_000 + round(seconds * 1e9)


def token_usage(sent: int, made: int, cached: int) -> dict[str, int]:
    """Return a token count in MLflow's terms."""
    return {
        TokenUsageKey.INPUT_TOKENS: sent,
        TokenUsageKey.OUTPUT_TOKENS: made,
        TokenUsageKey.TOTAL_TOKENS: sent + made,
        TokenUsageKey.CACHE_READ_INPUT_TOKENS: cached,
    }


def spans_of(record: TrialRecord, trace: str) -> list[Span]:
    """Return the spans of a trial, the root first.

    The root is the agent; below it stand its model calls, its code with the tools that the code
    called, its own tool calls, what memory gave it, and the judge. Instants (a reply that could not
    be read, the submission) are events of the root.

    Args:
        record: The trial.
        trace: Id of the trace, 32 hexadecimal digits.
    """
    return list(_Spans(record, trace).all())


class _Spans:
    def __init__(self, record: TrialRecord, trace: str) -> None:
        self._record = record
        self._trace = trace
        self._results = {e.parent: e for e in record.trajectory.of("tool_result")}
        self._latest = record.usage.seconds

    def all(self) -> Iterator[Span]:
        record = self._record
        inner = [span for event in record.trajectory.events for span in self._event(event)]
        if record.verdict is not None:
            inner.append(self._judge(record.verdict))
        instants = [
            {
                "name": event.kind,
                "time_unix_nano": nanoseconds(record.started, event.at),
                "attributes": {k: _text(v) for k, v in self._resolved(event).items()},
            }
            for event in record.trajectory.of("error", "submit")
        ]
        failed = record.error if record.status == "error" else ""
        yield self._span(
            "agent",
            f"{record.key.arm} · {record.key.task}",
            SpanType.AGENT,
            (0.0, self._latest),
            inputs={"question": record.question},
            outputs={"sparql": record.sparql, "answer": record.answer, "status": record.status},
            error=failed,
            instants=instants,
        )
        yield from inner

    def _event(self, event: Event) -> Iterator[Span]:
        data = self._resolved(event)
        until = event.at + event.seconds
        if event.kind == "lm_call":
            yield self._model_call(event, data)
        elif event.kind == "code":
            yield self._span(
                event.index,
                "python",
                SpanType.CHAIN,
                (event.at, until),
                self._parent(event),
                inputs={"code": data.get("code")},
                outputs={"output": data.get("output")},
            )
        elif event.kind == "tool_call":
            end = self._results.get(event.index)
            said = self._resolved(end) if end else {}
            yield self._span(
                event.index,
                str(data.get("tool", "tool")),
                SpanType.TOOL,
                (event.at, end.at + end.seconds if end else until),
                self._parent(event),
                inputs=data.get("arguments"),
                outputs=said.get("result"),
                error=_text(said.get("error")),
            )
        elif event.kind == "memory_retrieved":
            yield self._span(
                event.index,
                "memory",
                SpanType.RETRIEVER,
                (event.at, until),
                self._parent(event),
                inputs={"query": data.get("query")},
                outputs=[_document(item) for item in data.get("items") or ()],
            )

    def _model_call(self, event: Event, data: Mapping[str, Any]) -> Span:
        sent, made = data.get("prompt_tokens"), data.get("completion_tokens")
        attributes: dict[str, Any] = {
            SpanAttributeKey.MODEL: data.get("model"),
            SpanAttributeKey.MESSAGE_FORMAT: "openai",
            "from_cache": bool(data.get("from_cache")),
        }
        if sent is not None and not data.get("from_cache"):
            cached = int(data.get("cached_prompt_tokens") or 0)
            attributes[SpanAttributeKey.CHAT_USAGE] = token_usage(sent, made or 0, cached)
        if data.get("dollars") is not None:
            attributes[SpanAttributeKey.LLM_COST] = {CostKey.TOTAL_COST: data["dollars"]}
        said = {"role": "assistant", "content": data.get("response")}
        return self._span(
            event.index,
            str(data.get("role") or "lm"),
            SpanType.LLM,
            (event.at, event.at + event.seconds),
            self._parent(event),
            inputs={"messages": data.get("messages")},
            outputs={"choices": [{"message": said, "finish_reason": data.get("finish_reason")}]},
            error=_text(data.get("error")),
            attributes=attributes,
        )

    def _judge(self, verdict: Mapping[str, Any]) -> Span:
        began = self._record.usage.seconds
        return self._span(
            "judge",
            "execution judge",
            SpanType.EVALUATOR,
            (began, began + self._record.judge_seconds),
            self._id("agent"),
            inputs={"sparql": self._record.sparql, "gold": self._record.gold},
            outputs=dict(verdict),
        )

    def _span(
        self,
        number: int | str,
        name: str,
        kind: str,
        times: tuple[float, float],
        parent: bytes | None = None,
        *,
        inputs: Any = None,
        outputs: Any = None,
        error: str = "",
        attributes: Mapping[str, Any] | None = None,
        instants: list[dict[str, Any]] | None = None,
    ) -> Span:
        self._latest = max(self._latest, times[1])
        every = {
            SpanAttributeKey.REQUEST_ID: f"tr-{self._trace}",
            SpanAttributeKey.SPAN_TYPE: kind,
            SpanAttributeKey.INPUTS: inputs,
            SpanAttributeKey.OUTPUTS: outputs,
            **(attributes or {}),
        }
        return Span.from_dict(
            {
                "trace_id": _base64(bytes.fromhex(self._trace)),
                "span_id": _base64(self._id(number)),
                "parent_span_id": _base64(parent) if parent else None,
                "name": name,
                "start_time_unix_nano": nanoseconds(self._record.started, times[0]),
                "end_time_unix_nano": nanoseconds(self._record.started, times[1]),
                "status": {"code": _ERROR if error else _OK, "message": error},
                "attributes": {
                    k: json.dumps(plain(v), ensure_ascii=False)
                    for k, v in every.items()
                    if v is not None
                },
                "events": instants or [],
            }
        )

    def _parent(self, event: Event) -> bytes:
        return self._id("agent" if event.parent is None else event.parent)

    def _id(self, number: int | str) -> bytes:
        return hashlib.sha256(f"{self._trace} {number}".encode()).digest()[:8]

    def _resolved(self, event: Event) -> dict[str, Any]:
        return dict(plain(self._record.trajectory.resolve(event.data)))


def _document(item: Mapping[str, Any]) -> dict[str, Any]:
    left = {k: v for k, v in item.items() if k not in {"id", "text"}}
    return {"id": item.get("id"), "page_content": item.get("text"), "metadata": left}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
