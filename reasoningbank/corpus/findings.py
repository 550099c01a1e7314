"""What was odd about a corpus: a remark on one file, never a crash."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DEFECTS", "Finding", "FindingCode"]

FindingCode = Literal[
    "unreadable",
    "syntax-error",
    "no-query",
    "empty-query",
    "several-queries",
    "no-question",
    "several-questions",
    "html-question",
    "no-target",
    "several-targets",
    "bad-target",
    "target-variant",
    "no-keywords",
    "no-class",
    "form-mismatch",
    "misspelt-property",
    "unknown-prefix",
    "duplicate-id",
    "id-mismatch",
    "no-examples",
]

#: Codes after which an example, or a whole file, could not become a task.
DEFECTS: frozenset[str] = frozenset(
    {"unreadable", "syntax-error", "no-query", "empty-query", "no-question", "no-examples"}
)


@dataclass(frozen=True)
class Finding:
    """A remark on one file of a corpus.

    Attributes:
        file: The file, relative to the corpus.
        code: What kind of remark.
        message: One line that names the thing and, where there is one, the mend.

    Examples:
        >>> print(Finding("007.ttl", "no-keywords", "ex:007 has no keywords"))
        007.ttl: no-keywords: ex:007 has no keywords
        >>> Finding("007.ttl", "no-keywords", "").defect
        False
    """

    file: str
    code: FindingCode
    message: str

    @property
    def defect(self) -> bool:
        """Whether something was left out because of it."""
        return self.code in DEFECTS

    def __str__(self) -> str:
        return f"{self.file}: {self.code}: {self.message}"
