"""The context: its layers, their order and their budgets; its beginning never changes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory import MemoryItem
from reasoningbank.memory.context import Budgets, ContextBuilder, procedures
from reasoningbank.memory.layer import load_notes
from reasoningbank.memory.schema_card import SchemaCard
from reasoningbank.memory.search import FoundItem, Retrieval, item_text
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig

from ..coded import raises
from .conftest import Known

QUESTIONS = ("Which proteins come from snakes?", "What is the mass of P04637?", "Quali malattie?")


def builder(known: Known, layers: str, budgets: Budgets | None = None) -> ContextBuilder:
    return ContextBuilder(
        layers.split(),
        endpoint=known.endpoint,
        vocabulary=known.vocabulary,
        pack=known.pack,
        discovery=known.discovery,
        schema_card=SchemaCard(known.endpoint, known.schema, known.index, load_notes(known.pack)),
        budgets=budgets or Budgets(),
    )


def found(*titles: str) -> Retrieval:
    items = [
        MemoryItem(title, "When asked", f"Do {title}.\nThen stop.", "seed") for title in titles
    ]
    shown = [(item, item_text(item)) for item in items]
    hits = tuple(FoundItem(item, 1.0, text, count_tokens(text)) for item, text in shown)
    return Retrieval("q", hits)


@pytest.fixture(scope="module")
def whole(uniprot: Known) -> ContextBuilder:
    return builder(uniprot, "L2 L1 L3 L0")


def test_static_layers_come_first(whole: ContextBuilder) -> None:
    built = [whole.build(question, found("a", "b")) for question in QUESTIONS]
    assert len({context.text for context in built}) == 3
    assert {context.static for context in built} == {whole.static}
    for context in built:
        assert context.text.startswith(f"{whole.static}\n\nSchema. ")
        order = [context.text.index(head) for head in ("UniProt <", "Guide:", "Schema.", "From e")]
        assert order == sorted(order)
        assert context.tokens == count_tokens(context.text)
        assert list(context.by_layer) == ["L0", "L1", "L2", "L3"]
        assert context.tokens <= sum(context.by_layer.values()) + 6


def test_every_choice_of_layers_holds_those_and_no_others(
    uniprot: Known, whole: ContextBuilder
) -> None:
    heads = {"L0": "UniProt <", "L1": "Schema. ", "L2": "From earlier tasks:", "L3": "Guide:"}
    texts = whole.build(QUESTIONS[0], found("a")).text.split("\n\n")
    parts = dict(zip(("L0", "L3", "L1"), texts, strict=False))
    for number in range(5):
        for chosen in itertools.combinations(heads, number):
            context = builder(uniprot, " ".join(chosen)).build(QUESTIONS[0], found("a"))
            assert [name for name in heads if heads[name] in context.text] == list(chosen)
            assert set(context.by_layer) == set(chosen)
            for name in set(chosen) & {"L0", "L1", "L3"}:
                assert parts[name] in context.text
    assert builder(uniprot, "").build("q", found("a")).text == ""


def test_budgets_hold(uniprot: Known) -> None:
    small = builder(uniprot, "L0 L1 L2 L3", Budgets(60, 90, 40, 50))
    context = small.build(QUESTIONS[0], found("a", "b", "c"))
    for name, most in (("L0", 60), ("L1", 90), ("L3", 50), ("L2", 40 + 10)):
        assert 0 < context.by_layer[name] <= most
    nothing = builder(uniprot, "L0 L1 L2 L3", Budgets(0, 0, 0, 0)).build("q", found("a"))
    assert (nothing.text, nothing.static, nothing.tokens) == ("", "", 0)


def test_items_are_shown_whole_or_not_and_the_record_says_which() -> None:
    retrieval = found("first", "second", "third")
    size = retrieval.found[0].tokens
    layer, shown = procedures(retrieval, 2 * size)
    assert shown is not None
    assert [hit.item.title for hit in shown.found] == ["first", "second"]
    assert shown.tokens == 2 * size
    assert [item_id for item_id, _ in shown.skipped] == [retrieval.found[2].item.id]
    assert layer.text == "\n\n".join(["From earlier tasks:", *(h.text for h in shown.found)])
    all_of_them, same = procedures(retrieval, retrieval.tokens)
    assert same is retrieval
    assert all(hit.text in all_of_them.text for hit in retrieval.found)
    assert procedures(None)[0].text == procedures(Retrieval("q"))[0].text == ""


def test_the_context_says_what_was_retrieved(uniprot: Known, whole: ContextBuilder) -> None:
    retrieval = found("a")
    assert whole.build("q", retrieval).retrieval is retrieval
    assert whole.build("q").retrieval is None
    # Nothing is shown where the layer is switched off.
    assert builder(uniprot, "L1").build("q", retrieval).retrieval is None


def test_an_unknown_layer_is_refused(uniprot: Known) -> None:
    with raises(UsageError, "unknown-layer"):
        builder(uniprot, "L4")


def test_an_endpoint_without_a_pack(trees: EndpointConfig) -> None:
    bare = ContextBuilder(("L0", "L1", "L2", "L3"), endpoint=trees, vocabulary=Schema.of(trees))
    context = bare.build("Which trees are the highest?")
    assert context.text.startswith("Trees <https://trees.example/sparql/>: its size is unknown.")
    assert "t:height" in context.text
    assert context.by_layer["L3"] == context.by_layer["L2"] == 0


def test_the_endpoint_is_asked_to_describe_itself_for_l0_only(
    trees: EndpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("reasoningbank.memory.context.discover", asked.append)
    card = ContextBuilder(("L1", "L2"), endpoint=trees, vocabulary=Schema.of(trees)).build("High?")
    assert "t:height" in card.text
    assert not asked
    ContextBuilder(("L0",), endpoint=trees, vocabulary=Schema.of(trees))
    assert len(asked) == 1


SCRIPT = """
from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.memory.context import ContextBuilder
from reasoningbank.schema import Schema
pack = load_pack("uniprot")
with open_endpoint(pack) as endpoint:
    vocabulary = Schema.of(endpoint, pack.schema)
    builder = ContextBuilder(
        ["L0", "L1", "L3"], endpoint=endpoint, vocabulary=vocabulary, pack=pack
    )
    print(builder.build("Which proteins come from snakes?").text)
"""


def test_another_process_builds_the_same_bytes(whole: ContextBuilder) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert done.stdout.decode().rstrip("\n") == whole.build(QUESTIONS[0]).text
