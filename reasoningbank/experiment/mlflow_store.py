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
from datetime import datetime
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
#: MLflow's limits: entries per batch; characters per value, preview and tag.
_BATCH, _VALUE, _PREVIEW, _TAG = 100, 500, 1_000, 250


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

    def log(self, record: TrialRecord) -> None:
        """Log a trial unless its trace exists; replace the trace of a trial that was run again."""
        # Half a surrogate pair, as small models write it, cannot be sent.
        record = TrialRecord.from_json(plain(record.to_json()))
        self._records[record.key] = replace(record, trajectory=Trajectory(), rollouts=())
        name, edition = _trial_name(record.key), _edition(record)
        mark = '"' if "'" in name else "'"
        same_trial = f"tag.`{RUN_TAG}` = '{self._run}' AND tag.`{TRIAL_TAG}` = {mark}{name}{mark}"
        known = self._client.search_traces(
            locations=[self._experiment], filter_string=same_trial, include_spans=False
        )
        if any(one.info.tags.get(EDITION_TAG) == edition for one in known):
            return
        digits = _sha(f"{self._run}\0{name}\0{edition}", 32)
        self._traces.log_spans(self._experiment, spans_of(record, digits))
        # Tags come last: a trace without them is incomplete and logged again.
        self._traces.start_trace(self._info(record, digits))
        if known:
            old = [one.info.trace_id for one in known]
            self._client.delete_traces(self._experiment, trace_ids=old)

    def finish(self, status: str) -> None:
        """Log the metrics of each arm and end MLflow's run with this status."""
        at = int(time.time() * 1_000)
        metrics = metrics_by_arm(self._records.values())
        self._log_batches(metrics=[entities.Metric(k, v, at, 0) for k, v in metrics.items()])
        # Not set_terminated, which prints an address on standard output.
        self._traces.store.update_run_info(
            self._mlflow_run, entities.RunStatus.from_string(status), end_time=at, run_name=None
        )

    def _open_run(self, manifest: Mapping[str, Any], name: str) -> str:
        wanted = f"tags.`{RUN_TAG}` = '{self._run}'"
        if found := self._client.search_runs([self._experiment], wanted, max_results=1):
            run_id = str(found[0].info.run_id)
            self._client.update_run(run_id, status="RUNNING")
            return run_id
        self._mlflow_run = str(self._client.create_run(self._experiment, run_name=name).info.run_id)
        experiment = {**manifest.get("experiment", {})}
        arms = {str(arm["name"]): arm for arm in experiment.pop("arms", ())}
        params = {
            "task_count": str(len(manifest.get("tasks", ()))),
            **dict(_flat(experiment)),
            "arms": ", ".join(arms),
            **dict(_flat(arms, "arm.")),
        }
        tags = {
            "mlflow.note.content": str(experiment.get("title") or ""),
            **dict(_flat({"version": manifest.get("versions"), "hash": manifest.get("hashes")})),
            "fingerprint": str(manifest.get("fingerprint", "")),
            RUN_TAG: self._run,
        }
        self._log_batches(params=[entities.Param(k, v) for k, v in params.items()])
        # Last, so that a run that is found by its tag has its params.
        self._log_batches(tags=[entities.RunTag(k, v) for k, v in tags.items()])
        return self._mlflow_run

    def _log_batches(self, **entries: list[Any]) -> None:
        for kind, values in entries.items():
            for start in range(0, len(values), _BATCH):
                batch: dict[str, Any] = {kind: values[start : start + _BATCH]}
                self._client.log_batch(self._mlflow_run, **batch)

    def _info(self, record: TrialRecord, digits: str) -> entities.TraceInfo:
        used, name = record.usage, _trial_name(record.key)
        answer = record.sparql if record.sparql is not None else record.answer
        tokens = _tokens(used.prompt_tokens, used.completion_tokens, used.cached_prompt_tokens)
        began_ms = nanoseconds(record.started) // 10**6
        facts = {
            TraceTagKey.TRACE_NAME: f"{record.key.arm} · {record.key.task}",
            RUN_TAG: self._run,
            TRIAL_TAG: name,
            EDITION_TAG: _edition(record),
            "arm": record.key.arm,
            "task": record.key.task,
            "seed": record.key.seed,
            "strict": str(record.strict).lower() if record.verdict is not None else None,
            "note": record.error,
            "tries": record.tries if record.tries > 1 else None,
            **{one: getattr(record, one) for one in _TAGGED},
        }
        return entities.TraceInfo(
            trace_id=f"tr-{digits}",
            trace_location=entities.TraceLocation.from_experiment_id(self._experiment),
            request_time=began_ms,
            execution_duration=round((used.seconds + record.judge_seconds) * 1_000),
            state=TraceState.ERROR if record.failed else TraceState.OK,
            request_preview=record.question[:_PREVIEW],
            response_preview=answer[:_PREVIEW],
            client_request_id=name,
            trace_metadata={
                TraceMetadataKey.SOURCE_RUN: self._mlflow_run,
                TraceMetadataKey.TOKEN_USAGE: json.dumps(tokens),
            },
            tags={k: str(v)[:_TAG] for k, v in facts.items() if v is not None and v != ""},
            assessments=list(_assessments(record, began_ms)),
        )


#: What a trace's tags say of a trial under the record's own name.
_TAGGED = ("status", "complexity", "form", "group", "template", "level", "step", "memory")


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
        found |= {
            f"{part}/trials": len(mine),
            f"{part}/judged": len(judged),
            f"{part}/errors": sum(r.failed for r in mine),
            f"{part}/strict": sum(r.strict for r in judged),
        }
        if judged:
            found |= {
                f"{part}/strict_rate": fmean(r.strict for r in judged),
                f"{part}/f1": fmean(r.f1 for r in judged),
                f"{part}/tokens_median": median(r.usage.tokens for r in judged),
                f"{part}/seconds_median": median(r.usage.seconds for r in judged),
            }
        if prices:
            found[f"{part}/dollars"] = sum(prices)
    return found


def spans_of(record: TrialRecord, trace: str) -> list[Span]:
    """Return the spans of a trial with the trace id `trace` (32 hexadecimal digits), root first."""
    trajectory, ended = record.trajectory, record.usage.seconds
    results = {e.parent: e for e in trajectory.of("tool_result")}
    spans: list[Span] = []

    def add(number: int | str, start: float, end: float, parent: int | str | None,
            **facts: Any) -> None:  # fmt: skip
        ids = [None if one is None else _span_id(trace, one) for one in (number, parent)]
        attributes = {SpanAttributeKey.REQUEST_ID: f"tr-{trace}", **facts["attributes"]}
        error = facts.get("error", "")
        spans.append(
            Span.from_dict(
                {
                    "trace_id": base64.b64encode(bytes.fromhex(trace)).decode(),
                    "span_id": ids[0],
                    "parent_span_id": ids[1],
                    "name": facts["name"],
                    "start_time_unix_nano": nanoseconds(record.started, start),
                    "end_time_unix_nano": nanoseconds(record.started, end),
                    "status": {
                        "code": f"STATUS_CODE_{'ERROR' if error else 'OK'}",
                        "message": error,
                    },
                    "attributes": {
                        k: json.dumps(v, ensure_ascii=False)
                        for k, v in attributes.items()
                        if v is not None
                    },
                    "events": facts.get("events", []),
                }
            )
        )

    latest = ended
    for event in trajectory.events:
        last = results.get(event.index, event) if event.kind == "tool_call" else event
        result = trajectory.resolve(last.data) if last is not event else {}
        if (facts := _facts(event, trajectory.resolve(event.data), result)) is not None:
            end = last.at + last.seconds
            latest = max(latest, end)
            add(event.index, event.at, end, "agent" if event.parent is None else event.parent,
                **facts)  # fmt: skip
    if record.verdict is not None:
        latest = max(latest, ended + record.judge_seconds)
        asked = {"sparql": record.sparql, "gold": record.gold}
        judged = _shown(SpanType.EVALUATOR, asked, dict(record.verdict))
        end = ended + record.judge_seconds
        add("judge", ended, end, "agent", name="execution judge", attributes=judged)
    outputs = {"sparql": record.sparql, "answer": record.answer, "status": record.status}
    add(
        "agent",
        0.0,
        latest,
        None,
        name=f"{record.key.arm} · {record.key.task}",
        attributes=_shown(SpanType.AGENT, {"question": record.question}, outputs),
        error=record.error if record.failed else "",
        events=[
            {
                "name": event.kind,
                "time_unix_nano": nanoseconds(record.started, event.at),
                "attributes": {k: _text(v) for k, v in trajectory.resolve(event.data).items()},
            }
            for event in trajectory.of("error", "submit")
        ],
    )
    return [spans[-1], *spans[:-1]]


def _facts(event: Event, data: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    """Return name, attributes and error of an event's span; None if it has none."""
    match event.kind:
        case "lm_call":
            reply = {"role": "assistant", "content": data.get("response")}
            choice = {"message": reply, "finish_reason": data.get("finish_reason")}
            sent, cached = data.get("prompt_tokens"), bool(data.get("from_cache"))
            attributes = _shown(
                SpanType.LLM, {"messages": data.get("messages")}, {"choices": [choice]}
            )
            attributes |= {
                SpanAttributeKey.MODEL: data.get("model"),
                SpanAttributeKey.MESSAGE_FORMAT: "openai",
                "from_cache": cached,
            }
            if sent is not None and not cached:
                attributes[SpanAttributeKey.CHAT_USAGE] = _tokens(
                    sent, data.get("completion_tokens") or 0, data.get("cached_prompt_tokens") or 0
                )
            if data.get("dollars") is not None:
                attributes[SpanAttributeKey.LLM_COST] = {CostKey.TOTAL_COST: data["dollars"]}
            name, error = str(data.get("role") or "lm"), _text(data.get("error"))
        case "code":
            name, error = "python", ""
            code, output = {"code": data.get("code")}, {"output": data.get("output")}
            attributes = _shown(SpanType.CHAIN, code, output)
        case "tool_call":
            name, error = str(data.get("tool", "tool")), _text(result.get("error"))
            attributes = _shown(SpanType.TOOL, data.get("arguments"), result.get("result"))
        case "memory_retrieved":
            name, error = "memory", ""
            items = [dict(item) for item in data.get("items") or ()]
            pages = [
                {"id": i.pop("id", None), "page_content": i.pop("text", None), "metadata": i}
                for i in items
            ]
            attributes = _shown(SpanType.RETRIEVER, {"query": data.get("query")}, pages)
        case _:
            return None
    return {"name": name, "attributes": attributes, "error": error}


def _shown(kind: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {
        SpanAttributeKey.SPAN_TYPE: kind,
        SpanAttributeKey.INPUTS: inputs,
        SpanAttributeKey.OUTPUTS: outputs,
    }


def nanoseconds(started: str, seconds: float = 0.0) -> int:
    """Return the time `seconds` after `started` (ISO 8601), in nanoseconds since 1970."""
    return round(datetime.fromisoformat(started).timestamp() * 1e6) * 1_000 + round(seconds * 1e9)


def _trial_name(key: TrialKey) -> str:
    name: str = plain(f"{key.arm}/{key.task}/{key.seed}")
    return name if len(name) <= _TAG else f"{name[: _TAG - 17]}~{_sha(name, 16)}"


def _edition(record: TrialRecord) -> str:
    """Return a text that changes when a trial is run or judged again."""
    verdicts = json.dumps([record.verdict, record.judgements], sort_keys=True, default=str)
    return f"{record.started} {_sha(verdicts, 12)}"


def _assessments(record: TrialRecord, at_ms: int) -> Iterator[entities.Assessment]:
    times = {"create_time_ms": at_ms, "last_update_time_ms": at_ms}
    execution = entities.AssessmentSource(source_type="CODE", source_id="execution judge")
    if record.gold:
        yield entities.Expectation(name="gold", value=record.gold, source=execution, **times)
    said: list[tuple[str, Any, str, Any, str]] = []
    if (verdict := record.verdict) is not None:
        code = "gold_defect" if verdict.get("status") == "gold_defect" else ""
        values = (record.strict, bool(verdict.get("lenient")), record.f1)
        for name, value in zip(("strict", "lenient", "f1"), values, strict=True):
            said.append((name, value, str(verdict.get("reason", "")), execution, code))
    for judge, judgement in record.judgements.items():
        source = entities.AssessmentSource(source_type="LLM_JUDGE", source_id=judge)
        code = "no_verdict" if judgement.get("success") is None else ""
        reason = str(judgement.get("reason", ""))
        said.append((judge, judgement.get("success"), reason, source, code))
    for name, value, reason, source, code in said:
        error = entities.AssessmentError(code, reason) if code else None
        given: dict[str, Any] = {"value": None if code else value, "error": error, "source": source}
        yield Feedback(name=name, rationale=reason, **given, **times)


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what a manifest says as names with dots and short texts."""
    for key, value in data.items():
        if key in ("name", "title") or value is None or value in ("", [], ()):
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            texts = value if isinstance(value, list | tuple) else [value]
            yield f"{before}{key}", ", ".join(str(plain(one)) for one in texts)[:_VALUE]


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


def _span_id(trace: str, number: int | str) -> str:
    return base64.b64encode(bytes.fromhex(_sha(f"{trace} {number}", 16))).decode()


def _sha(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
