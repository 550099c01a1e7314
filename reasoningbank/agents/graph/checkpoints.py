"""Where a graph's checkpoints are kept: in a SQLite file, or in memory."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reasoningbank.errors import SetupError

__all__ = ["memory_saver", "open_saver"]


@contextlib.contextmanager
def open_saver(file: Path) -> Iterator[Any]:
    """Keep checkpoints in a file, made if it is not there, as long as the block lasts.

    Args:
        file: A SQLite file.

    Yields:
        LangGraph's saver.

    Raises:
        SetupError: The file cannot hold checkpoints, or another process keeps it to itself; also
            of the saver's methods, whenever the graph calls them.
    """
    from langgraph.checkpoint.sqlite import SqliteSaver

    class FileSaver(SqliteSaver):
        """Says in a line where the file fails."""

        @contextlib.contextmanager
        def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
            with _told(file), super().cursor(transaction) as cursor:
                yield cursor

    with contextlib.ExitStack() as stack:
        with _told(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            saver = stack.enter_context(FileSaver.from_conn_string(str(file)))
            saver.setup()
        yield saver


def memory_saver() -> Any:
    """Return what keeps checkpoints as long as this process lasts."""
    from langgraph.checkpoint.memory import InMemorySaver

    return InMemorySaver()


@contextlib.contextmanager
def _told(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise SetupError(
            f"checkpoints cannot be kept there: {error}",
            where=str(file),
            hint="name another file, or end what holds this one",
        ) from error
