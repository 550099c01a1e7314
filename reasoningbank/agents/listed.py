"""Files that list examples for a model: JSON, checked item by item."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from reasoningbank.errors import UsageError

__all__ = ["load_listed"]

_Item = TypeVar("_Item", bound=BaseModel)


def load_listed(path: Path, kind: type[_Item]) -> tuple[_Item, ...]:
    """Read a JSON file that is a list of items; a file that does not exist holds none.

    Args:
        path: The file.
        kind: What each item is.

    Raises:
        UsageError: The file is no list of them.
    """
    if not path.exists():
        return ()
    try:
        return TypeAdapter(tuple[kind, ...]).validate_json(path.read_bytes())  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        where = "/".join(map(str, first["loc"]))
        raise UsageError(f"{first['msg']} at {where or 'the top'}", where=str(path)) from error
