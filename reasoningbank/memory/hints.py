"""What people wrote about a domain in a pack's ``hints/``: the guide (L3), and warnings.

``guide.md`` is the same for every question. ``anti_patterns.toml`` holds warnings about names,
each shown only with one of the names that it is about.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.memory.layer import Layer, Line, pack_lines
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = ["Note", "guide", "hints_files", "load_notes"]


@dataclass(frozen=True)
class Note:
    """A warning about some names."""

    about: frozenset[str]
    text: str


class _Note(BaseModel):
    model_config = ConfigDict(extra="forbid")
    about: list[str] = Field(min_length=1)
    text: str = Field(min_length=1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    note: list[_Note] = []


def hints_files(pack: Pack | None) -> dict[str, Path]:
    """Return the files that a pack has, of ``guide`` and ``anti_patterns``."""
    if pack is None or pack.hints is None:
        return {}
    files = {"guide": pack.hints / "guide.md", "anti_patterns": pack.hints / "anti_patterns.toml"}
    return {name: file for name, file in files.items() if file.is_file()}


def guide(pack: Pack | None, budget: int = 200) -> Layer:
    """Return a pack's guide as layer L3; if it exceeds the budget, the lines from the top that fit.

    A guide has its most important lines first. Headings and blank lines are left out.

    Args:
        pack: The pack; without a guide, or without a pack, the layer is empty.
        budget: Maximum number of tokens.

    Raises:
        UsageError: If the file cannot be read.
    """
    file = hints_files(pack).get("guide")
    if file is None:
        return Layer("L3")
    written = [line.rstrip() for line in _read(file).splitlines()]
    lines = [
        Line(line, rank=number)
        for number, line in enumerate(written)
        if line and not line.startswith("#")
    ]
    return pack_lines("L3", lines, budget, title="Guide:")


def load_notes(pack: Pack | None) -> tuple[Note, ...]:
    """Read a pack's warnings, in the order of the file.

    Raises:
        UsageError: If the file cannot be read, or a name has an unknown prefix.
    """
    file = hints_files(pack).get("anti_patterns")
    if file is None or pack is None:
        return ()
    try:
        read = _File.model_validate(tomllib.loads(_read(file)))
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(file, str(error)) from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{field}: {first['msg']}", where=str(file), code="bad-hints") from None
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
            f"{name!r} is not a name with a known prefix",
            where=str(file),
            hint="use a prefix of the pack, as in rdfs:label",
            code="unknown-prefix",
            name=name,
        )
    return namespaces[prefix] + local


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, str(error)) from None


def _unreadable(file: Path, why: str) -> UsageError:
    return UsageError(f"cannot be read: {why}", where=str(file), code="bad-hints")
