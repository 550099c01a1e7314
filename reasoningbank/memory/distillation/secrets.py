"""What must never be stored: keys, passwords, and where on whose machine something ran."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from reasoningbank.sparql import EndpointConfig

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
    (
        # Behind a letter, a colon or a slash it is the end of an IRI or a step of a property path.
        "a path of a machine",
        re.compile(
            r"(?<![\w:/.])/(?:home|Users|Volumes|root|tmp|var|opt|etc|usr|srv|mnt|media|scratch"
            r"|work|workspace)/[^\s'\"]+"
        ),
    ),
    ("a path of a machine", re.compile(r"\bfile:/[^\s'\"<>]+", re.IGNORECASE)),
    # Two folders at least: "C:\\w" may be sought by a REGEX.
    ("a path of a machine", re.compile(r"(?<!\w)[A-Za-z]:\\{1,2}[A-Za-z][\w .-]+\\")),
)
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s<>\"'{}]+", re.IGNORECASE)
_OWN_HOSTS = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
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
        >>> secret_in("see http://192.168.0.7:8080/query"), secret_in("see file:///data/notes")
        ('an address of a machine', 'a path of a machine')
    """
    for what, shape in _SHAPES:
        if shape.search(text):
            return what
    if any(_is_own(address) for address in _ADDRESS.findall(text)):
        return "an address of a machine"
    headers = endpoint.headers.values() if endpoint is not None else ()
    if any(len(value) >= _LEAST_HEADER_CHARS and value in text for value in headers):
        return "a password"
    return ""


def _is_own(address: str) -> bool:
    """Say whether an address names this machine or one of a private network."""
    try:
        host = (urlsplit(address).hostname or "").rstrip(".,;)]")
        return f".{host}".endswith(_OWN_HOSTS) or ipaddress.ip_address(host).is_private
    except ValueError:
        return False
