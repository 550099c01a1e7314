"""HTTP connections on which a whole exchange has a deadline, not each read by itself.

httpx bounds the wait for the next bytes. A server that sends a byte now and then would hold a run
for ever, above all in its headers; so each read of the connection is bounded by what is left.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

_until: ContextVar[float] = ContextVar("until")


@contextmanager
def deadline(until: float) -> Iterator[None]:
    """Let all that is sent and read inside end at a time of the monotonic clock."""
    token = _until.set(until)
    try:
        yield
    finally:
        _until.reset(token)


def _left(
    timeout: float | None, late: type[httpcore.TimeoutException] = httpcore.ReadTimeout
) -> float:
    left = _until.get(float("inf")) - time.monotonic()
    if left <= 0:
        raise late("the time for the exchange is up")
    return left if timeout is None else min(left, timeout)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        bound = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, bound))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        bound = _left(timeout, httpcore.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, bound, local_address, socket_options))


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        self._stream.close()


class DeadlineTransport(httpx.BaseTransport):
    """A transport for `httpx.Client` that minds `deadline`."""

    def __init__(self, context: ssl.SSLContext, connections: int = 16) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=5.0,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the answer is read by whoever iterates it."""
        url = request.url
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        reply = self._pool.handle_request(sent)
        return httpx.Response(
            status_code=reply.status,
            headers=reply.headers,
            stream=_Body(reply.stream),
            extensions=reply.extensions,
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
