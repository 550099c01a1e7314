"""One question outside a run: open what an agent needs, let it answer, show steps and rows."""

from __future__ import annotations

import contextlib
import functools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dspy
from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.agents import UNJUDGED, Attempt, make_agent
from reasoningbank.agents.calling import ask_once
from reasoningbank.agents.program import AgentProgram, program_of
from reasoningbank.agents.registry import check_blind
from reasoningbank.corpus import Pack, Task, load_pack, load_shacl_tasks
from reasoningbank.errors import ModelError, ToolError, UsageError
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.context import NOTHING, Given, Recall, RunContext, open_context
from reasoningbank.experiment.memory_sources import opened
from reasoningbank.experiment.plan import Job, hidden_tasks
from reasoningbank.experiment.recall import MemoryParts
from reasoningbank.experiment.settings import EndpointSettings
from reasoningbank.experiment.trial import Trial
from reasoningbank.lm import PlainAdapter, UsageCounter, open_lm
from reasoningbank.memory import MemoryBank
from reasoningbank.nl2sparql import asked_language
from reasoningbank.tools import SPARQLTools
from reasoningbank.trajectory import Event, Usage

#: Rows of an answer.
MAX_ROWS = 20
#: Values that a sentence names, and characters of one.
MOST_NAMED, MOST_VALUE_CHARS = 3, 80
#: Longer outputs of a turn are cut; the agent sees no more either.
MOST_OUTPUT = 1_500
#: Tokens of a rewritten question.
MOST_REWRITTEN = 200
#: Characters of an earlier question, and of its answer.
MOST_TURN_CHARS = 2_000


class EarlierQuestion(BaseModel):
    """An earlier question of a conversation, and the sentence that answered it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str = Field(max_length=MOST_TURN_CHARS)
    answer: str = Field(default="", max_length=MOST_TURN_CHARS)


class RewriteFollowUp(dspy.Signature):  # type: ignore[misc]
    """Questions are asked one after another. Complete the last, so that it can be understood alone.

    Keep what it asks for. Reply with the question alone.
    """

    asked: str = dspy.InputField()
    rewritten: str = dspy.OutputField()


def _asked(last: str, *earlier: tuple[str, str]) -> str:
    """Return what is to be completed; said twice, since small models copy what comes last."""
    said = [f"Earlier: {question} ({answer})" for question, answer in earlier]
    return "\n".join([*said, f"Last: {last}", f'Complete form of "{last}"?'])


#: Worked cases, since small models answer the question or repeat the earlier one instead.
_REWRITTEN = [
    dspy.Example(asked=_asked(last, (question, answer)), rewritten=rewritten)
    for question, answer, last, rewritten in (
        ("Which rivers flow through Austria?", "Danube, Inn, Mur.",
         "And through Hungary?", "Which rivers flow through Hungary?"),
        ("What is the height of the Eiffel Tower?", "330.",
         "And its architect?", "What is the architect of the Eiffel Tower?"),
        ("Who wrote Faust?", "Goethe.", "And Dracula?", "Who wrote Dracula?"),
        ("Which museums are in Vienna?", "Albertina, Belvedere.",
         "Who painted Guernica?", "Who painted Guernica?"),
        ("Who wrote Dracula?", "Bram Stoker.",
         "In which year was that?", "In which year was Dracula written?"),
    )
]  # fmt: skip


@dataclass(frozen=True)
class AskResult:
    """The answer to one question."""

    sparql: str | None  #: The query, or None if the agent wrote none
    rows: Sequence[dict[str, Any]]  #: Its first 20 rows, terms as agents see them
    note: str  #: What to know about the rows, e.g. that the query does not run.
    attempt: Attempt  #: Status, usage and trajectory
    memory: tuple[str, ...] = ()  #: Ids of the memory items that were shown

    @property
    def answer(self) -> str:
        """The rows as a sentence; empty if the query does not run."""
        total = getattr(self.rows, "total", None)
        return "" if total is None else sentence_of(self.rows, total)


@dataclass(frozen=True)
class Solver:
    """An agent with an open endpoint and model; made by `open_solver`."""

    context: RunContext
    pack: Pack
    arm: Arm
    corpus: Sequence[Task]
    bank: MemoryBank | None
    language: str = ""

    def ask(self, question: str, watch: Callable[[Event], None] | None = None) -> AskResult:
        """Answer a question; `watch` is called with each event as it is recorded."""
        _check_words(question)
        task, recall, bank = self.task(question), NOTHING, self.bank
        if bank is not None:
            # No record is kept, so the bank needs no name.
            recall = self._parts.recall(Job(self.arm, task), Given(), lambda: bank)
        attempt = self.attempt(task, recall, watch)
        shown = tuple(str(one["id"]) for one in (recall.event or {}).get("items", ()))
        rows, note = self.rows(attempt.sparql)
        return AskResult(attempt.sparql, rows, note, attempt, shown)

    def stand_alone(self, last: str, earlier: Sequence[EarlierQuestion]) -> tuple[str, Usage]:
        """Return a follow-up, rewritten since agents answer one question, and what that took."""
        _check_words(last)
        began, counter = time.monotonic(), UsageCounter()
        asked = _asked(last, *((turn.question, turn.answer) for turn in earlier))
        lm = self.context.models[self.arm.lm].lm(temperature=0.0, max_tokens=MOST_REWRITTEN)
        with dspy.context(callbacks=[counter]):
            reply = ask_once(
                RewriteFollowUp, {"asked": asked}, lm=lm, adapter=PlainAdapter(), demos=_REWRITTEN
            )
        question = " ".join(str(reply.get("rewritten") or last).split())
        return question, replace(counter.usage, seconds=time.monotonic() - began)

    def program(self) -> AgentProgram:
        """Return the agent as a `dspy.Module`: `question` in, `sparql` out; without memory."""

        def answer(question: str, adopt: Callable[[Any], None]) -> str | None:
            lm = None if self.arm.lm in self.context.models else dspy.settings.lm
            return self.attempt(self.task(question), Recall(adopt=adopt), lm=lm).sparql

        agent = make_agent(self.arm.agent, **self.arm.options)
        return program_of(answer) if getattr(agent, "compiles", False) else AgentProgram({}, answer)

    @functools.cached_property
    def _parts(self) -> MemoryParts:
        return MemoryParts(self.context, self.corpus, ())

    def task(self, question: str) -> Task:
        """Return a question as a task, in the solver's language or its own."""
        language = self.language or asked_language(question, self.pack)
        return Task("ask", question, "", self.pack.endpoint, language=language)

    def attempt(
        self, task: Task, recall: Recall = NOTHING, watch: Any = None, lm: Any = None
    ) -> Attempt:
        """Return the agent's attempt at a question; an error if endpoint or model failed."""
        experiment = Experiment(name="ask", pack=str(self.pack.root), arms=(self.arm,))
        trial = Trial(self.context, experiment, Job(self.arm, task), recall=recall, lm=lm)
        attempt = trial.attempt(task, watch=watch)
        if attempt.status in UNJUDGED:
            raise ModelError(attempt.error)
        return attempt

    def rows(self, sparql: str | None) -> tuple[Sequence[dict[str, Any]], str]:
        """Return the first rows of a query, and what to know about them."""
        if sparql is None:
            return [], ""
        tools = SPARQLTools(self.context.endpoint, client=self.context.client)
        try:
            shown = tools.sparql_peek(tools.sparql_query(sparql), MAX_ROWS)
        except ToolError as error:
            return [], f"the query does not run: {error}"
        return shown, shown.note


def _check_words(question: str) -> None:
    if not question.strip():
        raise UsageError("the question is empty", code="empty-question")


def sentence_of(rows: Sequence[Mapping[str, Any]], total: int) -> str:
    """Return the rows of a result as a sentence.

    Examples:
        >>> sentence_of([{"boolean": True}], 1), sentence_of([], 0)
        ('Yes.', 'Nothing was found.')
        >>> sentence_of([{"disease": "disease:3959", "name": '"ALL3"'}], 1)
        'disease is disease:3959, name is ALL3.'
        >>> sentence_of([{"scientific": '"Homo sapiens"'}], 1)
        'Homo sapiens.'
        >>> sentence_of([{"t": "t:oak", "h": 31}, {"t": "t:ash", "h": 12}], 20)
        '20 results: t:oak, t:ash and 18 more.'
    """
    if not rows:
        return "Nothing was found."
    if list(rows[0]) == ["boolean"]:
        return "Yes." if rows[0]["boolean"] else "No."
    if total == 1 == len(rows[0]):
        return f"{_said(*rows[0].values())}."
    if total == 1:
        return ", ".join(f"{name} is {_said(value)}" for name, value in rows[0].items()) + "."
    names = list(rows[0])
    # Names in words say more than identifiers.
    texts = [n for n in names if all(str(row.get(n) or "").startswith('"') for row in rows)]
    column = (texts or names)[0]
    values = list(dict.fromkeys(_said(row.get(column)) for row in rows))[:MOST_NAMED]
    rest = total - len(values)
    return f"{total:,} results: {', '.join(values)}" + (f" and {rest:,} more." if rest else ".")


def _said(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    text = text[1:].rpartition('"')[0] or text if text.startswith('"') else text
    return text if len(text) <= MOST_VALUE_CHARS else f"{text[:MOST_VALUE_CHARS]}…"


@contextlib.contextmanager
def open_solver(
    agent: str = "rlm",
    *,
    pack: str = "uniprot",
    lm: str | None = "local",
    url: str | None = None,
    memory: Path | None = None,
    snapshot: str = "",
    language: str = "",
    options: Mapping[str, Any] | None = None,
    every_example: bool = False,
    on_notice: Callable[[str], None] = lambda _: None,
) -> Iterator[Solver]:
    """Open endpoint, model and memory for a block; arguments and errors as of `open_program`.

    Without a model (`lm` is None) only `Solver.program` can be used.
    """
    check_blind(agent)
    if snapshot and memory is None:
        raise UsageError("a snapshot needs a run", where="--snapshot", hint="name it with --memory")
    loaded = load_pack(pack)
    source = {"source": "bank", "bank": str(memory)} if memory else {"source": "none"}
    facts = {"name": "ask", "agent": agent, "lm": lm or "", "memory": source}
    arm = Arm.model_validate({**facts, "options": dict(options or {})})
    corpus = load_shacl_tasks(pack)
    with contextlib.ExitStack() as stack:
        bank = stack.enter_context(opened(memory, snapshot)) if memory else None
        on_notice(f"opening {loaded.name} and {lm} …")
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        models = {lm: stack.enter_context(open_lm(lm))} if lm else {}
        settings = EndpointSettings(url=url) if url else None
        hidden = frozenset() if every_example else hidden_tasks(corpus, ())
        context = stack.enter_context(
            open_context(loaded, scratch, endpoint=settings, models=models, hidden=hidden)
        )
        yield Solver(context, loaded, arm, corpus, bank, language)


@contextlib.contextmanager
def open_program(
    agent: str = "rlm", *, pack: str = "uniprot", lm: str | None = None, **options: Any
) -> Iterator[AgentProgram]:
    """Open an agent as a `dspy.Module` for the length of a block: `question` in, `sparql` out.

    Args:
        agent: ``rlm``, ``react``, ``direct``, ``rag``, ``graph`` or ``algebra``; or the import path
            of your own.
        pack: A pack's name or folder.
        lm: ``local`` or a LiteLLM name, asked as an experiment asks it: at temperature 0, for at
            most 700 tokens a reply. None for the model that DSPy is configured with.
        **options: `options` of the agent, as an arm of an experiment has them; `url` of a running
            endpoint to query instead of the pack's own; `memory`: a bank, a file of items, or a
            run, whose items are retrieved for each question, and `snapshot`: which one of a run;
            `language` of the question, detected by default; `every_example`: whether examples of
            the test split may be shown, too; `on_notice`: called with a line before something slow
            is opened.

    Raises:
        UsageError: If a name is unknown, or the agent needs a gold query.
        SetupError: If the machine lacks something.

    Examples:
        >>> with open_program("react", pack="uniprot") as program:  # doctest: +SKIP
        ...     print(program(question="Which taxa are mammals?").sparql)
    """
    with open_solver(agent, pack=pack, lm=lm, **options) as solver:
        yield solver.program()


def ask(
    question: str, agent: str = "rlm", *, pack: str = "uniprot", lm: str = "local", **options: Any
) -> AskResult:
    """Answer one question; arguments as of `open_program`.

    Examples:
        >>> result = ask("Which taxa are mammals?", "direct")  # doctest: +SKIP
        >>> print(result.sparql, result.rows)  # doctest: +SKIP
    """
    with open_solver(agent, pack=pack, lm=lm, **options) as solver:
        return solver.ask(question)


@dataclass(frozen=True)
class ShownStep:
    """One step: its name, what came of it, the query or code that it wrote, and its output."""

    name: str
    text: str = ""
    code: str = ""
    language: str = "sparql"
    output: str = ""


class StepReader:
    """Turns events, in the order they are recorded, into the steps that they complete.

    Examples:
        >>> read = StepReader()
        >>> read(Event(0, "step", 0.0, data={"step": "detect", "patterns": {"KIND": 0.9}}))
        ShownStep(name='detect', text='KIND 0.90', code='', language='sparql', output='')
        >>> read(Event(1, "lm_call", 0.0)) is None
        True
    """

    def __init__(self) -> None:
        self._turns = 0
        self._named = False
        self._calls: dict[int, str] = {}

    def __call__(self, event: Event) -> ShownStep | None:
        """Return the step that an event ends, if any."""
        data = event.data
        if event.kind == "step":
            # Queries recorded between named steps belong to them.
            self._named = True
            return named_step(str(data["step"]), data)
        if event.kind == "memory_retrieved":
            titles = [str(one["title"]) for one in data["items"]]
            return ShownStep("memory", "; ".join(titles) or "no item")
        if event.kind == "code" and "output" in data:
            # A code event comes twice: the first time without output.
            return self._turn(
                code=str(data["code"]), language="python", output=str(data["output"]).strip()
            )
        if event.kind == "tool_call" and event.parent is None and not self._named:
            arguments = ", ".join(f"{k}={v!r}" for k, v in dict(data["arguments"]).items())
            self._calls[event.index] = f"{data['tool']}({arguments})"
        elif event.kind == "tool_result" and event.parent in self._calls:
            said = data.get("error") or data.get("result"), data.get("note")
            text = "\n".join(str(one) for one in said if one)
            return self._turn(text=self._calls.pop(event.parent), output=text)
        elif event.kind == "error":
            return ShownStep("error", str(data["error"]))
        return None

    def _turn(self, *, output: str, **rest: Any) -> ShownStep:
        self._turns += 1
        cut = output if len(output) <= MOST_OUTPUT else f"{output[:MOST_OUTPUT]} …"
        return ShownStep(f"turn {self._turns}", output=cut, **rest)


def named_step(name: str, found: Mapping[str, Any]) -> ShownStep:
    """Return a step of the pipeline or graph: from its event's data, or from the state."""
    describe = _DESCRIBE.get(name)
    query = found.get("generated_sparql" if name in ("write", "generate") else "sparql")
    code = str(query) if query and name in _WRITES else ""
    return ShownStep(name, describe(found) if describe else "", code)


def _scored(shown: Iterable[tuple[str, float]], what: str) -> str:
    return ", ".join(f"{name} {score:.2f}" for name, score in shown) or f"no {what}"


def _examples(found: Mapping[str, Any]) -> str:
    shown = found.get("examples") or found.get("retrieved_examples") or ()
    return _scored(((one["id"], one["score"]) for one in shown), "example")


def _validated(found: Mapping[str, Any]) -> str:
    rows = "" if found["rows"] is None else f"{found['rows']} rows; "
    return rows + ("; ".join(found["problems"]) or "sound")


_WRITES = ("exchange", "adapt", "synthesise", "fix", "write", "generate")
_DESCRIBE: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "detect": lambda found: _scored(found["patterns"].items(), "pattern"),
    "retrieve": _examples,
    "constrain": lambda found: f"{found['chars']} characters of rules",
    **dict.fromkeys(
        ("exchange", "adapt", "synthesise", "fix"),
        lambda found: str(found.get("stopped") or found.get("example") or ""),
    ),
    "validate": _validated,
    "analyze": lambda found: (
        f"{', '.join(found['detected_patterns']) or 'no pattern'}, {found['complexity']}"
    ),
    "clarify": lambda found: str(found.get("clarification") or ""),
    "plan": lambda found: " → ".join(found["sub_tasks"]),
    **dict.fromkeys(("write", "generate"), lambda found: str(found.get("family") or "")),
    "execute": lambda found: found["execution_error"] or f"{found['result_count']} rows",
    "verify": lambda found: "; ".join(found["validation_errors"]) or "sound",
    "explore": lambda found: "; ".join(
        filter(None, (", ".join(found["discovered_properties"]), *found["findings"]))
    ),
    "output": lambda found: f"confidence {found['confidence']:.2f}" if found["calibrated"] else "",
}
