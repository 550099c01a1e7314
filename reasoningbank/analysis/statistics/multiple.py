"""Many comparisons at once."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted by Holm's step-down procedure (1979), from statsmodels.

    Examples:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    if len(p_values) < 2:
        return tuple(p_values)
    # Half a second to import, and needed only where there are several comparisons.
    from statsmodels.stats.multitest import multipletests

    return tuple(float(p) for p in multipletests(list(p_values), method="holm")[1])
