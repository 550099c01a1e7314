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

_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_SCHEMES = (*_DATABASES, "http", "https", "databricks")


@contextlib.contextmanager
def mlflow_tracer(
    uri: str | None,
    folder: RunFolder,
    *,
    on_failure: Callable[[str], None] = logger.warning,
    patience_s: float = 60.0,
) -> Iterator[Callable[[TrialRecord], None]]:
    """Trace a run in MLflow for the length of a block."""
    address = _checked(uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI)
    tracer = _Tracer(address, folder, on_failure)
    tracer.start()
    status = "FAILED"
    try:
        yield tracer.observe
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        tracer.stop(status, patience_s)


class _Tracer:
    def __init__(self, uri: str, folder: RunFolder, on_failure: Callable[[str], None]) -> None:
        self._uri = uri
        self._folder = folder
        self._on_failure = on_failure
        # Keys, not records: a slow server must not fill the memory.
        self._waiting: queue.SimpleQueue[TrialKey | str] = queue.SimpleQueue()
        self._failed = False
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def observe(self, record: TrialRecord) -> None:
        """Note that a record is on disk; returns at once."""
        if not self._failed:
            self._waiting.put(record.key)

    def stop(self, status: str, patience_s: float) -> None:
        self._waiting.put(status)
        self._thread.join(patience_s)
        if self._thread.is_alive():
            self._failed = True
            self._on_failure(
                f"MLflow at {_shown(self._uri)} is slow, and not every trial is traced; "
                "the same command traces what is missing"
            )

    def _work(self) -> None:
        try:
            self._trace()
        except Exception as error:
            # MLflow, its database driver and the network may raise anything: the run goes on.
            logger.debug("tracing failed", exc_info=True)
            if not self._failed:
                reason = " ".join(str(error).split())[:300] or type(error).__name__
                self._on_failure(
                    f"MLflow at {_shown(self._uri)}: {reason}; the run goes on untraced, and the "
                    "same command traces what is missing"
                )
            self._failed = True

    def _trace(self) -> None:
        heard: TrialKey | str | None = None
        if self._folder.manifest is None:
            # A new run writes its manifest before its first trial.
            heard = self._waiting.get()
        manifest = self._folder.manifest
        if manifest is None:
            return
        # The package takes seconds to import, and a new database as long to create.
        from reasoningbank.experiment.mlflow_store import TraceStore

        store = TraceStore(self._uri, manifest, self._folder.path.resolve().name)
        for record in self._folder.trials(skip_damaged=True):
            store.log(record)
        while not isinstance(heard, str):
            if heard is not None:
                store.log(self._folder.read(heard))
            heard = self._waiting.get()
        store.finish(heard)


def _checked(uri: str) -> str:
    need_package("mlflow", "mlflow")
    scheme = uri.partition(":")[0].partition("+")[0]
    if scheme not in _SCHEMES:
        raise UsageError(
            f"{uri!r} cannot store traces",
            where="--mlflow",
            hint=f"give {DEFAULT_URI}, another database, or a server such as http://127.0.0.1:5000",
        )
    if scheme in _DATABASES:
        need_package("sqlalchemy", "mlflow")
    return uri


def _shown(uri: str) -> str:
    """Return an address without its password."""
    head, at, tail = uri.rpartition("@")
    scheme, slashes, _ = head.partition("://")
    return f"{scheme}{slashes}…@{tail}" if at else uri
