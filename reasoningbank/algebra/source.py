"""Program text: JSON, read strictly."""

from __future__ import annotations

import json
from typing import Any

from reasoningbank.algebra.faults import ProgramError

__all__ = ["parse_program"]


def parse_program(text: str) -> Any:
    """Read the JSON of a program.

    Raises:
        ProgramError: It is no JSON, a key stands twice in an object (one would be lost), or it is
            nested too deeply.

    Examples:
        >>> parse_program('{"@op": "STRUUID"}')
        {'@op': 'STRUUID'}
        >>> parse_program('{"@op" "STRUUID"}')
        Traceback (most recent call last):
        ...
        reasoningbank.algebra.faults.ProgramError: line 1, column 8: this is no JSON: ...
    """
    try:
        return json.loads(
            text.removeprefix("\ufeff"), object_pairs_hook=_object, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        hint = "send JSON alone, without a comment or a fence"
        raise ProgramError(f"this is no JSON: {error.msg}", where=where, hint=hint) from None
    except ValueError as error:  # a number of thousands of digits
        raise ProgramError(f"this is no JSON: {error}", where="$") from None
    except RecursionError:
        raise ProgramError("the program is nested too deeply", where="$") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        hint = "keep one of them, or make it a list"
        raise ProgramError(f"the key {twice!r} stands twice in an object", where="$", hint=hint)
    return made


def _constant(name: str) -> Any:
    raise ProgramError(f"{name} is no JSON", where="$", hint="write a number or a string")
