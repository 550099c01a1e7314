"""What must never be stored: keys, passwords, and where on whose machine something ran."""

from __future__ import annotations

import re

from reasoningbank.sparql import EndpointConfig, is_loopback

__all__ = ["secret_in"]

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a key", re.compile(r"\b(?:sk|pk|hf|ghp|gho|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}")),
    ("a key", re.compile(r"\b(?:AKIA|AIza)[A-Za-z0-9_-]{12,}")),
    ("a key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    (
        "a password",
        re.compile(
            r"\b(?:api[_-]?key|passw(?:or)?d|secret|token|authorization)\b\s*[:=]\s*['\"]?\S{4,}",
            re.IGNORECASE,
        ),
    ),
    ("a password", re.compile(r"\b(?:Bearer|Basic)\s+[A-Za-z0-9+/._=-]{12,}")),
    ("a password", re.compile(r"\bhttps?://[^\s/@:]+:[^\s/@]+@")),
    ("a path of a machine", re.compile(r"(?<![\w:/.])/(?:home|Users|root|tmp|var|opt)/[^\s'\"]+")),
)
_ADDRESS = re.compile(r"https?://[^\s<>\"'{}]+")
#: Shorter header values, such as ``*/*``, are in a text by chance.
_LEAST_HEADER_CHARS = 8


def secret_in(text: str, endpoint: EndpointConfig | None = None) -> str:
    """Say in a word what a text holds that must not be stored; empty where it holds nothing.

    Args:
        text: The text.
        endpoint: Whose header values are secrets as well.

    Examples:
        >>> secret_in("Authorization: Bearer abcdefghijklmnop")
        'a password'
        >>> secret_in("see http://127.0.0.1:7878/query"), secret_in("see http://e.org/token")
        ('an address of a machine', '')
    """
    for what, shape in _SHAPES:
        if shape.search(text):
            return what
    if any(is_loopback(address) for address in _ADDRESS.findall(text)):
        return "an address of a machine"
    headers = endpoint.headers.values() if endpoint is not None else ()
    if any(len(value) >= _LEAST_HEADER_CHARS and value in text for value in headers):
        return "a password"
    return ""
