"""From question to query: detect, retrieve, adapt or synthesise, validate, fix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.lm import stuck_temperature
from reasoningbank.nl2sparql.detection import Detected, Detector, PatternDetector
from reasoningbank.nl2sparql.examples import Example
from reasoningbank.nl2sparql.hybrid import HybridRetriever, Retrieved, Retriever
from reasoningbank.nl2sparql.languages import asked_language
from reasoningbank.nl2sparql.nearness import NEAR, exchanged, nearest_question
from reasoningbank.nl2sparql.patterns import load_patterns
from reasoningbank.nl2sparql.prompting import MOST_CHARS, build_constraints
from reasoningbank.nl2sparql.translation import (
    Candidate,
    How,
    OnStep,
    Translation,
    best_candidate,
)
from reasoningbank.nl2sparql.validation import LEVELS, Explain, Level, validate
from reasoningbank.nl2sparql.writing import adapt_query, same_query, write_query
from reasoningbank.sparql import EndpointConfig, SPARQLClient

__all__ = ["NL2SPARQL"]


class NL2SPARQL:
    """Translates questions; each takes one call of the model where the first query is sound.

    Args:
        pack: The pack or its name.
        lm: The model; that of the `dspy.context` by default.
        endpoint: Where queries are executed; they are not where None.
        retriever: What finds examples; a `HybridRetriever` of the pack's by default.
        detector: What tells patterns; the pack's rules by default.
        top_k: Examples shown; 0 for none.
        adapt: Whether an example that is nearly the question is changed instead.
        max_fixes: Rounds in which a query with problems is written anew.
        levels: Levels of validation.
        most_chars: Characters of the rules.
        timeout: Seconds a query may take.
        explain: Says why a query failed or gave nothing; the error's own words otherwise.

    Raises:
        UsageError: No such pack, or a number below 0.
    """

    def __init__(
        self,
        pack: Pack | str = "liita",
        lm: dspy.BaseLM | None = None,
        *,
        endpoint: EndpointConfig | SPARQLClient | None = None,
        retriever: Retriever | None = None,
        detector: Detector | None = None,
        top_k: int = 3,
        adapt: bool = True,
        max_fixes: int = 2,
        levels: Collection[Level] = LEVELS,
        most_chars: int = MOST_CHARS,
        timeout: float = 30.0,
        explain: Explain | None = None,
    ) -> None:
        if min(top_k, max_fixes) < 0:
            raise UsageError("top_k and max_fixes are at least 0", where="NL2SPARQL")
        self.pack = load_pack(pack) if isinstance(pack, str) else pack
        self.detector = detector or PatternDetector(load_patterns(self.pack))
        self.retriever: Retriever | None = retriever
        if retriever is None and top_k:
            self.retriever = HybridRetriever(self.pack, detector=self.detector)
        self.lm = lm
        self.endpoint = endpoint
        self.top_k = top_k
        self.adapt = adapt
        self.max_fixes = max_fixes
        self.levels = tuple(levels)
        self.most_chars = most_chars
        self.timeout = timeout
        self.explain = explain

    def translate(
        self,
        question: str,
        *,
        without_groups: Collection[str] = (),
        without_ids: Collection[str] = (),
        advice: str = "",
        on_step: OnStep | None = None,
    ) -> Translation:
        """Translate a question.

        Args:
            question: A question in one of the pack's languages.
            without_groups: Groups whose examples are not shown, in an evaluation the question's.
            without_ids: Examples that are not shown.
            advice: What is known from earlier questions; it stands behind the rules.
            on_step: Told of each step as it completes: ``detect``, ``retrieve``, ``constrain``,
                ``exchange``, ``adapt``, ``synthesise``, ``validate``, ``fix``.

        Returns:
            The best query, valid or not, with all that led to it.

        Raises:
            UsageError: The question is empty.
            EndpointError: The endpoint fails.
            ModelError: The model cannot be reached.
            BudgetError: A budget was used up before there was any query.
        """
        if not question.strip():
            raise UsageError("the question is empty")
        run = _Run(self, question, on_step or (lambda name, detail: None))
        run.prepare(without_groups, without_ids, advice)
        return run.translated()


@dataclass
class _Run:
    """One translation under way."""

    of: NL2SPARQL
    question: str
    tell: OnStep
    patterns: tuple[Detected, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    rules: str = ""
    language: str = ""
    candidates: list[Candidate] = field(default_factory=list)
    calls: int = 0
    repeated: bool = False
    stopped: str = ""

    def prepare(
        self, without_groups: Collection[str], without_ids: Collection[str], advice: str
    ) -> None:
        self.patterns = tuple(self.of.detector.detect(self.question))
        names = self._names()
        self.language = asked_language(self.question, self.of.pack)
        self.tell("detect", {"patterns": {one.pattern: one.score for one in self.patterns}})
        if self.of.retriever is not None and self.of.top_k:
            self.retrieved = tuple(
                self.of.retriever.retrieve(
                    self.question,
                    self.of.top_k,
                    patterns=self.patterns,
                    without_groups=without_groups,
                    without_ids=without_ids,
                )
            )
        found = [{"id": one.example.id, "score": one.score} for one in self.retrieved]
        self.tell("retrieve", {"examples": found})
        rules = build_constraints(names, self.of.pack, most_chars=self.of.most_chars)
        self.rules = "\n\n".join(filter(None, (rules, advice)))
        self.tell("constrain", {"chars": len(self.rules)})

    def translated(self) -> Translation:
        try:
            self._first()
            for _ in range(self.of.max_fixes):
                if not self.candidates or not self.candidates[-1].problems or self.stopped:
                    break
                self._again()
        except BudgetError as spent:
            if not self.candidates:
                raise
            self.stopped = str(spent)
        best = best_candidate(self.candidates)
        return Translation(
            question=self.question,
            sparql=best.sparql if best else None,
            is_valid=best is not None and not best.problems,
            problems=best.problems if best else (),
            patterns=self.patterns,
            retrieved=self.retrieved,
            rules=self.rules,
            candidates=tuple(self.candidates),
            calls=self.calls,
            stopped=self.stopped,
        )

    def _first(self) -> None:
        if self.of.adapt and self.retrieved and self._from_an_example():
            return
        self._take_new(self._write(), "written", "synthesise")

    def _from_an_example(self) -> bool:
        """Change the query of an example that is nearly the question; say whether that ended it."""
        near, asked, like = self._nearest()
        sparql = exchanged(self.question, near.example)
        if sparql is not None:
            # What the model would change is changed already: it is asked to write anew.
            return self._take(sparql, "exchanged", near.example)
        if like < NEAR or {one.pattern for one in self.patterns} != set(near.example.patterns):
            return False
        self.calls += 1
        sparql = adapt_query(self.question, near.example, asked, self.of.lm)
        if sparql is None:
            self.tell("adapt", {"sparql": None, "example": near.example.id})
            return False
        self._take(sparql, "adapted", near.example)
        return True

    def _nearest(self) -> tuple[Retrieved, str, float]:
        """Return the example most like the question, that form of its question, and how much."""
        found = [(one, *nearest_question(self.question, one.example)) for one in self.retrieved]
        return max(found, key=lambda one: one[2])

    def _again(self) -> None:
        self._take_new(self._write(), "fixed", "fix")

    def _write(self) -> str | None:
        self.calls += 1
        return write_query(
            self.question,
            self.rules,
            self._examples(),
            [(one.sparql, "; ".join(map(str, one.problems))) for one in self.candidates],
            self.of.lm,
            language=self.language,
            temperature=stuck_temperature(self.of.lm) if self.repeated else None,
        )

    def _take_new(self, sparql: str | None, how: How, step: str) -> None:
        """Take a query that the model wrote, unless it has none or wrote it before.

        One that comes again is asked for once more, with a temperature; then that is the end.
        """
        repeats = sparql is not None and any(
            same_query(sparql, one.sparql) for one in self.candidates
        )
        if sparql is None:
            self.stopped = "the reply holds no query"
        elif repeats and self.repeated:
            self.stopped = "the model repeated an earlier query"
        elif not repeats:
            self.repeated = False
            self._take(sparql, how)
            return
        self.repeated = repeats
        self.tell(step, {"sparql": sparql, "repeated": repeats, "stopped": self.stopped})

    def _take(self, sparql: str, how: How, example: Example | None = None) -> bool:
        """Validate a query and keep it; say whether it is sound."""
        steps = {
            "exchanged": "exchange",
            "adapted": "adapt",
            "written": "synthesise",
            "fixed": "fix",
        }
        made: dict[str, Any] = {"sparql": sparql}
        if example is not None:
            made["example"] = example.id
        self.tell(steps[how], made)
        problems, checked = validate(
            sparql,
            self.of.pack,
            patterns=self._names(),
            endpoint=self.of.endpoint,
            levels=self.of.levels,
            timeout=self.of.timeout,
            question=self.question,
            explain=self.of.explain,
        )
        self.candidates.append(Candidate(sparql, how, problems, checked))
        self.tell(
            "validate",
            {
                "problems": [str(problem) for problem in problems],
                "rows": checked.rows if checked is not None and checked.executed else None,
                "seconds": round(checked.seconds, 3) if checked is not None else None,
            },
        )
        return not problems

    def _examples(self) -> Sequence[Example]:
        return [one.example for one in self.retrieved]

    def _names(self) -> list[str]:
        return [one.pattern for one in self.patterns]
