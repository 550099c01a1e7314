"""From question to query: detect, retrieve, adapt or write, validate, fix; and the agent `rag`.

A query is written in a conversation: fixed instructions, few-shot examples as turns, the nearest
last, then the question. A small model imitates its own earlier turns; the same examples as text in
named fields made it copy the nearest one. What went wrong comes back as the next turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import dspy

from reasoningbank.agents.calling import RecordedClient, ask_query, asking
from reasoningbank.agents.protocol import Attempt, Episode, conclude, used_up
from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding, counted
from reasoningbank.lm import stuck_temperature
from reasoningbank.nl2sparql.confidence import Confidence, confidence_score, load_calibration
from reasoningbank.nl2sparql.detection import Detected, detector_of
from reasoningbank.nl2sparql.examples import (
    NEAR,
    ExampleSettings,
    HybridRetriever,
    PackExample,
    Retrieved,
    Retriever,
    nearest_question,
    swap_entities,
)
from reasoningbank.nl2sparql.hints import as_pack, build_constraints
from reasoningbank.nl2sparql.validation import LEVELS, EndpointValidation, Explain, Level, validate
from reasoningbank.nl2sparql.words import asked_language
from reasoningbank.schema import Schema, explainer
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.sparql.tokens import tokenize

TASK = "Answer each question with one SPARQL query over the knowledge base, and nothing else."
ADAPT = "The next question is nearly the same: change only what differs in your query."
#: The turn after a query that failed; the question is above and need not be repeated.
WRONG = "That query is wrong: {problem}\nWrite the whole query again without that mistake."

#: Characters of a failed query, and of its problems: more would push the rules out of sight.
MOST_EARLIER, MOST_PROBLEM = 1_500, 800
#: Failed queries in the next prompt.
MOST_FAILED = 2
_PREFIXES = re.compile(r"^(?:[ \t]*PREFIX\s+[^\s:<]*:\s*<[^>\s]*>[ \t]*)+\n?", re.I | re.M)


def write_query(
    question: str,
    rules: str,
    examples: Sequence[PackExample] = (),
    earlier: Sequence[tuple[str, str]] = (),
    lm: dspy.BaseLM | None = None,
    *,
    language: str = "",
    notes: str = "",
    temperature: float | None = None,
) -> str | None:
    """Write a query for a question; after earlier queries, one without their problems."""
    turns = [_turn(one.question(language), one.sparql) for one in reversed(examples)]
    said = "\n".join(filter(None, (question, notes)))
    for query, problem in earlier[-MOST_FAILED:]:
        turns.append(_turn(said, query[:MOST_EARLIER]))
        said = WRONG.format(problem=problem[:MOST_PROBLEM])
    instructions = "\n\n".join(filter(None, (TASK, rules)))
    config = {} if temperature is None else {"temperature": temperature}
    return ask_query(instructions, turns, said, lm=lm, config=config)


def adapt_query(
    question: str, example: PackExample, asked: str = "", lm: dspy.BaseLM | None = None
) -> str | None:
    """Change an example's query for a question that is nearly the same."""
    turn = _turn(asked or example.nl, example.sparql)
    return ask_query(f"{TASK}\n{ADAPT}", [turn], question, lm=lm)


def same_query(one: str, other: str) -> bool:
    """Return whether two queries differ only in white space."""
    return [token.text for token in tokenize(one)] == [token.text for token in tokenize(other)]


def _turn(question: str, query: str) -> tuple[str, str]:
    # Prefixes are declared for the writer; a small model copies their lines with mistakes.
    return question.strip(), _PREFIXES.sub("", query).strip()


#: How a query was made: an example's with other entities, an example's changed by the model,
#: written by it, or written again after a problem.
How = Literal["exchanged", "adapted", "written", "fixed"]
_STEPS = {"exchanged": "exchange", "adapted": "adapt", "written": "synthesise", "fixed": "fix"}
#: Called after each step with its name and its outcome.
OnStep = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Candidate:
    """A query and its problems."""

    sparql: str
    how: How
    problems: tuple[Finding, ...] = ()
    checked: EndpointValidation | None = None

    @property
    def rows(self) -> int | None:
        """Rows of the result; None if the query was not executed."""
        return self.checked.rows if self.checked is not None and self.checked.executed else None

    @property
    def rank(self) -> tuple[bool, bool, bool, bool, int]:
        """Its quality: valid, then executed with rows, executed, parsed, fewest problems."""
        return (
            not self.problems,
            bool(self.rows),
            self.rows is not None,
            all(problem.fields.get("level") != "syntax" for problem in self.problems),
            -len(self.problems),
        )


@dataclass
class Translation:
    """The query for a question."""

    question: str  #: The question
    patterns: tuple[Detected, ...] = ()  #: What the question needs
    retrieved: tuple[Retrieved, ...] = ()  #: The examples that were found
    rules: str = field(default="", repr=False)  #: The rules in the model's prompt
    candidates: list[Candidate] = field(default_factory=list)  #: All queries, in order
    calls: int = 0  #: Model calls
    #: Why the loop ended before a valid query or its last round, with the code ``no-query``,
    #: ``repeated`` or ``budget``; None if it did not
    stopped: Finding | None = None

    @property
    def best(self) -> Candidate | None:
        """The best candidate, of equals the first; None if there is none."""
        return max(self.candidates, key=lambda one: one.rank, default=None)

    @property
    def sparql(self) -> str | None:
        """The best query; None if the model wrote none."""
        return self.best.sparql if self.best else None

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What is wrong with it."""
        return self.best.problems if self.best else ()

    @property
    def is_valid(self) -> bool:
        """Whether validation found nothing wrong with it."""
        return self.best is not None and not self.problems

    @property
    def rows(self) -> int | None:
        """Rows of the query's result; None if it was not executed."""
        return self.best.rows if self.best else None


@dataclass
class NL2SPARQL:
    """Translates questions, each with one model call if the first query is valid.

    Raises:
        UsageError: If there is no such pack, or a number is below 0.
    """

    pack: Pack | str = "liita"  #: The pack or its name
    lm: dspy.BaseLM | None = None  #: The model; that of the `dspy.context` by default
    _: KW_ONLY
    #: Where queries are executed; None to execute none
    endpoint: EndpointConfig | SPARQLClient | None = None
    #: Finds examples; a `HybridRetriever` of the pack by default
    retriever: Retriever | None = None
    top_k: int = 3  #: Examples shown; 0 for none
    adapt: bool = True  #: Whether an example that is nearly the question is changed instead
    max_fixes: int = 2  #: Rounds in which a query with problems is written again
    levels: Collection[Level] = LEVELS  #: Levels of validation
    timeout: float = 30.0  #: Seconds a query may take
    #: Says why a query failed or returned nothing; by default the error itself
    explain: Explain | None = None

    def __post_init__(self) -> None:
        if min(self.top_k, self.max_fixes) < 0:
            raise UsageError("top_k and max_fixes must be at least 0", where="NL2SPARQL")
        self.pack = as_pack(self.pack)
        if self.retriever is None and self.top_k:
            self.retriever = HybridRetriever(self.pack)

    def translate(
        self,
        question: str,
        *,
        advice: str = "",
        on_step: OnStep | None = None,
        on_call: Callable[[bool], None] | None = None,
    ) -> Translation:
        """Translate a question.

        Args:
            question: A question in one of the pack's languages.
            advice: What is known from earlier questions; it follows the rules.
            on_step: Called after each step: ``detect``, ``retrieve``, ``constrain``,
                ``exchange``, ``adapt``, ``synthesise``, ``validate``, ``fix``.
            on_call: Called before each query is made, with True, and before a second model call
                for it, with False; it may raise a BudgetError.

        Returns:
            The best query, valid or not, with everything that led to it.

        Raises:
            UsageError: If the question is empty.
            EndpointError: If the endpoint fails.
            ModelError: If the model cannot be reached.
            BudgetError: If a budget is used up before there is any query.
        """
        if not question.strip():
            raise UsageError("the question is empty")
        pack = as_pack(self.pack)
        on_step = on_step or (lambda *_: None)
        patterns = tuple(detector_of(pack).detect(question))
        on_step("detect", {"patterns": {one.pattern: one.score for one in patterns}})
        retrieved: tuple[Retrieved, ...] = ()
        if self.retriever is not None and self.top_k:
            retrieved = tuple(self.retriever.retrieve(question, self.top_k, patterns=patterns))
        shown = [{"id": one.example.id, "score": one.score} for one in retrieved]
        on_step("retrieve", {"examples": shown})
        rules = build_constraints((one.pattern for one in patterns), pack)
        rules = "\n\n".join(filter(None, (rules, advice)))
        on_step("constrain", {"chars": len(rules)})
        found = Translation(question, patterns, retrieved, rules)
        _Run(self, pack, found, on_step, on_call or (lambda _: None)).make()
        return found


@dataclass
class _Run:
    """Makes the queries of one translation."""

    of: NL2SPARQL
    pack: Pack
    found: Translation
    on_step: OnStep
    on_call: Callable[[bool], None]
    repeated: bool = False

    def make(self) -> None:
        """Make queries until one is valid, the model has no more, or a budget is used up."""
        found = self.found
        try:
            self.on_call(True)
            if not (self.of.adapt and found.retrieved and self._from_an_example()):
                self._write("written")
            for _ in range(self.of.max_fixes):
                if not found.candidates or not found.candidates[-1].problems or found.stopped:
                    break
                self.on_call(True)
                self._write("fixed")
        except BudgetError as error:
            if not found.candidates:
                raise
            found.stopped = error.finding

    def _from_an_example(self) -> bool:
        """Reuse the query of a similar example; return whether no query need be written."""
        question, retrieved = self.found.question, self.found.retrieved
        nearest = [(one.example, *nearest_question(question, one.example)) for one in retrieved]
        example, asked, similarity = max(nearest, key=lambda one: one[2])
        sparql = swap_entities(question, example)
        if sparql is not None:
            if self._take(sparql, "exchanged", example=example.id):
                return True
            # The model could change no more than that: it writes a new query.
            self.on_call(True)
            return False
        needs = {one.pattern for one in self.found.patterns}
        if similarity < NEAR or needs != set(example.patterns):
            return False
        self.found.calls += 1
        sparql = adapt_query(question, example, asked, self.of.lm)
        if sparql is None:
            self.on_step("adapt", {"sparql": None, "example": example.id})
            self.on_call(False)
            return False
        self._take(sparql, "adapted", example=example.id)
        return True

    def _write(self, how: How) -> None:
        """Take a query that the model writes, unless there is none or it is an earlier one."""
        found = self.found
        found.calls += 1
        earlier = [(one.sparql, "; ".join(map(str, one.problems))) for one in found.candidates]
        sparql = write_query(
            found.question,
            found.rules,
            [one.example for one in found.retrieved],
            earlier,
            self.of.lm,
            language=asked_language(found.question, self.pack),
            temperature=stuck_temperature(self.of.lm) if self.repeated else None,
        )
        repeats = sparql is not None and any(same_query(sparql, query) for query, _ in earlier)
        if sparql is None:
            found.stopped = Finding("no-query", "the reply contains no query")
        elif repeats and self.repeated:
            found.stopped = Finding("repeated", "the model repeated an earlier query")
        self.repeated = repeats
        if sparql is not None and not repeats:
            self._take(sparql, how)
        else:
            stopped = str(found.stopped or "")
            self.on_step(_STEPS[how], {"sparql": sparql, "repeated": repeats, "stopped": stopped})

    def _take(self, sparql: str, how: How, **made: str) -> bool:
        """Validate a query and keep it; return whether it is valid."""
        self.on_step(_STEPS[how], {"sparql": sparql, **made})
        try:
            problems, checked = validate(
                sparql,
                self.pack,
                patterns=[one.pattern for one in self.found.patterns],
                endpoint=self.of.endpoint,
                levels=self.of.levels,
                timeout=self.of.timeout,
                question=self.found.question,
                explain=self.of.explain,
            )
        except BudgetError as error:
            unchecked = Finding(error.code, error.what, fields={"level": "endpoint"})
            self.found.candidates.append(Candidate(sparql, how, (unchecked,)))
            raise
        candidate = Candidate(sparql, how, problems, checked)
        self.found.candidates.append(candidate)
        said = {
            "problems": [str(problem) for problem in problems],
            "codes": [problem.code for problem in problems],
            "rows": candidate.rows,
            "seconds": round(checked.seconds, 3) if checked is not None else None,
        }
        self.on_step("validate", said)
        return not problems


@dataclass(eq=False)
class RAGAgent(ExampleSettings):
    """Detect → retrieve → adapt the best example or write → validate → fix with the error.

    `NL2SPARQL` with a budget and a record. A turn is a query that is made and validated. Nothing of
    a hidden task's group is retrieved.
    """

    uses_lm = True
    sees_gold = False
    uses = ("context",)

    top_k: int = 3  #: Examples shown; 0 for none
    adapt: bool = True  #: Whether an example that is nearly the question is changed instead
    max_fixes: int = 2  #: Rounds in which a query with problems is written again
    #: Levels of validation: of ``syntax``, ``semantic`` and ``endpoint``, as names or as one text
    #: with commas, since the options of an experiment file are words and numbers; empty for none
    levels: Sequence[str] | str = LEVELS
    diagnose: bool = True  #: Whether a query that fails or returns nothing is probed for the reason

    def __post_init__(self) -> None:
        if isinstance(self.levels, str):
            self.levels = [level.strip() for level in self.levels.split(",") if level.strip()]
        for level in self.levels:
            if level not in LEVELS:
                hint = f"choose from {', '.join(LEVELS)}"
                raise UsageError(f"unknown level {level!r}", where="agent rag", hint=hint)
        self.needs_examples = self.top_k > 0

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first valid query, or the best one."""
        pack = episode.required_pack("rag")
        retriever = self.retriever(pack, episode.hidden)
        meter, turns = episode.meter, episode.budget.iterations

        def on_call(is_turn: bool) -> None:
            if is_turn and meter.usage().iterations >= turns:
                raise used_up("iterations", turns)
            (meter.turn if is_turn else meter.check)()

        def on_step(name: str, detail: Mapping[str, Any]) -> None:
            episode.recorder.add("step", {"step": name, **detail})

        client = RecordedClient(episode)
        vocabulary = Schema.of(client.config, pack.schema)
        explain = explainer(client, vocabulary) if self.diagnose else None
        try:
            with asking(episode), client:
                found = NL2SPARQL(
                    pack,
                    episode.lm,
                    endpoint=client,
                    retriever=retriever,
                    top_k=self.top_k,
                    adapt=self.adapt,
                    max_fixes=min(self.max_fixes, turns - 1),
                    levels=[level for level in LEVELS if level in self.levels],
                    timeout=episode.endpoint.timeout_s,
                    explain=explain,
                ).translate(task.query, advice=episode.context, on_step=on_step, on_call=on_call)
        except BudgetError as error:
            return conclude(episode, None, "exhausted", [error])
        if found.stopped is not None and "budget" in found.stopped.fields:
            return conclude(episode, found.sparql, "exhausted", [found.stopped])
        if client.exhausted is not None:
            return conclude(episode, found.sparql, "exhausted", [client.exhausted])
        trust = translation_confidence(found, pack, getattr(episode.lm, "model", ""))
        on_step("output", vars(trust))
        if found.is_valid:
            return conclude(episode, found.sparql, "submitted")
        findings = [found.stopped] if found.stopped else []
        return conclude(episode, found.sparql, "fallback", [*findings, *found.problems])


def translation_confidence(found: Translation, pack: Pack, model: str = "") -> Confidence:
    """Return the confidence in a translation, with an explanation."""
    table = load_calibration(pack, "rag", model)
    needs = ", ".join(one.pattern for one in found.patterns) or "no known pattern"
    best = found.best
    if best is None:
        why = f"It needs {needs}. There is no query: {found.stopped}."
        return Confidence(0.0, 0.0, table is not None, why)
    similarity = max((one.score for one in found.retrieved), default=0.0)
    attempts = found.candidates.index(best) + 1
    score = confidence_score(valid=found.is_valid, similarity=similarity, attempts=attempts)
    used = ", ".join(one.example.id for one in found.retrieved)
    how = best.how.capitalize() + (f" after the examples {used}" if used else "")
    rows = "" if best.rows is None else f"It returns {counted(best.rows, 'row')}. "
    problems = "; ".join(map(str, found.problems)) or "none found"
    why = f"It needs {needs}. {how}; queries: {len(found.candidates)}. {rows}Problems: {problems}."
    return Confidence.of(score, table, why)
