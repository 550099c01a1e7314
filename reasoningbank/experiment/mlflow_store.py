"""The trials of one run in MLflow: one MLflow run, one trace per trial, metrics per arm.

Traces are made from records, so that a run that was killed, or that ran untraced, can be completed
later and no trial is logged twice; `mlflow.dspy.autolog` traces only live calls, through global
settings, and knows neither verdicts nor trials.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from statistics import fmean, median
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import (
    Assessment,
    AssessmentError,
    AssessmentSource,
    Expectation,
    Feedback,
    Metric,
    Param,
    RunStatus,
    RunTag,
    Span,
    SpanType,
    TraceInfo,
    TraceLocation,
    TraceState,
)
from mlflow.tracing.client import TracingClient
from mlflow.tracing.constant import (
    CostKey,
    SpanAttributeKey,
    TokenUsageKey,
    TraceMetadataKey,
    TraceTagKey,
)

from reasoningbank.experiment.records import TrialKey, TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event, Trajectory

__all__ = ["TraceStore", "metrics_by_arm", "nanoseconds", "spans_of", "trace_info"]

#: MLflow's limits: entries per batch, characters per value, traces per page.
_BATCH, _VALUE, _PAGE = 100, 500, 500


class TraceStore:
    """Logs the trials of one run in MLflow, each once."""

    def __init__(self, uri: str, manifest: Mapping[str, Any], name: str) -> None:
        # mlflow.set_tracking_uri would change global state, so spans go through a client with an
        # address of its own.
        self._client = MlflowClient(tracking_uri=uri)
        self._traces = TracingClient(uri)
        self._records: dict[TrialKey, TrialRecord] = {}
        self._run = _run_id(manifest)
        self._experiment = self._experiment_id(manifest)
        self._mlflow_run = self._run_in_mlflow(manifest, name)
        self._known = dict(self._logged())

    def log(self, record: TrialRecord) -> None:
        """Log a trial unless its trace exists; replace the trace of a trial that was run again."""
        self._records[record.key] = replace(record, trajectory=Trajectory(), rollouts=())
        name = trial_name(record.key)
        known = self._known.get(name)
        if known is not None and known[0] == edition(record):
            return
        digits = trace_digits(self._run, record)
        # Tags come last: a trace without them is incomplete and logged again.
        self._traces.log_spans(self._experiment, spans_of(record, digits))
        self._traces.start_trace(trace_info(record, self._run, self._experiment, self._mlflow_run))
        if known is not None:
            self._client.delete_traces(self._experiment, trace_ids=[known[1]])
        self._known[name] = edition(record), f"tr-{digits}"

    def finish(self, status: str) -> None:
        """Log the metrics of each arm and end MLflow's run."""
        at = int(time.time() * 1_000)
        metrics = [Metric(k, v, at, 0) for k, v in metrics_by_arm(self._records.values()).items()]
        for start in range(0, len(metrics), _BATCH):
            self._client.log_batch(self._mlflow_run, metrics=metrics[start : start + _BATCH])
        # Not set_terminated, which prints an address on standard output.
        self._traces.store.update_run_info(
            self._mlflow_run, RunStatus.from_string(status), end_time=at, run_name=None
        )

    def _experiment_id(self, manifest: Mapping[str, Any]) -> str:
        name = str(manifest.get("experiment", {}).get("name", "reasoningbank"))
        found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self._client.create_experiment(name))

    def _run_in_mlflow(self, manifest: Mapping[str, Any], name: str) -> str:
        found = self._client.search_runs(
            [self._experiment], f"tags.`{RUN_TAG}` = '{self._run}'", max_results=1
        )
        if found:
            run_id = str(found[0].info.run_id)
            self._client.update_run(run_id, status="RUNNING")
            return run_id
        run_id = str(self._client.create_run(self._experiment, run_name=name).info.run_id)
        params = [Param(k, v) for k, v in _params(manifest)]
        for start in range(0, len(params), _BATCH):
            self._client.log_batch(run_id, params=params[start : start + _BATCH])
        # Last, so that a run that is found by its tag has its params.
        self._client.log_batch(run_id, tags=[RunTag(k, v) for k, v in self._tags(manifest)])
        return run_id

    def _tags(self, manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield "mlflow.note.content", str(manifest.get("experiment", {}).get("title") or "")
        for package, version in manifest.get("versions", {}).items():
            yield f"version.{package}", str(version)
        for part, value in _flat(manifest.get("hashes", {})):
            yield f"hash.{part}", value
        yield "fingerprint", str(manifest.get("fingerprint", ""))
        yield RUN_TAG, self._run

    def _logged(self) -> Iterator[tuple[str, tuple[str, str]]]:
        token: str | None = None
        while True:
            page = self._client.search_traces(
                locations=[self._experiment],
                filter_string=f"tag.`{RUN_TAG}` = '{self._run}'",
                max_results=_PAGE,
                page_token=token,
                include_spans=False,
            )
            for trace in page:
                tags = trace.info.tags
                yield tags[TRIAL_TAG], (tags.get(EDITION_TAG, ""), trace.info.trace_id)
            token = page.token
            if not token:
                return


def _run_id(manifest: Mapping[str, Any]) -> str:
    parts = f"{manifest.get('fingerprint', '')}\0{manifest.get('created', '')}"
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _params(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    experiment = dict(manifest.get("experiment", {}))
    arms = experiment.pop("arms", ())
    yield "task_count", str(len(manifest.get("tasks", ())))
    yield from _flat({k: v for k, v in experiment.items() if k not in {"name", "title"}})
    yield "arms", ", ".join(str(arm.get("name")) for arm in arms)
    for arm in arms:
        yield from _flat({k: v for k, v in arm.items() if k != "name"}, f"arm.{arm.get('name')}.")


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        elif isinstance(value, (list, tuple)):
            if value:
                yield f"{before}{key}", ", ".join(str(plain(v)) for v in value)[:_VALUE]
        elif value is not None and value != "":
            yield f"{before}{key}", str(plain(value))[:_VALUE]


#: Tags that identify traces.
RUN_TAG = "reasoningbank.run"
TRIAL_TAG = "reasoningbank.trial"
EDITION_TAG = "reasoningbank.edition"

#: MLflow's limits on the characters of a preview and of a tag.
_PREVIEW, _TAG = 1_000, 250


def trial_name(key: TrialKey) -> str:
    """Return the name of a trial within its run: arm, task and seed."""
    name: str = plain(f"{key.arm}/{key.task}/{key.seed}")
    if len(name) <= _TAG:
        return name
    return f"{name[: _TAG - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def edition(record: TrialRecord) -> str:
    """Return a text that changes when a trial is run or judged again."""
    said = json.dumps([record.verdict, record.judgements], sort_keys=True, default=str)
    return f"{record.started} {hashlib.sha256(said.encode()).hexdigest()[:12]}"


def trace_digits(run: str, record: TrialRecord) -> str:
    """Return the id of a trial's trace, 32 hexadecimal digits; the same whenever it is logged."""
    parts = f"{run}\0{trial_name(record.key)}\0{edition(record)}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]


def trace_info(record: TrialRecord, run: str, experiment_id: str, mlflow_run: str) -> TraceInfo:
    """Return the metadata, tags and assessments of a trial's trace."""
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


_OK, _ERROR = "STATUS_CODE_OK", "STATUS_CODE_ERROR"


def nanoseconds(started: str, seconds: float = 0.0) -> int:
    """Return the time `seconds` after `started` (ISO 8601), in nanoseconds since 1970."""
    began = datetime.fromisoformat(started).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    whole = began.days * 86_400 + began.seconds
    return whole * 10**9 + began.microseconds * 1_000 + round(seconds * 1e9)


def token_usage(sent: int, made: int, cached: int) -> dict[str, int]:
    """Return token counts under MLflow's keys."""
    return {
        TokenUsageKey.INPUT_TOKENS: sent,
        TokenUsageKey.OUTPUT_TOKENS: made,
        TokenUsageKey.TOTAL_TOKENS: sent + made,
        TokenUsageKey.CACHE_READ_INPUT_TOKENS: cached,
    }


def spans_of(record: TrialRecord, trace: str) -> list[Span]:
    """Return the spans of a trial, the root first."""
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


def metrics_by_arm(records: Iterable[TrialRecord]) -> dict[str, float]:
    """Return the metrics of each arm as `arm/name`, of its stream as `arm/stream/name`."""
    parts: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        # Trials of a stream do not count towards the arm's score.
        parts[record.key.arm if record.step is None else f"{record.key.arm}/stream"].append(record)
    found: dict[str, float] = {}
    for part, mine in sorted(parts.items()):
        judged = [r for r in mine if r.verdict and r.verdict.get("status") != "gold_defect"]
        prices = [r.usage.dollars for r in mine if r.usage.dollars is not None]
        numbers: dict[str, float] = {
            "trials": len(mine),
            "judged": len(judged),
            "errors": sum(r.status == "error" for r in mine),
            "strict": sum(r.strict for r in judged),
        }
        if judged:
            numbers |= {
                "strict_rate": fmean(r.strict for r in judged),
                "f1": fmean(r.f1 for r in judged),
                "tokens_median": median(r.usage.tokens for r in judged),
                "seconds_median": median(r.usage.seconds for r in judged),
            }
        if prices:
            numbers["dollars"] = sum(prices)
        found |= {f"{part}/{name}": float(value) for name, value in numbers.items()}
    return found
