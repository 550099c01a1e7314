"""The estimate of tokens beside the local model's own tokenizer, whose counts are recorded."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoningbank.lm.tokens import count_tokens, estimate_tokens

COUNTED = json.loads(Path(__file__).with_name("token_counts.json").read_text(encoding="utf-8"))

#: How far the texts of one kind may be off together, and one of them alone.
OFF = {"italian": (0.15, 0.25)}


@pytest.mark.parametrize("kind", sorted({one["kind"] for one in COUNTED}))
def test_it_is_near_the_tokenizer(kind: str) -> None:
    texts = [(one["text"], one["tokens"]) for one in COUNTED if one["kind"] == kind]
    assert len(texts) >= 4
    together, alone = OFF.get(kind, (0.08, 0.2))
    told = [count_tokens(text) for text, _ in texts]
    assert sum(told) / sum(real for _, real in texts) == pytest.approx(1, abs=together)
    for number, (_, real) in zip(told, texts, strict=True):
        assert number / real == pytest.approx(1, abs=alone)


def test_the_record_holds_what_it_is_for() -> None:
    sizes = {kind: len(list(of)) for kind, of in groupby(COUNTED, lambda one: one["kind"])}
    assert set(sizes) == {"question", "query", "hint", "italian", "turtle", "prose"}


@given(st.text())
def test_any_text_has_a_count(text: str) -> None:
    number = count_tokens(text)
    assert number == count_tokens(text)
    assert (number > 0) == bool(text)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n"), min_size=1).filter(str.strip)))
def test_lines_add_up(lines: list[str]) -> None:
    ended = [f"{line}\n" for line in lines]
    whole = estimate_tokens("".join(ended))
    assert sum(map(estimate_tokens, ended)) == pytest.approx(whole, abs=len(lines) or 1e-9)
    assert sum(map(estimate_tokens, ended)) >= whole - 1e-6


def test_parts_are_cheaper_together() -> None:
    assert count_tokens("P05067") == 6
    assert count_tokens("proteins") < count_tokens("p r o t e i n s")
