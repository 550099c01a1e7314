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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import fmean, median
from typing import Any

from mlflow import MlflowClient, entities
from mlflow.entities import Feedback, Span, SpanType, TraceState
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

#: Tags that identify traces.
RUN_TAG = "reasoningbank.run"
TRIAL_TAG = "reasoningbank.trial"
EDITION_TAG = "reasoningbank.edition"
#: MLflow's limits: entries per batch, traces per page; characters per value, preview and tag.
_BATCH, _PAGE, _VALUE, _PREVIEW, _TAG = 100, 500, 500, 1_000, 250


class TraceStore:
    """Logs the trials of one run in MLflow, each once."""

    def __init__(self, uri: str, manifest: Mapping[str, Any], name: str) -> None:
        # mlflow.set_tracking_uri would change global state, so spans go through a client with an
        # address of its own.
        self._client = MlflowClient(tracking_uri=uri)
        self._traces = TracingClient(uri)
        self._records: dict[TrialKey, TrialRecord] = {}
        self._run = _sha(f"{manifest.get('fingerprint', '')}\0{manifest.get('created', '')}", 16)
        experiment = str(manifest.get("experiment", {}).get("name", "reasoningbank"))
        found = self._client.get_experiment_by_name(experiment)
        self._experiment = str(
            found.experiment_id if found else self._client.create_experiment(experiment)
        )
        self._mlflow_run = self._open_run(manifest, name)
        self._known = self._logged()

    def log(self, record: TrialRecord) -> None:
        """Log a trial unless its trace exists; replace the trace of a trial that was run again."""
        self._records[record.key] = replace(record, trajectory=Trajectory(), rollouts=())
        name, edition = _trial_name(record.key), _edition(record)
        known = self._known.get(name)
        if known is not None and known[0] == edition:
            return
        digits = _sha(f"{self._run}\0{name}\0{edition}", 32)
        self._traces.log_spans(self._experiment, spans_of(record, digits))
        # Tags come last: a trace without them is incomplete and logged again.
        self._traces.start_trace(self._info(record, digits))
        if known is not None:
            self._client.delete_traces(self._experiment, trace_ids=[known[1]])
        self._known[name] = edition, f"tr-{digits}"

    def finish(self, status: str) -> None:
        """Log the metrics of each arm and end MLflow's run with this status."""
        at = int(time.time() * 1_000)
        metrics = metrics_by_arm(self._records.values()).items()
        self._log_batches("metrics", [entities.Metric(k, v, at, 0) for k, v in metrics])
        # Not set_terminated, which prints an address on standard output.
        self._traces.store.update_run_info(
            self._mlflow_run, entities.RunStatus.from_string(status), end_time=at, run_name=None
        )

    def _open_run(self, manifest: Mapping[str, Any], name: str) -> str:
        wanted = f"tags.`{RUN_TAG}` = '{self._run}'"
        found = self._client.search_runs([self._experiment], wanted, max_results=1)
        if found:
            run_id = str(found[0].info.run_id)
            self._client.update_run(run_id, status="RUNNING")
            return run_id
        self._mlflow_run = str(self._client.create_run(self._experiment, run_name=name).info.run_id)
        self._log_batches("params", [entities.Param(k, v) for k, v in _params(manifest)])
        tags = {
            "mlflow.note.content": str(manifest.get("experiment", {}).get("title") or ""),
            **dict(_flat(manifest.get("versions", {}), "version.")),
            **dict(_flat(manifest.get("hashes", {}), "hash.")),
            "fingerprint": str(manifest.get("fingerprint", "")),
            RUN_TAG: self._run,
        }
        # Last, so that a run that is found by its tag has its params.
        self._log_batches("tags", [entities.RunTag(k, v) for k, v in tags.items()])
        return self._mlflow_run

    def _log_batches(self, kind: str, values: list[Any]) -> None:
        for start in range(0, len(values), _BATCH):
            batch: dict[str, Any] = {kind: values[start : start + _BATCH]}
            self._client.log_batch(self._mlflow_run, **batch)

    def _logged(self) -> dict[str, tuple[str, str]]:
        """Return edition and trace id of each trial that is logged, by the trial's name."""
        found: dict[str, tuple[str, str]] = {}
        token: str | None = None
        while True:
            page = self._client.search_traces(
                locations=[self._experiment],
                filter_string=f"tag.`{RUN_TAG}` = '{self._run}'",
                max_results=_PAGE,
                page_token=token,
                include_spans=False,
            )
            for info in (trace.info for trace in page):
                found[info.tags[TRIAL_TAG]] = info.tags.get(EDITION_TAG, ""), info.trace_id
            token = page.token
            if not token:
                return found

    def _info(self, record: TrialRecord, digits: str) -> entities.TraceInfo:
        used = record.usage
        answer = record.sparql if record.sparql is not None else record.answer
        tokens = _tokens(used.prompt_tokens, used.completion_tokens, used.cached_prompt_tokens)
        began_ms = nanoseconds(record.started) // 10**6
        return entities.TraceInfo(
            trace_id=f"tr-{digits}",
            trace_location=entities.TraceLocation.from_experiment_id(self._experiment),
            request_time=began_ms,
            execution_duration=round((used.seconds + record.judge_seconds) * 1_000),
            state=TraceState.ERROR if record.status == "error" else TraceState.OK,
            request_preview=plain(record.question)[:_PREVIEW],
            response_preview=plain(answer)[:_PREVIEW],
            client_request_id=_trial_name(record.key),
            trace_metadata={
                TraceMetadataKey.SOURCE_RUN: self._mlflow_run,
                TraceMetadataKey.TOKEN_USAGE: json.dumps(tokens),
            },
            tags=_tags(record, self._run),
            assessments=list(_assessments(record, began_ms)),
        )


def metrics_by_arm(records: Iterable[TrialRecord]) -> dict[str, float]:
    """Return the metrics of each arm as `arm/name`, of its stream as `arm/stream/name`.

    Rates, means and medians are over judged trials, as in the run's summary.
    """
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


def spans_of(record: TrialRecord, trace: str) -> list[Span]:
    """Return the spans of a trial with the trace id `trace` (32 hexadecimal digits), root first.

    The root is the agent; its children are model calls, code with the tool calls it made, other
    tool calls, memory retrieval and the judge. Errors and the submission are events of the root.
    """
    began = record.usage.seconds
    latest = began
    results = {e.parent: e for e in record.trajectory.of("tool_result")}

    def data(event: Event) -> dict[str, Any]:
        return dict(plain(record.trajectory.resolve(event.data)))

    inner = []
    for event in record.trajectory.events:
        until = event.at + event.seconds
        result = results.get(event.index) if event.kind == "tool_call" else None
        if result is not None:
            until = result.at + result.seconds
        facts = _facts(event.kind, data(event), data(result) if result else {})
        if facts is not None:
            latest = max(latest, until)
            parent = "agent" if event.parent is None else event.parent
            inner.append(_span(record, trace, event.index, (event.at, until), parent, **facts))
    if record.verdict is not None:
        judged = began + record.judge_seconds
        latest = max(latest, judged)
        facts = {
            "name": "execution judge",
            "kind": SpanType.EVALUATOR,
            "inputs": {"sparql": record.sparql, "gold": record.gold},
            "outputs": dict(record.verdict),
        }
        inner.append(_span(record, trace, "judge", (began, judged), "agent", **facts))
    root = _span(
        record,
        trace,
        "agent",
        (0.0, latest),
        name=f"{record.key.arm} · {record.key.task}",
        kind=SpanType.AGENT,
        inputs={"question": record.question},
        outputs={"sparql": record.sparql, "answer": record.answer, "status": record.status},
        error=record.error if record.status == "error" else "",
        events=[
            {
                "name": event.kind,
                "time_unix_nano": nanoseconds(record.started, event.at),
                "attributes": {k: _text(v) for k, v in data(event).items()},
            }
            for event in record.trajectory.of("error", "submit")
        ],
    )
    return [root, *inner]


def _facts(kind: str, data: dict[str, Any], result: dict[str, Any]) -> dict[str, Any] | None:
    """Return name, kind, inputs and outputs of an event's span; None if it has none."""
    match kind:
        case "lm_call":
            return _model_call(data)
        case "code":
            inputs, outputs = {"code": data.get("code")}, {"output": data.get("output")}
            return {"name": "python", "kind": SpanType.CHAIN, "inputs": inputs, "outputs": outputs}
        case "tool_call":
            return {
                "name": str(data.get("tool", "tool")),
                "kind": SpanType.TOOL,
                "inputs": data.get("arguments"),
                "outputs": result.get("result"),
                "error": _text(result.get("error")),
            }
        case "memory_retrieved":
            items = [dict(item) for item in data.get("items") or ()]
            pages = [
                {"id": i.pop("id", None), "page_content": i.pop("text", None), "metadata": i}
                for i in items
            ]
            inputs = {"query": data.get("query")}
            return {
                "name": "memory", "kind": SpanType.RETRIEVER, "inputs": inputs, "outputs": pages
            }  # fmt: skip
    return None


def _span(
    record: TrialRecord,
    trace: str,
    number: int | str,
    times: tuple[float, float],
    parent: int | str | None = None,
    *,
    name: str,
    kind: str,
    inputs: Any = None,
    outputs: Any = None,
    error: str = "",
    attributes: Mapping[str, Any] | None = None,
    events: Sequence[Mapping[str, Any]] = (),
) -> Span:
    def span_id(number: int | str) -> str:
        digest = hashlib.sha256(f"{trace} {number}".encode()).digest()
        return base64.b64encode(digest[:8]).decode()

    every = {
        SpanAttributeKey.REQUEST_ID: f"tr-{trace}",
        SpanAttributeKey.SPAN_TYPE: kind,
        SpanAttributeKey.INPUTS: inputs,
        SpanAttributeKey.OUTPUTS: outputs,
        **(attributes or {}),
    }
    shown = {k: json.dumps(plain(v), ensure_ascii=False) for k, v in every.items() if v is not None}
    status = "STATUS_CODE_ERROR" if error else "STATUS_CODE_OK"
    return Span.from_dict(
        {
            "trace_id": base64.b64encode(bytes.fromhex(trace)).decode(),
            "span_id": span_id(number),
            "parent_span_id": None if parent is None else span_id(parent),
            "name": name,
            "start_time_unix_nano": nanoseconds(record.started, times[0]),
            "end_time_unix_nano": nanoseconds(record.started, times[1]),
            "status": {"code": status, "message": error},
            "attributes": shown,
            "events": list(events),
        }
    )


def _model_call(data: Mapping[str, Any]) -> dict[str, Any]:
    sent, cached = data.get("prompt_tokens"), bool(data.get("from_cache"))
    attributes: dict[str, Any] = {
        SpanAttributeKey.MODEL: data.get("model"),
        SpanAttributeKey.MESSAGE_FORMAT: "openai",
        "from_cache": cached,
    }
    if sent is not None and not cached:
        attributes[SpanAttributeKey.CHAT_USAGE] = _tokens(
            sent, data.get("completion_tokens") or 0, int(data.get("cached_prompt_tokens") or 0)
        )
    if data.get("dollars") is not None:
        attributes[SpanAttributeKey.LLM_COST] = {CostKey.TOTAL_COST: data["dollars"]}
    reply = {"role": "assistant", "content": data.get("response")}
    return {
        "name": str(data.get("role") or "lm"),
        "kind": SpanType.LLM,
        "inputs": {"messages": data.get("messages")},
        "outputs": {"choices": [{"message": reply, "finish_reason": data.get("finish_reason")}]},
        "error": _text(data.get("error")),
        "attributes": attributes,
    }


def nanoseconds(started: str, seconds: float = 0.0) -> int:
    """Return the time `seconds` after `started` (ISO 8601), in nanoseconds since 1970."""
    began = datetime.fromisoformat(started).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return began // timedelta(microseconds=1) * 1_000 + round(seconds * 1e9)


def _trial_name(key: TrialKey) -> str:
    name: str = plain(f"{key.arm}/{key.task}/{key.seed}")
    return name if len(name) <= _TAG else f"{name[: _TAG - 17]}~{_sha(name, 16)}"


def _edition(record: TrialRecord) -> str:
    """Return a text that changes when a trial is run or judged again."""
    verdicts = json.dumps([record.verdict, record.judgements], sort_keys=True, default=str)
    return f"{record.started} {_sha(verdicts, 12)}"


def _tags(record: TrialRecord, run: str) -> dict[str, str]:
    key = record.key
    facts: dict[str, Any] = {
        TraceTagKey.TRACE_NAME: f"{key.arm} · {key.task}",
        RUN_TAG: run,
        TRIAL_TAG: _trial_name(key),
        EDITION_TAG: _edition(record),
        "arm": key.arm,
        "task": key.task,
        "seed": key.seed,
        "status": record.status,
        "strict": str(record.strict).lower() if record.verdict is not None else None,
        "complexity": record.complexity,
        "form": record.form,
        "group": record.group,
        "template": record.template,
        "level": record.level,
        "note": record.error,
        "step": record.step,
        "memory": record.memory,
        "tries": record.tries if record.tries > 1 else None,
    }
    return {k: plain(str(v))[:_TAG] for k, v in facts.items() if v is not None and v != ""}


def _assessments(record: TrialRecord, at_ms: int) -> Iterator[entities.Assessment]:
    times = {"create_time_ms": at_ms, "last_update_time_ms": at_ms}

    def feedback(name: str, value: Any, reason: str, source: Any, code: str = "") -> Feedback:
        error = entities.AssessmentError(code, reason) if code else None
        value = None if code else value
        return Feedback(
            name=name, value=value, error=error, source=source, rationale=reason, **times
        )

    execution = entities.AssessmentSource(source_type="CODE", source_id="execution judge")
    if record.gold:
        gold = plain(record.gold)
        yield entities.Expectation(name="gold", value=gold, source=execution, **times)
    if (verdict := record.verdict) is not None:
        reason = plain(str(verdict.get("reason", "")))
        code = "gold_defect" if verdict.get("status") == "gold_defect" else ""
        lenient = bool(verdict.get("lenient"))
        for name, value in (("strict", record.strict), ("lenient", lenient), ("f1", record.f1)):
            yield feedback(name, value, reason, execution, code)
    for judge, judgement in record.judgements.items():
        success, reason = judgement.get("success"), plain(str(judgement.get("reason", "")))
        source = entities.AssessmentSource(source_type="LLM_JUDGE", source_id=judge)
        yield feedback(judge, success, reason, source, "no_verdict" if success is None else "")


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


def _tokens(sent: int, made: int, cached: int) -> dict[str, int]:
    return {
        TokenUsageKey.INPUT_TOKENS: sent,
        TokenUsageKey.OUTPUT_TOKENS: made,
        TokenUsageKey.TOTAL_TOKENS: sent + made,
        TokenUsageKey.CACHE_READ_INPUT_TOKENS: cached,
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sha(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
