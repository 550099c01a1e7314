"""What a run would take: LM calls, tokens, time and dollars, from what such trials took so far.

Measured trials give an *estimate*: the expected total and a 90 % prediction interval. Where there
are none, the budget gives an *upper bound*, and where it sets no limit either, nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from reasoningbank.agents import make_agent
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.measured import (
    Basis,
    Kinship,
    Measured,
    PastRun,
    find_basis,
    known_runs,
    read_runs,
)
from reasoningbank.experiment.records import RunFolder
from reasoningbank.lm import Price, parse_name, price_of

__all__ = ["Amount", "ArmEstimate", "RunEstimate", "Spread", "estimate_run"]

_SUMMED = ("lm_calls", "prompt_tokens", "completion_tokens", "seconds", "dollars", "requests")

#: Tokens that prompt and answer of one call may have, of a model that the harness serves.
_LOCAL_CONTEXT = 8192


@dataclass(frozen=True)
class Amount:
    """How much of one thing several trials will take together.

    Attributes:
        low: Lower end of the 90 % prediction interval; None where nothing was measured.
        expected: The expected total; None where nothing was measured.
        high: Upper end; where nothing was measured an upper bound, and None if there is none.
    """

    low: float | None = None
    expected: float | None = None
    high: float | None = None

    @property
    def is_bound(self) -> bool:
        """Whether it is an upper bound and no estimate."""
        return self.expected is None and self.high is not None

    def __add__(self, other: Amount) -> Amount:
        """Return the sum; its interval is as wide as if all erred in the same direction."""
        return Amount(
            *(
                None if a is None or b is None else a + b
                for a, b in zip(
                    (self.low, self.expected, self.high),
                    (other.low, other.expected, other.high),
                    strict=True,
                )
            )
        )

    def __mul__(self, factor: float) -> Amount:
        """Return so many times as much."""
        ends = (self.low, self.expected, self.high)
        return Amount(*(None if end is None else end * factor for end in ends))


_NOTHING = Amount(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile of what one trial took; None where nothing was measured."""

    median: float | None = None
    p95: float | None = None


@dataclass(frozen=True)
class ArmEstimate:
    """What the trials of one arm that are not on disk yet will take.

    Attributes:
        arm: Its name.
        agent: Name of its agent.
        lm: Name of its model; empty for an agent without one.
        planned: Its trials.
        done: Those on disk.
        todo: Those to run.
        lm_calls: Calls to the model.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens generated.
        seconds: Wall time with the workers of the experiment; starting up is not in it.
        dollars: Price; unknown where the price table does not know the model.
        requests: Requests to the endpoint, at the least: one a tool call, one a submitted query.
        trial_seconds: Seconds of one trial.
        trial_tokens: Tokens of one trial, sent and generated.
        kinship: What the numbers rest on; see `reasoningbank.experiment.measured.Kinship`.
        measured: On how many measured trials they rest.
        runs: The runs that these are of.
        models: The models that these asked.
        notes: What a reader should know of the numbers.
    """

    arm: str
    agent: str
    lm: str
    planned: int
    done: int
    todo: int
    lm_calls: Amount
    prompt_tokens: Amount
    completion_tokens: Amount
    seconds: Amount
    dollars: Amount
    requests: Amount
    trial_seconds: Spread
    trial_tokens: Spread
    kinship: Kinship
    measured: int
    runs: tuple[str, ...]
    models: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunEstimate:
    """What a run would take from where it stands.

    Attributes:
        name: The experiment's.
        folder: Where its records are, or will be.
        executor: `threads` or `dask`.
        workers: Trials at one time.
        arms: What each arm will take.
        total: Sums over the arms by name: `lm_calls`, `prompt_tokens`, `completion_tokens`,
            `seconds`, `dollars`, `requests`.
        polite_seconds: Least seconds that the requests take by the endpoint's rate limit; None
            for the embedded endpoint, which has none.
    """

    name: str
    folder: str
    executor: str
    workers: int
    arms: tuple[ArmEstimate, ...]
    total: Mapping[str, Amount]
    polite_seconds: float | None

    @property
    def todo(self) -> int:
        """Trials to run."""
        return sum(arm.todo for arm in self.arms)

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as JSON-able data."""
        return {**asdict(self), "todo": self.todo}


def estimate_run(
    experiment: Experiment,
    folder: RunFolder,
    planned: Sequence[Job],
    *,
    sources: Iterable[Path] | None = None,
) -> RunEstimate:
    """Say what the trials that are not on disk yet will take.

    No model is opened, no endpoint started or asked, and nothing is written.

    Args:
        experiment: The experiment.
        folder: Where its records are, or will be.
        planned: Its trials, as `plan_run` has them.
        sources: Folders of other runs to learn from; by default all that are at hand.

    Raises:
        UsageError: If an arm names an agent or a model that cannot be one.
    """
    others = known_runs(folder) if sources is None else sources
    runs = read_runs((folder.path, *others))
    arms = [
        _estimate_arm(
            experiment, arm, folder, [job for job in planned if job.arm.name == arm.name], runs
        )
        for arm in experiment.arms
    ]
    arms = [arm for arm in arms if arm.planned]
    todo = {job.task.id for job in planned if not folder.done(job.key)}
    # The judge asks for each gold once.
    golds = _NOTHING if not todo else Amount(*[float(len(todo))] * 3)
    total = {name: sum((getattr(arm, name) for arm in arms), _NOTHING) for name in _SUMMED}
    total["requests"] += golds
    least = total["requests"].low
    polite = None
    if experiment.endpoint is not None:
        polite = max(0.0, (least or 0.0) - 1) * experiment.endpoint.min_interval_s
    executor = experiment.executor
    return RunEstimate(
        name=experiment.name,
        folder=str(folder.path),
        executor=executor.kind,
        workers=executor.workers,
        arms=tuple(arms),
        total=total,
        polite_seconds=polite,
    )


def _estimate_arm(
    experiment: Experiment,
    arm: Arm,
    folder: RunFolder,
    planned: Sequence[Job],
    runs: Sequence[PastRun],
) -> ArmEstimate:
    agent = make_agent(arm.agent)
    todo = sum(not folder.done(job.key) for job in planned)
    basis = find_basis(experiment, arm, folder, runs)
    limit = _bounds(experiment, arm, uses_lm=agent.uses_lm)
    seen = basis.trials

    def total(of: Callable[[Measured], float], most: float | None) -> Amount:
        return _predict([of(trial) for trial in seen], todo, most)

    calls = prompt = completion = _NOTHING
    if agent.uses_lm:
        calls = total(lambda trial: trial.lm_calls, limit.lm_calls)
        prompt = total(lambda trial: trial.prompt_tokens, limit.prompt_tokens)
        completion = total(lambda trial: trial.completion_tokens, limit.completion_tokens)
    timed = seen if basis.kinship != "model" else ()
    seconds = _predict([trial.seconds for trial in timed], todo, limit.seconds)
    requests = total(lambda trial: trial.tool_calls + 1, limit.requests)
    at_once = _at_once(experiment, arm, uses_lm=agent.uses_lm)
    dollars, unpriced = _dollars(arm, basis, todo, prompt, completion, uses_lm=agent.uses_lm)
    return ArmEstimate(
        arm=arm.name,
        agent=arm.agent,
        lm=arm.lm if agent.uses_lm else "",
        planned=len(planned),
        done=len(planned) - todo,
        todo=todo,
        lm_calls=calls,
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=seconds * (1 / max(1, min(at_once, todo))),
        dollars=dollars,
        requests=requests,
        trial_seconds=_spread([trial.seconds for trial in timed]),
        trial_tokens=_spread([t.prompt_tokens + t.completion_tokens for t in seen]),
        kinship=basis.kinship,
        measured=len(seen),
        runs=basis.runs,
        models=basis.models if agent.uses_lm else (),
        notes=tuple(_notes(arm, basis, unpriced)) if todo else (),
    )


@dataclass(frozen=True)
class _Bounds:
    """The most that one trial may take; None where nothing limits it."""

    lm_calls: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float | None
    requests: float | None


def _bounds(experiment: Experiment, arm: Arm, *, uses_lm: bool) -> _Bounds:
    budget = arm.budget or experiment.budget
    if arm.agent in {"direct", "oracle"}:
        calls, requests = 1.0, 1.0
    else:
        # Budgets are looked at before a turn; the step that extracts an answer may follow.
        calls = min(budget.iterations, budget.lm_calls or math.inf) + 1.0
        # What a tool asks of the endpoint by one call is not limited.
        requests = None
    context = _LOCAL_CONTEXT if uses_lm and parse_name(arm.lm).is_local else None
    prompts = [calls * context] if context else []
    if budget.tokens is not None and context:
        # The call that uses the budget up may be the longest.
        prompts.append(budget.tokens + 2.0 * context)
    return _Bounds(
        lm_calls=calls,
        prompt_tokens=min(prompts, default=None),
        completion_tokens=calls * arm.max_tokens,
        seconds=budget.seconds,
        requests=requests,
    )


def _predict(values: Sequence[float], n: int, most: float | None) -> Amount:
    """Return the total of `n` further draws of what gave `values`, each at most `most`.

    The interval is Student's prediction interval for a sum: n x mean ± t s sqrt(n + n²/m).
    """
    if n == 0:
        return _NOTHING
    ceiling = None if most is None else n * most
    if not values:
        return Amount(high=ceiling)
    if most is not None:
        values = [min(value, most) for value in values]
    m, mean = len(values), float(np.mean(values))
    if m == 1:
        return Amount(0.0, n * mean, ceiling)
    half = float(stats.t.ppf(0.95, m - 1) * np.std(values, ddof=1) * math.sqrt(n + n * n / m))
    low, high = max(n * min(values), n * mean - half), n * mean + half
    return Amount(low, n * mean, high if ceiling is None else min(high, ceiling))


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread()
    median, p95 = np.percentile(np.asarray(values, dtype=float), [50, 95])
    return Spread(float(median), float(p95))


def _at_once(experiment: Experiment, arm: Arm, *, uses_lm: bool) -> int:
    # A local model computes on this machine's cores: trials side by side take as long as one
    # after another.
    if uses_lm and parse_name(arm.lm).is_local:
        return 1
    return experiment.executor.workers


def _dollars(
    arm: Arm, basis: Basis, todo: int, prompt: Amount, completion: Amount, *, uses_lm: bool
) -> tuple[Amount, str]:
    """Return the price of an arm, and why there is none."""
    price = price_of(arm.lm) if uses_lm else Price(0.0, 0.0)
    if todo == 0 or (price is not None and price.prompt == price.completion == 0):
        return _NOTHING, ""
    paid = [trial.dollars for trial in basis.trials if trial.dollars is not None]
    if basis.kinship != "model" and paid and len(paid) == len(basis.trials):
        return _predict(paid, todo, None), ""
    if price is None:
        return Amount(), f"LiteLLM's price table has no price for {arm.lm}"
    return prompt * price.prompt + completion * price.completion, ""


def _notes(arm: Arm, basis: Basis, unpriced: str) -> list[str]:
    notes = []
    if 0 < len(basis.trials) < 5:
        notes.append(f"{arm.name}: measured on {len(basis.trials)} trials only")
    if arm.judge_lm:
        notes.append(f"{arm.name}: what {arm.judge_lm} takes to judge its trials is not in it")
    if unpriced:
        notes.append(f"{arm.name}: {unpriced}")
    return notes
