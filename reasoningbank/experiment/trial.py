"""One trial: an agent on a task with a seed, judged, as a record."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reasoningbank.agents import Attempt, Episode, Meter, make_agent
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, ModelError, ReasoningBankError, UsageError
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.records import TrialKey, TrialRecord
from reasoningbank.experiment.world import World
from reasoningbank.judge import Judgement
from reasoningbank.lm import UsageCounter
from reasoningbank.refs import RefStore
from reasoningbank.tools import EndpointTools, SPARQLTools
from reasoningbank.trajectory import Recorder, Trajectory

__all__ = ["attempt_task", "run_trial"]

logger = logging.getLogger(__name__)


def run_trial(
    world: World, experiment: Experiment, arm: Arm, task: Task, key: TrialKey, worker: int = 0
) -> TrialRecord:
    """Run one trial and return its record; the attempt's own failures never raise.

    A failure of the endpoint or the model becomes a record with status `error` and no verdict:
    it is told apart, and never counted as the agent's.

    Args:
        world: What all trials share.
        experiment: Whose budget applies where the arm has none.
        arm: The system under test.
        task: The task, with its gold.
        key: Which trial this is.
        worker: Number of the thread that runs it; a local model keeps a slot for each.

    Raises:
        SetupError: If the machine lacks what every trial needs.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    agent = make_agent(arm.agent)
    seen = task if agent.sees_gold else task.blind()
    attempt = attempt_task(world, experiment, arm, seen, key.seed, worker)
    if attempt.sparql is None and _endpoint_was_gone(attempt.trajectory):
        error = "the endpoint failed, and no query came out"
        attempt = replace(attempt, status="error", error=error)
    judged: Judgement | None = None
    if attempt.status != "error":
        try:
            judged = world.judge.examine(task, attempt.sparql)
        except EndpointError as failure:
            attempt = replace(attempt, status="error", error=str(failure))
    model = world.models.get(arm.lm) if agent.uses_lm else None
    return TrialRecord.of(
        key,
        task,
        attempt,
        judged.verdict if judged else None,
        evidence=judged.evidence.to_json() if judged else {},
        judge_seconds=judged.seconds if judged else 0.0,
        started=started,
        model=dict(model.fingerprint) if model else {},
    )


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
        except (EndpointError, ModelError) as error:
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


def _errored(episode: Episode, error: ReasoningBankError) -> Attempt:
    logger.warning("trial ended in an infrastructure error: %s", error)
    data: dict[str, Any] = {"error": str(error), "type": type(error).__name__}
    episode.recorder.add("error", data)
    return Attempt(
        sparql=None,
        answer="",
        status="error",
        usage=episode.meter.usage(),
        trajectory=episode.recorder.trajectory(),
        error=str(error),
    )
