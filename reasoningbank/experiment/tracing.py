"""Trace a run in MLflow while it goes on, without delaying or ending it.

`mlflow` is imported only when a run is traced, and no global setting is changed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator

from reasoningbank.errors import UsageError, need_package
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord

logger = logging.getLogger(__name__)

#: Where MLflow itself keeps runs if nothing else is said.
DEFAULT_URI = "sqlite:///mlflow.db"
#: Seconds to wait for what is not logged yet when the run has ended.
PATIENCE_S = 60.0

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SCHEMES = (*_DATABASES, "http", "https", "databricks")


@contextlib.contextmanager
def mlflow_tracer(
    uri: str | None, folder: RunFolder, *, on_failure: Callable[[str], None] = logger.warning
) -> Iterator[Callable[[TrialRecord], None]]:
    """Trace a run in MLflow for the length of a block."""
    address = _checked(uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI)
    # Keys, not records: a slow server must not fill the memory. The status ends the thread.
    waiting: queue.SimpleQueue[TrialKey | str] = queue.SimpleQueue()
    failed = threading.Event()

    def work() -> None:
        try:
            _trace(address, folder, waiting)
        except Exception as error:
            # MLflow, its database driver and the network may raise anything: the run goes on.
            logger.debug("tracing failed", exc_info=True)
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            give_up(f": {reason}; the run goes on untraced, and")

    def give_up(said: str) -> None:
        if not failed.is_set():
            on_failure(f"MLflow at {_shown(address)}{said} the same command traces what is missing")
        failed.set()

    def observe(record: TrialRecord) -> None:
        if not failed.is_set():
            waiting.put(record.key)

    thread = threading.Thread(target=work, name="mlflow", daemon=True)
    thread.start()
    status = "FAILED"
    try:
        yield observe
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        waiting.put(status)
        thread.join(PATIENCE_S)
        if thread.is_alive():
            give_up(" is slow, and not every trial is traced;")


def _trace(uri: str, folder: RunFolder, waiting: queue.SimpleQueue[TrialKey | str]) -> None:
    """Log what is on disk, and then each trial that is waiting, until a status comes."""
    # A new run writes its manifest before its first trial.
    heard = None if folder.manifest is not None else waiting.get()
    manifest = folder.manifest
    if manifest is None:
        return
    # The package takes seconds to import, and a new database as long to create.
    from reasoningbank.experiment.mlflow_store import TraceStore

    store = TraceStore(uri, manifest, folder.path.resolve().name)
    for record in folder.trials(skip_damaged=True):
        store.log(record)
    while not isinstance(heard, str):
        if heard is not None:
            store.log(folder.read(heard))
        heard = waiting.get()
    store.finish(heard)


def _checked(uri: str) -> str:
    need_package("mlflow", "mlflow")
    scheme = uri.partition(":")[0].partition("+")[0]
    if scheme not in _SCHEMES:
        hint = f"give {DEFAULT_URI}, another database, or a server such as http://127.0.0.1:5000"
        raise UsageError(f"{uri!r} cannot store traces", where="--mlflow", hint=hint)
    if scheme in _DATABASES:
        need_package("sqlalchemy", "mlflow")
    return uri


def _shown(uri: str) -> str:
    """Return an address without its password."""
    head, at, tail = uri.rpartition("@")
    scheme, slashes, _ = head.partition("://")
    return f"{scheme}{slashes}…@{tail}" if at else uri
