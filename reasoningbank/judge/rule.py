"""The plainest judge without a gold: the query ran and has rows. What others must beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["rule_verdict"]


def rule_verdict(verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """Judge an attempt by the plain rule, from what execution found.

    Args:
        verdict: The execution judge's verdict as a record keeps it. Of it only this is read:
            whether the query ran, and how many rows it returned.

    Returns:
        A judgement as records keep it; None where nothing is known of running the query, as
        where the task has no gold to compare it with. A yes or no has one row.

    Examples:
        >>> rule_verdict({"status": "judged", "n_predicted": 3, "strict": False})["reason"]
        'it ran and has 3 rows'
        >>> rule_verdict({"status": "query_error"})["success"]
        False
    """
    status, rows = verdict.get("status"), int(verdict.get("n_predicted") or 0)
    if status in (None, "gold_defect"):
        return None
    ran = status in ("judged", "wrong_form")
    if ran:
        reason = f"it ran and has {rows or 'no'} {'row' if rows == 1 else 'rows'}"
    else:
        reason = "no query was submitted" if status == "no_query" else "it does not run"
    return {
        "success": ran and rows > 0,
        "confidence": 1.0,
        "reason": reason,
        "checked": ["it ran", "it has rows"],
        "status": "judged",
        "seconds": 0.0,
        "usage": {},
    }
