"""Endpoint addresses as examples write them, and the one spelling that stands for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from urllib.parse import urlsplit

__all__ = ["canonical_targets", "target_key"]


def target_key(target: str) -> str | None:
    """Return what all spellings of an address have in common; None for what is no address.

    Examples:
        >>> target_key("http://Sparql.example.org/sparql/")
        'sparql.example.org/sparql'
        >>> target_key("sparql.example.org") is None
        True
    """
    try:
        parts = urlsplit(target.strip())
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return None
    host = parts.netloc.lower().removesuffix(":443").removesuffix(":80")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path.rstrip('/')}{query}"


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
    if preferred and (key := target_key(preferred)):
        chosen[key] = preferred
    for target, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if key := target_key(target):
            chosen.setdefault(key, target)
    return {t: chosen[key] for t in counts if (key := target_key(t))}
