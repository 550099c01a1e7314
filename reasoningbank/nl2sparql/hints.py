"""Reading a pack's hint files: TOML, checked, with names written as the pack's prefixes do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = ["DEFAULT_PACK", "PackKey", "full_name", "namespaces_of", "read_hints"]

#: The pack that is meant where none is named, as in the translators' own command.
DEFAULT_PACK = "liita"

_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True)
class PackKey:
    """A pack as a key of a cache: by what is read of it, since a pack holds dictionaries.

    Two packs of one folder may have other prefixes or languages, in one process.

    Attributes:
        pack: The pack.
        parts: What tells it from others.
    """

    pack: Pack = field(compare=False)
    parts: tuple[object, ...]

    @classmethod
    def of(cls, pack: Pack) -> PackKey:
        """Return the key of a pack."""
        names = (tuple(found.items()) for found in (pack.prefixes, namespaces_of(pack)))
        return cls(pack, (pack.examples, pack.hints or pack.root, *names, tuple(pack.languages)))


def read_hints(pack: Pack, name: str, model: type[_Model]) -> tuple[_Model, Path | None]:
    """Read a file of ``hints/``; a pack without the file has an empty one.

    Args:
        pack: The pack.
        name: The file's name.
        model: What the file must look like; it has a default for every part.

    Returns:
        What the file says, and the file; None where there is none.

    Raises:
        UsageError: The file cannot be read, or is of another form.
    """
    file = pack.hints / name if pack.hints else None
    if file is None or not file.is_file():
        return model(), None
    try:
        return model.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))), file
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{place}: {first['msg']}", where=str(file)) from None


def namespaces_of(pack: Pack) -> dict[str, str]:
    """Return namespace by prefix: the standard ones, the pack's, its federated endpoints'."""
    found = dict(STANDARD_PREFIXES)
    for other in pack.federated:
        found.update(other.prefixes)
    return {**found, **pack.prefixes}


def full_name(name: str, namespaces: Mapping[str, str], where: Path | str) -> str:
    """Return the IRI of a prefixed name, or of ``<iri>``.

    Raises:
        UsageError: The prefix is not known.

    Examples:
        >>> full_name("e:x", {"e": "http://e/"}, "hints.toml"), full_name("<urn:a>", {}, "")
        ('http://e/x', 'urn:a')
    """
    if name.startswith("<") and name.endswith(">"):
        return name[1:-1]
    prefix, colon, local = name.partition(":")
    if not colon or prefix not in namespaces:
        raise UsageError(
            f"{name!r} is no name with a known prefix",
            where=str(where),
            hint="write it as the pack's prefixes do, such as rdfs:label, or as <iri>",
        )
    return namespaces[prefix] + local
