"""One arm of a run in numbers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reasoningbank.analysis.averages import average, pooled_rate
from reasoningbank.analysis.finite import finite
from reasoningbank.analysis.scores import YES_NO, Metric, Score, Unit
from reasoningbank.analysis.statistics import (
    Interval,
    median_and_p95,
    pass_all_k,
    pass_at_k,
)
from reasoningbank.judge import Agreement, agreement

__all__ = ["ArmSummary", "Passes", "Sampled", "agreements", "summarise_arm"]


@dataclass(frozen=True)
class Passes:
    """Several runs of a task: is one of them right, are all.

    Attributes:
        k: Runs.
        tasks: Tasks with so many judged runs, over which the two are averaged.
        one: pass@k: that at least one of k runs is right.
        all: pass^k: that all of k runs are.
    """

    k: int
    tasks: int
    one: float
    all: float


@dataclass(frozen=True)
class Sampled:
    """Trials in which several attempts were made, of which one was chosen.

    Where another arm's tokens are matched, those that a single attempt was enough for count too.

    Attributes:
        trials: Such trials that are judged.
        attempts: Attempts of all of them together, the chosen ones included.
        each: Share of the attempts that are strict matches, averaged over trials.
        any: Share of trials with at least one: what the best choice would have had.
        chosen: Share of trials whose chosen attempt is one.
        spent: Tokens spent by the tokens of the matched arm on the same tasks, both summed; None
            where no arm's are matched.
        least: The same of the trial where it is least.
    """

    trials: int
    attempts: int
    each: float
    any: float
    chosen: float
    spent: float | None = None
    least: float | None = None


@dataclass(frozen=True)
class ArmSummary:
    """One arm of a run.

    Attributes:
        arm: Its name.
        trials: Trials on disk, infrastructure errors included.
        judged: Trials that count: all but infrastructure errors and defective golds.
        errors: Trials that an infrastructure error ended.
        defective: Trials on a task whose gold is at fault.
        tasks: Tasks with a judged trial.
        seeds: Seeds (repeats, or orders of a stream) with a judged trial.
        strict: Strict matches.
        rate: Strict matches by judged trials. Wilson's interval where each task has one run;
            a bootstrap over tasks or groups otherwise.
        metric: The primary metric.
        mean: Its mean over tasks, of the mean over a task's runs, with an interval.
        f1: Mean row F1 of the judged trials.
        executed: Judged trials whose query ran.
        late: Judged trials whose query took longer than the judge waits. How many these are depends
            on how busy the machine was.
        statuses: Trials by how the attempt ended.
        exhausted: Attempts that a budget ended, by what was used up; of sampled trials all
            attempts count. Seconds depend on how busy the machine was.
        seconds: Median and p95 of the seconds a trial took.
        tokens: Median and p95 of its tokens, sent and generated; cached calls have none.
        dollars: Sum over all trials that have a price; None where none has.
        judge_dollars: What other judges cost; None where none has a price.
        dollars_each: Median and p95 of a trial's price; NaN where none has one.
        unpriced: Trials whose model has no price.
        lm_calls: Calls that reached the model, of all trials.
        cached_calls: Calls that a cache answered, of all trials.
        retried: Trials that were run more than once because of the infrastructure.
        passes: pass@k and pass^k by strict match (lenient where that is the metric), for each k
            from 2 to the most runs that a task has. None where runs saw different banks: orders
            of a stream are no repeats.
        sampled: The trials with several attempts; None where there are none.
        judges: For each other judge, how it agrees with the execution judge's strict match, over
            all attempts; the plain rule beside it.
        best_case: Mean metric of trials if every infrastructure error had been a success.
        worst_case: The same if every one had been a failure.
    """

    arm: str
    trials: int
    judged: int
    errors: int
    defective: int
    tasks: int
    seeds: int
    strict: int
    rate: Interval
    metric: str
    mean: Interval
    f1: float
    executed: int
    late: int
    statuses: Mapping[str, int]
    exhausted: Mapping[str, int]
    seconds: tuple[float, float]
    tokens: tuple[float, float]
    dollars: float | None
    dollars_each: tuple[float, float]
    judge_dollars: float | None
    unpriced: int
    lm_calls: int
    cached_calls: int
    retried: int
    passes: tuple[Passes, ...]
    sampled: Sampled | None
    judges: Mapping[str, Agreement]
    best_case: float
    worst_case: float

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data; what is not defined is None."""
        judges = {name: found.to_json() for name, found in self.judges.items()}
        return {**finite(asdict(self)), "judges": judges}


def summarise_arm(name: str, trials: Sequence[Score], metric: Metric, unit: Unit) -> ArmSummary:
    """Summarise one arm's trials, all of a stream or all outside of one.

    Args:
        name: The arm.
        trials: Its trials, at least one.
        metric: The primary metric.
        unit: What counts as one observation where something is drawn again.
    """
    judged = [t for t in trials if t.fate == "judged"]
    errors = sum(t.fate == "error" for t in trials)
    total = math.fsum(t.value(metric) for t in judged)
    tried = len(judged) + errors
    prices = [t.dollars for t in trials if t.dollars is not None]
    judging = [t.judge_dollars for t in trials if t.judge_dollars is not None]
    return ArmSummary(
        arm=name,
        trials=len(trials),
        judged=len(judged),
        errors=errors,
        defective=len(trials) - tried,
        tasks=len({t.task for t in judged}),
        seeds=len({t.seed for t in judged}),
        strict=sum(t.strict > 0 for t in judged),
        rate=pooled_rate(trials, unit),
        metric=metric,
        mean=average(trials, metric, unit),
        f1=math.fsum(t.f1 for t in judged) / len(judged) if judged else 0.0,
        executed=sum(t.executed for t in judged),
        late=sum(t.late for t in judged),
        statuses=dict(Counter(t.status for t in trials)),
        exhausted=dict(Counter(cause for t in trials for cause in t.exhausted).most_common()),
        seconds=median_and_p95([t.seconds for t in judged]),
        tokens=median_and_p95([float(t.tokens) for t in judged]),
        dollars=math.fsum(prices) if prices else None,
        judge_dollars=math.fsum(judging) if judging else None,
        dollars_each=median_and_p95([t.dollars for t in judged if t.dollars is not None]),
        unpriced=sum(t.dollars is None and t.lm_calls > 0 for t in trials),
        lm_calls=sum(t.lm_calls for t in trials),
        cached_calls=sum(t.cached_calls for t in trials),
        retried=sum(t.tries > 1 for t in trials),
        passes=_passes(judged, metric if metric in YES_NO else "strict"),
        sampled=_sampled(judged),
        judges=agreements(judged),
        best_case=(total + errors) / tried if tried else math.nan,
        worst_case=total / tried if tried else math.nan,
    )


def _passes(judged: Sequence[Score], metric: Metric) -> tuple[Passes, ...]:
    if any(t.step is not None for t in judged) or len({t.memory for t in judged}) > 1:
        # Orders of a stream are no repeats: what was learned before differs.
        return ()
    runs = Counter(t.task for t in judged)
    right = Counter(t.task for t in judged if t.value(metric) > 0)
    found = []
    for k in range(2, max(runs.values(), default=0) + 1):
        tasks = [task for task, n in runs.items() if n >= k]
        one = math.fsum(pass_at_k(runs[t], right[t], k) for t in tasks) / len(tasks)
        every = math.fsum(pass_all_k(runs[t], right[t], k) for t in tasks) / len(tasks)
        found.append(Passes(k, len(tasks), one, every))
    return tuple(found)


def _sampled(judged: Sequence[Score]) -> Sampled | None:
    tries = [
        [t.strict > 0, *(other.strict for other in t.rollouts if other is not None)]
        for t in judged
        if t.rollouts or t.tokens_wanted
    ]
    if not tries:
        return None
    matched = [(t.tokens, t.tokens_wanted) for t in judged if t.tokens_wanted]
    wanted = sum(most for _, most in matched)
    return Sampled(
        trials=len(tries),
        attempts=sum(map(len, tries)),
        each=math.fsum(sum(one) / len(one) for one in tries) / len(tries),
        any=sum(any(one) for one in tries) / len(tries),
        chosen=sum(one[0] for one in tries) / len(tries),
        spent=sum(spent for spent, _ in matched) / wanted if matched else None,
        least=min((spent / most for spent, most in matched), default=None),
    )


def agreements(judged: Iterable[Score], *, rule_alone: bool = False) -> dict[str, Agreement]:
    """Hold every other judge against the execution judge.

    Args:
        judged: Trials; the other attempts of sampled ones are counted as well.
        rule_alone: Whether the plain rule is told where there is no other judge.
    """
    pairs: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for trial in judged:
        for said in filter(None, (trial.opinions, *trial.rollouts)):
            for name, success in said.others:
                pairs[name].append((said.strict, success))
    if set(pairs) == {"rule"} and not rule_alone:
        return {}
    return {name: agreement(pairs[name]) for name in sorted(pairs)}
