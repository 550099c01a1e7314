"""Run trials on a Dask cluster; the driver alone writes records.

Streams learn in the driver too: it alone has state, and a killed worker costs trials in flight.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import distributed

from reasoningbank.agents import Attempt
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.context import Given
from reasoningbank.experiment.plan import Job, Plan
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.settings import Executor
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.experiment.workers import (
    Needs,
    WorkerSetup,
    address_of,
    lack_error,
    lacking,
    run_on_worker,
    share_limits,
)
from reasoningbank.findings import Finding
from reasoningbank.imports import one_line
from reasoningbank.lm import ModelHandle
from reasoningbank.sparql import EndpointConfig, is_loopback
from reasoningbank.trajectory import Trajectory, Usage

#: Ctrl-C reaches every process of the terminal; only the driver reacts.
_IGNORE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
#: Seconds to wait for a scheduler and its first worker.
CONNECT_S = 20


@contextlib.contextmanager
def open_cluster(
    experiment: Experiment,
    config: EndpointConfig,
    plan: Plan,
    models: Mapping[str, ModelHandle],
    run: Path,
    on_notice: Callable[[str], None],
) -> Iterator[Cluster]:
    """Open a cluster whose workers have all that the trials of a run need."""
    _check_reach(experiment.executor, config, models)
    # A run that goes on after a kill replaces what workers keep of it.
    name = f"reasoningbank {socket.gethostname()}:{run.resolve()}"
    with _quiet_logs(), _client(experiment.executor, on_notice) as client:
        slots = client.nthreads()
        on_notice(f"{len(slots)} Dask workers, {sum(slots.values())} trials at one time")
        setup = WorkerSetup(experiment, config, plan, models)
        _check_workers(client, setup.needs)
        share = partial(share_limits, config, models)
        try:
            client.register_plugin(setup, name=name)
            # Where there is memory, the driver queries the endpoint too.
            yield Cluster(client, name, RunStorage(run), share, experiment.uses_memory)
        finally:
            share(1)
            # If the cluster is gone, there is nothing to undo.
            with contextlib.suppress(Exception):
                if client.status == "running":
                    client.unregister_worker_plugin(name)


@dataclass
class Cluster:
    """Runs trials on the workers of a Dask cluster. Thread-safe.

    `share` tells this process among how many the rate limits are divided: the workers, and the
    driver if it sends requests too. Each worker learns it with its trials.
    """

    client: Any
    name: str
    storage: RunStorage
    share: Callable[[int], None]
    driver: bool

    def __post_init__(self) -> None:
        self._slots = self._sharers = 1
        self._banks: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()

    def slots(self) -> int:
        """Return how many trials may be handed out: one waits, so that no worker does."""
        # A client without its scheduler would wait for it.
        with contextlib.suppress(OSError, CancelledError):
            if self.client.status != "running":
                return self._slots
            workers = self.client.nthreads()
            self._slots, self._sharers = sum(workers.values()) + 1, len(workers) + self.driver
            self.share(self._sharers)
        return self._slots

    def run(self, job: Job, given: Given) -> TrialRecord:
        """Run a trial on a worker and return its record."""
        try:
            bank = self._bank(given.bank) if given.bank else None
            parts = self.name, job, given, bank, self._sharers
            future = self.client.submit(run_on_worker, *parts, pure=False)
            return TrialRecord.from_json(future.result())
        except distributed.KilledWorker:
            died = Finding("worker-died", "every worker that ran the trial died")
            attempt = Attempt(None, "", "error", Usage(), Trajectory(), findings=(died,))
            started = datetime.now(UTC).isoformat(timespec="milliseconds")
            facts: dict[str, Any] = {"model": {}, "step": job.step, "memory": given.bank}
            return TrialRecord.of(job.key, job.task, attempt, None, started=started, **facts)
        except (OSError, CancelledError) as error:
            what = f"the Dask cluster is gone ({type(error).__name__})"
            hint = "start it again and run the same command: what is on disk is done"
            raise SetupError(what, where="executor", hint=hint, code="no-cluster") from error

    def _bank(self, name: str) -> Any:
        """Return the future of a snapshot, which Dask brings to each worker that needs it once.

        It is the result of a task, so that it is there again if the worker that holds it dies.
        """
        with self._lock:
            future = self._banks.get(name)
            if future is None:
                raw = gzip.compress(self.storage.read(f"memory/{name}.jsonl"), mtime=0)
                future = self.client.submit(bytes, raw, key=f"reasoningbank-bank-{name}")
                self._banks[name] = future
            return future


def _check_workers(client: Any, needs: Needs) -> None:
    """Ask all workers what they lack, and say it in one line."""
    lacks: dict[str, list[str]] = {}
    for worker, found in client.run(lacking, needs, on_error="return").items():
        if isinstance(found, OSError):
            # It ended while it was asked; one that joins in its place is asked by its setup.
            continue
        if isinstance(found, BaseException):
            found = [f"another reasoningbank or none ({one_line(found)})"]
        for what in found:
            lacks.setdefault(what, []).append(worker)
    if lacks:
        said = (f"{', '.join(workers)}: {what}" for what, workers in lacks.items())
        raise lack_error("; ".join(said), lacks)


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
    settings |= {"timeout": CONNECT_S, "set_as_default": False}
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(distributed.Client(address, **settings))
            client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError) as error:
            what, where = f"no Dask cluster with a worker answers ({error})", address or "executor"
            hint = "start `dask scheduler` and `dask worker`, or leave the scheduler out"
            raise SetupError(what, where=where, hint=hint, code="no-cluster") from error
        yield client


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep Dask's log of a cluster's end off the terminal: it is reported in one line."""
    with contextlib.ExitStack() as stack:
        # Dask gives its client's log a level of its own.
        for name in ("distributed", "distributed.client", "tornado", "asyncio"):
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL + 1)
        yield


def _check_reach(
    executor: Executor, config: EndpointConfig, models: Mapping[str, ModelHandle]
) -> None:
    """Check that workers on other machines can reach endpoint and models."""
    address = executor.scheduler
    url = address if "://" in address else f"tcp://{address}"
    if not address or is_loopback(url) or urlsplit(url).scheme == "inproc":
        return
    for base in filter(None, (config.address, *map(address_of, models.values()))):
        if is_loopback(base):
            what = f"workers on other machines cannot reach {base}"
            where = f"executor.scheduler = {address!r}"
            hint = "give the experiment an endpoint and a model with public addresses"
            code = "unreachable-from-workers"
            raise UsageError(what, where=where, hint=hint, code=code, address=base)
