"""Doing something for many items at the same time, with the results in the items' order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], workers: int
) -> Iterator[Result]:
    """Go through the results of items in their order.

    Only as many items as there are workers are taken ahead, so a long stream never lies in memory.
    After a failure no further item is begun; those that are being worked on end first.

    Examples:
        >>> list(in_order(lambda n: n * n, iter(range(5)), 2))
        [0, 1, 4, 9, 16]
    """
    if workers == 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="foreach")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            if any(one.done() and one.exception() is not None for one in waiting):
                break
            waiting.append(pool.submit(work, item))
            if len(waiting) >= workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
