"""One trial: an agent on a task with a seed, judged, as a record."""

from __future__ import annotations

import logging
import traceback
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reasoningbank.agents import Attempt, Episode, Meter, make_agent
from reasoningbank.corpus import Task
from reasoningbank.errors import (
    ReasoningBankError,
    RecordError,
    SetupError,
    UsageError,
)
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.lm_judging import judge_with_lm
from reasoningbank.experiment.records import TrialKey, TrialRecord
from reasoningbank.experiment.world import World
from reasoningbank.judge import Judgement
from reasoningbank.lm import UsageCounter
from reasoningbank.refs import RefStore
from reasoningbank.tools import EndpointTools, SPARQLTools
from reasoningbank.trajectory import Recorder, Trajectory

__all__ = ["Trial", "attempt_task", "run_trial"]

logger = logging.getLogger(__name__)

#: No trial can go well after these; every other error is one trial's.
_ENDS_THE_RUN = (SetupError, UsageError, RecordError)


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
    """

    world: World
    experiment: Experiment
    arm: Arm
    task: Task
    key: TrialKey
    worker: int = 0
    _attempt: Attempt | None = None
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
        attempt = self._attempt or self._attempted(sees_gold=agent.sees_gold)
        judged: Judgement | None = None
        if attempt.status != "error":
            self._attempt = attempt
            try:
                judged = self.world.judge.examine(self.task, attempt.sparql)
            except _ENDS_THE_RUN:
                raise
            except Exception as failure:
                attempt = replace(attempt, status="error", error=_told(failure))
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
        )
        return _judged_by_lm(self.world, self.arm.judge_lm, record) if self.arm.judge_lm else record

    def _attempted(self, *, sees_gold: bool) -> Attempt:
        self._started = datetime.now(UTC).isoformat(timespec="milliseconds")
        seen = self.task if sees_gold else self.task.blind()
        attempt = attempt_task(
            self.world, self.experiment, self.arm, seen, self.key.seed, self.worker
        )
        if attempt.sparql is None and _endpoint_was_gone(attempt.trajectory):
            error = "the endpoint failed, and no query came out"
            return replace(attempt, status="error", error=error)
        return attempt


def _judged_by_lm(world: World, model: str, record: TrialRecord) -> TrialRecord:
    """Return the record with a model's judgement; without, where the model fails."""
    if record.verdict is None:
        return record
    try:
        said = judge_with_lm(
            world,
            model,
            record.question,
            record.sparql,
            record.trajectory,
            verdict=record.verdict,
            evidence=record.evidence,
        )
    except Exception as error:
        # Whatever it is, a trial that is done and paid for is kept: it is whole without, and
        # `judge run` can add it later.
        logger.warning("%s could not judge a trial: %s", model, error)
        return record
    return replace(record, judgements={**record.judgements, f"lm:{model}": said})


def attempt_task(
    world: World, experiment: Experiment, arm: Arm, task: Task, seed: int, worker: int = 0
) -> Attempt:
    """Let the arm's agent answer a task, unjudged.

    Args:
        world: What is shared.
        experiment: Whose budget applies where the arm has none.
        arm: Agent and model.
        task: The task as the agent may see it.
        seed: Seed of the sampling.
        worker: Number of the thread that runs it.

    Raises:
        UsageError: If the arm names a tool that there is not.
    """
    agent = make_agent(arm.agent)
    model = world.models.get(arm.lm) if agent.uses_lm else None
    recorder = Recorder(redact=list(model.secrets) if model else None)
    counter = UsageCounter(recorder)
    meter = Meter(arm.budget or experiment.budget, lambda: counter.usage)
    lms = {}
    if model is not None:
        lms = {
            role: model.lm(
                role=role,
                temperature=arm.temperature,
                max_tokens=arm.max_tokens,
                seed=seed,
                rollout_id=seed,
                worker=worker % model.workers,
                # A model that hangs must not outlast the trial's own guard.
                timeout_s=min(900.0, meter.budget.seconds or 900.0),
            )
            for role in ("solver", "extractor")
        }
    with RefStore() as store:
        query_tools = SPARQLTools(
            world.endpoint,
            store=store,
            client=world.client,
            vocabulary=world.vocabulary,
            survey=world.survey,
        )
        packs = [world.pack] if world.pack else []
        endpoint_tools = EndpointTools(
            [world.endpoint], store=store, packs=packs, hidden=world.hidden
        )
        episode = Episode(
            endpoint=world.endpoint,
            tools=meter.metered(
                _chosen(query_tools.as_dspy_tools() | endpoint_tools.as_dspy_tools(), arm)
            ),
            lm=lms.get("solver"),
            extractor=lms.get("extractor"),
            budget=meter.budget,
            recorder=recorder,
            meter=meter,
            sandbox=world.sandboxes,
            callbacks=[counter],
            demonstrations=world.demonstrations if arm.demonstrations else (),
        )
        try:
            return agent.solve(task, episode)
        except _ENDS_THE_RUN:
            raise
        except Exception as error:
            return _errored(episode, error)


def _chosen(tools: dict[str, Any], arm: Arm) -> dict[str, Any]:
    for name in arm.tools or ():
        if name not in tools:
            raise UsageError(
                f"unknown tool {name!r}",
                where=f"arm {arm.name}",
                mend=f"choose from {', '.join(tools)}",
            )
    return {k: v for k, v in tools.items() if arm.tools is None or k in arm.tools}


def _endpoint_was_gone(trajectory: Trajectory) -> bool:
    """Tell whether the last tool call failed for the infrastructure's reasons."""
    results = trajectory.of("tool_result")
    return bool(results and results[-1].data.get("infrastructure"))


def _errored(episode: Episode, error: Exception) -> Attempt:
    said = _told(error)
    # What is none of ours is a mistake of the harness or of a library: its place is recorded.
    unforeseen = not isinstance(error, ReasoningBankError)
    logger.warning("a trial ended in an error: %s", said)
    data: dict[str, Any] = {"error": said, "type": type(error).__name__}
    if unforeseen:
        # Names of files alone: records are shared, and where they were made is nobody's matter.
        frames = traceback.extract_tb(error.__traceback__)
        data["traceback"] = "\n".join(
            f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames
        )
    episode.recorder.add("error", data)
    return Attempt(
        sparql=None,
        answer="",
        status="error",
        usage=episode.meter.usage(),
        trajectory=episode.recorder.trajectory(),
        error=said,
    )


def _told(error: Exception) -> str:
    if isinstance(error, ReasoningBankError):
        return str(error)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
