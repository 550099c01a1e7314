"""The MLflow side of a run: its experiment, its run, the traces that are there already."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunStatus, RunTag
from mlflow.tracing.client import TracingClient

from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.experiment.tracing.spans import spans_of
from reasoningbank.experiment.tracing.tally import Tally
from reasoningbank.experiment.tracing.trace import (
    EDITION_TAG,
    RUN_TAG,
    TRIAL_TAG,
    edition,
    trace_digits,
    trace_info,
    trial_name,
)

__all__ = ["TraceStore"]

#: What MLflow takes at once, and the length of a value it takes.
_BATCH, _VALUE, _PAGE = 100, 500, 500


class TraceStore:
    """Puts the trials of one run into MLflow, each once.

    Args:
        uri: Address of the store or the server.
        manifest: The run's.
        name: Name for MLflow's run.

    Raises:
        MlflowException: If the store cannot be opened or refuses.
    """

    def __init__(self, uri: str, manifest: Mapping[str, Any], name: str) -> None:
        # Never mlflow.set_tracking_uri: the address is ours alone. Its tracing functions follow
        # the global one, which is why spans go through the client that takes an address.
        self._client = MlflowClient(tracking_uri=uri)
        self._traces = TracingClient(uri)
        self._tally = Tally()
        self._run = _run_id(manifest)
        self._experiment = self._experiment_id(manifest)
        self._mlflow_run = self._run_in_mlflow(manifest, name)
        self._known = dict(self._logged())

    def log(self, record: TrialRecord) -> None:
        """Log a trial, unless its trace is there; a trial that was run again takes its place."""
        self._tally.add(record)
        name = trial_name(record.key)
        known = self._known.get(name)
        if known is not None and known[0] == edition(record):
            return
        digits = trace_digits(self._run, record)
        # The tags come last: a trace with them is whole, one without them is logged again.
        self._traces.log_spans(self._experiment, spans_of(record, digits))
        self._traces.start_trace(trace_info(record, self._run, self._experiment, self._mlflow_run))
        if known is not None:
            self._client.delete_traces(self._experiment, trace_ids=[known[1]])
        self._known[name] = edition(record), f"tr-{digits}"

    def finish(self, status: str) -> None:
        """Log the numbers of each arm and end MLflow's run.

        Args:
            status: `FINISHED`, `FAILED` or `KILLED`.
        """
        at = int(time.time() * 1_000)
        metrics = [Metric(k, v, at, 0) for k, v in self._tally.metrics().items()]
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
        # Last: a run without the tag is not found again, and would lack params.
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
