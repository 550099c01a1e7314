"""Warnings about names: what people and models get wrong about a class or property.

A pack keeps them in ``hints/anti_patterns.toml``; each is shown only where one of the names that
it is about is shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = ["Note", "load_notes", "notes_file"]


@dataclass(frozen=True)
class Note:
    """A line about some names.

    Attributes:
        about: IRIs of classes and properties.
        text: What to do instead, in one line.
    """

    about: frozenset[str]
    text: str


class _Note(BaseModel):
    model_config = ConfigDict(extra="forbid")
    about: list[str] = Field(min_length=1)
    text: str = Field(min_length=1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    note: list[_Note] = []


def notes_file(pack: Pack | None) -> Path | None:
    """Return the file of a pack's warnings; None where it has none."""
    file = pack.hints / "anti_patterns.toml" if pack and pack.hints else None
    return file if file is not None and file.is_file() else None


def load_notes(pack: Pack | None) -> tuple[Note, ...]:
    """Read a pack's warnings, in the order of the file.

    Raises:
        UsageError: The file cannot be read, or names something by an unknown prefix.
    """
    file = notes_file(pack)
    if file is None or pack is None:
        return ()
    try:
        read = _File.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{field}: {first['msg']}", where=str(file)) from None
    namespaces = {**STANDARD_PREFIXES, **pack.prefixes}
    return tuple(
        Note(
            frozenset(_full(name, namespaces, file) for name in note.about),
            " ".join(note.text.split()),
        )
        for note in read.note
    )


def _full(name: str, namespaces: Mapping[str, str], file: Path) -> str:
    prefix, colon, local = name.partition(":")
    if not colon or prefix not in namespaces:
        raise UsageError(
            f"{name!r} is no name with a known prefix",
            where=str(file),
            hint="write it as the pack's prefixes do, such as rdfs:label",
        )
    return namespaces[prefix] + local
