"""Settings given on the command line in place of a file's: `key=value`."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from reasoningbank.errors import UsageError

__all__ = ["apply_changes"]

#: Tables that may be written as one word, with the key that it stands for.
_SHORT = {"executor": "kind", "endpoint": "url"}


def apply_changes(data: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return what a file says, with settings replaced.

    Args:
        data: What the file says.
        changes: Each ``key=value``; the key is a path with dots, where an arm is named by its
            name and ``*`` stands for every arm; the value is written as in TOML, and a bare word
            is a string.

    Raises:
        UsageError: If a change is no ``key=value``, or its path leads nowhere.

    Examples:
        >>> file = {"name": "x", "arms": [{"name": "rlm", "lm": "local"}]}
        >>> apply_changes(file, ["budget.iterations=3", "arms.rlm.lm=openai/gpt-4.1-mini"])
        {'name': 'x', 'arms': [{'name': 'rlm', 'lm': 'openai/gpt-4.1-mini'}], \
'budget': {'iterations': 3}}
    """
    changed = copy.deepcopy(dict(data))
    for change in changes:
        path, equals, text = change.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys):
            raise UsageError(
                f"{change!r} is no setting", where="--set", hint="write --set key=value"
            )
        tables = _tables(changed, keys[:-1])
        if not tables:
            raise UsageError(
                f"{change!r} leads nowhere",
                where="--set",
                hint="name a key of the file, such as budget.iterations or arms.NAME.lm",
            )
        for table in tables:
            table[keys[-1]] = _value(text.strip())
    return changed


def _tables(inside: Any, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tables that a path leads to: one, or those of every arm; none if nowhere."""
    if isinstance(inside, list):
        # An arm's name may hold dots itself.
        return [
            table
            for arm in inside
            for end in range(1, len(keys) + 1)
            if ".".join(keys[:end]) in ("*", arm.get("name"))
            for table in _tables(arm, keys[end:])
        ]
    if not isinstance(inside, dict):
        return []
    if not keys:
        return [inside]
    if keys[0] in _SHORT and isinstance(inside.get(keys[0]), str):
        inside[keys[0]] = {_SHORT[keys[0]]: inside[keys[0]]}
    return _tables(inside.setdefault(keys[0], {}), keys[1:])


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
