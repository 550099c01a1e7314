"""Whether a query works at its endpoint: it executes, in time, and gives something."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.errors import QueryError
from reasoningbank.nl2sparql.patterns import DEFAULT_PACK
from reasoningbank.nl2sparql.problems import Problem, Validation
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    GraphResult,
    Result,
    SPARQLClient,
    compact,
)

__all__ = ["EndpointValidation", "validate_endpoint"]

#: Rows shown of a result, and rows asked for.
SHOWN, MOST_ROWS = 10, 10_000


@dataclass(frozen=True)
class EndpointValidation(Validation):
    """What a query gave.

    It unpacks into four: whether it worked, the error (None where it did), the number of rows,
    and the first rows.

    Attributes:
        executed: Whether the endpoint answered; an empty answer counts.
        rows: Number of rows, or of triples; 1 for an ASK.
        truncated: Whether there were more.
        results: The first rows, by column, terms as a prompt writes them.
        seconds: How long it took.
    """

    executed: bool = False
    rows: int = 0
    truncated: bool = False
    results: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0

    def __iter__(self) -> Iterator[Any]:
        error = None if self.executed else "; ".join(map(str, self.problems))
        return iter((self.executed, error, self.rows, list(self.results)))


def validate_endpoint(
    sparql: str, endpoint: EndpointConfig | SPARQLClient | None = None, timeout: float = 30.0
) -> EndpointValidation:
    """Execute a query.

    An empty SELECT, CONSTRUCT or DESCRIBE is a problem, since a question seldom asks for nothing;
    ASK is right either way.

    Args:
        sparql: A query; the endpoint's prefixes need not be declared.
        endpoint: The endpoint, or a client of it. Without one that of the pack `liita` is opened,
            which takes a second or two: for many queries open it once.
        timeout: Seconds it may take.

    Raises:
        EndpointError: The endpoint fails, which is no fault of the query.

    Examples:
        >>> nobody = EndpointConfig("http://127.0.0.1:9/sparql", "Nobody")
        >>> success, error, count, results = validate_endpoint("SELECT * {", nobody)
        >>> success, error
        (False, "line 1, column 10: the query cannot be parsed near ...")
    """
    if endpoint is None:
        with open_endpoint(load_pack(DEFAULT_PACK)) as opened:
            return validate_endpoint(sparql, opened, timeout)
    client = endpoint if isinstance(endpoint, SPARQLClient) else SPARQLClient(endpoint)
    began = time.monotonic()
    try:
        result = client.query(sparql, timeout_s=timeout, max_rows=MOST_ROWS)
    except QueryError as error:
        problem = Problem.of_error("endpoint", "not-executed", error)
        return EndpointValidation((problem,), seconds=time.monotonic() - began)
    finally:
        if client is not endpoint:
            client.close()
    problems: tuple[Problem, ...] = ()
    if result.n_rows == 0:
        what = "triples" if isinstance(result, GraphResult) else "rows"
        hint = "check names, graphs and directions, or loosen the narrowest condition"
        problems = (Problem("endpoint", "empty", f"the query executes but gives no {what}", hint),)
    return EndpointValidation(
        problems,
        executed=True,
        rows=result.n_rows,
        truncated=result.truncated,
        results=tuple(_shown(result, client)),
        seconds=result.seconds,
    )


def _shown(result: Result, client: SPARQLClient) -> Iterator[dict[str, Any]]:
    if isinstance(result, BooleanResult):
        yield {"answer": result.value}
        return
    for row in result.rows(0, SHOWN):
        yield {
            name: compact(term, client.config.namespaces)
            for name, term in zip(result.variables, row, strict=True)
            if term is not None
        }
