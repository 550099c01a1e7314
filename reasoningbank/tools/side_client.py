"""Asking an endpoint on the side, for hints and statistics that nobody may have to wait for."""

from __future__ import annotations

from dataclasses import replace

from reasoningbank.sparql import EndpointConfig, SPARQLClient

__all__ = ["bounded_client"]


def bounded_client(config: EndpointConfig, timeout_s: float) -> SPARQLClient:
    """Return a client of the same endpoint whose requests end within so many seconds.

    What is asked on the side must not hold up an agent: nothing is tried twice.
    """
    return SPARQLClient(replace(config, retries=0, timeout_s=timeout_s, deadline_s=timeout_s))
