"""Who a run is to which server: names and passwords, tokens, and client certificates."""

from __future__ import annotations

import base64
import os
import ssl
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from reasoningbank.algebra.web_address import checked
from reasoningbank.errors import UsageError

__all__ = ["Credential", "credentials_from", "tls_context"]


@dataclass(frozen=True)
class Credential:
    """What proves to the servers under one address who asks; never sent anywhere else.

    Attributes:
        base: The address that it is for, and all below.
        user: A name for HTTP Basic, with `password`.
        password: Its password.
        token: A bearer token instead.
        certificate: A client certificate in PEM, with its key unless `key` holds it.
        key: The certificate's key in PEM.
        authorities: Certificates in PEM that this server's own is checked against, beside those
            that the system knows: for a private authority.

    Raises:
        UsageError: The base is no address, or parts of a credential are missing or do not go
            together.

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
        where = f"credential for {self.base}"
        if self.token and (self.user or self.password):
            raise UsageError("a token and a password exclude one another", where=where)
        if self.password and not self.user:
            raise UsageError("a password without a user", where=where)
        if self.key is not None and self.certificate is None:
            raise UsageError("a key without a certificate", where=where)
        if not (f"{self.token}".isprintable() and self.token.isascii()) or ":" in self.user:
            raise UsageError("holds characters that HTTP cannot send", where=where)

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
    """Return how TLS is spoken with the servers of a credential: always with verification.

    Raises:
        UsageError: A certificate or key cannot be read.
    """
    context = ssl.create_default_context()
    if credential is None:
        return context
    try:
        if credential.authorities is not None:
            context.load_verify_locations(credential.authorities)
        if credential.certificate is not None:
            # Without a password, so that nothing asks for one on a terminal.
            context.load_cert_chain(credential.certificate, credential.key, lambda: "")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"a certificate or key cannot be read: {error}",
            where=f"credential for {credential.base}",
            hint="give PEM files, the key without a password",
        ) from None
    return context


def credentials_from(
    file: Path, environment: Mapping[str, str] = os.environ
) -> tuple[Credential, ...]:
    """Read credentials from a TOML file of ``[[credential]]`` tables.

    Their keys are the fields of `Credential`, files relative to the TOML file. Secrets may be named
    instead of written: ``password_env`` and ``token_env`` name variables of the environment.

    Raises:
        UsageError: The file cannot be read, or a table is wrong.
    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("credential", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from None
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError("expected [[credential]] tables", where=str(file))
    return tuple(_credential(table, file, environment) for table in tables)


def _credential(table: Mapping[str, Any], file: Path, environment: Mapping[str, str]) -> Credential:
    given: dict[str, Any] = {}
    for name, value in table.items():
        if not isinstance(value, str):
            raise UsageError(f"{name} is no string", where=str(file))
        if name in ("certificate", "key", "authorities"):
            given[name] = file.parent / value
        elif name in ("password_env", "token_env"):
            if value not in environment:
                raise UsageError(f"the environment has no {value}", where=str(file))
            given[name.removesuffix("_env")] = environment[value]
        elif name in ("base", "user", "password", "token"):
            given[name] = value
        else:
            raise UsageError(f"unknown key {name!r}", where=str(file))
    if "base" not in given:
        raise UsageError("a credential without a base", where=str(file))
    return Credential(**given)
