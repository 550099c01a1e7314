"""Agreement against values computed elsewhere."""

import pytest

from reasoningbank.judge import agreement
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
