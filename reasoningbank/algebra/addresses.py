"""Web addresses and credentials: one spelling of each address, prefixes, and who a run is where."""

from __future__ import annotations

import base64
import os
import re
import ssl
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

from reasoningbank.errors import UsageError

#: Dot segments, and what some servers take for them: with parameters (``..;x``), and between
#: slashes that are percent-encoded or backslashes.
_DOTS = re.compile(r"(?:/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:;[^/]*)?(?:/|%2f|\\|%5c|$)", re.IGNORECASE)


def checked(url: str, *, exactly: bool = False) -> str:
    """Return an address as it is sent: percent-encoded, without dot segments and fragment."""
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise _bad(f"not a web address: {error}", url) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        hint = "give one that begins with http:// or https://"
        raise _bad("not a web address", url or "''", hint)
    if parsed.userinfo:
        # The address itself is kept out of the message: it holds a password.
        hint = "give the name and password as a credential"
        raise _bad("an address may not hold a user name", parsed.host, hint)
    if exactly and parsed.fragment:
        hint = "write to its document, the part before #"
        raise _bad("a fragment of a document cannot be written", url, hint)
    # httpx has resolved the plain dot segments, but not those that are percent-encoded.
    paths = [parsed.raw_path.decode(), *([url.partition("#")[0]] if exactly else [])]
    if any(_DOTS.search(path.partition("?")[0]) for path in paths):
        raise _bad("an address may not have . or .. as a name", url)
    return str(parsed.copy_with(fragment=None, raw_path=parsed.raw_path))


def _bad(what: str, url: str, hint: str = "") -> UsageError:
    return UsageError(what, where=url[:200], hint=hint, code="bad-url")


def inside(base: str, url: str) -> bool:
    """Return whether an address is `base` or below it; both as `checked` returns them."""
    one, other = httpx.URL(base), httpx.URL(url)
    if (one.scheme, one.host, one.port) != (other.scheme, other.host, other.port):
        return False
    outer, path = one.raw_path.decode(), other.raw_path.decode()
    return path == outer or path.startswith(outer if outer.endswith("/") else f"{outer}/")


def within(bases: Iterable[str], url: str) -> str | None:
    """Return the longest of the bases that an address is inside; None if there is none."""
    return max((base for base in bases if inside(base, url)), key=len, default=None)


@dataclass(frozen=True)
class AddressMap:
    """Public addresses and the real ones that requests are sent to."""

    real: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        clean = {checked(public): checked(real) for public, real in self.real.items()}
        object.__setattr__(self, "real", clean)

    def asked_at(self, url: str) -> str:
        """Return the real address of a public one."""
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


@dataclass(frozen=True)
class Credential:
    """The identity of a run for the servers under one address; it is never sent anywhere else.

    Attributes:
        base: The address that it is for, and all below.
        user: A name for HTTP Basic, with `password`.
        password: Its password.
        token: A bearer token instead.
        certificate: A client certificate in PEM, with its key unless `key` holds it.
        key: The certificate's key in PEM.
        authorities: Certificates in PEM of a private authority that signed the server's own,
            in addition to the system's.

    Raises:
        UsageError: If the base is not an address, or parts of a credential are missing or exclude
            one another.

    Examples:
        >>> Credential("https://localhost:4443/", user="ada", password="x").headers
        {'Authorization': 'Basic YWRhOng='}
        >>> Credential("https://localhost:4443/", token="secret")
        Credential(base='https://localhost:4443/')
    """

    base: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    certificate: Path | None = field(default=None, repr=False)
    key: Path | None = field(default=None, repr=False)
    authorities: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", checked(self.base))
        what = ""
        if self.token and (self.user or self.password):
            what = "a token and a password exclude one another"
        elif self.password and not self.user:
            what = "a password needs a user"
        elif self.key is not None and self.certificate is None:
            what = "a key needs a certificate"
        elif not (self.token.isprintable() and self.token.isascii()) or ":" in self.user:
            what = "it has characters that HTTP cannot send"
        if what:
            raise UsageError(what, where=f"credential for {self.base}", code="bad-credential")

    @property
    def headers(self) -> dict[str, str]:
        """The request headers that carry it."""
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}


@lru_cache(maxsize=64)
def tls_context(credential: Credential | None) -> ssl.SSLContext:
    """Return the TLS context for the servers of a credential, which always verifies them."""
    context = ssl.create_default_context()
    if credential is None:
        return context
    try:
        if credential.authorities is not None:
            context.load_verify_locations(credential.authorities)
        if credential.certificate is not None:
            # The empty password prevents a prompt on the terminal.
            context.load_cert_chain(credential.certificate, credential.key, lambda: "")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"a certificate or key cannot be read: {error}",
            where=f"credential for {credential.base}",
            hint="give PEM files, the key without a password",
            code="bad-credential",
        ) from None
    return context


def credentials_from(
    file: Path, environment: Mapping[str, str] = os.environ
) -> tuple[Credential, ...]:
    """Read credentials from a TOML file of ``[[credential]]`` tables.

    The keys are the fields of `Credential`; paths are relative to the TOML file. ``password_env``
    and ``token_env`` name environment variables that hold the secrets.

    Raises:
        UsageError: If the file cannot be read, or a table is wrong.
    """

    def bad(what: str) -> UsageError:
        return UsageError(what, where=str(file), code="bad-credential")

    def credential(table: Mapping[str, Any]) -> Credential:
        given: dict[str, Any] = {}
        for name, value in table.items():
            if not isinstance(value, str):
                raise bad(f"{name} must be a string")
            if name in ("certificate", "key", "authorities"):
                given[name] = file.parent / value
            elif name in ("password_env", "token_env"):
                if value not in environment:
                    raise bad(f"the environment variable {value} is not set")
                given[name.removesuffix("_env")] = environment[value]
            elif name in ("base", "user", "password", "token"):
                given[name] = value
            else:
                raise bad(f"unknown key {name!r}")
        if "base" not in given:
            raise bad("a credential needs a base")
        return Credential(**given)

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("credential", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise bad(f"cannot be read: {error}") from None
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise bad("expected [[credential]] tables")
    return tuple(credential(table) for table in tables)
