"""Run trials on a Dask cluster; the driver alone writes records.

Workers need the package and the addresses of endpoint and model; the pack travels with the run.
Each worker process opens its own context once and freezes gold results in a temporary folder: a
verdict depends only on the answers, so on fixed data it is the same on every worker.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import distributed

from reasoningbank.agents import Attempt
from reasoningbank.corpus import SETS, Pack, load_pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.context import RunContext, context_at
from reasoningbank.experiment.executors import RecordWriter, Retrier
from reasoningbank.experiment.manifest import code_version
from reasoningbank.experiment.plan import Job, Plan
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.settings import Executor
from reasoningbank.experiment.trial import Trial
from reasoningbank.findings import Finding
from reasoningbank.judge import GoldStore
from reasoningbank.lm import ModelHandle
from reasoningbank.sparql import EndpointConfig, is_loopback
from reasoningbank.trajectory import Trajectory, Usage

#: Ctrl-C reaches every process of the terminal; only the driver reacts.
_IGNORE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
#: Seconds to wait for a scheduler and its first worker.
CONNECT_S = 20


def run_on_dask(
    jobs: Sequence[Job],
    experiment: Experiment,
    config: EndpointConfig,
    plan: Plan,
    models: Mapping[str, ModelHandle],
    writer: RecordWriter,
) -> None:
    """Run jobs on a cluster; after an interrupt, those that were handed out still end."""
    _check_reach(experiment.executor, config, models)
    name = f"reasoningbank-{time.time_ns()}"
    with _quiet_logs(), _client(experiment.executor, writer.on_notice) as client:
        slots = client.nthreads()
        workers = len(slots)
        writer.on_notice(f"{workers} Dask workers, {sum(slots.values())} trials at one time")
        client.register_plugin(
            WorkerSetup(experiment, _divided(config, workers), plan, models), name=name
        )
        waiting, running = list(reversed(jobs)), dict[Any, Job]()
        futures = distributed.as_completed(loop=client.loop, raise_errors=False)

        def hand_out() -> None:
            most = sum(client.nthreads().values()) + 1
            while waiting and len(running) < most and not writer.stop.event.is_set():
                job = waiting.pop()
                writer.started(job)
                future = client.submit(_trial, name, job, pure=False)
                running[future] = job
                futures.add(future)

        try:
            hand_out()
            for future in futures:
                job = running.pop(future)
                writer.ended(job, _record(future, job))
                hand_out()
        except (OSError, CancelledError) as error:
            raise SetupError(
                f"the Dask cluster is gone ({type(error).__name__})",
                where="executor",
                hint="start it again and run the same command: what is on disk is done",
                code="no-cluster",
            ) from error
        finally:
            # The cluster may be gone, and then there is nothing to undo.
            with contextlib.suppress(Exception):
                client.cancel(list(running))
                client.unregister_worker_plugin(name)


def _record(future: Any, job: Job) -> TrialRecord:
    try:
        return TrialRecord.from_json(future.result())
    except distributed.KilledWorker:
        died = Finding("worker-died", "every worker that ran the trial died")
        attempt = Attempt(None, "", "error", Usage(), Trajectory(), findings=(died,))
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        return TrialRecord.of(job.key, job.task, attempt, None, started=started, model={})


class WorkerSetup(distributed.WorkerPlugin):  # type: ignore[misc]
    """What a worker is given, and the context that it opens once."""

    def __init__(
        self,
        experiment: Experiment,
        config: EndpointConfig,
        plan: Plan,
        models: Mapping[str, ModelHandle],
    ) -> None:
        pack = plan.pack
        self.experiment, self.version = experiment, _version()
        self._config = config
        self._models = models
        self._files = packed(pack)
        self._key, self._prefixes = pack.key, dict(pack.prefixes)
        self._examples = next((s for s in SETS if getattr(pack, s) == pack.examples), None)
        self._hidden: dict[str, Any] = {
            "hidden": plan.hidden,
            "hidden_by_task": plan.hidden_by_task,
        }

    def setup(self, worker: Any) -> None:
        """Create what cannot be pickled; refuse a worker with other code than the driver's."""
        if (mine := _version()) != self.version:
            raise UsageError(
                f"a worker runs reasoningbank {mine[0]}, and the driver {self.version[0]}",
                where=str(worker.name),
                hint="install the same version everywhere",
                code="other-code",
            )
        self._stack, self._lock = contextlib.ExitStack(), threading.Lock()
        self._context: RunContext | None = None
        self.retrier = Retrier(self._make, self.experiment.retries, time.sleep)

    def teardown(self, worker: Any) -> None:
        """Close the context."""
        self._stack.close()

    def _make(self, job: Job, worker: int) -> Trial:
        with self._lock:
            self._context = self._context or self._open()
        return Trial(self._context, self.experiment, job.arm, job.task, job.key, worker)

    def _open(self) -> RunContext:
        name = self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="reasoningbank-", ignore_cleanup_errors=True)
        )
        root = Path(name) / self._key
        with zipfile.ZipFile(io.BytesIO(self._files)) as files:
            files.extractall(root)
        pack = load_pack(root)
        pack = pack.with_set(self._examples) if self._examples else pack
        pack = replace(pack, prefixes=self._prefixes)
        golds = GoldStore(Path(name) / "gold", "this run's")
        spare = int(any(arm.agent == "rlm" for arm in self.experiment.arms))
        opened = context_at(
            self._config, pack, golds, models=self._models, spare_sandboxes=spare, **self._hidden
        )
        return self._stack.enter_context(opened)


def _version() -> tuple[str, str]:
    """Return the version of the package and that of the texts that agents read."""
    code = code_version()
    return code["version"], code["prompts"]


def _trial(plugin: str, job: Job) -> dict[str, Any]:
    """Run a trial on a worker and return its record as data."""
    worker = distributed.get_worker()
    # Workers of a local cluster are numbered; a local model keeps a slot for each.
    number = worker.name if isinstance(worker.name, int) else zlib.crc32(str(worker.name).encode())
    data: dict[str, Any] = worker.plugins[plugin].retrier.run(job, number).to_json()
    return data


@contextlib.contextmanager
def _client(executor: Executor, on_notice: Callable[[str], None]) -> Iterator[Any]:
    address = executor.scheduler or None
    settings: dict[str, Any] = {"n_workers": executor.workers, "threads_per_worker": 1}
    # Not the usual port, which may belong to another cluster.
    settings |= {"dashboard_address": "127.0.0.1:0", "preload": [_IGNORE_INTERRUPTS]}
    # A worker that loses a closing scheduler logs an error.
    settings["silence_logs"] = logging.CRITICAL
    if address:
        on_notice(f"waiting for the Dask scheduler at {address}")
        settings = {}
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(
                distributed.Client(address, timeout=CONNECT_S, set_as_default=False, **settings)
            )
            client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError) as error:
            raise SetupError(
                f"no Dask cluster with a worker answers ({error})",
                where=executor.scheduler or "executor",
                hint="start `dask scheduler` and `dask worker`, or leave the scheduler out",
                code="no-cluster",
            ) from error
        yield client


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep Dask's log of a cluster's end off the terminal: it is reported in one line."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check_reach(
    executor: Executor, config: EndpointConfig, models: Mapping[str, ModelHandle]
) -> None:
    """Check that workers on other machines can reach endpoint and models."""
    address = executor.scheduler
    url = address if "://" in address else f"tcp://{address}"
    if not address or is_loopback(url) or urlsplit(url).scheme == "inproc":
        return
    bases = [config.address, *(model.api_base or "" for model in models.values())]
    local = [base for base in bases if base and is_loopback(base)]
    if local:
        raise UsageError(
            f"workers on other machines cannot reach {local[0]}",
            where=f"executor.scheduler = {address!r}",
            hint="give the experiment an endpoint and a model with public addresses",
            code="unreachable-from-workers",
            address=local[0],
        )


def _divided(config: EndpointConfig, workers: int) -> EndpointConfig:
    """Return the endpoint with its rate limit divided among the workers."""
    if is_loopback(config.address):
        return config
    return replace(
        config,
        federated=tuple(_divided(other, workers) for other in config.federated),
        min_interval_s=config.min_interval_s * workers,
        max_connections=max(1, config.max_connections // workers),
    )


def packed(pack: Pack) -> bytes:
    """Return a pack as a zip file from which a worker loads it."""
    voids = [pack.void, *(other.void for other in pack.federated)]
    # Agents are shown examples of the pack's own corpus, even if its test set is asked.
    own = load_pack(pack.root).examples
    parts = [pack.root / "pack.toml", own, pack.test, pack.schema, pack.hints, *voids]
    if pack.documents is not None:
        parts += [*pack.data, pack.documents.initial]
    files = {
        file
        for part in parts
        if part is not None
        for file in (part.rglob("*") if part.is_dir() else [part])
        if file.is_file()
    }
    outside = [file for file in sorted(files) if not file.is_relative_to(pack.root)]
    if outside:
        what = f"{outside[0]} lies outside the pack, so workers would not get it"
        hint = "move it into the pack's folder, or run in threads"
        raise UsageError(what, where=pack.name, hint=hint, code="file-outside-pack")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            archive.write(file, file.relative_to(pack.root))
    return buffer.getvalue()
