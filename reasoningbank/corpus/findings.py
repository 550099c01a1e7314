"""Codes of the findings about a corpus, and how severe each is.

A finding's `where` is the file, relative to the corpus.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from reasoningbank.findings import Finding

Severity = Literal["error", "warning", "info"]

#: Codes of examples, or whole files, that could not become a task.
DEFECTS = frozenset(
    {"unreadable", "syntax-error", "no-query", "empty-query", "no-question", "no-examples"}
)

#: Errors make an example unusable, unjudgeable, or read otherwise than it was meant; warnings
#: cost quality; infos are worth knowing.
_CODES: dict[Severity, str] = {
    "error": "unreadable syntax-error no-query empty-query several-queries no-question bad-target "
    "form-mismatch misspelt-property unknown-prefix duplicate-id no-examples bad-value "
    "query-syntax oxigraph-syntax gold-fails empty-gold cut-gold endpoint-fails",
    "warning": "several-questions no-target several-targets target-variant no-keywords no-class "
    "unknown-property id-mismatch odd-value rdflib-syntax federates-mismatch unmentioned-constant "
    "slow-gold",
    "info": "html-question no-language few-instances",
}
SEVERITIES: Mapping[str, Severity] = MappingProxyType(
    {code: severity for severity, codes in _CODES.items() for code in codes.split()}
)


def severity_of(finding: Finding) -> Severity:
    """Return ``error``, ``warning`` or ``info``, by the finding's code."""
    return SEVERITIES[finding.code]


def finding_row(finding: Finding) -> dict[str, Any]:
    """Return a finding as a flat JSON object: file, severity, code, message, fields."""
    return {
        "file": finding.where,
        "severity": severity_of(finding),
        "code": finding.code,
        "message": f"{finding.what}; {finding.hint}" if finding.hint else finding.what,
        "fields": dict(finding.fields),
    }
