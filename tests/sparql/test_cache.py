"""Answers of public endpoints are kept on disk, and nobody is asked twice for the same."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.sparql import EndpointConfig, SPARQLClient, client
from reasoningbank.sparql.answer_cache import AnswerCache
from reasoningbank.sparql.results import BooleanResult

QUERIES = (
    "SELECT ?s ?h WHERE { ?s t:height ?h } ORDER BY ?h",
    "ASK { t:oak t:near t:pine }",
    "CONSTRUCT { ?s t:high true } WHERE { ?s t:height ?h }",
    "SELECT * WHERE { t:nothing ?p ?o }",
    "SELECT (1 AS ?n) WHERE {}",
)


@pytest.fixture
def public(
    trees: EndpointConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> EndpointConfig:
    """The trees with a cache, taken for an endpoint elsewhere."""
    monkeypatch.setattr(client, "is_loopback", lambda _: False)
    return replace(trees, cache=tmp_path / "deep" / "answers.sqlite")


def test_a_kept_answer_is_the_answer(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        first = [asking.query(query) for query in QUERIES]
    gone = replace(public, name="Kept")
    with SPARQLClient(gone) as kept:
        kept.close()
        again = [kept.query(query) for query in QUERIES]
    for one, other in zip(first, again, strict=True):
        assert type(one) is type(other)
        assert (one.n_rows, one.truncated) == (other.n_rows, other.truncated)
        assert other.source == "Kept"
        if hasattr(one, "rows"):
            assert one.rows() == other.rows()  # type: ignore[union-attr]
        else:
            assert one.value == other.value  # type: ignore[union-attr]


def test_other_questions_and_other_bounds_are_asked(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        asking.query(QUERIES[0])
        asking.close()
        with pytest.raises(UsageError, match="closed"):
            asking.query(QUERIES[0], max_rows=1)
        with pytest.raises(UsageError, match="closed"):
            asking.query("ASK { t:oak t:near t:moss }")


def test_old_answers_are_asked_for_anew(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        asking.query(QUERIES[0])
    with SPARQLClient(replace(public, cache_age_s=0)) as asking:
        asking.close()
        with pytest.raises(UsageError, match="closed"):
            asking.query(QUERIES[0])


def test_failures_are_not_kept(public: EndpointConfig) -> None:
    dead = replace(public, query_url="http://127.0.0.1:9/sparql")
    for _ in range(2):
        with SPARQLClient(dead) as asking, pytest.raises(Exception, match="no connection"):
            asking.query(QUERIES[0])


def test_an_endpoint_on_loopback_is_never_cached(trees: EndpointConfig, tmp_path: Path) -> None:
    file = tmp_path / "answers.sqlite"
    with SPARQLClient(replace(trees, cache=file)) as asking:
        asking.query(QUERIES[0])
    assert not file.exists()


def test_equal_content_is_stored_once(public: EndpointConfig) -> None:
    with SPARQLClient(public) as asking:
        for number in range(5):
            asking.query(f"ASK {{ t:oak t:near t:pine }} # {number}")
    assert public.cache is not None
    with contextlib.closing(sqlite3.connect(public.cache)) as database:
        # Five answers, and their one content.
        assert database.execute("SELECT count(*) FROM entries").fetchone() == (6,)


def test_threads_share_it(public: EndpointConfig) -> None:
    failures: list[BaseException] = []

    def ask(number: int) -> None:
        try:
            with SPARQLClient(public) as asking:
                for at in range(5):
                    asking.query(f"SELECT ?s {{ ?s t:height ?h }} LIMIT {(number + at) % 7 + 1}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_file_that_is_no_cache_is_refused_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("my notes, not a database, and longer than a header " * 40)
    before = file.read_bytes()
    with pytest.raises(UsageError, match="cannot be opened"):
        AnswerCache(file)
    assert file.read_bytes() == before


def test_a_damaged_cache_is_set_aside_and_begun_anew(
    public: EndpointConfig, caplog: pytest.LogCaptureFixture
) -> None:
    file = public.cache
    assert file is not None
    file.parent.mkdir()
    kept = AnswerCache(file)
    kept.put("k", BooleanResult(True))
    kept.close()
    for damage in (file.read_bytes()[:4_096], b"garbage" * 3_000):
        file.write_bytes(damage)
        again = AnswerCache(file)
        assert again.get("k", max_age_s=60) is None
        again.put("k", BooleanResult(True))
        assert again.get("k", max_age_s=60) == BooleanResult(True)
        again.close()
        assert file.with_name("answers.sqlite.damaged").read_bytes() == damage
    assert caplog.text.count("renamed to answers.sqlite.damaged and started anew") == 2


@pytest.mark.parametrize(
    "poison",
    [
        "UPDATE entries SET value = x'00'",
        "UPDATE entries SET value = substr(value, 1, 40)",
        "UPDATE entries SET key = key || 'x' WHERE length(value) > 200",
        "DELETE FROM entries WHERE length(value) > 200",
    ],
)
def test_what_is_not_what_was_kept_is_asked_for_anew(public: EndpointConfig, poison: str) -> None:
    with SPARQLClient(public) as asking:
        right = asking.query(QUERIES[0])
        assert public.cache is not None
        with contextlib.closing(sqlite3.connect(public.cache)) as other, other:
            other.execute(poison)
        assert asking.query(QUERIES[0]).rows() == right.rows()  # type: ignore[union-attr]
        asking.close()
        kept = asking.query(QUERIES[0])
    assert kept.rows() == right.rows()  # type: ignore[union-attr]
