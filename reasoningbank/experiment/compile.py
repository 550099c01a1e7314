"""Agents compiled by optimizers of DSPy, once for each seed, before the first trial of their arm.

An optimizer changes the instructions and the demonstrations of an agent's predictors. These, the
program, are kept in the run's folder. `KNNFewShot` compiles for each question, so its program has
predictors for each task of the evaluation.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import dspy
from pydantic import BaseModel, TypeAdapter, ValidationError

from reasoningbank.agents import UNJUDGED
from reasoningbank.corpus import Task
from reasoningbank.errors import (
    BudgetError,
    EndpointError,
    QueryError,
    ReasoningBankError,
    SetupError,
    UsageError,
)
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.context import Recall, RunContext
from reasoningbank.experiment.executors import waits
from reasoningbank.experiment.manifest import hash_tasks
from reasoningbank.experiment.records import TrialKey
from reasoningbank.experiment.settings import CompileSettings, Optimizer
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.experiment.trial import ENDS_THE_RUN, Trial
from reasoningbank.judge import ExecutionMetric, to_examples
from reasoningbank.lm import UsageCounter, asked_as, lm_failure, takes_temperature
from reasoningbank.memory import LeakageFilter, MemoryItem, Provenance
from reasoningbank.memory.skeleton import shortened
from reasoningbank.retrieval import Vectors
from reasoningbank.trajectory import Usage

VERSION = 1
#: Of each predictor, by its name in the agent's module: `instructions` and `demos`.
Predictors = Mapping[str, Mapping[str, Any]]
#: Parameters of optimizers that the run decides.
_GIVEN = {"self", "student", "teacher", "trainset", "valset", "metric", "metric_threshold",
          "prompt_model", "task_model", "teacher_settings", "reflection_lm", "vectorizer",
          "few_shot_bootstrap_args", "log_dir", "num_threads", "gepa_kwargs", "seed"}  # fmt: skip
#: More than any limit of tokens allows, for GEPA, which needs a number of metric calls.
_MANY = 1_000_000


def check_optimizer(settings: CompileSettings, where: str) -> None:
    """Check that an optimizer has the options that it is given."""
    known = {**_options(settings.optimizer, "init"), **_options(settings.optimizer, "compile")}
    for name in settings.options:
        if name not in known:
            hint = f"choose from {', '.join(sorted(known))}"
            what = f"{settings.optimizer} has no option {name!r}"
            raise UsageError(what, where=where, hint=hint, code="unknown-option")
    if settings.optimizer == "KNNFewShot" and "k" not in settings.options:
        hint = "set options.k, the number of examples"
        raise UsageError("KNNFewShot needs k", where=where, hint=hint, code="no-k")


def check_installed(settings: CompileSettings, where: str) -> None:
    """Check that the packages that an optimizer needs are installed."""
    name = {"MIPROv2": "optuna", "GEPA": "gepa"}.get(settings.optimizer)
    if name and importlib.util.find_spec(name) is None:
        what = f"{settings.optimizer} needs the package {name}, which is not installed"
        hint = f"pip install {name}"
        raise SetupError(what, where=where, hint=hint, code="no-package", package=name)


def _options(optimizer: Optimizer, place: str) -> dict[str, Any]:
    """Return what an optimizer takes when it is made (`init`) or compiles."""
    kind = getattr(dspy, optimizer)
    made = [kind] if optimizer != "KNNFewShot" else [kind, dspy.BootstrapFewShot]
    calls = [one.__init__ for one in made] if place == "init" else [kind.compile]
    found = {name: one for call in calls for name, one in inspect.signature(call).parameters.items()}
    return {name: one for name, one in found.items() if name not in _GIVEN}


class Program(dspy.Module):  # type: ignore[misc]
    """An agent as optimizers see it: its predictors, and a call that answers a question."""

    def __init__(
        self, parts: Mapping[str, dspy.Predict], answer: Callable[[str, Callable[..., None]], Any]
    ) -> None:
        super().__init__()
        self.parts = dict(parts)
        self.answer = answer

    def forward(self, question: str) -> dspy.Prediction:
        """Let the agent answer, with the predictors as they are now."""
        names: dict[int, str] = {}

        def adopt(module: dspy.Module) -> None:
            give(self.predictors_by_name(), module)
            names.update((id(one), name) for name, one in module.named_predictors())

        trace = dspy.settings.trace
        with dspy.context(trace=[]):
            sparql = self.answer(question, adopt)
            steps = dspy.settings.trace
        if trace is not None:
            # Each call of the agent has a module of its own; optimizers know this one.
            trace += [(self.parts[names[id(p)]], *step) for p, *step in steps if id(p) in names]
        return dspy.Prediction(sparql=sparql or "")

    def predictors_by_name(self) -> dict[str, dict[str, Any]]:
        """Return instructions and demonstrations of each predictor."""
        return {
            name: {"instructions": one.signature.instructions, "demos": list(one.demos)}
            for name, one in self.parts.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON-able data, of each demonstration what its predictor shows."""
        found = self.predictors_by_name()
        for name, part in found.items():
            shown = {*self.parts[name].signature.fields, "augmented"}
            part["demos"] = [
                {key: _plain(value) for key, value in demo.items() if key in shown}
                for demo in part["demos"]
            ]
        return found


def give(predictors: Predictors, module: dspy.Module) -> None:
    """Give the predictors of an agent's module their instructions and demonstrations."""
    for name, one in module.named_predictors():
        part = predictors[name]
        one.signature = one.signature.with_instructions(part["instructions"])
        fields = one.signature.fields
        one.demos = [
            dspy.Example(**{k: _typed(fields[k], v) for k, v in demo.items() if k in fields})
            for demo in part["demos"]
        ]


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _typed(field: Any, value: Any) -> Any:
    with contextlib.suppress(ValidationError):
        return TypeAdapter(field.annotation).validate_python(value)
    return value


@dataclass(frozen=True)
class Training:
    """What an agent is compiled on.

    Attributes:
        tasks: The training tasks, in their order.
        asked: Returns a question as the agent is asked it.
        leakage: What no program may hold.
        embed: Vectors of texts, for the nearest examples.
        tokens: The most tokens; None for no limit.
        stop: Set when the run is to end.
    """

    tasks: Sequence[Task]
    asked: Callable[[str], str]
    leakage: LeakageFilter
    embed: Callable[[Sequence[str]], Vectors]
    tokens: int | None
    stop: threading.Event


class Programs:
    """The compiled programs of a run: `compiled/<arm>.<seed>.json`."""

    def __init__(self, storage: RunStorage) -> None:
        self._storage = storage
        self._read: dict[str, Mapping[str, Any]] = {}

    def read(self, arm: str, seed: int) -> Mapping[str, Any] | None:
        """Return what was compiled for an arm and a seed; None if nothing was yet."""
        name = f"compiled/{arm}.{seed}.json"
        if name not in self._read and self._storage.exists(name):
            self._read[name] = self._storage.read_json(name)
        return self._read.get(name)

    def write(self, data: Mapping[str, Any]) -> None:
        """Write a program; it is completely on disk when this returns."""
        name = f"compiled/{data['arm']}.{data['seed']}.json"
        self._storage.write_json(name, data)
        self._read[name] = data

    def predictors(self, arm: str, seed: int, task: str) -> Predictors | None:
        """Return what a trial's agent is given; None if it is not compiled yet."""
        programs: Mapping[str, Predictors] = (self.read(arm, seed) or {}).get("programs", {})
        return programs.get("") or programs.get(task)


class Compilation:
    """Compiles one arm's agent for one seed; what it has is on disk when `run` returns."""

    def __init__(
        self, context: RunContext, experiment: Experiment, arm: Arm, seed: int, training: Training
    ) -> None:
        assert arm.compile is not None
        self.failure: ReasoningBankError | None = None
        self._settings = arm.compile
        self._context, self._experiment, self._arm, self._seed = context, experiment, arm, seed
        self._training, self._limit = training, training.tokens
        self._metric = ExecutionMetric(context.judge, context.schema, experiment.metric)
        self._counter, self._attempts, self._lock = UsageCounter(), Usage(), threading.Lock()
        self._filtered_out: list[dict[str, str]] = []
        shown = [task for task in training.tasks if self._may_show(task)]
        self._examples = [self._example(task) for task in shown]
        self._tasks = {one.question: task for one, task in zip(self._examples, shown, strict=True)}

    @property
    def ended(self) -> str:
        """Why the agent answers no more questions; empty while it does."""
        if self.failure is not None:
            return "failure"
        if self._training.stop.is_set():
            return "interrupt"
        return "budget" if self._limit is not None and self._usage.tokens >= self._limit else ""

    def run(self, programs: Programs, questions: Sequence[Task]) -> None:
        """Compile, and write what the trials of these tasks need.

        Raises:
            UsageError: If no training task is left, or the optimizer refuses its settings.
            ReasoningBankError: If endpoint or model failed; nothing is written then.
        """
        if not self._examples:
            what = "the leakage filter leaves no training task"
            raise UsageError(what, where=f"arm {self._arm.name}", code="no-tasks")
        before = programs.read(self._arm.name, self._seed) or {}
        spent = Usage(**before.get("usage", {}))
        if self._limit is not None:
            self._limit = max(0, self._limit - spent.tokens)
        began, found = time.monotonic(), dict(before.get("programs", {}))

        def write(ended: str) -> None:
            seconds = round(time.monotonic() - began, 3)
            usage = spent + replace(self._usage, seconds=seconds)
            programs.write({**self._described(), "ended": ended, "usage": asdict(usage),
                            "filtered_out": self._filtered_out, "programs": found})  # fmt: skip

        # Optimizers print, and no trial runs beside them.
        quiet = io.StringIO()
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            dspy.context(
                lm=self._lm(),
                callbacks=[self._counter],
                num_threads=self._experiment.executor.workers,
                trace=[],
            ),
        ):
            student = self._student()
            if self._settings.optimizer == "KNNFewShot":
                for at, (task, program) in enumerate(self._nearest(student, questions, found)):
                    if self.ended in ("failure", "interrupt"):
                        break
                    found[task.id] = program
                    write(self.ended if at + 1 == len(questions) else "")
            else:
                compiled = self._compiled(student)
                if compiled is not None:
                    found[""] = self._checked(compiled, student)
                    write(self.ended)
        if self.failure is not None:
            raise self.failure

    def _compiled(self, student: Program) -> Program | None:
        """Return the program of an optimizer that compiles once; None if it was cut off."""
        optimizer, options = self._settings.optimizer, dict(self._settings.options)
        given: dict[str, Any] = {"metric": self.metric}
        if optimizer == "GEPA":
            given |= {"reflection_lm": self._reflection(), "seed": self._seed}
            given["gepa_kwargs"] = {"stop_callbacks": [lambda _: bool(self.ended)]}
            if not options.keys() & {"auto", "max_full_evals", "max_metric_calls"}:
                options |= {"auto": "light"} if self._limit is None else {"max_metric_calls": _MANY}
        else:
            # An answer that is right in part is no example.
            given["metric_threshold"] = 1.0
        if optimizer == "MIPROv2":
            models = {"prompt_model": self._reflection(), "task_model": dspy.settings.lm}
            given |= {**models, "seed": 9 + self._seed}
        at_compile = _options(optimizer, "compile")
        rest = {name: options.pop(name) for name in list(options) if name in at_compile}
        try:
            made = getattr(dspy, optimizer)(**given, **options)
            compiled: Program = made.compile(student, trainset=self._examples, **rest)
        except Exception as error:
            if self.ended == "budget":
                return student
            meant = lm_failure(error)
            if self.ended != "interrupt" and self.failure is None:
                self.failure = meant or self._refused(error)
            return None
        return None if self.ended in ("failure", "interrupt") else compiled

    def _refused(self, error: Exception) -> UsageError:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        where = f"arm {self._arm.name}, compile"
        what = f"{self._settings.optimizer} failed: {lines[0]}"
        return UsageError(what, where=where, hint="change its options", code="optimizer-failed")

    def _nearest(self, student: Program, questions: Sequence[Task], known: Mapping[str, Any]) -> Any:
        """Yield tasks with the programs that `KNNFewShot` makes for their questions."""
        options = {"metric": self.metric, "metric_threshold": 1.0, **self._settings.options}
        knn = dspy.KNNFewShot(
            trainset=self._examples,
            vectorizer=dspy.Embedder(lambda texts: self._training.embed(texts)),
            **options,
        )
        made: dict[tuple[str, ...], Any] = {}
        total = self._limit
        for at, task in enumerate(questions, 1):
            if total is not None:
                # Each question may take an equal share, so that the last ones have theirs.
                self._limit = total * at // len(questions)
            near = knn.KNN(question=self._training.asked(task.query))
            key = tuple(example.question for example in near)
            if key not in made:
                few_shot = dspy.BootstrapFewShot(**knn.few_shot_bootstrap_args)
                made[key] = self._checked(few_shot.compile(student, trainset=near), student)
            yield task, made[key]

    def metric(
        self,
        example: dspy.Example,
        prediction: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        """Judge a prediction by the task's own gold."""
        try:
            (gold,) = to_examples([self._tasks[example.question]])
            return self._metric(gold, prediction, trace, pred_name, pred_trace)
        except EndpointError as error:
            # Optimizers would count it as a wrong answer.
            self.failure = error
            raise

    def _answer(self, question: str, adopt: Callable[..., None]) -> str | None:
        """Let the agent answer a training question, as in a trial."""
        if self.ended:
            return None
        task, arm = self._tasks[question], self._arm
        recall = Recall(question=question, adopt=adopt)
        key = TrialKey(arm.name, task.id, self._seed)
        trial = Trial(
            self._context, self._experiment, arm, task, key, recall=recall, lm=dspy.settings.lm
        )
        for seconds in (0.0, *waits(self._experiment.retries)):
            if seconds and self._training.stop.wait(seconds):
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
            hint, where = "fix the cause, then run the same command", f"{key}, compile"
            self.failure = kind(attempt.error, where=where, hint=hint, code="compile-failed")
            return None
        return attempt.sparql

    def _student(self) -> Program:
        """Return the agent's program as it is without an optimizer; no model is asked."""
        parts: dict[str, dspy.Predict] = {}

        def look(module: dspy.Module) -> None:
            for name, one in module.named_predictors():
                parts[name] = dspy.Predict(one.signature)
                parts[name].demos = list(one.demos)
            raise BudgetError("only the predictors are wanted", budget="lm_calls", limit=0)

        self._answer(self._examples[0].question, look)
        if self.failure is not None:
            raise self.failure
        self._attempts = Usage()
        return Program(parts, self._answer)

    def _checked(self, program: Program, student: Program) -> dict[str, Any]:
        """Return what is kept of a program: nothing that a trial must not be shown."""
        kept = program.to_json()
        for name, part in kept.items():
            if self._leaks(name, part["instructions"]):
                part["instructions"] = student.parts[name].signature.instructions
            part["demos"] = [
                demo
                for demo in part["demos"]
                if not self._leaks(name, "\n".join(str(value) for value in demo.values()))
            ]
        return kept

    def _leaks(self, name: str, text: str) -> bool:
        # All of it rests on training tasks, which passed the filter by their provenance.
        task = self._training.tasks[0]
        origin = Provenance(task.id, task.group, task.corpus)
        item = MemoryItem(name, "", text or "-", "gold", provenance=origin)
        found = self._training.leakage.finding(item)
        if found is not None:
            self._filtered_out.append({"predictor": name, "code": found.code, "what": found.what})
        return found is not None

    def _may_show(self, task: Task) -> bool:
        origin, gold = Provenance(task.id, task.group, task.corpus), task.expected_sparql
        item = MemoryItem(task.id, "", "", "gold", gold, question=task.query, provenance=origin)
        found = self._training.leakage.finding(item)
        if found is not None:
            self._filtered_out.append({"task": task.id, "code": found.code, "what": found.what})
        return found is None

    def _example(self, task: Task) -> dspy.Example:
        """Return a task as the agent reads and writes: without prefixes that are declared."""
        question, query = self._training.asked(task.query), task.expected_sparql
        with contextlib.suppress(QueryError):
            query = shortened(query, self._context.endpoint.namespaces)
        return dspy.Example(question=question, sparql=query).with_inputs("question")

    @property
    def _usage(self) -> Usage:
        with self._lock:
            return self._attempts + self._counter.usage

    def _lm(self) -> dspy.BaseLM:
        arm = self._arm
        return self._context.models[arm.lm].lm(
            temperature=arm.temperature,
            max_tokens=arm.max_tokens,
            seed=self._seed,
            rollout_id=self._seed,
        )

    def _reflection(self) -> dspy.BaseLM:
        """Return the model that proposes instructions."""
        name = self._settings.reflection_lm or self._arm.lm
        warm = 1.0 if takes_temperature(asked_as(name)) else None
        return self._context.models[name].lm(role="distiller", temperature=warm, seed=self._seed)

    def _described(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "version": VERSION,
            "arm": self._arm.name,
            "seed": self._seed,
            "optimizer": settings.optimizer,
            "options": dict(settings.options),
            "lm": self._arm.lm,
            "reflection_lm": settings.reflection_lm or self._arm.lm,
            "tasks": [task.id for task in self._tasks.values()],
            "trainset": hash_tasks(self._training.tasks),
            "tokens_wanted": self._training.tokens,
        }
