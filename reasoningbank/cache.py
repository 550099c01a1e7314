"""Where the package keeps what it brings or computes once, and what becomes of damaged files."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["cache_dir", "open_database"]

logger = logging.getLogger(__name__)

#: What SQLite keeps beside a database, and the database itself.
_PARTS = ("", "-wal", "-shm")


def cache_dir() -> Path:
    """Return the folder for what is kept once: ``REASONINGBANK_CACHE``, or the user's cache."""
    chosen = os.environ.get("REASONINGBANK_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("reasoningbank")


def open_database(file: Path, script: str, *, timeout_s: float) -> sqlite3.Connection:
    """Open a SQLite file whose content can be had again, for use by several threads.

    A damaged one, or one that is no database any more, is set aside as ``NAME.damaged`` and
    begun anew, with a warning. Only files named ``*.sqlite`` are: another one may have been named
    by mistake, and is left as it is.

    Args:
        file: The file; its folder is made.
        script: Statements that make the tables, if they are not there.
        timeout_s: Seconds to wait for another process that writes.

    Raises:
        sqlite3.Error: It cannot be opened.
        OSError: Its folder cannot be made.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _opened(file, script, timeout_s)
    except sqlite3.OperationalError:
        # Locked, or not allowed: that says nothing about what it holds.
        raise
    except sqlite3.DatabaseError as error:
        if file.suffix != ".sqlite":
            raise
        aside = file.with_name(f"{file.name}.damaged")
        logger.warning("%s: %s; it is kept as %s and begun anew", file, error, aside.name)
        for part in _PARTS:
            damaged = file.with_name(file.name + part)
            if damaged.exists():
                damaged.replace(aside.with_name(aside.name + part))
        return _opened(file, script, timeout_s)


def _opened(file: Path, script: str, timeout_s: float) -> sqlite3.Connection:
    database = sqlite3.connect(
        file, timeout=timeout_s, isolation_level=None, check_same_thread=False
    )
    try:
        database.executescript(script)
    except sqlite3.Error:
        database.close()
        raise
    return database
