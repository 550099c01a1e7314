"""A query is parsed once, whoever asks; a failure is not remembered."""

from __future__ import annotations

import pytest

from reasoningbank.sparql import parsers
from reasoningbank.sparql.query import prepare

QUERY = "SELECT ?s WHERE { ?s <urn:parsed:once> ?o }"


def test_preparing_a_query_again_parses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(QUERY, limit=5)
    monkeypatch.setattr(parsers, "parse_algebra", None)
    again = prepare(QUERY, limit=7)
    assert again.parsed is first.parsed is not None
    assert (first.limit, again.limit) == (5, 7)


def test_a_failure_is_told_each_time() -> None:
    before = parsers.parse_once.cache_info().currsize
    for _ in range(2):
        with pytest.raises(Exception, match="Expected"):
            parsers.parse_once("SELECT ?s {")
    assert parsers.parse_once.cache_info().currsize == before
