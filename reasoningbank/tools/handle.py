"""Handles as tools return them: a `Ref` that any sandbox can take across its boundary."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from reasoningbank.refs import Ref

__all__ = ["Handle"]


class Handle(Ref, dict[str, Any]):
    """A `Ref` that is also a dict, since sandboxes hand results over with `json.dumps`.

    Examples:
        >>> import json
        >>> handle = Handle(Ref("results_0", "results", 3, 20, "UniProt"))
        >>> handle
        Ref('results_0', 'results', 3 items from UniProt)
        >>> json.loads(json.dumps(handle))["key"]
        'results_0'
    """

    def __init__(self, ref: Ref) -> None:
        Ref.__init__(self, ref.key, ref.dtype, ref.rows, ref.sz, ref.source)
        dict.__init__(self, asdict(ref))
