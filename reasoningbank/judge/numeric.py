"""Which numbers of two results count as the same number.

Being "within a millionth" is not transitive, so numbers cannot be compared one pair at a time
and still be looked up by value. They are put into classes instead, over both results at once:
sorted, and cut wherever a cut is needed, at the widest gap first. No class is wider than the
tolerance, and rounding noise (1e-15) is never what separates two numbers while any wider gap
is there to cut at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["TOLERANCE", "number_classes"]

#: Two numbers are the same when they differ by no more than this share of the larger one.
TOLERANCE = 1e-6

# Beyond this an integer has no float, so no decimal can be compared with it.
_FLOAT_RANGE = 10**300


def number_classes(
    integers: Iterable[int], others: Iterable[float], tolerance: float = TOLERANCE
) -> dict[int | float, str]:
    """Name the class of each number.

    Args:
        integers: Values of integer type; two of them are the same only when they are equal.
        others: Finite decimals, floats and doubles; the same within `tolerance`, with one
            another and with integers.
        tolerance: Largest relative difference, in [0, 1).

    Returns:
        The name of the class of every number given.

    Examples:
        >>> same = number_classes([3, 1234567, 1234568], [3.0000001, 0.1 + 0.2, 0.3])
        >>> same[3] == same[3.0000001], same[0.1 + 0.2] == same[0.3]
        (True, True)
        >>> same[1234567] == same[1234568]
        False
    """
    anchors = sorted(set(integers))
    names: dict[int | float, str] = {anchor: f"#{anchor}" for anchor in anchors}
    near = [anchor for anchor in anchors if abs(anchor) < _FLOAT_RANGE]
    rest: list[float] = []
    for value in sorted(set(others)):
        anchor = _nearest(near, value)
        if anchor is not None and _close(float(anchor), value, tolerance):
            names[value] = names[anchor]
        else:
            rest.append(value)
    for index, group in enumerate(_groups(np.array(rest, dtype=np.float64), tolerance)):
        names.update(dict.fromkeys(group, f"#~{index}"))
    return names


def _nearest(anchors: list[int], value: float) -> int | None:
    at = bisect_left(anchors, value)
    around = anchors[max(0, at - 1) : at + 1]
    return min(around, key=lambda anchor: abs(anchor - value), default=None)


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def _groups(values: npt.NDArray[np.float64], tolerance: float) -> Iterable[list[float]]:
    """Cut sorted distinct numbers into runs no wider than the tolerance, widest gap first."""
    if not len(values):
        return
    with np.errstate(over="ignore"):
        gaps = np.diff(values)
        widths = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
        starts = [0, *(np.flatnonzero(gaps > tolerance * widths) + 1).tolist(), len(values)]
    for start, stop in pairwise(starts):
        run = values[start:stop].tolist()
        if _close(run[0], run[-1], tolerance):
            yield run
        else:
            yield from _cut(run, tolerance)


def _cut(run: list[float], tolerance: float) -> Iterable[list[float]]:
    # The tree whose every node is the widest gap of its range finds each next cut at once.
    gaps = [b - a for a, b in pairwise(run)]
    left, right = [-1] * len(gaps), [-1] * len(gaps)
    stack: list[int] = []
    for at, gap in enumerate(gaps):
        below = -1
        while stack and gaps[stack[-1]] < gap:
            below = stack.pop()
        left[at] = below
        if stack:
            right[stack[-1]] = at
        stack.append(at)
    pending = [(stack[0], 0, len(run) - 1)]
    while pending:
        gap_at, first, last = pending.pop()
        if _close(run[first], run[last], tolerance):
            yield run[first : last + 1]
        else:
            pending.append((left[gap_at], first, gap_at))
            pending.append((right[gap_at], gap_at + 1, last))
