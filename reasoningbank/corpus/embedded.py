"""A pack's endpoints, opened: their data served on loopback, or a running endpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from reasoningbank.corpus.pack import FederatedEndpoint, Pack, endpoint_config, federated_config
from reasoningbank.errors import UsageError
from reasoningbank.sparql import EndpointConfig, OxigraphServer

__all__ = ["open_endpoint"]

#: The engine's own limit; clients set shorter ones, the judge's is the longest.
SERVER_TIMEOUT_S = 90.0


@contextlib.contextmanager
def open_endpoint(
    pack: Pack, url: str | None = None, *, port: int | None = None, services: Iterable[str] = ()
) -> Iterator[EndpointConfig]:
    """Make a pack's endpoint, and those it federates with, reachable for the length of a block.

    The pack's own data and those of each federated endpoint are served on a loopback port each,
    started side by side. SERVICE clauses name the public addresses, as at the public endpoints;
    the configuration's `aliases` lead them to the servers. A federated endpoint without data is
    not reachable beside an embedded one.

    Args:
        pack: The pack.
        url: A running endpoint to use. Without one the pack's own data are served on loopback;
            a pack without data is reached at its public address. Either way the endpoints it
            federates with are then the public ones.
        port: Port of the embedded server of the pack's own data; a free one by default.
        services: What SERVICE may name at a running endpoint, besides the endpoints that the
            pack federates with, e.g. those that the examples of a bare folder name.

    Yields:
        The configuration that tools and judge use; `federated` holds one for each endpoint
        that can be asked directly.

    Raises:
        UsageError: If the pack has neither data nor an address, or a data file is missing.
        SetupError: If a server does not start, or the port is in use.
    """
    if url is not None or not pack.data:
        public = [federated_config(pack, other) for other in pack.federated]
        config = endpoint_config(pack, url, federated=public)
        # An agent must not make a public server send data to an address of its choice.
        yield replace(config, services=(*(other.url for other in pack.federated), *services))
        return
    others = [other for other in pack.federated if other.data]
    servers = [
        _server(pack, port=port),
        *(_server(other) for other in others),
    ]
    with _running(servers):
        aliases = {
            public: server.url
            for public, server in zip(
                (pack.endpoint, *(other.url for other in others)), servers, strict=True
            )
        }
        federated = [
            federated_config(pack, other, server.url, aliases=aliases)
            for other, server in zip(others, servers[1:], strict=True)
        ]
        yield endpoint_config(pack, servers[0].url, federated=federated, aliases=aliases)


@contextlib.contextmanager
def _running(servers: Sequence[OxigraphServer]) -> Iterator[None]:
    try:
        with ThreadPoolExecutor(max_workers=len(servers)) as pool:
            # The first failure is raised when all have come up or failed; none is left running.
            for _ in pool.map(OxigraphServer.start, servers):
                pass
        yield
    finally:
        for server in servers:
            server.stop()


def _server(source: Pack | FederatedEndpoint, *, port: int | None = None) -> OxigraphServer:
    for path in source.data:
        if not path.exists():
            raise UsageError("the pack's data file is missing", where=str(path))
    return OxigraphServer(
        [*source.data, *_void(source)],
        union_default_graph=source.union_default_graph,
        timeout_s=SERVER_TIMEOUT_S,
        port=port,
    )


def _void(source: Pack | FederatedEndpoint) -> list[Path | tuple[Path, str]]:
    if source.void is None or not source.void.exists():
        return []
    return [(source.void, source.void_graph) if source.void_graph else source.void]
