"""The agent that answers with a Web Algebra program: written, validated, planned, run."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dspy

from reasoningbank import algebra, errors
from reasoningbank.agents.calling import ask_once, asking, prefix_names
from reasoningbank.agents.direct import written_query
from reasoningbank.agents.protocol import PROMPTS, Attempt, Episode, Shown, conclude, read_json
from reasoningbank.algebra import operations as all_operations
from reasoningbank.algebra.builtin.endpoints import ASKING
from reasoningbank.algebra.evaluation import naming_columns
from reasoningbank.algebra.operation import agent_prompt, program_schema
from reasoningbank.algebra.queries import as_query, is_empty
from reasoningbank.algebra.runtime import Compose
from reasoningbank.algebra.source import parse_program, with_prefixes
from reasoningbank.algebra.stage import Stage, open_stage
from reasoningbank.algebra.terms import PREFIXES, ProgramError
from reasoningbank.algebra.values import kept
from reasoningbank.corpus import Pack, Task
from reasoningbank.corpus.shacl import complete_prefixes
from reasoningbank.findings import Finding
from reasoningbank.lm import PlainAdapter, stuck_temperature
from reasoningbank.lm.reply import json_in
from reasoningbank.sparql import EndpointConfig

_TEXTS = PROMPTS["algebra"]
#: Problems in one prompt; a small model fixes no more at once.
MOST_PROBLEMS = 3
#: Characters of a planned write's body in the record.
_BODY = 2_000
#: Where a pack keeps few-shot programs, which belong to no task of its corpus.
_FILE = "hints/programs.json"


class ShownProgram(Shown):
    """A few-shot example: an instruction and a program, whose prefixes may be undeclared."""

    instruction: str
    program: Any


def shown_programs(pack: Pack | None) -> tuple[ShownProgram, ...]:
    """Return the few-shot programs of a pack, or else the first example of the specification."""
    files = [Path(__file__).with_name("lead_programs.json")]
    files = files if pack is None else [pack.root / _FILE, *files]
    return next(filter(None, (read_json(one, tuple[ShownProgram, ...]) for one in files)))


@dataclass(frozen=True)
class ProgramDraft:
    """A program as a model wrote it."""

    text: str
    program: Any
    problems: tuple[Finding, ...]


class Writing:
    """A conversation that turns one instruction into a program."""

    def __init__(
        self,
        episode: Episode,
        instruction: str,
        *,
        constrained: bool = True,
        names: Sequence[str] = (),
        shown: Sequence[ShownProgram] = (),
    ) -> None:
        self._episode = episode
        self._instruction = self._said = instruction
        names = tuple(names) or tuple(all_operations())
        self.is_constrained = constrained and getattr(episode.lm, "supports_response_schema", False)
        self._config = {"response_format": _response_format(names)} if self.is_constrained else {}
        self._signature = _signature(episode, names)
        self._written: set[str] = set()
        # In one line, which takes the fewest tokens.
        texts = [json.dumps(one.program, ensure_ascii=False) for one in shown]
        self._shown = list(map(_turn, (one.instruction for one in shown), texts))
        self._turns = list(self._shown)

    def first(self) -> ProgramDraft:
        """Ask for the program."""
        return self._asked(self._instruction)

    def repaired(self, draft: ProgramDraft, problems: Sequence[Finding]) -> ProgramDraft:
        """Ask for the program again, with the problems of the last one; raises as `first`."""
        said = draft.text if draft.program is None else json.dumps(draft.program)
        lines = list(dict.fromkeys(map(str, problems)))[:MOST_PROBLEMS]
        if said in self._written:
            self._turns = list(self._shown)
            again = _TEXTS["again"].format(instruction=self._instruction, problems="; ".join(lines))
            warmer = stuck_temperature(self._episode.lm)
            return self._asked(again, warmer)
        self._written.add(said)
        if draft.text:
            self._turns.append(_turn(self._said, draft.text))
        return self._asked(
            _TEXTS["repair"].format(problems="\n".join(f"- {line}" for line in lines))
        )

    def _asked(self, text: str, temperature: float | None = None) -> ProgramDraft:
        warm = {} if temperature is None else {"temperature": temperature}
        self._said = text
        self._episode.meter.turn()
        with asking(self._episode):
            said = ask_once(
                self._signature,
                {"instruction": text},
                adapter=PlainAdapter(),
                demos=self._turns,
                config={**self._config, **warm},
            )
        reply = str(said.get("program", ""))
        source = json_in(reply)
        try:
            data = with_prefixes(parse_program(source), self._episode.endpoint.prefixes)
        except ProgramError as error:
            return ProgramDraft(reply, None, (error.finding,))
        wrong = algebra.mistakes(data, prefixes=self._episode.endpoint.prefixes)
        return ProgramDraft(source, data, tuple(one.finding for one in wrong))


def _turn(instruction: str, program: str) -> dspy.Example:
    return dspy.Example(instruction=instruction, program=program).with_inputs("instruction")


def _signature(episode: Episode, names: tuple[str, ...]) -> type[dspy.Signature]:
    endpoint, pack = episode.endpoint, episode.pack
    name, prefixes = endpoint.name or "no name", prefix_names(endpoint)
    parts = [
        agent_prompt(names),
        episode.context,
        _TEXTS["endpoint"].format(url=endpoint.url, name=name, prefixes=prefixes),
    ]
    if pack is not None and pack.documents is not None:
        parts.append(_TEXTS["documents"].format(base=pack.documents.base))
    fields: dict[str, Any] = {
        "instruction": (str, dspy.InputField()),
        "program": (str, dspy.OutputField(desc="the program as JSON alone")),
    }
    signature: type[dspy.Signature] = dspy.Signature(fields, "\n\n".join(filter(None, parts)))
    return signature


@functools.cache
def _response_format(names: tuple[str, ...]) -> dict[str, Any]:
    schema = {"name": "program", "schema": program_schema(names)}
    return {"type": "json_schema", "json_schema": schema}


class AlgebraAgent:
    """Translates the question into a Web Algebra program, and answers with its result.

    A program is validated in full, and its problems go back to the model. A dry run records what
    would be written; then it runs on local servers under the public addresses, with the documents
    of the pack as they were. A program of one query answers with that query, any other with a query
    that holds its result, or with an update that holds the changed documents, so that judges treat
    all agents alike.
    """

    uses_lm = True
    sees_gold = False
    uses = ("context",)

    def __init__(
        self, constrained: bool = True, max_repairs: int = 2, operations: str = ""
    ) -> None:
        if max_repairs < 0:
            raise errors.UsageError("max_repairs must be at least 0", where="agent algebra")
        self._constrained = constrained
        self._max_repairs = max_repairs
        self._names = tuple(filter(None, (name.strip() for name in operations.split(","))))
        for name in self._names:
            if name not in all_operations():
                what, hint = f"there is no operation {name!r}", "see `reasoningbank algebra ops`"
                raise errors.UsageError(what, where="agent algebra", hint=hint)

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first program that runs and returns something, or the last that ran."""
        best: str | None = None
        problems: tuple[Finding, ...] = ()
        shown = shown_programs(episode.pack)
        options: dict[str, Any] = {"constrained": self._constrained, "names": self._names}
        try:
            with open_stage(episode.pack, episode.endpoint) as stage:
                writing = Writing(episode, task.query, shown=shown, **options)
                draft = writing.first()
                repairs = min(self._max_repairs, episode.budget.iterations - 1)
                for left in range(repairs, -1, -1):
                    problems = draft.problems
                    _record(
                        episode,
                        "write",
                        constrained=writing.is_constrained,
                        program=draft.text,
                        problems=list(map(str, problems)),
                    )
                    if not problems:
                        answer, problems = _run(episode, stage, draft.program)
                        best = answer or best
                    if not problems:
                        return conclude(episode, best, "submitted")
                    if left:
                        draft = writing.repaired(draft, problems)
        except errors.BudgetError as error:
            return conclude(episode, best, "exhausted", [error])
        return conclude(episode, best, "fallback", problems)


def composer(episode: Episode) -> Compose:
    """Return a function that turns the question of a SPARQLString into a query."""

    @functools.cache
    def compose(request: algebra.QueryRequest) -> str:
        episode.meter.check()
        question = naming_columns(request)
        query = written_query(episode, question, request.form, request.rejected)
        if query is None:
            hint = "write it yourself"
            raise errors.QueryError("the model wrote no query", where=request.question, hint=hint)
        return complete_prefixes(query, episode.endpoint.prefixes).text

    return compose


def _run(episode: Episode, stage: Stage, data: Any) -> tuple[str | None, tuple[Finding, ...]]:
    """Plan a program and run it; return its answer, and what went wrong."""
    program = algebra.read_program(data, prefixes=stage.endpoint.prefixes)
    composed = composer(episode)
    ended: list[errors.BudgetError | errors.ModelError] = []

    def compose(request: algebra.QueryRequest) -> str:
        """Compose a query, and keep the error that ends the attempt."""
        if not ended:
            try:
                return composed(request)
            except (errors.BudgetError, errors.ModelError) as error:
                ended.append(error)
        raise ended[0]

    if program.writes:
        _plan(episode, stage, program, compose)

    def record(event: Mapping[str, Any]) -> None:
        _record(episode, "request", **event)

    answer, problem = "", None
    with stage.scene(compose=compose, record=record) as scene:
        try:
            # Reading a result is what runs a ForEach.
            result = kept(algebra.run_program(program, scene.runtime))
            if not program.writes:
                several = not program.block.single
                answer = _only_query(data, stage.endpoint) or as_query(result, several=several)
                if is_empty(result):
                    what = "the program ran, and its result is empty"
                    hint = "check the names, and the directions of the properties"
                    problem = Finding("empty", what, hint=hint)
        except errors.ReasoningBankError as error:
            if ended:
                raise ended[0] from None
            problem = error.finding
        if program.writes:
            # What was written before a failure stays, and is judged.
            answer = scene.update()
            if not answer and problem is None:
                problem = Finding("no-change", "the program ran, and no document was changed")
    problems = (problem,) if problem else ()
    _record(episode, "run", answer=answer or None, problems=list(map(str, problems)))
    return answer or None, problems


def _plan(episode: Episode, stage: Stage, program: algebra.Program, compose: Compose) -> None:
    """Record what a program would write; a dry run may lack results of its own writes."""
    with stage.scene(compose=compose, dry_run=True) as scene:
        error = ""
        try:
            kept(algebra.run_program(program, scene.runtime))
        except errors.ReasoningBankError as failure:
            error = str(failure)
        writes = [asdict(one) | {"body": one.body[:_BODY]} for one in scene.runtime.planned]
    _record(episode, "plan", writes=writes, error=error)


def _only_query(data: Any, endpoint: EndpointConfig) -> str | None:
    """Return the query of a program that only queries the task's endpoint."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, Mapping) or data["@op"] not in ASKING:
        return None
    asked, query = data["args"]["endpoint"], data["args"]["query"]
    if not isinstance(asked, str) or not isinstance(query, str) or not endpoint.is_at(asked):
        return None
    # It ran with more prefixes than those of the pack.
    return complete_prefixes(query, PREFIXES).text


def _record(episode: Episode, step: str, **data: Any) -> None:
    episode.recorder.add("step", {"step": step, **data})
