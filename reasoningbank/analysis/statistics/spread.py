"""Seconds, tokens and dollars: middle and tail, since means of such things follow outliers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["median_and_p95"]


def median_and_p95(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile; NaN for no values.

    Examples:
        >>> median_and_p95([1.0, 2.0, 10.0])
        (2.0, 9.2)
    """
    if not values:
        return math.nan, math.nan
    median, p95 = np.percentile(np.asarray(values, dtype=float), [50, 95])
    return float(median), round(float(p95), 9)
