"""A pack's endpoint, opened: its data served on loopback, or a running endpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from reasoningbank.corpus.pack import Pack, endpoint_config
from reasoningbank.errors import UsageError
from reasoningbank.sparql import EndpointConfig, OxigraphServer

__all__ = ["open_endpoint"]

#: The engine's own limit; clients set shorter ones, the judge's is the longest.
SERVER_TIMEOUT_S = 90.0


@contextlib.contextmanager
def open_endpoint(
    pack: Pack, url: str | None = None, *, port: int | None = None
) -> Iterator[EndpointConfig]:
    """Make a pack's endpoint reachable for the length of a block.

    Args:
        pack: The pack.
        url: A running endpoint to use. Without one the pack's own data are served on loopback;
            a pack without data is reached at its public address.
        port: Port of the embedded server; a free one by default.

    Yields:
        The configuration that tools and judge use.

    Raises:
        UsageError: If the pack has neither data nor an address.
        SetupError: If the server does not start, or the port is in use.
    """
    if url is not None or not pack.data:
        yield endpoint_config(pack, url)
        return
    for path in pack.data:
        if not path.exists():
            raise UsageError("the pack's data file is missing", where=str(path))
    with OxigraphServer(
        [*pack.data, *_void(pack)],
        union_default_graph=pack.union_default_graph,
        timeout_s=SERVER_TIMEOUT_S,
        port=port,
    ) as server:
        yield endpoint_config(pack, server.url)


def _void(pack: Pack) -> list[Path | tuple[Path, str]]:
    if pack.void is None or not pack.void.exists():
        return []
    return [(pack.void, pack.void_graph) if pack.void_graph else pack.void]
