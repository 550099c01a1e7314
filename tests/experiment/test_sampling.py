"""Several attempts at a task, and the one that is submitted; no gold is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reasoningbank.agents import Attempt, Budget
from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.experiment import SamplingSettings
from reasoningbank.experiment.sampling import Sampled, rollout_seed, sample
from reasoningbank.judge import Answer
from reasoningbank.trajectory import Trajectory, Usage

A, B = (Answer.of_rows(["x"], [[f"<http://e/{name}>"]]) for name in "ab")
#: The same result as A, its column under another name.
A_TOO = Answer.of_rows(["plant"], [["<http://e/a>"]])
NO_ROWS = Answer.of_rows(["x"], [])
RESULTS = {"a": A, "a too": A_TOO, "b": B, "none": NO_ROWS, "also none": NO_ROWS}


def run(sparql: str) -> Answer:
    if sparql not in RESULTS:
        raise QueryError("the query does not parse")
    return RESULTS[sparql]


def attempts(
    *queries: str | None,
    tokens: int = 10,
    reported: list[Any] | None = None,
    warm: list[Any] | None = None,
) -> Callable[[int, str, Budget, float | None], Attempt]:
    def attempt(
        number: int, note: str, budget: Budget, temperature: float | None = None
    ) -> Attempt:
        if reported is not None:
            reported.append((note, budget))
        if warm is not None:
            warm.append(temperature)
        usage = Usage(lm_calls=1, prompt_tokens=tokens)
        query = queries[number]
        status: Any = "refused" if query is None else "submitted"
        return Attempt(query, "", status, usage, Trajectory())

    return attempt


def parallel(*queries: str | None, k: int | None = None, **rest: Any) -> Sampled:
    settings = SamplingSettings(k=k or len(queries))
    return sample(settings, attempts(*queries), run, budget=Budget(), **rest)


@pytest.mark.parametrize(
    ("queries", "chosen", "agreed"),
    [
        (["b", "a", "a too"], 1, 2),  # two agree, whatever they call their column
        (["a", "b"], 0, 1),  # a tie: the first
        (["syntax", "none", "b"], 2, 1),  # rows before none, none before an error
        (["none", "also none", "b"], 2, 1),  # that two find nothing is no agreement
        (["none", "also none", "syntax"], 0, 2),
        (["syntax", "other syntax"], 0, 0),
        ([None, "syntax"], 1, 0),  # any query before none
        ([None, None], 0, 0),
    ],
)
def test_the_result_that_most_agree_on_is_submitted(
    queries: list[str | None], chosen: int, agreed: int
) -> None:
    found = parallel(*queries)
    assert (found.chosen.number, found.chosen.agreed) == (chosen, agreed)
    assert [one.number for one in found.others] == [n for n in range(len(queries)) if n != chosen]
    assert found.attempt.usage.lm_calls == len(queries)
    assert found.attempt.usage.tokens == 10 * len(queries)


@pytest.mark.parametrize(
    ("queries", "chosen", "made"),
    [
        (["a", "b", "b"], 0, 1),
        (["none", "a", "b"], 1, 2),
        (["syntax", "none", "b"], 2, 3),
        (["syntax", "none", None], 1, 3),
    ],
)
def test_a_retry_is_made_only_while_no_attempt_has_rows(
    queries: list[str | None], chosen: int, made: int
) -> None:
    settings = SamplingSettings(kind="retry", k=3)
    found = sample(settings, attempts(*queries), run, budget=Budget())
    assert (found.chosen.number, 1 + len(found.others)) == (chosen, made)


def test_a_budget_is_of_all_attempts_together() -> None:
    reported: list[Any] = []
    settings = SamplingSettings(k=5)
    budget = Budget(lm_calls=3, tokens=1000)
    found = sample(settings, attempts(*"aaaaa", reported=reported), run, budget=budget)
    assert len(found.others) == 2
    assert [(left.lm_calls, left.tokens) for _, left in reported] == [(3, 1000), (2, 990), (1, 980)]
    assert all(left.iterations == budget.iterations for _, left in reported)


@pytest.mark.parametrize(
    ("prices", "made"), [((0.25, 0.25, 0.25), 3), ((0.5, 0.5), 2), ((0.25, None, 0.25), 2)]
)
def test_dollars_are_not_spent_beyond_what_is_known(
    prices: tuple[float | None, ...], made: int
) -> None:
    def priced(number: int, note: str, budget: Budget, _: float | None) -> Attempt:
        return Attempt("a", "", "submitted", Usage(1, dollars=prices[number]), Trajectory())

    settings = SamplingSettings(k=len(prices))
    found = sample(settings, priced, run, budget=Budget(dollars=0.9))
    assert 1 + len(found.others) == made


@pytest.mark.parametrize(("tokens", "made"), [(5, 1), (10, 1), (11, 2), (24, 3), (30, 3), (999, 6)])
def test_matched_attempts_never_spend_less_than_is_wanted(tokens: int, made: int) -> None:
    found = parallel(*"aaaaaa", tokens=tokens)
    assert 1 + len(found.others) == made
    assert found.attempt.usage.tokens >= min(tokens, 60)


def test_each_attempt_has_its_own_seconds() -> None:
    reported: list[Any] = []

    def slow(number: int, note: str, budget: Budget, _: float | None) -> Attempt:
        reported.append(budget.seconds)
        return Attempt("a", "", "submitted", Usage(lm_calls=1, seconds=400), Trajectory())

    found = sample(SamplingSettings(k=3), slow, run, budget=Budget(seconds=600))
    assert reported == [600, 600, 600]
    assert found.attempt.usage.seconds == 1200


def test_refinements_see_what_the_last_query_returned() -> None:
    reported: list[Any] = []
    settings = SamplingSettings(kind="sequential", k=4)
    made = attempts("syntax", "none", "b", "also syntax", reported=reported)
    found = sample(settings, made, run, budget=Budget(), prefixes={"e": "http://e/"})
    notes = [note for note, _ in reported]
    assert notes[0] == ""
    assert "syntax" in notes[1]
    assert "It does not run: the query does not parse" in notes[1]
    assert "It runs and returns no rows." in notes[2]
    assert "x\ne:b" in notes[3]
    assert found.chosen.attempt.sparql == "b"


def test_refinements_see_what_is_wrong_with_the_last_query() -> None:
    reported: list[Any] = []
    asked: list[tuple[str, bool]] = []

    def explain(query: str, empty: bool) -> list[str]:
        asked.append((query, empty))
        return [f"{query} is no name"]

    made = attempts("syntax", "none", "b", reported=reported)
    settings = SamplingSettings(kind="sequential", k=3)
    sample(settings, made, run, budget=Budget(), explain=explain)
    assert asked == [("syntax", False), ("none", True)]
    assert ["is no name" in note for note, _ in reported] == [False, True, True]
    assert "It runs and returns no rows.\nnone is no name\n" in reported[2][0]


def test_refining_ends_when_a_query_with_rows_comes_again() -> None:
    settings = SamplingSettings(kind="sequential", k=4)
    found = sample(settings, attempts("syntax", "a", "a", "b"), run, budget=Budget())
    assert (found.chosen.number, len(found.others)) == (2, 2)


def test_a_query_without_rows_that_comes_again_is_asked_for_with_a_temperature() -> None:
    warm: list[float | None] = []
    settings = SamplingSettings(kind="sequential", k=5)
    made = attempts("none", "none", "syntax", "a", "a", warm=warm)
    found = sample(settings, made, run, budget=Budget())
    assert warm == [None, None, 0.7, None, None]
    assert found.chosen.number == 4
    warm.clear()
    sample(SamplingSettings(k=3), attempts(*["none"] * 3, warm=warm), run, budget=Budget())
    assert warm == [None, None, None]


def test_the_infrastructures_failure_ends_them_all() -> None:
    def gone(sparql: str) -> Answer:
        raise EndpointError("the endpoint is gone")

    found = sample(SamplingSettings(k=3), attempts(*"abb"), gone, budget=Budget())
    assert found.attempt.status == "error"
    assert "gone" in found.attempt.error
    assert found.attempt.usage.lm_calls == 1


def test_each_attempt_has_a_seed_of_its_own_and_the_first_the_trials() -> None:
    seeds = [rollout_seed(seed, number) for seed in range(3) for number in range(3)]
    assert len(set(seeds)) == 9
    assert seeds[::3] == [0, 1, 2]
