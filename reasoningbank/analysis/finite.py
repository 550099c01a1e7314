"""Numbers as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["finite"]


def finite(value: Any) -> Any:
    """Return JSON-able data in which a number that is not defined is None.

    Examples:
        >>> finite({"low": math.nan, "mean": (0.5, math.inf)})
        {'low': None, 'mean': [0.5, None]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    return value
