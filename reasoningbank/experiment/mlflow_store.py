"""The trials of one run in MLflow: one MLflow run, one trace per trial, metrics per arm.

Traces are made from records, so that a run that was killed, or that ran untraced, can be completed
later and no trial is logged twice; `mlflow.dspy.autolog` traces only live calls, through global
settings, and knows neither verdicts nor trials.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
#: MLflow's limits: characters per value, preview and tag.
_VALUE, _PREVIEW, _TAG = 500, 1_000, 250
#: What a span says: its name, attributes and error.
_Facts = tuple[str, Mapping[str, Any], str]


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
        found = metrics_by_arm(self._records.values())
        metrics = [entities.Metric(name, value, at, 0) for name, value in found.items()]
        self._client.log_batch(self._mlflow_run, metrics=metrics)
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
        run_id = str(self._client.create_run(self._experiment, run_name=name).info.run_id)
        experiment = {**manifest.get("experiment", {})}
        arms = {str(arm["name"]): arm for arm in experiment.pop("arms", ())}
        params = {"task_count": str(len(manifest.get("tasks", ()))), **dict(_flat(experiment))}
        params |= {"arms": ", ".join(arms), **dict(_flat(arms, "arm."))}
        facts = {"version": manifest.get("versions"), "hash": manifest.get("hashes")}
        tags = {"mlflow.note.content": str(experiment.get("title") or ""), **dict(_flat(facts))}
        tags |= {"fingerprint": str(manifest.get("fingerprint", "")), RUN_TAG: self._run}
        self._client.log_batch(run_id, params=[entities.Param(k, v) for k, v in params.items()])
        # Last, so that a run that is found by its tag has its params.
        self._client.log_batch(run_id, tags=[entities.RunTag(k, v) for k, v in tags.items()])
        return run_id

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
        judged = [r for r in mine if r.judged]
        prices = [r.usage.dollars for r in mine if r.usage.dollars is not None]
        said: dict[str, float] = {"trials": len(mine), "judged": len(judged)}
        said |= {"errors": sum(r.failed for r in mine), "strict": sum(r.strict for r in judged)}
        if judged:
            said |= {
                "strict_rate": fmean(r.strict for r in judged),
                "f1": fmean(r.f1 for r in judged),
                "tokens_median": median(r.usage.tokens for r in judged),
                "seconds_median": median(r.usage.seconds for r in judged),
            }
        if prices:
            said["dollars"] = sum(prices)
        found |= {f"{part}/{name}": value for name, value in said.items()}
    return found


def spans_of(record: TrialRecord, trace: str) -> list[Span]:
    """Return the spans of a trial with the trace id `trace` (32 hexadecimal digits), root first."""
    trajectory, ended = record.trajectory, record.usage.seconds
    results = {e.parent: e for e in trajectory.of("tool_result")}

    def span(number: int | str, start: float, end: float, parent: int | str | None,
             facts: _Facts, events: Sequence[Any] = ()) -> Span:  # fmt: skip
        name, attributes, error = facts
        said = {SpanAttributeKey.REQUEST_ID: f"tr-{trace}", **attributes}
        return Span.from_dict(
            {
                "name": name,
                "context": {"trace_id": trace, "span_id": _sha(f"{trace} {number}", 16)},
                "parent_id": None if parent is None else _sha(f"{trace} {parent}", 16),
                "start_time": nanoseconds(record.started, start),
                "end_time": nanoseconds(record.started, end),
                "status_code": "ERROR" if error else "OK",
                "status_message": error,
                "attributes": {
                    k: json.dumps(v, ensure_ascii=False) for k, v in said.items() if v is not None
                },
                "events": events,
            }
        )

    spans, latest = list[Span](), ended
    for event in trajectory.events:
        last = results.get(event.index, event) if event.kind == "tool_call" else event
        result = trajectory.resolve(last.data) if last is not event else {}
        if (facts := _facts(event, trajectory.resolve(event.data), result)) is not None:
            end = last.at + last.seconds
            latest = max(latest, end)
            parent = "agent" if event.parent is None else event.parent
            spans.append(span(event.index, event.at, end, parent, facts))
    if record.verdict is not None:
        end = ended + record.judge_seconds
        latest = max(latest, end)
        asked = {"sparql": record.sparql, "gold": record.gold}
        judged = _shown(SpanType.EVALUATOR, asked, dict(record.verdict))
        spans.append(span("judge", ended, end, "agent", ("execution judge", judged, "")))
    outputs = {"sparql": record.sparql, "answer": record.answer, "status": record.status}
    did = _shown(SpanType.AGENT, {"question": record.question}, outputs)
    error = record.error if record.failed else ""
    root = (f"{record.key.arm} · {record.key.task}", did, error)
    events = [
        {
            "name": event.kind,
            "timestamp": nanoseconds(record.started, event.at),
            "attributes": {k: _text(v) for k, v in trajectory.resolve(event.data).items()},
        }
        for event in trajectory.of("error", "submit")
    ]
    return [span("agent", 0.0, latest, None, root, events), *spans]


def _facts(event: Event, data: Mapping[str, Any], result: Mapping[str, Any]) -> _Facts | None:
    """Return what an event's span says; None if it has none."""
    match event.kind:
        case "lm_call":
            reply = {"role": "assistant", "content": data.get("response")}
            choice = {"message": reply, "finish_reason": data.get("finish_reason")}
            sent, cached = data.get("prompt_tokens"), bool(data.get("from_cache"))
            asked = {"messages": data.get("messages")}
            attributes = _shown(SpanType.LLM, asked, {"choices": [choice]})
            attributes |= {SpanAttributeKey.MODEL: data.get("model"), "from_cache": cached}
            attributes[SpanAttributeKey.MESSAGE_FORMAT] = "openai"
            if sent is not None and not cached:
                attributes[SpanAttributeKey.CHAT_USAGE] = _tokens(
                    sent, data.get("completion_tokens") or 0, data.get("cached_prompt_tokens") or 0
                )
            if data.get("dollars") is not None:
                attributes[SpanAttributeKey.LLM_COST] = {CostKey.TOTAL_COST: data["dollars"]}
            return str(data.get("role") or "lm"), attributes, _text(data.get("error"))
        case "code":
            code, output = {"code": data.get("code")}, {"output": data.get("output")}
            return "python", _shown(SpanType.CHAIN, code, output), ""
        case "tool_call":
            did = _shown(SpanType.TOOL, data.get("arguments"), result.get("result"))
            return str(data.get("tool", "tool")), did, _text(result.get("error"))
        case "memory_retrieved":
            items = [dict(item) for item in data.get("items") or ()]
            pages = [
                {"id": i.pop("id", None), "page_content": i.pop("text", None), "metadata": i}
                for i in items
            ]
            found = _shown(SpanType.RETRIEVER, {"query": data.get("query")}, pages)
            return "memory", found, ""
    return None


def _shown(kind: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    key = SpanAttributeKey
    return {key.SPAN_TYPE: kind, key.INPUTS: inputs, key.OUTPUTS: outputs}


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

    def said(name: str, value: Any, by: Mapping[str, Any], source: Any, code: str) -> Feedback:
        reason = str(by.get("reason", ""))
        error = entities.AssessmentError(code, reason) if code else None
        given: dict[str, Any] = {"value": None if code else value, "error": error, "source": source}
        return Feedback(name=name, rationale=reason, **given, **times)

    if (verdict := record.verdict) is not None:
        code = "" if record.judged else "gold_defect"
        values = {"strict": record.strict, "lenient": bool(verdict.get("lenient")), "f1": record.f1}
        yield from (said(name, one, verdict, execution, code) for name, one in values.items())
    for judge, judgement in record.judgements.items():
        source = entities.AssessmentSource(source_type="LLM_JUDGE", source_id=judge)
        success = judgement.get("success")
        yield said(judge, success, judgement, source, "no_verdict" if success is None else "")


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


def _sha(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
