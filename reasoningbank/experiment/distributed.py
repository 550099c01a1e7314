"""The same trials on a Dask cluster; the driver alone writes records.

Workers need the package, the address of the endpoint and that of the model: the description of
the pack travels with the run. Each worker process opens its world once, and freezes gold results
in a temporary folder of its own; a verdict depends on the answers alone, so that on data that do
not change it is the same wherever it is given.
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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reasoningbank.agents import Attempt
from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.experiment.config import Executor, Experiment
from reasoningbank.experiment.executors import Finished, Job, Started
from reasoningbank.experiment.interrupts import Stop
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.retrying import Retrier
from reasoningbank.experiment.trial import Trial
from reasoningbank.experiment.world import World, world_at
from reasoningbank.findings import Finding
from reasoningbank.judge import GoldStore
from reasoningbank.lm import ModelHandle
from reasoningbank.sparql import EndpointConfig, is_loopback
from reasoningbank.trajectory import Trajectory, Usage

__all__ = ["on_dask", "packed"]

#: Ctrl-C goes to every process of the terminal; the driver decides what it means.
_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
#: Seconds to wait for a scheduler, and for its first worker.
CONNECT_S = 20


def on_dask(
    jobs: Sequence[Job],
    experiment: Experiment,
    config: EndpointConfig,
    pack: Pack,
    models: Mapping[str, ModelHandle],
    hidden: frozenset[str],
    stop: Stop,
    on_notice: Callable[[str], None],
) -> Generator[Started | Finished]:
    """Run jobs on a cluster and tell what happens, in the order in which it does.

    A trial whose worker dies is run again elsewhere; one that keeps killing its workers becomes a
    record with status `error`.

    Raises:
        SetupError: If Dask is not installed, or no scheduler or worker answers.
        UsageError: If workers of another machine would need what this one serves on loopback.
    """
    executor = experiment.executor
    _check_reach(executor, config, models)
    distributed = _distributed()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet_logs())
        client = stack.enter_context(_client(distributed, executor, on_notice))
        threads = sum(client.nthreads().values())
        on_notice(f"{len(client.nthreads())} Dask workers, {threads} trials at one time")
        site = _Site(
            experiment,
            _shared(config, len(client.nthreads())),
            pack.key,
            packed(pack),
            pack.examples == pack.test,
            dict(pack.prefixes),
            models,
            hidden,
        )
        plugin = _worker_plugin(distributed, site)
        client.register_plugin(plugin, name=plugin.name)
        stack.callback(_quietly, client.unregister_worker_plugin, plugin.name)
        yield from _results(distributed, client, plugin.name, jobs, stop)


def _results(
    distributed: Any, client: Any, plugin: str, jobs: Sequence[Job], stop: Stop
) -> Generator[Started | Finished]:
    from distributed.comm import CommClosedError

    waiting = iter(jobs)
    in_flight: dict[Any, Job] = {}
    done = distributed.as_completed(loop=client.loop, raise_errors=False)
    try:
        while True:
            # Workers may come and go while a run goes on.
            free = max(1, sum(client.nthreads().values())) - len(in_flight)
            while free > 0 and not stop.event.is_set() and (job := next(waiting, None)):
                future = client.submit(_trial, plugin, job, pure=False)
                in_flight[future] = job
                done.add(future)
                free -= 1
                yield Started(job)
            if not in_flight:
                return
            try:
                future = next(done)
            except (OSError, CancelledError) as error:
                raise _gone(error) from error
            job = in_flight.pop(future)
            try:
                record = _record(distributed, future, job)
            except (CommClosedError, CancelledError) as error:
                raise _gone(error) from error
            yield Finished(job, record)
    finally:
        for future in in_flight:
            future.cancel()


def _gone(error: BaseException) -> SetupError:
    return SetupError(
        f"the Dask cluster is gone ({type(error).__name__})",
        where="executor",
        hint="start it again, then run the same command: what is on disk is done",
    )


def _record(distributed: Any, future: Any, job: Job) -> TrialRecord:
    try:
        return TrialRecord.from_json(future.result())
    except distributed.KilledWorker:
        died = Finding("worker-died", "every worker that ran the trial died")
        attempt = Attempt(None, "", "error", Usage(), Trajectory(), findings=(died,))
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        return TrialRecord.of(job.key, job.task, attempt, None, started=started, model={})


@dataclass
class _Site:
    """What a worker is given, and the world that it makes of it."""

    experiment: Experiment
    config: EndpointConfig
    pack_key: str
    pack_files: bytes
    test_set: bool
    prefixes: Mapping[str, str]
    models: Mapping[str, ModelHandle]
    hidden: frozenset[str]
    retrier: Any = field(default=None, repr=False)
    _opened: World | None = field(default=None, repr=False)
    _stack: Any = field(default=None, repr=False)
    _lock: Any = field(default=None, repr=False)

    def ready(self) -> None:
        """Prepare what cannot travel."""
        self._stack, self._lock = contextlib.ExitStack(), threading.Lock()
        self.retrier = Retrier(self.experiment.retries, _pause)

    def world(self) -> World:
        """Return the worker's world, opened by the first trial that needs it."""
        with self._lock:
            if self._opened is None:
                name = self._stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="reasoningbank-", ignore_cleanup_errors=True)
                )
                root = Path(name) / self.pack_key
                with zipfile.ZipFile(io.BytesIO(self.pack_files)) as files:
                    files.extractall(root)
                pack = load_pack(root)
                pack = pack.with_test_set() if self.test_set else pack
                pack = replace(pack, prefixes=self.prefixes)
                sandboxed = any(arm.agent == "rlm" for arm in self.experiment.arms)
                self._opened = self._stack.enter_context(
                    world_at(
                        self.config,
                        pack,
                        GoldStore(Path(name) / "gold", "this run's"),
                        models=self.models,
                        spare_sandboxes=int(sandboxed),
                        hidden=self.hidden,
                    )
                )
            return self._opened

    def close(self) -> None:
        """Let the world go."""
        self._stack.close()


def _trial(plugin: str, job: Job) -> dict[str, Any]:
    """Run a trial on a worker and return its record as data."""
    worker = _distributed().get_worker()
    site: _Site = worker.plugins[plugin].site
    # Those of a local cluster are numbered; a local model keeps a slot for each.
    number = worker.name if isinstance(worker.name, int) else zlib.crc32(str(worker.name).encode())
    record = site.retrier.settle(
        Trial(site.world(), site.experiment, job.arm, job.task, job.key, number).run
    )
    data: dict[str, Any] = record.to_json()
    return data


def _pause(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _worker_plugin(distributed: Any, site: _Site) -> Any:
    class Site(distributed.WorkerPlugin):  # type: ignore[misc]
        """Keeps a run's world on a worker."""

        name = f"reasoningbank-{time.time_ns()}"

        def __init__(self) -> None:
            self.site = site

        def setup(self, worker: Any) -> None:
            self.site.ready()

        def teardown(self, worker: Any) -> None:
            self.site.close()

    return Site()


@contextlib.contextmanager
def _client(
    distributed: Any, executor: Executor, on_notice: Callable[[str], None]
) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        try:
            address: Any = executor.scheduler
            if address:
                on_notice(f"waiting for the Dask scheduler at {address}")
            else:
                address = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=executor.workers,
                        threads_per_worker=1,
                        # Not its usual port: that belongs to a cluster that a person watches.
                        dashboard_address="127.0.0.1:0",
                        # A worker that loses a closing scheduler calls that an error.
                        silence_logs=logging.CRITICAL,
                        preload=[_DEAF],
                    )
                )
            client = stack.enter_context(
                distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
            )
            client.wait_for_workers(1, timeout=CONNECT_S)
        except (OSError, TimeoutError) as error:
            raise SetupError(
                f"no Dask cluster with a worker answers ({error})",
                where=executor.scheduler or "executor",
                hint="start `dask scheduler` and `dask worker`, or leave the scheduler out",
            ) from error
        yield client


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep what Dask logs of a cluster's end from the terminal: it is told in one line."""
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
    address = executor.scheduler
    url = address if "://" in address else f"tcp://{address}"
    if not address or is_loopback(url) or urlsplit(url).scheme == "inproc":
        return
    here = [config.address] if is_loopback(config.address) else []
    bases = [model.api_base for model in models.values() if model.api_base]
    here += [base for base in bases if is_loopback(base)]
    if here:
        raise UsageError(
            f"workers of another machine cannot reach {here[0]}",
            where=f"executor.scheduler = {address!r}",
            hint="give the experiment an endpoint and a model that have an address of their own",
        )


def _shared(config: EndpointConfig, workers: int) -> EndpointConfig:
    """Return the endpoint with its politeness divided among the workers, who cannot see another."""
    if is_loopback(config.address):
        return config
    share = {
        "min_interval_s": config.min_interval_s * workers,
        "max_connections": max(1, config.max_connections // workers),
    }
    federated = tuple(_shared(other, workers) for other in config.federated)
    return replace(config, federated=federated, **share)  # type: ignore[arg-type]


def packed(pack: Pack) -> bytes:
    """Return a pack as a zip file: what a worker loads it from.

    Data are left at the endpoint, unless documents are to be written, which takes a copy of them.
    """
    voids = [pack.void, *(other.void for other in pack.federated)]
    # Agents are shown examples of the pack's own corpus, whichever set is asked.
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
    buffer = io.BytesIO()
    outside = [file for file in sorted(files) if not file.is_relative_to(pack.root)]
    if outside:
        hint = "move it into the pack's folder, or run in threads"
        what = f"{outside[0]} lies outside of the pack, so that no worker gets it"
        raise UsageError(what, where=pack.name, hint=hint)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            archive.write(file, file.relative_to(pack.root))
    return buffer.getvalue()


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise SetupError(
            "Dask is not installed",
            where='executor = "dask"',
            hint='pip install "reasoningbank[scale]"',
        ) from None
    return distributed


def _quietly(call: Callable[..., Any], *arguments: Any) -> None:
    # The cluster may be gone already; there is nothing left to undo then.
    with contextlib.suppress(Exception):
        call(*arguments)
