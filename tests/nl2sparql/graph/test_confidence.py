"""Confidence: a score that orders, and a table that says what it is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dspy.utils import DummyLM

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.confidence import confidence_score, fit_calibration, load_calibration
from reasoningbank.nl2sparql.graph import NL2SPARQLAgent
from reasoningbank.sparql import EndpointConfig

from .replies import QUERY, QUESTION, analysis, verified, written


def test_the_table_is_what_was_measured() -> None:
    judged = [(0.9, n < 30) for n in range(40)] + [(0.5, n < 10) for n in range(40)]
    table = fit_calibration(judged, "m")
    assert table.rate(0.9) == pytest.approx(30.5 / 41, abs=1e-4)
    assert table.rate(0.5) == pytest.approx(10.5 / 41, abs=1e-4)
    assert (table.trials, table.model) == (80, "m")


def test_rates_never_fall_as_scores_rise() -> None:
    table = fit_calibration([(0.1, True), (0.3, False), (0.6, True), (0.8, False), (0.9, True)])
    assert list(table.rates) == sorted(table.rates)


def test_of_nothing_no_table_is_made() -> None:
    with pytest.raises(UsageError, match="no judged trial"):
        fit_calibration([])


def test_a_score_rises_with_what_speaks_for_a_query() -> None:
    worst = confidence_score(valid=False, similarity=0.2, attempts=3)
    later = confidence_score(valid=True, similarity=0.2, attempts=3)
    first = confidence_score(valid=True, similarity=0.2, attempts=1)
    assert worst < later < first < confidence_score(valid=True, similarity=0.9, attempts=1)


def test_a_packs_table_gives_the_confidence(
    forest: Pack, trees: EndpointConfig, tmp_path: Path
) -> None:
    table = fit_calibration([(0.2, False), (0.7, True), (1.0, False), (1.0, True)])
    (tmp_path / "calibration.json").write_text(table.model_dump_json())
    pack = replace(forest, hints=tmp_path)
    assert load_calibration(pack) == table
    lm = DummyLM([analysis("KIND"), written(QUERY), verified()])
    with NL2SPARQLAgent(pack=pack, endpoint=trees, lms=(lm, lm)) as agent:
        *_, (_, state) = agent.stream(QUESTION)
    assert state["calibrated"]
    assert state["confidence"] == table.rate(state["score"])


def test_a_table_of_another_model_is_not_used(
    forest: Pack, trees: EndpointConfig, tmp_path: Path
) -> None:
    judged = [(0.2, False), (0.7, True), (1.0, False), (1.0, True)]
    pack = replace(forest, hints=tmp_path)
    for of, used in (("local/another", False), ("dummy", True)):
        table = fit_calibration(judged, of)
        (tmp_path / "calibration.json").write_text(table.model_dump_json())
        lm = DummyLM([analysis("KIND"), written(QUERY), verified()])
        with NL2SPARQLAgent(pack=pack, endpoint=trees, lms=(lm, lm)) as agent:
            *_, (_, state) = agent.stream(QUESTION)
        assert (lm.model, state["calibrated"]) == ("dummy", used)


@pytest.mark.parametrize(
    "text", ["{", '{"scores": [0.5], "rates": [2], "trials": 3}', '{"scores": [], "rates": []}']
)
def test_a_broken_table_is_told_in_one_line(forest: Pack, tmp_path: Path, text: str) -> None:
    (tmp_path / "calibration.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_calibration(replace(forest, hints=tmp_path))
    assert "calibration.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_table_nothing_is_measured(forest: Pack) -> None:
    assert load_calibration(forest) is None
