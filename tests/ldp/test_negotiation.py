"""Which format is sent, and whether a copy is current."""

from __future__ import annotations

import pytest

from reasoningbank.ldp.exchange import Conditions, Refused, best, read_triples

OFFERS = ["text/turtle", "application/n-triples", "application/ld+json"]


@pytest.mark.parametrize(
    ("accept", "offer"),
    [
        ("", "text/turtle"),
        ("*/*", "text/turtle"),
        ("application/*", "application/n-triples"),
        ("text/html, application/ld+json;q=0.1", "application/ld+json"),
        ("text/turtle;q=0.2, application/*;q=0.3", "application/n-triples"),
        ("*/*;q=0.9, text/turtle;q=0.1", "application/n-triples"),
        ("*/*, text/turtle;q=0, application/n-triples;q=0", "application/ld+json"),
        ("TEXT/TURTLE ; q=1.0", "text/turtle"),
        ("text/html", None),
        ("text/turtle;q=x", None),
    ],
)
def test_the_format_that_is_liked_best(accept: str, offer: str | None) -> None:
    assert best(accept, OFFERS) == offer


@pytest.mark.parametrize(
    ("conditions", "version", "met"),
    [
        (Conditions(), None, True),
        (Conditions(if_match='"v.ttl"'), "v", True),
        (Conditions(if_match='"u.ttl", "v.nt"'), "v", True),
        (Conditions(if_match='"u.ttl"'), "v", False),
        (Conditions(if_match='W/"v.ttl"'), "v", False),
        (Conditions(if_match="*"), "v", True),
        (Conditions(if_match="*"), None, False),
        (Conditions(if_none_match="*"), None, True),
        (Conditions(if_none_match="*"), "v", False),
        (Conditions(if_none_match='"v.ttl"'), "v", False),
    ],
)
def test_conditions_of_writes(conditions: Conditions, version: str | None, met: bool) -> None:
    if met:
        conditions.check(version)
        return
    with pytest.raises(Refused) as refused:
        conditions.check(version)
    assert refused.value.status == 412


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"<a> <b>", "text/turtle", 400),
        (b"{", "application/ld+json", 400),
        (b'{"@context": "http://e/c", "a": 1}', "application/ld+json", 400),
        (
            b'{"@id": "http://e/g", "@graph": [{"@id": "http://e/a", "http://e/b": 1}]}',
            "application/ld+json",
            400,
        ),
        (b'<!DOCTYPE r [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><r/>', "application/rdf+xml", 400),
        (b"a,b", "text/csv", 415),
        (b"", "", 415),
    ],
)
def test_what_is_not_a_graph_is_refused_in_a_line(
    body: bytes, media_type: str, status: int
) -> None:
    with pytest.raises(Refused) as refused:
        read_triples(body, media_type, "http://e/d")
    assert refused.value.status == status
    assert "\n" not in refused.value.why


def test_blank_nodes_of_two_bodies_are_not_the_same() -> None:
    body = b"_:a <http://e/p> 1 ."
    one, other = (read_triples(body, "text/turtle", "http://e/") for _ in range(2))
    assert one != other
