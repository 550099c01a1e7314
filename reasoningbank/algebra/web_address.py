"""Addresses: one spelling of each, which prefix one lies under, and where it is really asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import httpx

from reasoningbank.errors import UsageError

__all__ = ["Addresses", "checked", "inside", "within"]

#: Dot segments, and what some servers take for them: with parameters (``..;x``), and between
#: slashes that are percent-encoded, or turned round.
_DOTS = re.compile(r"(?:/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:;[^/]*)?(?:/|%2f|\\|%5c|$)", re.IGNORECASE)


def checked(url: str, *, exactly: bool = False) -> str:
    """Return an address as it is sent: percent-encoded, without dot segments and fragment.

    Args:
        url: The address; an IRI may hold any character that IRIs may hold.
        exactly: Whether it must name a document as it stands, as what is written must: without a
            fragment, and without dot segments, which would make it another document.

    Raises:
        UsageError: It is no http or https address.

    Examples:
        >>> checked("HTTP://Example.org:80/a/../Malmö#this")
        'http://example.org/Malm%C3%B6'
        >>> checked("file:///etc/passwd")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.UsageError: file:///etc/passwd: not a web address; ...
    """
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise UsageError(f"not a web address: {error}", where=url[:200]) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        hint = "give one that begins with http:// or https://"
        raise UsageError("not a web address", where=url[:200] or "''", hint=hint)
    if parsed.userinfo:
        hint = "give the name and password as a credential"
        # The address itself is kept out of the message: it holds a password.
        raise UsageError("an address may hold no user name", where=parsed.host, hint=hint)
    if exactly and parsed.fragment:
        hint = "write to its document, the part before #"
        raise UsageError("a fragment of a document cannot be written", where=url[:200], hint=hint)
    # httpx has resolved the plain dot segments, but not those that are percent-encoded.
    paths = [parsed.raw_path.decode(), *([url.partition("#")[0]] if exactly else [])]
    if any(_DOTS.search(path.partition("?")[0]) for path in paths):
        raise UsageError("an address may hold no . or .. as a name", where=url[:200])
    return str(parsed.copy_with(fragment=None, raw_path=parsed.raw_path))


def inside(base: str, url: str) -> bool:
    """Say whether an address is `base` or lies below it; both as `checked` returns them.

    Examples:
        >>> inside("http://e/a", "http://e/a/b"), inside("http://e/a", "http://e/ab")
        (True, False)
        >>> inside("http://e/", "http://e.evil/"), inside("http://e/a/", "http://e/a/?x")
        (False, True)
    """
    one, other = httpx.URL(base), httpx.URL(url)
    if (one.scheme, one.host, one.port) != (other.scheme, other.host, other.port):
        return False
    outer, path = one.raw_path.decode(), other.raw_path.decode()
    return path == outer or path.startswith(outer if outer.endswith("/") else (f"{outer}/"))


def within(bases: Iterable[str], url: str) -> str | None:
    """Return the longest of the bases that an address lies under; None if none."""
    return max((base for base in bases if inside(base, url)), key=len, default=None)


@dataclass(frozen=True)
class Addresses:
    """Which addresses are asked elsewhere: public prefix → where its documents really are.

    Attributes:
        real: Public prefix → real prefix.

    Raises:
        UsageError: A prefix is no web address.

    Examples:
        >>> here = Addresses({"http://dbpedia.org/": "http://127.0.0.1:7000/"})
        >>> here.asked_at("http://dbpedia.org/resource/Odense")
        'http://127.0.0.1:7000/resource/Odense'
        >>> here.known_as("http://127.0.0.1:7000/data/x"), here.asked_at("http://e/")
        ('http://dbpedia.org/data/x', 'http://e/')
    """

    real: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clean = {checked(public): checked(real) for public, real in self.real.items()}
        object.__setattr__(self, "real", clean)

    def asked_at(self, url: str) -> str:
        """Return where an address is really asked."""
        return _moved(self.real, url)

    def known_as(self, url: str) -> str:
        """Return the public address of a real one."""
        return _moved({real: public for public, real in self.real.items()}, url)


def _moved(prefixes: Mapping[str, str], url: str) -> str:
    base = within(prefixes, url)
    if base is None:
        return url
    rest = url[len(base) :]
    target = prefixes[base]
    # One of the two may end with a slash where the other does not.
    if rest and not base.endswith("/") and target.endswith("/"):
        return target + rest.removeprefix("/")
    if rest and base.endswith("/") and not target.endswith("/"):
        return f"{target}/{rest}"
    return target + rest
