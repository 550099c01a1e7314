"""Endpoint addresses as examples write them, and the one spelling that stands for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reasoningbank.sparql import address_key

__all__ = ["canonical_targets"]


def canonical_targets(targets: Iterable[str], preferred: str = "") -> dict[str, str]:
    """Return, for each spelling of an address, the one that stands for its variants.

    Args:
        targets: Addresses as written, repeated as often as they occur.
        preferred: A spelling that wins over all its variants, e.g. the pack's endpoint.

    Returns:
        The most frequent spelling by spelling; what is no http address is left out.

    Examples:
        >>> canonical_targets(["http://e/s", "https://e/s/", "https://e/s/"])
        {'http://e/s': 'https://e/s/', 'https://e/s/': 'https://e/s/'}
    """
    counts = Counter(targets)
    chosen: dict[str, str] = {}
    if preferred and (key := address_key(preferred)):
        chosen[key] = preferred
    for target, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if key := address_key(target):
            chosen.setdefault(key, target)
    return {t: chosen[key] for t in counts if (key := address_key(t))}
