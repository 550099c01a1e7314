"""One trial: an agent on a task with a seed, judged, as a record."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reasoningbank.agents import Attempt, Budget, Episode, Meter, failure_of, make_agent
from reasoningbank.corpus import Task
from reasoningbank.errors import (
    QueryError,
    ReasoningBankError,
    RecordError,
    SetupError,
    UsageError,
)
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.context import NOTHING, Recall, RunContext
from reasoningbank.experiment.records import TrialKey, TrialRecord
from reasoningbank.experiment.sampling import Rollout, Sampled, rollout_seed, sample
from reasoningbank.experiment.settings import SamplingSettings
from reasoningbank.findings import Finding
from reasoningbank.judge import AnswerSample, Judgement, LMJudge, case_of
from reasoningbank.judge.lm_judge import MAX_REPLY_TOKENS
from reasoningbank.lm import UsageCounter, asked_as, parse_name, takes_temperature
from reasoningbank.refs import RefStore
from reasoningbank.schema import explainer
from reasoningbank.tools import DEFAULT_TOOLS, EndpointTools, SPARQLTools
from reasoningbank.trajectory import Event, Recorder, Trajectory, Usage

logger = logging.getLogger(__name__)

#: Errors after which no trial can succeed; every other error concerns one trial.
ENDS_THE_RUN = (SetupError, UsageError, RecordError)


def run_trial(
    context: RunContext, experiment: Experiment, arm: Arm, task: Task, key: TrialKey
) -> TrialRecord:
    """Run one trial once and return its record; see `Trial.run`."""
    return Trial(context, experiment, arm, task, key).run()


def attempt_task(
    context: RunContext,
    experiment: Experiment,
    arm: Arm,
    task: Task,
    *,
    recall: Recall = NOTHING,
    watch: Callable[[Event], None] | None = None,
) -> Attempt:
    """Let the arm's agent answer a task, unjudged.

    Args:
        context: What trials share.
        experiment: Its budget applies if the arm has none.
        arm: Agent and model.
        task: The task as the agent may see it.
        recall: What the agent is given of memory.
        watch: Called with each event as it is recorded.

    Returns:
        The attempt; its status is `error` if the endpoint failed and there is no query.

    Raises:
        UsageError: If the arm names an unknown tool.
    """
    trial = Trial(context, experiment, arm, task, TrialKey(arm.name, task.id, 0))
    trial.recall = recall
    return trial.attempt(task, watch=watch)


@dataclass
class Trial:
    """One trial, which may be run again after infrastructure errors."""

    context: RunContext
    experiment: Experiment
    arm: Arm
    task: Task
    key: TrialKey
    worker: int = 0
    step: int | None = None
    remember: Callable[[], Recall] = lambda: NOTHING
    tokens: int | None = None
    recall: Recall = NOTHING
    _sampled: Sampled | None = None
    _started: str = ""

    def run(self) -> TrialRecord:
        """Run the trial and return its record."""
        agent = make_agent(self.arm.agent)
        judged: Judgement | None = None
        rollouts: tuple[Mapping[str, Any], ...] = ()
        failure: Exception | None = None
        sampled = self._sampled
        try:
            if sampled is None:
                self._started = datetime.now(UTC).isoformat(timespec="milliseconds")
                self.recall = self.remember()
                seen = self.task if agent.sees_gold else self.task.blind()
                sampling = self.arm.sampling
                if sampling and sampling.applies(in_stream=self.step is not None):
                    sampled = self._sample(sampling, seen)
                else:
                    sampled = Sampled(Rollout(0, self.attempt(seen)))
            if sampled.attempt.status != "error":
                self._sampled = sampled
                judged = self.context.judge.examine(self.task, sampled.attempt.sparql)
                rollouts = tuple(self._judge(other) for other in sampled.others)
        except ENDS_THE_RUN:
            raise
        except Exception as error:
            failure, judged = error, None
        attempt = sampled.attempt if sampled else Attempt(None, "", "error", Usage(), Trajectory())
        if failure is not None:
            attempt = replace(attempt, status="error", findings=(failure_of(failure),))
        model = self.context.models.get(self.arm.lm) if agent.uses_lm else None
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
            memory=self.recall.snapshot,
            rollouts=rollouts,
            tokens_wanted=self.tokens,
        )
        return _judged_by_lm(self.context, self.arm.judge_lm, record)

    def attempt(
        self,
        task: Task,
        *,
        number: int = 0,
        note: str = "",
        budget: Budget | None = None,
        temperature: float | None = None,
        watch: Callable[[Event], None] | None = None,
    ) -> Attempt:
        """Let the agent answer the task once, unjudged."""
        context, arm, recall = self.context, self.arm, self.recall
        agent = make_agent(arm.agent, **arm.options)
        model = context.models.get(arm.lm) if agent.uses_lm else None
        hidden = context.hidden_by_task.get(task.id, context.hidden)
        recorder = Recorder(redact=list(model.secrets) if model else None, watch=watch)
        counter = UsageCounter(recorder)
        meter = Meter(budget or arm.budget or self.experiment.budget, lambda: counter.usage)
        lms = {}
        if model is not None:
            fast = context.models[arm.fast_lm] if arm.fast_lm else model
            lms = {
                role: one.lm(
                    role=role,
                    temperature=self._temperature(number, temperature),
                    max_tokens=arm.max_tokens,
                    seed=rollout_seed(self.key.seed, number),
                    rollout_id=rollout_seed(self.key.seed, number),
                    worker=self.worker % one.workers,
                    # A model that hangs must not outlast the trial's own limit.
                    timeout_s=min(900.0, meter.budget.seconds or 900.0),
                )
                for role, one in (("solver", model), ("extractor", fast))
            }
        if recall.event is not None:
            recorder.add("memory_retrieved", recall.event, seconds=recall.seconds)
        with RefStore() as store:
            episode = Episode(
                endpoint=context.endpoint,
                tools=meter.metered(self._tools(store, recorder, hidden)),
                lm=lms.get("solver"),
                extractor=lms.get("extractor"),
                budget=meter.budget,
                recorder=recorder,
                meter=meter,
                sandbox=context.sandboxes,
                callbacks=[counter],
                context=recall.context,
                pack=context.pack,
                hidden=hidden,
                examples=recall.examples,
                demonstrations=(
                    *(context.demonstrations if arm.demonstrations else ()),
                    *recall.demonstrations,
                ),
            )
            try:
                asked = replace(task, query=(recall.question or task.query) + note)
                attempt = agent.solve(asked, episode)
            except ENDS_THE_RUN:
                raise
            except Exception as error:
                return _errored(episode, error)
        results = attempt.trajectory.of("tool_result")
        if attempt.sparql is None and results and results[-1].data.get("infrastructure"):
            gone = Finding("endpoint", "the endpoint failed, and the agent gave no query")
            return replace(attempt, status="error", findings=(gone,))
        return attempt

    def _tools(self, store: RefStore, recorder: Recorder, hidden: frozenset[str]) -> dict[str, Any]:
        context, wanted = self.context, self.arm.tools
        query_tools = SPARQLTools(
            context.endpoint,
            store=store,
            client=context.client,
            schema=context.schema,
            profile=context.profile,
        )
        packs = [context.pack] if context.pack else []
        endpoint_tools = EndpointTools([context.endpoint], store=store, packs=packs, hidden=hidden)
        tools = query_tools.as_dspy_tools() | endpoint_tools.as_dspy_tools()
        names = DEFAULT_TOOLS if wanted is None else tools if wanted == "all" else wanted
        for name in names:
            if name not in tools:
                where, hint = f"arm {self.arm.name}", f"choose from {', '.join(tools)}"
                raise UsageError(f"unknown tool {name!r}", where=where, hint=hint)
        tools = {name: tool for name, tool in tools.items() if name in names}
        # An arm with memory as tools need not name these among its tools.
        return tools | (dict(self.recall.tools(recorder)) if self.recall.tools else {})

    def _temperature(self, number: int, requested: float | None) -> float:
        """Return the temperature of an attempt."""
        arm = self.arm
        if number == 0 and self.tokens is not None:
            # Only attempts beyond a plain arm's own must differ from it.
            return 0.0
        if requested is not None:
            # Raised where an attempt repeats itself; not every model accepts one.
            return requested if takes_temperature(asked_as(arm.lm)) else arm.temperature
        own = arm.sampling.temperature if number and arm.sampling else None
        return arm.temperature if own is None else own

    def _sample(self, settings: SamplingSettings, seen: Task) -> Sampled:
        def attempt(number: int, note: str, left: Budget, warm: float | None) -> Attempt:
            return self.attempt(seen, number=number, note=note, budget=left, temperature=warm)

        return sample(
            settings,
            attempt,
            self.context.judge.answer,
            budget=self.arm.budget or self.experiment.budget,
            tokens=self.tokens,
            prefixes=self.context.endpoint.prefixes,
            explain=explainer(self.context.client, self.context.schema),
        )

    def _judge(self, one: Rollout) -> dict[str, Any]:
        """Return an attempt that was not chosen, as the record keeps it."""
        attempt = one.attempt
        judged = self.context.judge.examine(self.task, attempt.sparql)
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
        if self.step is not None and self.arm.learns_from != "execution":
            record = TrialRecord.of(
                self.key,
                self.task,
                attempt,
                judged.verdict,
                evidence=judged.evidence.to_json(),
                started=self._started,
                model={},
            )
            record = _judged_by_lm(self.context, self.arm.judge_lm, record)
            kept["judgements"] = dict(record.judgements)
        return kept


def _errored(episode: Episode, error: Exception) -> Attempt:
    finding = failure_of(error)
    logger.warning("a trial ended in an error: %s", finding)
    data = {"error": str(finding), "code": finding.code, "type": type(error).__name__}
    if not isinstance(error, ReasoningBankError):
        # A mistake of the harness or of a library: record its place, by file names alone since
        # records are shared.
        frames = traceback.extract_tb(error.__traceback__)
        places = (f"{Path(one.filename).name}:{one.lineno} in {one.name}" for one in frames)
        data["traceback"] = "\n".join(places)
    episode.recorder.add("error", data)
    usage, trajectory = episode.meter.usage(), episode.recorder.trajectory()
    return Attempt(None, "", "error", usage, trajectory, findings=(finding,))


def _judged_by_lm(context: RunContext, model: str, record: TrialRecord) -> TrialRecord:
    """Return the record with a model's judgement; without one if the model fails."""
    if not model or record.verdict is None:
        return record
    try:
        return judge_record(context, model, record)
    except Exception as error:
        # The trial is complete without it, and `judge run` can add it later.
        logger.warning("%s could not judge a trial: %s", model, error)
        return record


def judge_record(context: RunContext, model: str, record: TrialRecord) -> TrialRecord:
    """Let a model judge a trial; return its record with the judgement under ``lm:MODEL``."""
    facts = record.question, record.sparql, record.trajectory
    judgement = judge_with_lm(
        context, model, *facts, verdict=record.verdict, evidence=record.evidence
    )
    return replace(record, judgements={**record.judgements, f"lm:{model}": judgement})


def judge_attempts(context: RunContext, model: str, record: TrialRecord) -> TrialRecord:
    """Let a model judge all attempts of a trial that it has not judged yet."""
    name = f"lm:{model}"
    if name not in record.judgements:
        record = judge_record(context, model, record)
    rollouts = []
    for one in record.rollouts:
        known = dict(one.get("judgements") or {})
        if name not in known:
            facts = record.question, one.get("sparql"), Trajectory.from_json(one["trajectory"])
            known[name] = judge_with_lm(context, model, *facts, verdict=one.get("verdict"))
        rollouts.append({**one, "judgements": known})
    return replace(record, rollouts=tuple(rollouts))


def judge_with_lm(
    context: RunContext,
    model: str,
    question: str,
    sparql: str | None,
    trajectory: Trajectory,
    *,
    verdict: Mapping[str, Any] | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Let a model judge an attempt without the gold."""
    status, result, failure = (verdict or {}).get("status"), None, ""
    if sparql is None or not sparql.strip():
        failure = "no query was submitted"
    elif status in ("query_error", "query_timeout"):
        failure = str((verdict or {}).get("reason") or "the query did not run")
    elif status in ("judged", "wrong_form") and evidence and "predicted" in evidence:
        result = AnswerSample.from_json(evidence["predicted"])
    else:
        try:
            result = context.judge.sample(sparql)
        except QueryError as error:
            failure = str(error)
    case = case_of(
        question,
        sparql,
        trajectory,
        result=result,
        failure=failure,
        known=context.schema,
        prefixes=context.endpoint.prefixes,
    )
    lm = context.models[model].lm(role="judge", temperature=0.0, max_tokens=reply_tokens(model))
    return LMJudge(lm).judge(case).to_json()


def reply_tokens(model: str) -> int | None:
    """Return the most tokens of a judge's reply; None for a hosted model's own limit."""
    return MAX_REPLY_TOKENS if parse_name(model).is_local else None
