"""One trial: an agent on a task with a seed, judged, as a record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from reasoningbank.agents import Attempt, Budget, failure_of, make_agent
from reasoningbank.corpus import Task
from reasoningbank.experiment.attempting import ENDS_THE_RUN, attempt_task
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.lm_judging import judge_record
from reasoningbank.experiment.recall import NOTHING, Recall
from reasoningbank.experiment.records import TrialKey, TrialRecord
from reasoningbank.experiment.sampling import Rollout, Sampled, rollout_seed, sample
from reasoningbank.experiment.world import World
from reasoningbank.judge import Judgement
from reasoningbank.lm import asked_as, takes_temperature
from reasoningbank.schema import explainer
from reasoningbank.trajectory import Trajectory, Usage

__all__ = ["Trial", "attempt_task", "judged_by_lm", "run_trial"]

logger = logging.getLogger(__name__)


def run_trial(
    world: World, experiment: Experiment, arm: Arm, task: Task, key: TrialKey, worker: int = 0
) -> TrialRecord:
    """Run one trial once; see `Trial`."""
    return Trial(world, experiment, arm, task, key, worker).run()


@dataclass
class Trial:
    """One trial, which may be tried again where the infrastructure spoiled it.

    Attributes:
        world: What all trials share.
        experiment: Whose budget applies where the arm has none.
        arm: The system under test.
        task: The task, with its gold.
        key: Which trial this is.
        worker: Number of the thread that runs it; a local model keeps a slot for each.
        step: Place in a learning stream; None outside one.
        remember: Finds what the trial is given of memory.
        tokens: Tokens that its attempts are to spend together, where that is given. The first is
            then made at temperature 0, as an arm that makes a single one makes it.
    """

    world: World
    experiment: Experiment
    arm: Arm
    task: Task
    key: TrialKey
    worker: int = 0
    step: int | None = None
    remember: Callable[[], Recall] = lambda: NOTHING
    tokens: int | None = None
    _sampled: Sampled | None = None
    _recall: Recall = NOTHING
    _started: str = ""

    def run(self) -> TrialRecord:
        """Run the trial and return its record; the attempt's own failures never raise.

        A failure of the endpoint, the model or the harness becomes a record with status `error`
        and no verdict: it is told apart, and never counted as the agent's. Running the trial again
        makes no new attempt where only the judging of the last one failed.

        Raises:
            SetupError: If the machine lacks what every trial needs.
        """
        agent = make_agent(self.arm.agent)
        sampled = self._sampled or self._attempted(sees_gold=agent.sees_gold)
        attempt = sampled.attempt
        judged: Judgement | None = None
        rollouts: tuple[Mapping[str, Any], ...] = ()
        if attempt.status != "error":
            self._sampled = sampled
            try:
                judged = self.world.judge.examine(self.task, attempt.sparql)
                rollouts = tuple(self._judged(other) for other in sampled.others)
            except ENDS_THE_RUN:
                raise
            except Exception as failure:
                attempt = replace(attempt, status="error", findings=(failure_of(failure),))
                judged = None
        model = self.world.models.get(self.arm.lm) if agent.uses_lm else None
        record = TrialRecord.of(
            self.key,
            self.task,
            attempt,
            judged.verdict if judged else None,
            evidence=judged.evidence.to_json() if judged else {},
            judge_seconds=judged.seconds if judged else 0.0,
            started=self._started,
            model=dict(model.fingerprint) if model else {},
            step=self.step,
            memory=self._recall.snapshot,
            rollouts=rollouts,
            tokens_wanted=self.tokens,
        )
        return judged_by_lm(self.world, self.arm.judge_lm, record) if self.arm.judge_lm else record

    def _attempted(self, *, sees_gold: bool) -> Sampled:
        self._started = datetime.now(UTC).isoformat(timespec="milliseconds")
        seen = self.task if sees_gold else self.task.blind()
        settings = self.arm.sampling
        budget = self.arm.budget or self.experiment.budget
        try:
            self._recall = self.remember()
            if settings is None or not settings.applies(in_stream=self.step is not None):
                return Sampled(Rollout(0, self._attempt(seen, 0, "", budget)))
            return sample(
                settings,
                lambda number, note, left, warm: self._attempt(seen, number, note, left, warm),
                self.world.judge.answer,
                budget=budget,
                tokens=self.tokens,
                prefixes=self.world.endpoint.prefixes,
                explain=explainer(self.world.client, self.world.vocabulary),
            )
        except ENDS_THE_RUN:
            raise
        except Exception as failure:
            # What memory needs of the endpoint, and what sampling does, can fail as a trial can.
            attempt = Attempt(
                None, "", "error", Usage(), Trajectory(), findings=(failure_of(failure),)
            )
            return Sampled(Rollout(0, attempt))

    def _attempt(
        self,
        seen: Task,
        number: int,
        note: str,
        budget: Budget,
        temperature: float | None = None,
    ) -> Attempt:
        return attempt_task(
            self.world,
            self.experiment,
            self.arm,
            replace(seen, query=(self._recall.question or seen.query) + note),
            rollout_seed(self.key.seed, number),
            self.worker,
            recall=self._recall,
            budget=budget,
            temperature=self._warmth(number, temperature),
        )

    def _warmth(self, number: int, asked: float | None) -> float | None:
        """Return the temperature of an attempt; None for the arm's own."""
        if number == 0 and self.tokens is not None:
            # Only what is made beyond a plain arm's own attempt has to differ from it.
            return 0.0
        if asked is not None:
            # It is raised where an attempt repeats itself, and not every model takes it.
            return asked if takes_temperature(asked_as(self.arm.lm)) else None
        sampling = self.arm.sampling
        return sampling.temperature if number and sampling else None

    def _judged(self, one: Rollout) -> dict[str, Any]:
        """Return an attempt that was not chosen, as the record keeps it."""
        judged = self.world.judge.examine(self.task, one.attempt.sparql)
        attempt = one.attempt
        kept: dict[str, Any] = {
            "number": one.number,
            "sparql": attempt.sparql,
            "status": attempt.status,
            "error": attempt.error,
            "findings": [one.to_json() for one in attempt.findings],
            "usage": asdict(attempt.usage),
            "verdict": judged.verdict.to_json(),
            "judgements": {},
            "agreed": one.agreed,
            "trajectory": attempt.trajectory.to_json(),
        }
        learned = self.step is not None and self.arm.memory.learns
        if learned and self.arm.memory.judge != "execution":
            record = TrialRecord.of(
                self.key,
                self.task,
                attempt,
                judged.verdict,
                evidence=judged.evidence.to_json(),
                started=self._started,
                model={},
            )
            said = judged_by_lm(self.world, self.arm.judge_lm, record)
            kept["judgements"] = dict(said.judgements)
        return kept


def judged_by_lm(world: World, model: str, record: TrialRecord) -> TrialRecord:
    """Return the record with a model's judgement; without, where the model fails."""
    if record.verdict is None:
        return record
    try:
        return judge_record(world, model, record)
    except Exception as error:
        # Whatever it is, a trial that is done and paid for is kept: it is whole without, and
        # `judge run` can add it later.
        logger.warning("%s could not judge a trial: %s", model, error)
        return record
