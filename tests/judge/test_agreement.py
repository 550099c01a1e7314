"""Agreement against values computed elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from reasoningbank.judge import agreement, agreement_with, pairs_with, rule_verdict
from reasoningbank.judge.agreement import Agreement


def pairs(both: int, only_reference: int, only_judge: int, neither: int) -> list[tuple[bool, bool]]:
    return (
        [(True, True)] * both
        + [(True, False)] * only_reference
        + [(False, True)] * only_judge
        + [(False, False)] * neither
    )


@pytest.mark.parametrize(
    ("cells", "kappa"),
    [
        # The worked examples of the literature on kappa (grant readers; same accuracy of 0.6,
        # different kappas).
        ((20, 5, 10, 15), 0.4),
        ((45, 15, 25, 15), 0.1304),
        ((25, 35, 5, 35), 0.2593),
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
    ],
)
def test_kappa_as_published(cells: tuple[int, int, int, int], kappa: float) -> None:
    assert agreement(pairs(*cells)).kappa == pytest.approx(kappa, abs=5e-5)


def test_kappa_by_its_definition() -> None:
    found = agreement(pairs(31, 4, 9, 17))
    n = 61
    observed = (31 + 17) / n
    by_chance = (31 + 4) / n * (31 + 9) / n + (9 + 17) / n * (4 + 17) / n
    assert found.kappa == pytest.approx((observed - by_chance) / (1 - by_chance))
    assert found == Agreement(
        true_positives=31, false_positives=9, false_negatives=4, true_negatives=17
    )
    assert found.precision == pytest.approx(31 / 40)
    assert found.recall == pytest.approx(31 / 35)
    assert found.accuracy == pytest.approx(48 / 61)


def test_what_is_not_defined_is_none() -> None:
    nothing = agreement([])
    assert (nothing.kappa, nothing.precision, nothing.recall, nothing.accuracy) == (None,) * 4
    always = agreement(pairs(8, 0, 0, 0))
    assert always.kappa is None
    assert always.accuracy == 1.0


@dataclass(frozen=True)
class Record:
    verdict: Mapping[str, Any] | None
    judgements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def judged(
    strict: bool, said: bool, status: str = "judged", lenient: bool = False, rows: int = 1
) -> Record:
    verdict = {"strict": strict, "lenient": lenient, "status": status, "n_predicted": rows}
    return Record(verdict, {"lm:x": {"success": said, "status": "judged"}})


def test_pairs_come_from_records() -> None:
    records = [
        judged(True, True, lenient=True),
        judged(False, True, lenient=True),
        judged(False, False, status="query_error", rows=0),
        judged(False, False, rows=0),
        judged(False, True, status="gold_defect"),
        Record(None, {"lm:x": {"success": True}}),
        Record({"strict": True, "status": "judged", "n_predicted": 2}),
        Record(
            {"strict": False, "status": "judged", "n_predicted": 2},
            {"lm:x": {"success": None, "status": "unparsed"}},
        ),
    ]
    assert pairs_with("lm:x", records) == [
        (True, True),
        (False, True),
        (False, False),
        (False, False),
    ]
    assert agreement_with("lm:x", records).precision == 0.5
    assert agreement_with("lm:x", records, metric="lenient").precision == 1.0
    # The rule needs no judgement in the record, and judges all that was run.
    assert agreement_with("rule", records) == Agreement(2, 2, 0, 2)
    assert agreement_with("lm:y", records).n == 0


def test_the_rule_says_no_more_than_that_it_ran_and_has_rows() -> None:
    plausible = {"status": "judged", "n_predicted": 1, "strict": False}
    said = rule_verdict(plausible)
    assert said is not None
    assert (said["success"], said["reason"]) == (True, "it ran and has 1 row")
    for status, rows in (("judged", 0), ("query_timeout", 0), ("no_query", 0)):
        verdict = rule_verdict({"status": status, "n_predicted": rows})
        assert verdict is not None
        assert not verdict["success"]
    assert rule_verdict({"status": "gold_defect"}) is None


def test_agreement_is_plain_data() -> None:
    data = agreement(pairs(20, 5, 10, 15)).to_json()
    assert (data["n"], data["false_positives"], data["false_negatives"]) == (50, 10, 5)
    assert data["kappa"] == pytest.approx(0.4)
