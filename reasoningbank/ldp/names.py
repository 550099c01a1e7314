"""Where documents live: addresses under one base, and the containers above them."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from pyoxigraph import NamedNode

from reasoningbank.errors import UsageError

__all__ = [
    "ancestors",
    "checked_base",
    "checked_document",
    "document_url",
    "is_folder",
    "parent_of",
]

_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_SAFE = "/!$&'()*+,;=:@%~"


def checked_base(base: str) -> str:
    """Return a base address, which ends with a slash and has neither query nor fragment.

    Raises:
        UsageError: It is no such address.

    Examples:
        >>> checked_base("http://localhost:4443")
        'http://localhost:4443/'
        >>> checked_base("http://localhost/Malmö")
        'http://localhost/Malm%C3%B6/'
    """
    hint = "give one such as http://localhost:4443/"
    try:
        parts = urlsplit(base)
        # A port that is none is told of only when it is asked for.
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        odd = parts.query or parts.fragment or "@" in parts.netloc
        NamedNode(f"{parts.scheme}://{parts.netloc}/")
    except ValueError as error:
        raise UsageError(f"not a base address: {base!r}: {error}", hint=hint) from None
    if not known or odd:
        raise UsageError(f"not a base address: {base!r}", hint=hint)
    path = f"{parts.path}/" if not parts.path.endswith("/") else parts.path
    # Spelled as documents' addresses are, so that they begin with it.
    clean = document_url(f"{parts.scheme}://{parts.netloc.lower()}/", path)
    if clean is None:
        raise UsageError(f"not a base address: {base!r}", hint="leave . and .. and // out of it")
    return clean


def checked_document(base: str, url: str) -> str:
    """Return the address of a document, spelled as `document_url` does.

    Raises:
        UsageError: No document below the base has it.

    Examples:
        >>> checked_document("http://e/", "http://e/a")
        'http://e/a'
        >>> checked_document("http://e/", "http://e/ø")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.UsageError: http://e/ø: no document can have this address; ...
    """
    if document_url(base, urlsplit(url).path) != url:
        hint = f"give one at {base} or below, percent-encoded"
        raise UsageError("no document can have this address", where=url, hint=hint)
    return url


def document_url(base: str, target: str) -> str | None:
    """Return the address of the document that a request's path means; None if it means none.

    Percent-encoding is normalised (RFC 3986, 6.2.2), so that all spellings mean one document.
    A document has no query, and lies at the base or below it.

    Args:
        base: The base address.
        target: The path of the request, as it was sent.

    Examples:
        >>> document_url("http://e/a/", "/a/Malm%c3%b6/%7Ex")
        'http://e/a/Malm%C3%B6/~x'
        >>> document_url("http://e/a/", "/a/../b") is document_url("http://e/a/", "/b") is None
        True
    """
    path = re.sub(r"%([0-9A-Fa-f]{2})", _normal, quote(target, safe=_SAFE))
    root = urlsplit(base)
    segments = path.split("/")
    if not path.startswith(root.path) or any(part in (".", "..") for part in segments):
        return None
    if "" in segments[1:-1] or re.search(r"%(?![0-9A-F]{2})", path) or "%00" in path:
        return None
    return f"{root.scheme}://{root.netloc}{path}"


def _normal(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if _UNRESERVED.fullmatch(character) else f"%{match[1].upper()}"


def is_folder(url: str) -> bool:
    """Say whether documents can lie below an address: those that end with a slash."""
    return url.endswith("/")


def parent_of(base: str, url: str) -> str | None:
    """Return the container of a document; None for the base itself.

    Examples:
        >>> parent_of("http://e/", "http://e/a/b/"), parent_of("http://e/", "http://e/")
        ('http://e/a/', None)
    """
    if url == base:
        return None
    return url.removesuffix("/").rpartition("/")[0] + "/"


def ancestors(base: str, url: str) -> list[tuple[str, str]]:
    """Return the pairs of container and member from a document up to the base.

    Examples:
        >>> ancestors("http://e/", "http://e/a/b")
        [('http://e/a/', 'http://e/a/b'), ('http://e/', 'http://e/a/')]
    """
    pairs = []
    while (parent := parent_of(base, url)) is not None:
        pairs.append((parent, url))
        url = parent
    return pairs
