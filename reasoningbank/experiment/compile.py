"""Agents compiled by optimizers of DSPy, once for each seed, before the first trial of their arm.

A program is what an optimizer changes: instructions and demonstrations of the agent's predictors.
The run's folder keeps it. `KNNFewShot` compiles for each question, so it makes one for each task.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents import UNJUDGED
from reasoningbank.agents.program import AgentProgram, Predictors, program_of
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, QueryError, ReasoningBankError, UsageError
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.context import Recall, RunContext
from reasoningbank.experiment.executors import waits
from reasoningbank.experiment.manifest import hash_tasks
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.recall import MemoryParts
from reasoningbank.experiment.records import RunFolder
from reasoningbank.experiment.settings import CompileSettings
from reasoningbank.experiment.trial import ENDS_THE_RUN, Trial
from reasoningbank.judge import ExecutionMetric, to_examples
from reasoningbank.lm import UsageCounter, asked_as, lm_failure, takes_temperature
from reasoningbank.memory import MemoryItem, Provenance
from reasoningbank.memory.skeleton import shortened
from reasoningbank.retrieval import open_embedder
from reasoningbank.trajectory import Usage

#: Parameters of optimizers that the run decides.
_GIVEN = {"self", "student", "teacher", "trainset", "valset", "metric", "metric_threshold",
          "prompt_model", "task_model", "teacher_settings", "reflection_lm", "vectorizer",
          "few_shot_bootstrap_args", "log_dir", "num_threads", "gepa_kwargs", "seed", "use_wandb",
          "wandb_api_key", "wandb_init_kwargs", "use_mlflow", "instruction_proposer",
          "code_proposer"}  # fmt: skip
#: Metric calls of GEPA, which needs a number of them, where tokens are the limit.
_MANY = 1_000_000


def check_optimizer(settings: CompileSettings, where: str) -> None:
    """Check that an optimizer knows the options that it is given."""
    made, compiled = _options(settings.optimizer)
    unknown = settings.options.keys() - made - compiled
    if unknown or (settings.optimizer == "KNNFewShot" and "k" not in settings.options):
        said = f"has no option {min(unknown)!r}" if unknown else "needs the option k"
        what, hint = f"{settings.optimizer} {said}", f"choose {', '.join(sorted(made | compiled))}"
        raise UsageError(what, where=where, hint=hint, code="unknown-option" if unknown else "no-k")


def _options(optimizer: str) -> tuple[set[str], set[str]]:
    """Return what an optimizer takes when it is made, and when it compiles."""
    kind = getattr(dspy, optimizer)
    kinds = [kind, dspy.BootstrapFewShot] if optimizer == "KNNFewShot" else [kind]
    made = {name for one in kinds for name in inspect.signature(one.__init__).parameters}
    return made - _GIVEN, set(inspect.signature(kind.compile).parameters) - _GIVEN


@dataclass
class Compilation:
    """Compiles one arm's agent for one seed, with at most so many `tokens`."""

    context: RunContext
    experiment: Experiment
    arm: Arm
    seed: int
    tasks: Sequence[Task]
    parts: MemoryParts
    tokens: int | None
    stop: threading.Event
    failure: ReasoningBankError | None = None
    _filtered_out: list[dict[str, str]] = field(default_factory=list)
    _counter: UsageCounter = field(default_factory=UsageCounter)
    _attempts: Usage = field(default_factory=Usage)
    _lock: Any = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        assert self.arm.compile is not None
        self._settings, self._limit = self.arm.compile, self.tokens
        judge, schema = self.context.judge, self.context.schema
        self._metric = ExecutionMetric(judge, schema, self.experiment.metric)
        # Of tasks with the same words, an optimizer could not say whose gold it is.
        self._leakage = self.parts.leakage(None)
        self._known = {self._asked(t): t for t in self.tasks if self._may_show(t.id, t)}
        self._examples = [self._example(*known) for known in self._known.items()]

    @property
    def ended(self) -> str:
        """Why the agent answers no more questions; empty while it does."""
        if self.failure is not None or self.stop.is_set():
            return "failure" if self.failure is not None else "interrupt"
        return "budget" if self._limit is not None and self._used().tokens >= self._limit else ""

    def run(self, folder: RunFolder, questions: Sequence[Task]) -> None:
        """Compile; what the trials of these tasks need is on disk when this returns."""
        if not self._examples:
            where = f"arm {self.arm.name}"
            raise UsageError("the leakage filter leaves no task", where=where, code="no-tasks")
        before = folder.program(self.arm.name, self.seed) or {}
        spent, began = Usage(**before.get("usage", {})), time.monotonic()
        if self.tokens is not None:
            self._limit = self.tokens = max(0, self.tokens - spent.tokens)
        programs, name = dict(before.get("programs", {})), f"{self.arm.name}.{self.seed}"
        # Optimizers print; no trial runs beside them.
        quiet, workers = io.StringIO(), self.experiment.executor.workers
        arm, seed = self.arm, self.seed
        lm = self.context.models[arm.lm].lm(
            temperature=arm.temperature, max_tokens=arm.max_tokens, seed=seed, rollout_id=seed
        )
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            dspy.context(lm=lm, callbacks=[self._counter], num_threads=workers),
        ):
            student = program_of(self._answer)
            self._attempts = Usage()
            for task, program in self._programs(student, questions):
                if self.ended in ("failure", "interrupt"):
                    break
                programs[task] = program
                used = replace(self._used(), seconds=round(time.monotonic() - began, 3))
                made = {"version": 1, "arm": self.arm.name, "seed": self.seed, "lm": self.arm.lm}
                made |= self._settings.model_dump(mode="json", exclude={"tasks"})
                made |= {"tasks": [task.id for task in self._known.values()]}
                made |= {"trainset": hash_tasks(self.tasks), "filtered_out": self._filtered_out}
                made |= {"tokens_wanted": before.get("tokens_wanted", self.tokens)}
                made |= {"usage": asdict(spent + used), "ended": self.ended, "programs": programs}
                made |= {"before": student.to_json()}
                folder.write_json(f"compiled/{name}.json", made)
        if self.failure is not None:
            raise self.failure

    def _programs(
        self, student: AgentProgram, questions: Sequence[Task]
    ) -> Iterator[tuple[str, Predictors]]:
        """Yield programs by task; one with an empty name is for all tasks."""
        options: dict[str, Any] = {"metric": self.metric, **self._settings.options}
        if self._settings.optimizer != "GEPA":
            # An answer that is right in part is no example.
            options["metric_threshold"] = 1.0
        if self._settings.optimizer != "KNNFewShot":
            yield "", self._checked(self._compiled(student, options), student)
            return
        # A function, since DSPy copies it deeply, and a loaded embedder cannot be copied.
        embedder = dspy.Embedder(lambda texts: open_embedder().passages(texts))
        knn = dspy.KNNFewShot(trainset=self._examples, vectorizer=embedder, **options)
        made: dict[tuple[str, ...], Predictors] = {}
        for at, task in enumerate(questions, 1):
            if self.tokens is not None:
                # Each question may take an equal share, so that the last ones have theirs.
                self._limit = self.tokens * at // len(questions)
            near = knn.KNN(question=self._asked(task))
            key = tuple(one.question for one in near)
            if key not in made:
                few_shot = dspy.BootstrapFewShot(**knn.few_shot_bootstrap_args)
                made[key] = self._checked(few_shot.compile(student, trainset=near), student)
            yield task.id, made[key]

    def _compiled(self, student: AgentProgram, options: dict[str, Any]) -> AgentProgram:
        """Return the program of an optimizer that compiles once; as it was if it is cut off."""
        optimizer, at_compile = self._settings.optimizer, _options(self._settings.optimizer)[1]
        if optimizer == "GEPA":
            options |= {"reflection_lm": self._reflection(), "seed": self.seed}
            options["gepa_kwargs"] = {"stop_callbacks": [lambda _: bool(self.ended)]}
            if not options.keys() & {"auto", "max_full_evals", "max_metric_calls"}:
                options |= {"auto": "light"} if self.tokens is None else {"max_metric_calls": _MANY}
        if optimizer == "MIPROv2":
            models = {"prompt_model": self._reflection(), "task_model": dspy.settings.lm}
            options |= {**models, "seed": 9 + self.seed}
        rest = {name: options.pop(name) for name in list(options) if name in at_compile}
        try:
            made: AgentProgram = getattr(dspy, optimizer)(**options).compile(
                student, trainset=self._examples, **rest
            )
        except Exception as error:
            if not self.ended:
                lines, where = str(error).splitlines(), f"arm {self.arm.name}, compile"
                what = f"{optimizer} failed: {lines[0] if lines else type(error).__name__}"
                unread = isinstance(error, AdapterParseError)
                hint = "name another reflection_lm" if unread else "change its options"
                refused = UsageError(what, where=where, hint=hint, code="refused")
                self.failure = lm_failure(error) or refused
            return student
        return made

    def metric(self, example: dspy.Example, prediction: Any, *rest: Any) -> Any:
        """Judge a prediction by the task's own gold."""
        (gold,) = to_examples([self._known[example.question]])
        try:
            return self._metric(gold, prediction, *rest)
        except EndpointError as error:
            # Optimizers would count it as a wrong answer.
            self.failure = error
            raise

    def _answer(self, question: str, adopt: Callable[..., None]) -> str | None:
        """Let the agent answer a training question, as in a trial."""
        # What is only looked at has no question.
        task, arm = self._known.get(question, self.tasks[0]), self.arm
        job = Job(arm, task, self.seed)
        parts, recall = (self.context, self.experiment, job), Recall(question=question, adopt=adopt)
        trial = Trial(*parts, recall=recall, lm=dspy.settings.lm)
        for seconds in (0.0, *waits(self.experiment.retries)):
            if self.ended or self.stop.wait(seconds):
                return None
            try:
                attempt = trial.attempt(task.blind())
            except ENDS_THE_RUN as error:
                self.failure = error
                return None
            with self._lock:
                self._attempts += attempt.usage
            if attempt.status != "error":
                break
        if attempt.status in UNJUDGED:
            kind = EndpointError if attempt.status == "error" else UsageError
            self.failure = kind(attempt.error, where=f"{job.key}, compile", code="compile-failed")
            return None
        return attempt.sparql

    def _checked(self, program: AgentProgram, student: AgentProgram) -> Predictors:
        """Return what is kept of a program: nothing that a trial must not be shown."""
        kept = program.to_json()
        for name, part in kept.items():
            if not self._may_show(name, self.tasks[0], part["instructions"]):
                part["instructions"] = student.parts[name].signature.instructions
            texts = ["\n".join(map(str, demo.values())) for demo in part["demos"]]
            shown = zip(part["demos"], texts, strict=True)
            part["demos"] = [d for d, text in shown if self._may_show(name, self.tasks[0], text)]
        return kept

    def _may_show(self, name: str, task: Task, text: str = "") -> bool:
        """Return whether the leakage filter lets a task, or a text based on it, pass."""
        origin = Provenance(task.id, task.group, task.corpus)
        query, question = ("", "") if text else (task.expected_sparql, task.query)
        item = MemoryItem(name, "", text, "gold", query, provenance=origin, question=question)
        if (found := self._leakage.finding(item)) is not None:
            self._filtered_out.append({"name": name, "code": found.code, "what": found.what})
        return found is None

    def _example(self, question: str, task: Task) -> dspy.Example:
        """Return a task as the agent reads and writes: without prefixes that are declared."""
        query = task.expected_sparql
        with contextlib.suppress(QueryError):
            query = shortened(query, self.context.endpoint.namespaces)
        return dspy.Example(question=question, sparql=query).with_inputs("question")

    def _asked(self, task: Task) -> str:
        return self.parts.asked(self.arm, task.query)

    def _used(self) -> Usage:
        with self._lock:
            return self._attempts + self._counter.usage

    def _reflection(self) -> dspy.BaseLM:
        """Return the model that proposes instructions."""
        name = self._settings.reflection_lm or self.arm.lm
        warm = 1.0 if takes_temperature(asked_as(name)) else None
        return self.context.models[name].lm(role="distiller", temperature=warm, seed=self.seed)
