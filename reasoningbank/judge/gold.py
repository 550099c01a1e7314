"""Gold results: computed once for each task and store, then frozen.

A gold computed again for every attempt is slow, and could change between two attempts that are
compared. So each is kept in a file of its own, named by task, query and content of the store.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from reasoningbank.cache import write_bytes_atomically
from reasoningbank.corpus import Task
from reasoningbank.errors import QueryError, QueryTimeoutError
from reasoningbank.findings import Finding
from reasoningbank.judge.answer import Answer
from reasoningbank.judge.compare import Window
from reasoningbank.sparql.tokens import Token, tokenize

logger = logging.getLogger(__name__)

# Files of another layout are computed again.
_LAYOUT = 3
_METADATA = b"reasoningbank.gold"
#: A condition of ORDER BY that is a variable: alone, in parentheses, or in ASC( ) or DESC( ).
_SORT_KEY = re.compile(r"(?:[?$](\w+)|(?:(?:ASC|DESC) )?\( [?$](\w+) \))(?: |$)", re.IGNORECASE)
#: An expression of SELECT and its variable.
_ALIAS = re.compile(r"\( ((?:(?! AS ).)+) AS [?$](\w+) \)", re.IGNORECASE)


@dataclass(frozen=True)
class Gold:
    """What the gold query of a task returns, without OFFSET and LIMIT if `window` has them.

    `note` says why its LIMIT could not be taken away, `defect` why the task cannot be judged;
    `timed_out` whether it, with or without its LIMIT, took too long.
    """

    answer: Answer
    window: Window = field(default_factory=Window)
    note: Finding | None = None
    defect: Finding | None = None
    timed_out: bool = False


class GoldStore:
    """Keeps gold results in a folder, one file each; safe to use from several threads.

    Results for one content of the endpoint's store, by its hash, are never used for another.
    """

    def __init__(self, folder: Path, store_hash: str) -> None:
        self._folder = folder
        self._store_hash = store_hash
        self._defects: dict[Path, Gold] = {}
        self._locks: dict[Path, threading.Lock] = {}

    def gold(self, task: Task, run: Callable[[str], Answer]) -> Gold:
        """Return the gold of a task, computed by `run` the first time.

        A gold that fails or returns nothing has a `defect`. A failure is remembered in memory only:
        the next store tries it again. A gold that times out is tried twice, and again by the next
        trial.
        """
        path = self.path(task)
        with self._locks.setdefault(path, threading.Lock()):
            known = self._defects.get(path) or _load(path)
            if known is None:
                known = _compute(task.expected_sparql, run)
                if known.timed_out:
                    # The machine may have been slow, not the gold.
                    known = _compute(task.expected_sparql, run)
                if known.defect is None and not known.timed_out:
                    _save(known, path)
                elif not known.timed_out:
                    self._defects[path] = known
        empty = known.answer.is_empty or known.window.size(known.answer.n_rows) == 0
        if empty and known.defect is None:
            return replace(known, defect=Finding("gold-empty", "the gold returns nothing"))
        return known

    def path(self, task: Task) -> Path:
        """Return the file that keeps the gold of a task."""
        parts = (str(_LAYOUT), self._store_hash, task.id, task.expected_sparql)
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        name = re.sub(r"[^\w\-]+", "_", task.id)[:80]
        return self._folder / f"{name}.{digest}.parquet"


def _compute(query: str, run: Callable[[str], Answer]) -> Gold:
    nothing = Answer.of_rows([], [])
    if not query.strip():
        return Gold(nothing, defect=Finding("gold-missing", "the task has no gold query"))
    window, unsliced = read_modifiers(query)
    note = None
    timed_out = False
    try:
        if window.is_slice:
            try:
                whole = _whole(query, unsliced, window, run)
            except QueryError as error:
                what = f"without its LIMIT the gold cannot be computed ({error})"
                note = Finding("gold-limit-kept", what, fields={"error": error.code})
                timed_out = isinstance(error, QueryTimeoutError)
            else:
                if whole is not None:
                    return whole
                what = "the gold is sorted by what is not in its columns, and then cut"
                note = Finding("gold-sort-hidden", what)
        answer = run(query)
    except QueryError as error:
        timed_out = isinstance(error, QueryTimeoutError)
        defect = Finding(
            "gold-timed-out" if timed_out else "gold-error",
            f"the gold fails: {error}",
            fields={"error": error.code},
        )
        return Gold(nothing, defect=defect, timed_out=timed_out)
    if answer.truncated:
        what = "the gold returns more than the caps of the judge allow"
        return Gold(nothing, defect=Finding("gold-truncated", what))
    return Gold(answer, Window(keys=window.keys), note, timed_out=timed_out)


def _whole(query: str, unsliced: str, window: Window, run: Callable[[str], Answer]) -> Gold | None:
    """Compute the gold without its LIMIT; None if the LIMIT cannot be applied to the result."""
    if window.keys is None:
        return None
    answer = run(unsliced)
    if answer.form == "boolean":
        return Gold(answer)
    if answer.truncated:
        raise QueryError("more than the caps of the judge allow", code="result-truncated")
    if answer.form == "graph":
        # LIMIT counts solutions here, not triples, and triples do not show what solutions were
        # sorted by. How many triples the solutions make is found by asking.
        return None if window.keys else Gold(answer, Window(0, run(query).n_rows, keys=()))
    if not set(window.keys) <= set(answer.variables):
        return None
    return Gold(answer, window)


def read_modifiers(query: str) -> tuple[Window, str]:
    """Return the outermost OFFSET, LIMIT and sort keys, and the query without the slice."""
    depth = 0
    outer = []  # The tokens outside all braces; parentheses stay.
    for token in tokenize(query):
        # No other token has this text: a string carries its quotes.
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text != "}":
            outer.append(token)
    start, length = 0, None
    unsliced = query
    for word, number in reversed(list(pairwise(outer))):
        if word.is_word("LIMIT", "OFFSET") and number.kind == "number":
            unsliced = unsliced[: word.start] + unsliced[number.end :]
            if word.is_word("LIMIT"):
                length = int(number.text)
            else:
                start = int(number.text)
    return Window(start, length, _sort_keys(outer)), unsliced


def _sort_keys(outer: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the variables of ORDER BY, or of their expressions; None if one has no variable."""
    pairs = enumerate(pairwise(outer), 2)
    begin = next((at for at, (a, b) in pairs if a.is_word("ORDER") and b.is_word("BY")), len(outer))
    conditions = takewhile(lambda t: not t.is_word("LIMIT", "OFFSET", "VALUES"), outer[begin:])
    text = f" {' '.join(token.text for token in conditions)} "
    for found in _ALIAS.finditer(" ".join(token.text for token in outer[:begin])):
        text = text.replace(f" {found[1]} ", f" ?{found[2]} ")
    text = text.strip()
    if _SORT_KEY.sub("", text):
        return None
    return tuple(found[1] or found[2] for found in _SORT_KEY.finditer(text))


def _load(path: Path) -> Gold | None:
    """Read a gold; None if there is no readable one."""
    try:
        table = pq.read_table(path)
        facts: dict[str, Any] = json.loads(table.schema.metadata[_METADATA])
        table = table.replace_schema_metadata(None)
        if facts.pop("hash") != _hash(table, facts, path):
            logger.warning("%s: changed since it was written; computing the gold again", path)
            return None
        window = TypeAdapter(Window).validate_python(facts["window"])
        answer = Answer(facts["form"], table, facts["n_rows"], facts["value"])
        note = Finding.from_json(facts["note"]) if facts["note"] else None
        return Gold(answer, window, note)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        logger.warning("%s: cannot be read (%s); computing the gold again", path, said[:200])
        return None


def _hash(table: pa.Table, facts: dict[str, Any], path: Path) -> str:
    """Return a hash of a gold's rows, facts and file name."""
    digest = hashlib.sha256(f"{path.name}\n{json.dumps(facts, sort_keys=True)}\n".encode())
    for column in table.columns:
        lengths = pc.fill_null(pc.binary_length(column), -1).cast(pa.int64())
        digest.update(lengths.to_numpy())
        for chunk in pc.fill_null(column, "").chunks:
            digest.update("".join(chunk.to_pylist()).encode())
    return digest.hexdigest()


def _save(gold: Gold, path: Path) -> None:
    facts = {
        "form": gold.answer.form,
        "n_rows": gold.answer.n_rows,
        "value": gold.answer.value,
        "window": asdict(gold.window),
        "note": "" if gold.note is None else gold.note.to_json(),
    }
    table = gold.answer.table.replace_schema_metadata(None)
    facts["hash"] = _hash(table, facts, path)
    table = table.replace_schema_metadata({_METADATA: json.dumps(facts)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    hint = "check space and permissions"
    write_bytes_atomically(path, buffer.getvalue(), durable=False, hint=hint)
