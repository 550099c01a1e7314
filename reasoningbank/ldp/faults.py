"""What a request can be answered with instead of what it asked for."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Refused"]


class Refused(Exception):  # noqa: N818 - an answer, not a defect
    """A request that is not carried out; the document is as it was.

    Args:
        status: The HTTP status that says so.
        why: One line for people.
        headers: What goes with it.

    Examples:
        >>> Refused(404, "no such document").status
        404
    """

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.why = " ".join(why.split())
        self.headers = dict(headers or {})
        super().__init__(self.why)
