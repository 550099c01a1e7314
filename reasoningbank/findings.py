"""`Finding`: one thing noticed about a query, a file or a result, as a value with a stable code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


@dataclass(frozen=True)
class Finding:
    """One diagnosis, validation result or judge reason.

    Code reads `code` and `fields`; `str()` renders the line for people and agents.

    Examples:
        >>> print(Finding("no-keywords", "ex:007 has no keywords", where="007.ttl"))
        007.ttl: ex:007 has no keywords
        >>> finding = Finding("unknown-property", "no property up:nam", hint="write up:name",
        ...                   fields={"name": "up:nam", "replacements": ["up:name"]})
        >>> print(finding)
        no property up:nam; write up:name
        >>> finding.fields["replacements"]
        ['up:name']
    """

    code: str  #: Stable name of the kind of finding, in kebab case, e.g. ``unknown-property``.
    what: str  #: What is wrong, as one clause without a trailing period
    where: str = ""  #: What it is about: a file, a place in a query, an argument
    hint: str = ""  #: What to do about it
    #: The facts behind the text, JSON-able, e.g. ``{"name": "up:nam"}``.
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}; {self.hint}" if self.hint else head

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object without its empty parts.

        Examples:
            >>> Finding("empty-gold", "no rows", where="1.ttl").to_json()
            {'code': 'empty-gold', 'what': 'no rows', 'where': '1.ttl'}
        """
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """Read what `to_json` wrote.

        Examples:
            >>> finding = Finding("empty-gold", "no rows", where="1.ttl")
            >>> Finding.from_json(finding.to_json()) == finding
            True
        """
        return cls(**data)
