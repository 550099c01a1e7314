"""What a run would take: LM calls, tokens, time and dollars, from what such trials took so far.

Measured trials give an *estimate*: the expected total and a 90 % prediction interval. Where there
are none, the budget gives an *upper bound*, and where it sets no limit either, nothing is said.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reasoningbank.agents import make_agent
from reasoningbank.errors import UsageError
from reasoningbank.experiment.amounts import NOTHING, Amount, Spread, predict, spread_of
from reasoningbank.experiment.config import Arm, Experiment, parse_experiment
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.lm_judging import reply_tokens
from reasoningbank.experiment.measured import (
    Basis,
    Kinship,
    PastRun,
    find_basis,
    find_judge_basis,
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
        judges: What the LM judges of arms will take on top; `agent` is then ``judge``.
        total: Sums over arms and judges by name: `lm_calls`, `prompt_tokens`, `completion_tokens`,
            `seconds`, `dollars`, `requests`.
        polite_seconds: Least seconds that the requests take by the endpoint's rate limit; None
            for the embedded endpoint, which has none.
        notes: What a reader should know of the run.
    """

    name: str
    folder: str
    executor: str
    workers: int
    arms: tuple[ArmEstimate, ...]
    judges: tuple[ArmEstimate, ...]
    total: Mapping[str, Amount]
    polite_seconds: float | None
    notes: tuple[str, ...] = ()

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
    notes = _of_another_run(experiment, folder)
    # What is on disk of another run is none of this one's.
    todo = [job for job in planned if notes or not folder.done(job.key)]
    counts = Counter(job.arm.name for job in planned), Counter(job.arm.name for job in todo)
    arms = [
        _estimate_arm(experiment, arm, folder, counts[0][arm.name], counts[1][arm.name], runs)
        for arm in experiment.arms
        if arm.name in counts[0]
    ]
    judges = [
        _estimate_judge(experiment, arm, told, runs)
        for arm in experiment.arms
        for told in arms
        if arm.judge_lm and told.arm == arm.name
    ]
    # The judge asks for each gold once.
    golds = Amount(*[float(len({job.task.id for job in todo}))] * 3)
    total = {
        name: sum((getattr(one, name) for one in (*arms, *judges)), NOTHING) for name in _SUMMED
    }
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
        judges=tuple(judges),
        total=total,
        polite_seconds=polite,
        notes=notes,
    )


def _of_another_run(experiment: Experiment, folder: RunFolder) -> tuple[str, ...]:
    manifest = folder.manifest
    if manifest is None:
        return ()
    with contextlib.suppress(UsageError):
        if parse_experiment(manifest["experiment"]).fingerprint() == experiment.fingerprint():
            return ()
    return (f"{folder.path} holds another run, and would be refused; choose another with --out",)


def _estimate_arm(
    experiment: Experiment,
    arm: Arm,
    folder: RunFolder,
    planned: int,
    todo: int,
    runs: Sequence[PastRun],
) -> ArmEstimate:
    uses_lm = make_agent(arm.agent).uses_lm
    basis = find_basis(experiment, arm, folder, runs)
    attempts = _attempts(arm)
    if basis.kinship not in ("own", "same"):
        basis = replace(basis, trials=tuple(one.times(attempts) for one in basis.trials))
    limit = _bounds(experiment, arm, uses_lm=uses_lm)
    told, unpriced = _estimate(
        experiment, (arm.name, arm.agent, arm.lm if uses_lm else ""), planned, todo, basis, limit
    )
    return replace(
        told,
        requests=predict([one.tool_calls + 1 for one in basis.trials], todo, limit.requests),
        notes=tuple(_notes(arm, basis, unpriced)) if todo else (),
    )


def _estimate_judge(
    experiment: Experiment, arm: Arm, judged: ArmEstimate, runs: Sequence[PastRun]
) -> ArmEstimate:
    """Return what the LM judge of an arm will take: a call a trial, after the attempt."""
    lm = arm.judge_lm
    context = float(_LOCAL_CONTEXT) if parse_name(lm).is_local else None
    limit = _Bounds(1.0, context, reply_tokens(lm))
    basis = find_judge_basis(lm, runs)
    told, unpriced = _estimate(
        experiment, (arm.name, "judge", lm), judged.planned, judged.todo, basis, limit
    )
    return replace(told, notes=(f"judge of {arm.name}: {unpriced}",) if unpriced else ())


def _estimate(
    experiment: Experiment,
    names: tuple[str, str, str],
    planned: int,
    todo: int,
    basis: Basis,
    limit: _Bounds,
) -> tuple[ArmEstimate, str]:
    """Return what trials will take apart from requests, and why there is no price.

    `names` are those of the arm, of its agent, and of the model; empty where there is none.
    """
    arm, agent, lm = names
    seen = basis.trials
    calls = prompt = completion = NOTHING
    if lm:
        calls = predict([one.lm_calls for one in seen], todo, limit.lm_calls)
        prompt = predict([one.prompt_tokens for one in seen], todo, limit.prompt_tokens)
        completion = predict([one.completion_tokens for one in seen], todo, limit.completion_tokens)
    timed = seen if basis.kinship != "model" else ()
    seconds = predict([one.seconds for one in timed], todo, limit.seconds)
    dollars, unpriced = _dollars(lm, basis, todo, prompt, completion)
    told = ArmEstimate(
        arm=arm,
        agent=agent,
        lm=lm,
        planned=planned,
        done=planned - todo,
        todo=todo,
        lm_calls=calls,
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=seconds * (1 / _at_once(experiment, lm, todo)),
        dollars=dollars,
        requests=NOTHING,
        trial_seconds=spread_of([one.seconds for one in timed]),
        trial_tokens=spread_of([one.prompt_tokens + one.completion_tokens for one in seen]),
        kinship=basis.kinship,
        measured=len(seen),
        runs=basis.runs,
        models=basis.models if lm else (),
    )
    return told, unpriced


@dataclass(frozen=True)
class _Bounds:
    """The most that one trial may take; None where nothing limits it."""

    lm_calls: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    seconds: float | None = None
    requests: float | None = None


def _attempts(arm: Arm) -> int:
    """Return the attempts that a trial is reckoned with; one where another arm's tokens decide."""
    return 1 if arm.sampling is None or arm.sampling.tokens_of else arm.sampling.k


def _bounds(experiment: Experiment, arm: Arm, *, uses_lm: bool) -> _Bounds:
    budget = arm.budget or experiment.budget
    attempts = arm.sampling.k if arm.sampling else 1
    if arm.agent in {"direct", "oracle"}:
        calls, requests = float(attempts), float(attempts)
    else:
        # Budgets are looked at before a turn; the step that extracts an answer may follow.
        calls = attempts * min(budget.iterations, budget.lm_calls or math.inf) + attempts
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
        seconds=budget.seconds and budget.seconds * attempts,
        requests=requests,
    )


def _at_once(experiment: Experiment, lm: str, todo: int) -> int:
    """Return how many trials gain time by being run side by side."""
    # A local model computes on this machine's cores: trials side by side take as long as one
    # after another.
    if lm and parse_name(lm).is_local:
        return 1
    return max(1, min(experiment.executor.workers, todo))


def _dollars(
    lm: str, basis: Basis, todo: int, prompt: Amount, completion: Amount
) -> tuple[Amount, str]:
    """Return the price, and why there is none; `lm` is empty where there is no model."""
    price = price_of(lm) if lm else Price(0.0, 0.0)
    if todo == 0 or (price is not None and price.prompt == price.completion == 0):
        return NOTHING, ""
    paid = [trial.dollars for trial in basis.trials if trial.dollars is not None]
    if basis.kinship != "model" and paid and len(paid) == len(basis.trials):
        return predict(paid, todo, None), ""
    if price is None:
        return Amount(), f"LiteLLM's price table has no price for {lm}"
    return prompt * price.prompt + completion * price.completion, ""


def _notes(arm: Arm, basis: Basis, unpriced: str) -> list[str]:
    notes = []
    if 0 < len(basis.trials) < 5:
        n = len(basis.trials)
        notes.append(f"{arm.name}: measured on {n} trial{'s' if n > 1 else ''} only")
    if unpriced:
        notes.append(f"{arm.name}: {unpriced}")
    distant = basis.kinship not in ("own", "same")
    if distant and arm.sampling and arm.sampling.tokens_of:
        of = arm.sampling.tokens_of
        notes.append(f"{arm.name}: reckoned with one attempt; it makes what {of}'s tokens allow")
    if distant and (arm.memory.in_context or arm.layers):
        notes.append(f"{arm.name}: what memory adds to its prompts is not reckoned with")
    return notes
