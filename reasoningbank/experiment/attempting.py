"""One attempt at a task: an agent with a model, tools, memory and a budget, unjudged."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reasoningbank.agents import Attempt, Budget, Episode, Meter, failure_of, make_agent
from reasoningbank.corpus import Task
from reasoningbank.errors import (
    ReasoningBankError,
    RecordError,
    SetupError,
    UsageError,
)
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.recall import NOTHING, Recall
from reasoningbank.experiment.world import World
from reasoningbank.findings import Finding
from reasoningbank.lm import UsageCounter
from reasoningbank.refs import RefStore
from reasoningbank.tools import EndpointTools, SPARQLTools
from reasoningbank.trajectory import Event, Recorder, Trajectory

__all__ = ["ENDS_THE_RUN", "attempt_task", "told"]

logger = logging.getLogger(__name__)

#: No trial can go well after these; every other error is one trial's.
ENDS_THE_RUN = (SetupError, UsageError, RecordError)


def attempt_task(
    world: World,
    experiment: Experiment,
    arm: Arm,
    task: Task,
    seed: int,
    worker: int = 0,
    *,
    recall: Recall = NOTHING,
    budget: Budget | None = None,
    temperature: float | None = None,
    watch: Callable[[Event], None] | None = None,
) -> Attempt:
    """Let the arm's agent answer a task, unjudged.

    An attempt that has no query because the endpoint failed has the status `error`.

    Args:
        world: What is shared.
        experiment: Whose budget applies where the arm has none.
        arm: Agent and model.
        task: The task as the agent may see it.
        seed: Seed of the sampling.
        worker: Number of the thread that runs it.
        recall: What it is given of memory.
        budget: Its limits; by default the arm's, or the experiment's.
        temperature: Of the sampling; by default the arm's.
        watch: Told of each event as it is recorded.

    Raises:
        UsageError: If the arm names a tool that there is not.
    """
    agent = make_agent(arm.agent, **arm.options)
    model = world.models.get(arm.lm) if agent.uses_lm else None
    recorder = Recorder(redact=list(model.secrets) if model else None, watch=watch)
    counter = UsageCounter(recorder)
    meter = Meter(budget or arm.budget or experiment.budget, lambda: counter.usage)
    lms = {}
    if model is not None:
        lms = {
            role: model.lm(
                role=role,
                temperature=arm.temperature if temperature is None else temperature,
                max_tokens=arm.max_tokens,
                seed=seed,
                rollout_id=seed,
                worker=worker % model.workers,
                # A model that hangs must not outlast the trial's own guard.
                timeout_s=min(900.0, meter.budget.seconds or 900.0),
            )
            for role in ("solver", "extractor")
        }
    if recall.event is not None:
        recorder.add("memory_retrieved", recall.event, seconds=recall.seconds)
    with RefStore() as store:
        query_tools = SPARQLTools(
            world.endpoint,
            store=store,
            client=world.client,
            vocabulary=world.vocabulary,
            profile=world.survey,
        )
        packs = [world.pack] if world.pack else []
        endpoint_tools = EndpointTools(
            [world.endpoint], store=store, packs=packs, hidden=world.hidden
        )
        tools = _chosen(query_tools.as_dspy_tools() | endpoint_tools.as_dspy_tools(), arm)
        if recall.tools is not None:
            # An arm that is to have memory as tools need not name them among its tools.
            tools |= recall.tools(recorder)
        episode = Episode(
            endpoint=world.endpoint,
            tools=meter.metered(tools),
            lm=lms.get("solver"),
            extractor=lms.get("extractor"),
            budget=meter.budget,
            recorder=recorder,
            meter=meter,
            sandbox=world.sandboxes,
            callbacks=[counter],
            context=recall.context,
            pack=world.pack,
            hidden=world.hidden,
            examples=recall.examples,
            demonstrations=(
                *(world.demonstrations if arm.demonstrations else ()),
                *recall.demonstrations,
            ),
        )
        try:
            attempt = agent.solve(task, episode)
        except ENDS_THE_RUN:
            raise
        except Exception as error:
            return _errored(episode, error)
    if attempt.sparql is None and _endpoint_was_gone(attempt.trajectory):
        gone = Finding("endpoint", "the endpoint failed, and the agent gave no query")
        return replace(attempt, status="error", findings=(gone,))
    return attempt


def _chosen(tools: dict[str, Any], arm: Arm) -> dict[str, Any]:
    for name in arm.tools or ():
        if name not in tools:
            raise UsageError(
                f"unknown tool {name!r}",
                where=f"arm {arm.name}",
                hint=f"choose from {', '.join(tools)}",
            )
    return {k: v for k, v in tools.items() if arm.tools is None or k in arm.tools}


def _endpoint_was_gone(trajectory: Trajectory) -> bool:
    """Tell whether the last tool call failed for the infrastructure's reasons."""
    results = trajectory.of("tool_result")
    return bool(results and results[-1].data.get("infrastructure"))


def _errored(episode: Episode, error: Exception) -> Attempt:
    said = told(error)
    # What is none of ours is a mistake of the harness or of a library: its place is recorded.
    unforeseen = not isinstance(error, ReasoningBankError)
    logger.warning("a trial ended in an error: %s", said)
    finding = failure_of(error)
    data: dict[str, Any] = {"error": said, "code": finding.code, "type": type(error).__name__}
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
        findings=(finding,),
    )


def told(error: Exception) -> str:
    """Return an error in one line."""
    return str(failure_of(error))
