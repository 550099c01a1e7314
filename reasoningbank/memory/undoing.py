"""Taking back what was changed in a bank: whole, and once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from reasoningbank.errors import UsageError
from reasoningbank.memory.changes import Change, taken_back
from reasoningbank.memory.store import Store
from reasoningbank.memory.store_rows import Operation, changes_of, item_of

__all__ = ["undo"]

#: The reason of an undo; the number of the operation that it takes back follows. In every bank
#: ever written it is so, which makes the reason the record of what was taken back.
_OF = "undo of change "


def undo(store: Store, database: sqlite3.Connection, number: int | None) -> Change:
    """Take back the last change, or the one of a number, with all that was done with it.

    Args:
        store: The bank's file.
        database: Its connection, in a transaction that writes.
        number: Number of the change; None for the last.

    Returns:
        The first of the changes that take it back.

    Raises:
        UsageError: There is no such change, it was taken back already, or a later one stands in
            its way.
    """
    rows = changes_of(
        database,
        "operation = (SELECT operation FROM changes WHERE number = "
        "coalesce(?, (SELECT max(number) FROM changes)))",
        (number,),
    )
    if not rows:
        none = "nothing was changed yet" if number is None else f"no change {number}"
        raise UsageError(none, hint="the history shows the changes and their numbers")
    first = rows[0].number
    _check_in_effect(database, first)
    operation = Operation(store, database, f"{_OF}{first}")
    for change in reversed(rows):
        now = item_of(database, change.item_id)
        operation.change("undo", now, taken_back(change, now))
    _check_heirs(database, rows)
    done = operation.finish()
    # What others changed since may be what taking it back would do.
    if done is None:
        raise UsageError(f"change {first} is undone already")
    return done


def _check_in_effect(database: sqlite3.Connection, number: int) -> None:
    """Refuse to take back what is taken back: counts would be subtracted twice.

    What an undo took back is in effect again once that undo is undone, and so on. Each of these
    does or takes back one and the same, so that their balance tells whether it is in effect.
    """
    of = _taken_back_by(database)
    root, forward = _root(of, number)
    kin = {one: way for one in of for first, way in [_root(of, one)] if first == root}
    # The first of them did it; a bank of before may have taken it back more than once.
    in_effect = 1 + sum(1 if way else -1 for way in kin.values()) > 0
    if forward != in_effect:
        last = max(one for one, way in kin.items() if way == in_effect)
        raise UsageError(
            f"change {number} cannot be undone again: change {last} took it back",
            hint=f"undo change {last} to have it as it was",
        )


def _taken_back_by(database: sqlite3.Connection) -> dict[int, int]:
    """Return the operation that each undo takes back."""
    rows = database.execute(
        "SELECT number, reason FROM changes WHERE action = 'undo' AND operation = number"
    )
    found = {number: reason.removeprefix(_OF) for number, reason in rows}
    return {number: int(of) for number, of in found.items() if of.isdecimal() and int(of) < number}


def _root(of: dict[int, int], number: int) -> tuple[int, bool]:
    """Return what an operation does or takes back in the end, and whether it does it."""
    forward = True
    while number in of:
        number, forward = of[number], not forward
    return number, forward


def _check_heirs(database: sqlite3.Connection, rows: Iterable[Change]) -> None:
    """Refuse to take an item away that others were superseded by."""
    gone = {one.item_id: one.number for one in rows if item_of(database, one.item_id) is None}
    if not gone:
        return
    heirs = database.execute(
        "SELECT id, json_extract(item, '$.superseded_by') AS heir FROM items WHERE heir != ''"
    )
    for item_id, heir in heirs:
        if heir in gone:
            raise UsageError(
                f"change {gone[heir]} cannot be undone: item {item_id} was superseded by {heir}",
                hint="undo that first (history shows it)",
            )
