"""Names are searched with one safe query and ranked by fit."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from reasoningbank.errors import QueryError
from reasoningbank.tools.labels import label_search, rank_by_label

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


def found(text: str, *labels: str) -> list[str]:
    store = Store()
    for i, label in enumerate(labels):
        store.add(Quad(NamedNode(f"http://e/{i}"), NamedNode(LABEL), Literal(label)))
    return sorted(row["label"].value for row in store.query(label_search(text, [LABEL])))  # type: ignore[union-attr]


def test_case_and_spaces_make_no_difference() -> None:
    assert found("  PROTEIN   kinase ", "A protein Kinase C", "Kinase") == ["A protein Kinase C"]


@pytest.mark.parametrize(
    "text",
    ['say "hi"', "a\\b", 'x")) } } #', "it's {?s ?p ?o}", "${x}", "a.*b", "\u00e9t\u00e9"],
)
def test_every_text_is_searched_as_it_is(text: str) -> None:
    assert found(text, f"<{text}>", "aXXb", "anything else") == [f"<{text}>"]


def test_other_properties_are_not_searched() -> None:
    store = Store()
    store.add(Quad(NamedNode("http://e/a"), NamedNode("http://e/note"), Literal("oak")))
    assert not list(store.query(label_search("oak", [LABEL])))  # type: ignore[arg-type]


def test_a_label_property_that_is_no_iri_never_reaches_a_query() -> None:
    with pytest.raises((QueryError, ValueError)):
        label_search("oak", ["http://e/> ?x . ?y <http://e/"])


def test_the_whole_label_comes_first_then_its_beginning_then_a_word() -> None:
    labels = ["Protokinase", "A kinase", "Kinases", "kinase", "Kinase of a kind"]
    ranked = rank_by_label([{"label": label} for label in labels], " Kinase ")
    assert [row["label"] for row in ranked] == [
        "kinase",
        "Kinases",
        "Kinase of a kind",
        "A kinase",
        "Protokinase",
    ]
