"""What was odd about a corpus: a remark on one file, never a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["DEFECTS", "SEVERITIES", "Finding", "FindingCode", "Severity"]

Severity = Literal["error", "warning", "info"]

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
    "unknown-property",
    "unknown-prefix",
    "duplicate-id",
    "id-mismatch",
    "no-examples",
    "no-language",
    "bad-value",
    "odd-value",
    "query-syntax",
    "rdflib-syntax",
    "oxigraph-syntax",
    "federates-mismatch",
    "unmentioned-constant",
    "gold-fails",
    "empty-gold",
    "cut-gold",
    "slow-gold",
    "endpoint-fails",
]

#: Codes after which an example, or a whole file, could not become a task.
DEFECTS: frozenset[str] = frozenset(
    {"unreadable", "syntax-error", "no-query", "empty-query", "no-question", "no-examples"}
)

#: How bad each is. Errors make an example unusable, unjudgeable, or read otherwise than it was
#: meant, by this program or by the next; warnings cost quality; the rest is worth knowing.
SEVERITIES: Mapping[FindingCode, Severity] = MappingProxyType(
    {
        "unreadable": "error",
        "syntax-error": "error",
        "no-query": "error",
        "empty-query": "error",
        "several-queries": "error",
        "no-question": "error",
        "several-questions": "warning",
        "html-question": "info",
        "no-target": "warning",
        "several-targets": "warning",
        "bad-target": "error",
        "target-variant": "warning",
        "no-keywords": "warning",
        "no-class": "warning",
        "form-mismatch": "error",
        "misspelt-property": "error",
        "unknown-property": "warning",
        "unknown-prefix": "error",
        "duplicate-id": "error",
        "id-mismatch": "warning",
        "no-examples": "error",
        "no-language": "info",
        "bad-value": "error",
        "odd-value": "warning",
        "query-syntax": "error",
        "rdflib-syntax": "warning",
        "oxigraph-syntax": "error",
        "federates-mismatch": "warning",
        "unmentioned-constant": "warning",
        "gold-fails": "error",
        "empty-gold": "error",
        "cut-gold": "error",
        "slow-gold": "warning",
        "endpoint-fails": "error",
    }
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
        >>> finding = Finding("007.ttl", "no-keywords", "")
        >>> finding.defect, finding.severity
        (False, 'warning')
    """

    file: str
    code: FindingCode
    message: str

    @property
    def defect(self) -> bool:
        """Whether something was left out because of it."""
        return self.code in DEFECTS

    @property
    def severity(self) -> Severity:
        """``error``, ``warning`` or ``info``, by the code."""
        return SEVERITIES[self.code]

    def __str__(self) -> str:
        return f"{self.file}: {self.code}: {self.message}"
