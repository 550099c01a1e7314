"""Addresses of documents: one spelling each, and nothing outside of the base."""

from __future__ import annotations

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.ldp.documents import ancestors, checked_base, document_url

BASE = "http://e/a/"


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("/a/", "http://e/a/"),
        ("/a/x", "http://e/a/x"),
        ("/a/x/", "http://e/a/x/"),
        ("/a/København", "http://e/a/K%C3%B8benhavn"),
        ("/a/K%c3%b8benhavn", "http://e/a/K%C3%B8benhavn"),
        ("/a/%7Ada%2e", "http://e/a/zda."),
        ("/a/x;y=1,2(3)", "http://e/a/x;y=1,2(3)"),
        ("/a/a b", "http://e/a/a%20b"),
        ("/a/<>", "http://e/a/%3C%3E"),
    ],
)
def test_one_spelling_of_each(target: str, url: str) -> None:
    assert document_url(BASE, target) == url


@pytest.mark.parametrize(
    "target",
    ["/", "/b", "/a/../b", "/a/.", "/a/%2e%2E/b", "/a//b", "/a/%zz", "/a/%", "/a/%00", "/ab", ""],
)
def test_no_document_is_there(target: str) -> None:
    assert document_url(BASE, target) is None


def test_a_base_is_an_address_that_ends_with_a_slash() -> None:
    assert checked_base("http://LocalHost:1/x") == "http://localhost:1/x/"
    for wrong in ("localhost", "file:///x/", "http://e/?q", "http://e/#f", "http://e/a/../b/"):
        with pytest.raises(UsageError, match="base address"):
            checked_base(wrong)


def test_the_base_has_no_container() -> None:
    assert ancestors(BASE, BASE) == []
    assert ancestors(BASE, "http://e/a/b/c") == [
        ("http://e/a/b/", "http://e/a/b/c"),
        ("http://e/a/", "http://e/a/b/"),
    ]


@pytest.mark.parametrize("base", ["http://e/Malmö/", "http://e/Malm%c3%b6", "http://e/Malm%C3%B6/"])
def test_a_base_is_spelled_as_its_documents_are(base: str) -> None:
    assert checked_base(base) == "http://e/Malm%C3%B6/"
    assert document_url(checked_base(base), "/Malmö/x") == "http://e/Malm%C3%B6/x"


@pytest.mark.parametrize(
    "base", ['http://ex"y/', "http://u:p@e/", "http://e:99999/", "http://e:0/", "http://[e/"]
)
def test_what_is_not_a_base_is_reported_in_a_line(base: str) -> None:
    with pytest.raises(UsageError, match="not a base address"):
        checked_base(base)
