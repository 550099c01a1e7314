"""Run trials on a Dask cluster; the driver alone writes records.

Streams learn in the driver too: it alone has state, and a killed worker costs trials in flight. A
worker says what it lacks, opens its context once, and keeps nothing that another one could not
make: the pack and the banks come with the run, and gold results are frozen in a temporary folder.
A verdict depends only on the answers, so on fixed data it is the same on every worker.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import socket
import tempfile
import threading
import time
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import distributed
from distributed.comm import CommClosedError

from reasoningbank.agents import Attempt
from reasoningbank.agents.sandbox.interpreter import deno_executable
from reasoningbank.cache import cache_dir
from reasoningbank.corpus import SETS, Pack, load_pack
from reasoningbank.errors import EndpointError, ReasoningBankError, SetupError, UsageError
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.context import Given, RunContext, context_at
from reasoningbank.experiment.executors import Retrier
from reasoningbank.experiment.manifest import code_version, own_code
from reasoningbank.experiment.plan import Job, Plan, check_parts, sandboxed
from reasoningbank.experiment.recall import MemoryParts
from reasoningbank.experiment.records import TrialRecord, snapshot_name
from reasoningbank.experiment.settings import Executor
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.experiment.trial import Trial
from reasoningbank.findings import Finding
from reasoningbank.http import gate_for
from reasoningbank.imports import one_line
from reasoningbank.judge import GoldStore
from reasoningbank.lm import ModelHandle
from reasoningbank.lm.calls import model_gate
from reasoningbank.lm.names import check_hosted, hosted_at, parse_name
from reasoningbank.memory import MemoryBank, Snapshot
from reasoningbank.retrieval import open_embedder
from reasoningbank.sparql import EndpointConfig, is_loopback
from reasoningbank.trajectory import Trajectory, Usage

#: Ctrl-C reaches every process of the terminal; only the driver reacts.
_IGNORE_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
#: Seconds to wait for a scheduler and its first worker.
CONNECT_S = 20
#: Seconds to wait for an answer from an address.
REACH_S = 10
#: Seconds in which a refused worker ends its registration before it closes.
CLOSE_S = 1.0


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
        _check_workers(client, setup)
        share = partial(share_limits, config, models)
        try:
            _register(client, setup, name)
            # Where there is memory, the driver queries the endpoint too.
            yield Cluster(client, name, RunStorage(run), share, experiment.uses_memory)
        finally:
            share(1)
            # If the cluster is gone, there is nothing to undo.
            with contextlib.suppress(Exception):
                if client.status == "running":
                    client.unregister_worker_plugin(name)


def _register(client: Any, setup: WorkerSetup, name: str) -> None:
    for left in (2, 1, 0):
        try:
            client.register_plugin(setup, name=name)
            break
        except CommClosedError:
            # A worker that dies meanwhile ends the request, and not the cluster.
            if not left or client.status != "running":
                raise


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
    _slots: int = 1
    _sharers: int = 1
    _banks: MutableMapping[str, Any] = field(default_factory=weakref.WeakValueDictionary)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def slots(self) -> int:
        """Return how many trials may be handed out: one waits, so that no worker does."""
        # A client without its scheduler would wait for it.
        with contextlib.suppress(OSError, CancelledError):
            if self.client.status == "running":
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
            said, ended = future.result()
            # Of items that are alike the older one stays: all times are by the driver's clock.
            began = datetime.now(UTC) - (ended - datetime.fromisoformat(said["started"]))
            started = began.isoformat(timespec="milliseconds")
            return TrialRecord.from_json({**said, "started": started})
        except distributed.KilledWorker:
            died = Finding("worker-died", "every worker that ran the trial died")
            attempt = Attempt(None, "", "error", Usage(), Trajectory(), findings=(died,))
            started = datetime.now(UTC).isoformat(timespec="milliseconds")
            facts: dict[str, Any] = {"model": {}, "step": job.step, "memory": given.bank}
            return TrialRecord.of(job.key, job.task, attempt, None, started=started, **facts)
        except (OSError, CancelledError) as error:
            what = f"the Dask cluster is gone ({one_line(error)})"
            hint = "start it again and run the same command: what is on disk is done"
            raise SetupError(what, where="executor", hint=hint, code="no-cluster") from error

    def _bank(self, name: str) -> Any:
        """Return the future of a snapshot, which Dask brings to each worker that needs it once."""
        with self._lock:
            future = self._banks.get(name)
            if future is None:
                # The result of a task is there again if the worker that holds it dies.
                raw = gzip.compress(self.storage.content(snapshot_name(name)), mtime=0)
                future = self.client.submit(bytes, raw, key=f"reasoningbank-bank-{name}")
                self._banks[name] = future
            return future


def _check_workers(client: Any, setup: WorkerSetup) -> None:
    """Ask all workers what they lack, and say it in one line."""
    lacks: dict[str, list[str]] = {}
    for worker, found in client.run(WorkerSetup.lacking, setup, on_error="return").items():
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


# -- on a worker -----------------------------------------------------------------------------------


def address_of(model: ModelHandle) -> str:
    """Return where a model is asked; empty for its provider's own address."""
    return str(model.api_base or model.fingerprint.get("api_base") or "")


def _check_model(model: ModelHandle) -> None:
    """Check that this machine has a hosted model's key, and would ask the driver's server."""
    name, there = model.name, address_of(model)
    check_hosted(name, api_base=model.api_base, api_key_env=model.api_key_env)
    if (here := model.api_base or hosted_at(name) or "") != there:
        own = "its provider's own address"
        what = f"{name} is asked at {here or own} here, and at {there or own} by the driver"
        raise SetupError(what, hint="set the same environment variable", code="other-address")


def _reach(address: str) -> None:
    """Open a connection to an address, unless a proxy does that for us."""
    url = urlsplit(address)
    if url.scheme in getproxies() and not is_loopback(address):
        return
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.hostname or "", port), timeout=REACH_S).close()
    except OSError as error:
        raise EndpointError(f"cannot reach {address} ({error.strerror or error})") from error


def lack_error(said: str, lacks: Mapping[str, Sequence[str]]) -> UsageError:
    """Return the error of workers that lack something."""
    hint = "bring it there, and run the same command again"
    what = f"workers lack what the run needs: {said}"
    return UsageError(what, where="executor", hint=hint, code="workers-lack", lacks=lacks)


class WorkerSetup(distributed.WorkerPlugin):  # type: ignore[misc]
    """What a worker is given, and the context that it opens once."""

    def __init__(
        self,
        experiment: Experiment,
        config: EndpointConfig,
        plan: Plan,
        models: Mapping[str, ModelHandle],
    ) -> None:
        self.experiment, self.version, self.own = experiment, _version(), own_code(experiment)
        self._config, self._models, self._files = config, models, packed(plan.pack)
        self._plan = replace(plan, jobs=())

    def lacking(self) -> list[str]:
        """Return what this machine lacks for the run, one clause each."""
        if (mine := _version()) != self.version:
            versions = [f"{one} (prompts {prompts})" for one, prompts in (mine, self.version)]
            return [f"reasoningbank {versions[0]} instead of {versions[1]}"]
        models, arms = self._models.values(), self.experiment.arms
        addresses = filter(None, [self._config.address, *map(address_of, models)])
        checks: list[Callable[[], object]] = [
            *(partial(check_parts, arm) for arm in arms),
            *(partial(_reach, address) for address in dict.fromkeys(addresses)),
            *(partial(_check_model, one) for one in models if not parse_name(one.name).is_local),
            *([deno_executable] if sandboxed(arms) else []),
            *([open_embedder] if self.experiment.uses_memory else []),
        ]
        found: list[str] = []
        for check in checks:
            try:
                check()
            except (ReasoningBankError, OSError) as error:
                found.append(str(error))
        here = {} if found else own_code(self.experiment).items() - self.own.items()
        found += [f"{one} has other code than the driver's" for one, _ in sorted(here)]
        return list(dict.fromkeys(found))

    def setup(self, worker: Any) -> None:
        """Create what cannot be pickled; refuse a worker that lacks something and joins late."""
        self._stack, self._lock = contextlib.ExitStack(), threading.Lock()
        self._refused = bool(found := self.lacking())
        if found:
            # Dask would keep a worker whose plugin fails.
            worker.loop.call_later(CLOSE_S, worker.close)
            name = str(worker.name)
            raise lack_error(f"{name}: {', '.join(found)}", {what: [name] for what in found})
        # Workers of a local cluster are numbered; a local model keeps a slot for each.
        named = isinstance(worker.name, int)
        self._number = worker.name if named else zlib.crc32(str(worker.name).encode())
        self._context: RunContext | None = None
        self._retrier = Retrier(self.experiment.retries, time.sleep)
        self._banks: dict[str, MemoryBank] = {}

    def teardown(self, worker: Any) -> None:
        """Close the context."""
        self._stack.close()
        share_limits(self._config, self._models, 1)

    def run(self, job: Job, given: Given, raw: bytes | None, sharers: int) -> TrialRecord:
        """Run a trial; `raw` is the snapshot of the bank, `sharers` share the rate limits."""
        share_limits(self._config, self._models, sharers)
        if self._refused:
            raise distributed.Reschedule
        with self._lock:
            context = self._context = self._context or self._open()
        with self._bank(job, given.bank, raw) as bank:
            remember = partial(self._parts.recall, job, given, lambda: bank)
            parts = context, self.experiment, job, self._number
            trial = Trial(*parts, remember=remember, tokens=given.tokens)
            record = self._retrier.run(trial)
        assert record is not None
        return record

    def _bank(self, job: Job, name: str, raw: bytes | None) -> AbstractContextManager[Any]:
        """Open the bank of a snapshot, if any; that of a stream's step is used once."""
        with self._lock:
            if raw is not None and name not in self._banks:
                snapshot = Snapshot.parse(raw, name=f"{name}.jsonl", where=name)
                bank = MemoryBank.from_snapshot(snapshot)
                if job.teaches:
                    return bank
                self._banks[name] = self._stack.enter_context(bank)
            return contextlib.nullcontext(None if raw is None else self._banks[name])

    def _open(self) -> RunContext:
        plan, there = self._plan, self._plan.pack
        folder = tempfile.TemporaryDirectory(prefix="reasoningbank-", ignore_cleanup_errors=True)
        name = self._stack.enter_context(folder)
        root = Path(name) / there.key
        with zipfile.ZipFile(io.BytesIO(self._files)) as files:
            files.extractall(root)
        examples = next((s for s in SETS if getattr(there, s) == there.examples), None)
        pack = load_pack(root).with_set(examples) if examples else load_pack(root)
        opened = context_at(
            _cached_here(self._config),
            replace(pack, prefixes=there.prefixes),
            GoldStore(Path(name) / "gold", "this run's"),
            models=self._models,
            spare_sandboxes=min(1, self.experiment.executor.warm_sandboxes)
            * sandboxed(self.experiment.arms),
            hidden=plan.hidden,
            hidden_by_task=plan.hidden_by_task,
        )
        context = self._stack.enter_context(opened)
        self._parts = MemoryParts(context, plan.corpus, plan.tasks)
        return context


def _cached_here(config: EndpointConfig) -> EndpointConfig:
    """Return the endpoint with its answers kept in this machine's cache, if they are kept."""
    federated = tuple(map(_cached_here, config.federated))
    cache = cache_dir() / config.cache.name if config.cache else None
    return replace(config, cache=cache, federated=federated)


def _version() -> tuple[str, str]:
    """Return the version of the package and that of the texts that agents read."""
    code = code_version()
    return code["version"], code["prompts"]


def share_limits(config: EndpointConfig, models: Mapping[str, ModelHandle], sharers: int) -> None:
    """Keep this process to its part of what the endpoints and the models' providers allow."""
    for name in models:
        model_gate(name).sharers = sharers
    if not is_loopback(config.address):
        gate_for(config.address).sharers = sharers
    for other in config.federated:
        share_limits(other, {}, sharers)


def run_on_worker(
    plugin: str, job: Job, given: Given, raw: bytes | None, sharers: int
) -> tuple[dict[str, Any], datetime]:
    """Run a trial on a worker; return its record as data, and the time by the worker's clock."""
    setup: WorkerSetup = distributed.get_worker().plugins[plugin]
    return setup.run(job, given, raw, sharers).to_json(), datetime.now(UTC)


def packed(pack: Pack) -> bytes:
    """Return a pack as a zip file from which a worker loads it."""
    voids = [pack.void, *(other.void for other in pack.federated)]
    # Agents are shown examples of the pack's own corpus, even if its test set is asked.
    own = load_pack(pack.root).examples
    parts = [pack.root / "pack.toml", own, pack.test, pack.schema, pack.hints, *voids]
    if pack.documents is not None:
        parts += [*pack.data, pack.documents.initial]
    files = {file for part in filter(None, parts) for file in (part, *part.rglob("*"))}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(filter(Path.is_file, files)):
            if not file.is_relative_to(pack.root):
                what = f"{file} lies outside the pack, so workers would not get it"
                hint = "move it into the pack's folder, or run in threads"
                raise UsageError(what, where=pack.name, hint=hint, code="file-outside-pack")
            archive.write(file, file.relative_to(pack.root))
    return buffer.getvalue()
