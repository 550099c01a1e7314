"""One trial: an agent on a task with a seed, judged, as a record."""

from __future__ import annotations

import functools
import logging
import sqlite3
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import dspy
import httpx
from dspy.primitives.code_interpreter import CodeInterpreterError
from pydantic import TypeAdapter

from reasoningbank.agents import (
    UNJUDGED,
    Attempt,
    Budget,
    Episode,
    FewShotExample,
    Meter,
    failure_of,
    make_agent,
)
from reasoningbank.agents.protocol import conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import (
    BudgetError,
    EndpointError,
    ModelError,
    QueryError,
    RecordError,
    SetupError,
    UsageError,
    causes,
)
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.context import NOTHING, Recall, RunContext
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.sampling import Rollout, Sampled, Teacher, rollout_seed, sample
from reasoningbank.experiment.settings import SamplingSettings
from reasoningbank.findings import Finding
from reasoningbank.imports import is_import_path
from reasoningbank.judge import RAN, AnswerSample, Judgement, LMJudge, OwnJudge, case_of
from reasoningbank.judge.evidence import sample_of
from reasoningbank.judge.lm_judge import MAX_REPLY_TOKENS
from reasoningbank.lm import UsageCounter, asked_as, lm_failure, parse_name, takes_temperature
from reasoningbank.refs import RefStore
from reasoningbank.schema import explainer
from reasoningbank.tools import DEFAULT_TOOLS, EndpointTools, SPARQLTools
from reasoningbank.tools.adapting import own_tool
from reasoningbank.trajectory import Event, Recorder, Trajectory, Usage

logger = logging.getLogger(__name__)

#: Errors after which no trial can succeed; every other error concerns one trial.
ENDS_THE_RUN = (SetupError, UsageError, RecordError)
#: Errors of the machine and the network, after which a trial may succeed if it is run again.
_INFRASTRUCTURE = (EndpointError, OSError, httpx.HTTPError, sqlite3.OperationalError, MemoryError,
                   CodeInterpreterError)  # fmt: skip
#: Those among them that happen again every time.
_MISTAKES = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError,
             PermissionError)  # fmt: skip
#: Slips in an agent's code, whatever it was handling.
_SLIPS = (NameError, AttributeError, TypeError, LookupError, AssertionError)
_SAMPLE = TypeAdapter(AnswerSample)


@dataclass
class Trial:
    """One trial, which may be run again after infrastructure errors.

    Attributes:
        worker: Which worker runs it; a local model has a slot for each.
        remember: Returns what it is given of memory, when it begins.
        tokens: Tokens of the trial that it matches.
        recall: What it was given.
        lm: Asked instead of the arm's model.
    """

    context: RunContext
    experiment: Experiment
    job: Job
    worker: int = 0
    remember: Callable[[], Recall] = lambda: NOTHING
    tokens: int | None = None
    recall: Recall = NOTHING
    lm: dspy.BaseLM | None = None
    _sampled: Sampled | None = None
    _started: str = ""

    def run(self) -> TrialRecord:
        """Run the trial and return its record."""
        agent = make_agent(self.job.arm.agent, **self.job.arm.options)
        judged: Judgement | None = None
        rollouts: tuple[Mapping[str, Any], ...] = ()
        attempt = Attempt(None, "", "bug", Usage(), Trajectory())
        try:
            sampled = self._sampled
            if sampled is None:
                self._started = datetime.now(UTC).isoformat(timespec="milliseconds")
                self.recall = self.remember()
                seen = self.job.task if agent.sees_gold else self.job.task.blind()
                if sampling := self._sampling():
                    sampled = self._sample(sampling, seen)
                else:
                    sampled = Sampled(Rollout(0, self.attempt(seen)))
            attempt = sampled.attempt
            if attempt.status not in UNJUDGED:
                self._sampled = sampled
                judged = self.context.judge.examine(self.job.task, attempt.sparql)
                rollouts = tuple(self._judge(other) for other in sampled.others)
        except ENDS_THE_RUN:
            raise
        except Exception as error:
            judged = None
            status, finding = _failure(error)
            attempt = replace(attempt, status=status, findings=(finding,))
        model = self.context.models.get(self.job.arm.lm) if agent.uses_lm else None
        record = TrialRecord.of(
            self.job.key,
            self.job.task,
            attempt,
            judged.verdict if judged else None,
            evidence=judged.evidence.to_json() if judged else {},
            judge_seconds=judged.seconds if judged else 0.0,
            started=self._started,
            model=dict(model.fingerprint) if model else {},
            step=self.job.step,
            memory=self.recall.snapshot,
            rollouts=rollouts,
            tokens_wanted=self.tokens,
        )
        if not self.job.arm.judge_lm or judged is None:
            return record
        try:
            return judge_record(self.context, self.job.arm.judge_lm, record)
        except Exception as error:
            # The trial is complete without it, and `judge run` can add it later.
            finding = failure_of(error)
            logger.warning("%s could not judge a trial: %s", self.job.arm.judge_lm, finding)
            return record

    def attempt(
        self,
        task: Task,
        number: int = 0,
        note: str = "",
        budget: Budget | None = None,
        temperature: float | None = None,
        *,
        watch: Callable[[Event], None] | None = None,
    ) -> Attempt:
        """Let the agent answer the task once, unjudged."""
        context, arm, recall = self.context, self.job.arm, self.recall
        agent = make_agent(arm.agent, **arm.options)
        model = context.models.get(arm.lm) if agent.uses_lm else None
        hidden = context.hidden_by_task.get(task.id, context.hidden)
        recorder = Recorder(redact=list(model.secrets) if model else None, watch=watch)
        counter = UsageCounter(recorder)
        meter = Meter(budget or arm.budget or self.experiment.budget, lambda: counter.usage)
        lms: dict[str, dspy.BaseLM] = {}
        if self.lm is not None:
            lms = {"solver": self.lm, "extractor": self.lm}
        elif model is not None:
            fast = context.models[arm.fast_lm] if arm.fast_lm else model
            seed = rollout_seed(self.job.seed, number)
            lms = {
                role: one.lm(
                    role=role,
                    temperature=self._temperature(number, temperature),
                    max_tokens=arm.max_tokens,
                    seed=seed,
                    rollout_id=seed,
                    worker=self.worker % one.workers,
                    # A model that hangs must not outlast the trial's own limit.
                    timeout_s=min(900.0, meter.budget.seconds or 900.0),
                )
                for role, one in (("solver", model), ("extractor", fast))
            }
        # Each attempt sees one item as worked turns, a retry the next one.
        turn = min(number, len(recall.demonstrations) - 1)
        if recall.event is not None:
            event = _shown_event(recall.event, turn)
            recorder.add("memory_retrieved", event, seconds=recall.seconds)
        with RefStore() as store:
            episode = Episode(
                endpoint=context.endpoint,
                tools=meter.metered(self._tools(store, recorder, hidden)),
                lm=lms.get("solver"),
                extractor=lms.get("extractor"),
                recorder=recorder,
                meter=meter,
                sandbox=context.sandboxes,
                callbacks=[counter],
                context=recall.context,
                pack=context.pack,
                hidden=hidden,
                examples=self._examples(number),
                adopt=recall.adopt or (lambda _: None),
                demonstrations=(
                    *(context.demonstrations if arm.demonstrations else ()),
                    *recall.demonstrations[turn : turn + 1],
                ),
            )
            try:
                asked = replace(task, query=(recall.question or task.query) + note)
                attempt = agent.solve(asked, episode)
                if not isinstance(attempt, Attempt):
                    returned = type(attempt).__name__
                    raise TypeError(f"{arm.agent}: solve returned {returned}, not an Attempt")
            except ENDS_THE_RUN:
                raise
            except (Exception, SystemExit) as error:  # a user's code may call exit()
                if isinstance(meant := lm_failure(error), ENDS_THE_RUN):
                    raise meant from error
                if isinstance(meant, BudgetError):
                    return conclude(episode, None, "exhausted", [meant])
                status, finding = _failure(error)
                logger.warning("a trial ended in an error: %s", finding)
                data = {"error": str(finding), "code": finding.code, "type": type(error).__name__}
                recorder.add("error", data | dict(finding.fields))
                usage, trajectory = meter.usage(), recorder.trajectory()
                return Attempt(None, "", status, usage, trajectory, findings=(finding,))
        results = attempt.trajectory.of("tool_result")
        if attempt.sparql is None and results and results[-1].data.get("infrastructure"):
            gone = Finding("endpoint", "the endpoint failed, and the agent gave no query")
            return replace(attempt, status="error", findings=(gone,))
        return attempt

    def _tools(self, store: RefStore, recorder: Recorder, hidden: frozenset[str]) -> dict[str, Any]:
        context, arm = self.context, self.job.arm
        packs = [context.pack] if context.pack else []
        endpoint_tools = EndpointTools([context.endpoint], store=store, packs=packs, hidden=hidden)
        query_tools = SPARQLTools(
            context.endpoint,
            store=store,
            client=context.client,
            schema=context.schema,
            profile=context.profile,
        )
        known = query_tools.as_dspy_tools() | endpoint_tools.as_dspy_tools()
        names = DEFAULT_TOOLS if arm.tools is None else known if arm.tools == "all" else arm.tools
        tools = {name: tool for name, tool in known.items() if name in names}
        for name in names:
            if is_import_path(name):
                tool = own_tool(name, query_tools)
                tools[tool.__name__] = tool
        # An arm with memory as tools need not name these among its tools.
        return tools | (dict(self.recall.tools(recorder)) if self.recall.tools else {})

    def _sampling(self) -> SamplingSettings | None:
        """Return how this trial is sampled."""
        own = self.job.arm.sampling
        if self._teacher is not None:
            warm = own.temperature if own else None
            most = self.experiment.learning.attempts
            return SamplingSettings(kind="sequential", k=most, temperature=warm)
        return own if own and own.applies(in_stream=self.job.step is not None) else None

    @functools.cached_property
    def _teacher(self) -> Teacher | None:
        """Who helps in streams that learn from the execution judge."""
        believed = self.job.arm.learns_from == "execution"
        if not (self.job.teaches and believed and self.experiment.learning.attempts > 1):
            return None
        context = self.context
        explain = explainer(context.client, context.schema)
        parts = context.judge, context.client, self.job.task, self.experiment.metric
        return Teacher(*parts, context.linker, explain)

    def _examples(self, number: int) -> tuple[FewShotExample, ...]:
        """Return the few-shot examples that an attempt sees."""
        if number and self._teacher is not None and self._teacher.alone:
            return ()
        return self._alone(number) or self.recall.examples

    def _alone(self, number: int) -> tuple[FewShotExample, ...]:
        """Return the few-shot example that a retry sees alone; none for other attempts."""
        sampling, shown = self._sampling(), self.recall.examples
        retries = sampling is not None and sampling.kind == "retry" and len(shown) > 1
        return shown[number - 1 : number] if retries and number else ()

    def _temperature(self, number: int, requested: float | None) -> float:
        """Return the temperature of an attempt."""
        arm = self.job.arm
        if number == 0 and self.tokens is not None:
            # Only attempts beyond a plain arm's own must differ from it.
            return 0.0
        if requested is not None:
            # Raised where an attempt repeats itself; not every model accepts one.
            return requested if takes_temperature(asked_as(arm.lm)) else arm.temperature
        sampling = self._sampling()
        other = self._alone(number) or number < len(self.recall.demonstrations)
        own = sampling.temperature if number and sampling and not other else None
        return arm.temperature if own is None else own

    def _sample(self, settings: SamplingSettings, seen: Task) -> Sampled:
        return sample(
            settings,
            functools.partial(self.attempt, seen),
            self.context.judge.answer,
            budget=self.job.arm.budget or self.experiment.budget,
            tokens=self.tokens,
            prefixes=self.context.endpoint.prefixes,
            explain=explainer(self.context.client, self.context.schema),
            teacher=self._teacher,
        )

    def _judge(self, one: Rollout) -> dict[str, Any]:
        """Return an attempt that was not chosen, as the record keeps it."""
        attempt = one.attempt
        verdict = self.context.judge.examine(self.job.task, attempt.sparql).verdict
        return {
            "number": one.number,
            "sparql": attempt.sparql,
            "status": attempt.status,
            "error": attempt.error,
            "findings": [one.to_json() for one in attempt.findings],
            "usage": asdict(attempt.usage),
            "verdict": verdict.to_json(),
            "judgements": {},
            "agreed": one.agreed,
            "trajectory": attempt.trajectory.to_json(),
        }


def _shown_event(event: Mapping[str, Any], turn: int) -> dict[str, Any]:
    """Return what one attempt was shown of what was retrieved for all: one demonstration."""
    every = event["demonstrations"]
    shown = every[turn : turn + 1] if every else []
    less = sum(one["tokens"] for one in every) - sum(one["tokens"] for one in shown)
    return {**event, "tokens": event["tokens"] - less, "demonstrations": shown}


def _failure(error: BaseException) -> tuple[Literal["error", "bug"], Finding]:
    """Return what an exception means for a trial: its status, and the finding to record."""
    meant, found = lm_failure(error), failure_of(error)
    if isinstance(meant, ModelError) or _is_infrastructure(error):
        return "error", meant.finding if meant else found
    # File names alone: records are shared.
    frames = [
        traceback.FrameSummary(Path(one.filename).name, one.lineno, one.name, line=one.line)
        for one in traceback.extract_tb(error.__traceback__)
        if one.filename != __file__
    ]
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    fields = {"type": type(error).__name__, "traceback": "".join(lines).rstrip()}
    place = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return "bug", Finding("bug", found.what, where=place, hint=found.hint, fields=fields)


def _is_infrastructure(error: BaseException) -> bool:
    """Return whether an error comes from the machine or the network."""
    # A slip in the code that handles another error is no less a bug.
    if isinstance(error, _SLIPS) and error.__cause__ is None:
        return False
    for one in causes(error, implicit=True):
        if isinstance(one, (*_MISTAKES, *_INFRASTRUCTURE)):
            return not isinstance(one, _MISTAKES)
    return False


def judge_record(context: RunContext, model: str, record: TrialRecord) -> TrialRecord:
    """Let a model judge the chosen attempt without the gold; add what it said as ``lm:MODEL``."""
    sparql, verdict, result, failure = record.sparql, record.verdict or {}, None, ""
    status = verdict.get("status")
    if status in ("query_error", "query_timeout"):
        failure = str(verdict.get("reason") or "")
    elif status in RAN and "predicted" in record.evidence:
        result = _SAMPLE.validate_python(record.evidence["predicted"])
    elif sparql and sparql.strip():
        try:
            result = sample_of(context.judge.answer(sparql))
        except QueryError as error:
            failure = str(error)
    case = case_of(
        record.question,
        sparql,
        record.trajectory,
        result=result,
        failure=failure,
        known=context.schema,
        prefixes=context.endpoint.prefixes,
    )
    if is_import_path(model):
        said = OwnJudge(model).judge(case)
    else:
        # A hosted model has its own limit.
        most = MAX_REPLY_TOKENS if parse_name(model).is_local else None
        lm = context.models[model].lm(role="judge", temperature=0.0, max_tokens=most)
        said = LMJudge(lm).judge(case)
    return replace(record, judgements={**record.judgements, f"lm:{model}": said.to_json()})


def judge_attempts(context: RunContext, model: str, record: TrialRecord) -> TrialRecord:
    """Let a model judge all attempts of a trial that it has not judged yet."""
    chosen, *others = (
        one if f"lm:{model}" in one.judgements else judge_record(context, model, one)
        for one in record.attempts()
    )
    pairs = zip(record.rollouts, others, strict=True)
    rollouts = ({**one, "judgements": judged.judgements} for one, judged in pairs)
    return replace(chosen, rollouts=tuple(rollouts))
