"""The nodes of the graph: each takes the state and returns its changes to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any, Literal

import dspy

from reasoningbank.agents.calling import ask_once
from reasoningbank.agents.protocol import Episode
from reasoningbank.agents.recording import RecordedClient
from reasoningbank.corpus import Pack
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.nl2sparql.confidence import Calibration, confidence_score, load_calibration
from reasoningbank.nl2sparql.constraints import load_constraints
from reasoningbank.nl2sparql.detection import Detected
from reasoningbank.nl2sparql.graph.exploring import explore
from reasoningbank.nl2sparql.graph.state import (
    Complexity,
    GraphSettings,
    NL2SPARQLState,
    attempt_of,
    best_attempt,
    without_attempt,
)
from reasoningbank.nl2sparql.hybrid import Retrieved, ShownExamples, shown_examples
from reasoningbank.nl2sparql.patterns import PatternSet, load_patterns
from reasoningbank.nl2sparql.validation import validate
from reasoningbank.schema import as_lines
from reasoningbank.sparql import EndpointConfig, SPARQLClient

Update = dict[str, Any]
Node = Callable[[NL2SPARQLState], Update]

#: Score of a pattern that the model names, which is less certain than one of the rules, and most
#: of them: with more, a small model misled the writer more often than not.
MODEL_SCORE, MOST_ADDED = 0.5, 2
MOST_STEPS = 5
#: Rows that the verifying model sees, and characters of them.
VERIFIED_ROWS, VERIFIED_CHARS = 5, 1_500
_NONE = ("", "none", "no", "n/a", "nothing")
#: Parts of the state that other events hold, or that repeat others in full.
_LONG = frozenset(
    ("retrieved_examples", "relevant_constraints", "refinement_history", "execution_result")
)


class AnalyzeQuestion(dspy.Signature):  # type: ignore[misc]
    """Say what a question over a knowledge base needs, before its SPARQL query is written."""

    kinds: str = dspy.InputField(desc="kinds of things that questions need")
    question: str = dspy.InputField()
    patterns: list[str] = dspy.OutputField(desc="names of the kinds that this question needs")
    complexity: Literal["simple", "moderate", "complex"] = dspy.OutputField(
        desc="simple for one kind, complex for several that depend on one another"
    )
    dialects: list[str] = dspy.OutputField(
        desc="dialects or languages that translations are asked into; [] for none"
    )
    unclear: str = dspy.OutputField(
        desc="a question back, only if this one cannot be understood; else: none"
    )


class PlanQuery(dspy.Signature):  # type: ignore[misc]
    """Break a question into the steps that one SPARQL query takes, each a part of its pattern.

    Two to five steps. Later steps may use what earlier ones bind; the last combines them.
    """

    question: str = dspy.InputField()
    patterns: str = dspy.InputField(desc="what it needs")
    steps: list[str] = dspy.OutputField(desc="one short sentence a step")


class VerifyRows(dspy.Signature):  # type: ignore[misc]
    """Say whether the result of a query is what the question asks for.

    Look at what the columns hold, not at how many rows there are.
    """

    question: str = dspy.InputField()
    query: str = dspy.InputField()
    result: str = dspy.InputField()
    valid: bool = dspy.OutputField()
    issues: list[str] = dspy.OutputField(desc="what is wrong with it; [] if nothing is")


@dataclass(frozen=True)
class Parts:
    """What one run of a graph uses; none of it is ever part of the state."""

    episode: Episode
    pack: Pack
    settings: GraphSettings = field(default_factory=GraphSettings)
    lm: Any = None
    fast: Any = None
    calibration: Calibration | None = None

    @classmethod
    def of(cls, episode: Episode, settings: GraphSettings) -> Parts:
        """Return the parts of an episode; the model of its extract step is the fast tier."""
        pack = episode.required_pack("graph")
        if episode.lm is None:
            raise UsageError("there is no model to ask", where="agent graph")
        fast = episode.extractor or episode.lm
        calibration = load_calibration(pack, model=getattr(episode.lm, "model", ""))
        return cls(episode, pack, settings, episode.lm, fast, calibration)

    @property
    def shown(self) -> ShownExamples:
        """The examples that may be retrieved."""
        return shown_examples(
            self.pack,
            self.episode.hidden,
            whole_groups=self.settings.whole_groups,
            retrieval=self.settings.retrieval,
            embedding=self.settings.embedding,
            index=self.settings.index,
        )

    @property
    def patterns(self) -> PatternSet:
        """The pack's patterns."""
        return load_patterns(self.pack)

    def client(self, endpoint: EndpointConfig | None = None) -> SPARQLClient:
        """Return a client whose queries are metered and recorded."""
        return RecordedClient(self.episode, endpoint)

    def ask_fast(self, signature: Any, **inputs: str) -> dict[str, Any]:
        """Count a turn, and ask the fast model; empty if its reply cannot be parsed."""
        self.episode.meter.turn()
        return ask_once(signature, inputs, lm=self.fast)

    def record(self, step: str, found: Mapping[str, Any]) -> None:
        """Record that a step is done."""
        data = {key: value for key, value in found.items() if key not in _LONG}
        examples = found.get("retrieved_examples")
        if examples is not None:
            kept = ("id", "group", "score")
            data["examples"] = [{key: one[key] for key in kept} for one in examples]
        self.episode.recorder.add("step", {"step": step, **data})


class Nodes:
    """The nodes over some parts."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.settings

    def analyze(self, state: NL2SPARQLState) -> Update:
        """Find patterns, complexity, dialects, and whether a second endpoint is needed."""
        patterns = self._parts.patterns
        found = self._parts.shown.detector.detect(state["question"])
        scores = {one.pattern: one.score for one in found}
        said: dict[str, Any] = {}
        if self._settings.analyze:
            kinds = "\n".join(f"{one.name}: {one.title}" for one in patterns.patterns) or "none"
            said = self._parts.ask_fast(AnalyzeQuestion, kinds=kinds, question=state["question"])
        if said and not scores:
            scores = dict.fromkeys(patterns.known(said["patterns"])[:MOST_ADDED], MODEL_SCORE)
        dialects = _texts(said.get("dialects", ()))
        unclear = str(said.get("unclear", "")).strip()
        names = list(scores)
        return {
            "detected_patterns": names,
            "pattern_scores": scores,
            "complexity": said.get("complexity") or _complexity(len(names)),
            "requires_service": _needs_service(self._parts, names),
            "requires_translation": bool(dialects) or any("TRANSLATION" in n for n in names),
            "dialects_needed": dialects,
            "unclear": "" if unclear.lower().rstrip(".") in _NONE else unclear,
        }

    def plan(self, state: NL2SPARQLState) -> Update:
        """Split a question that is not simple into steps."""
        question = asked(state)
        steps: list[str] = []
        if self._settings.plan and state["complexity"] != "simple":
            needs = ", ".join((*state["detected_patterns"], *state["dialects_needed"])) or "none"
            said = self._parts.ask_fast(PlanQuery, question=question, patterns=needs)
            steps = _texts(said.get("steps", ()))[:MOST_STEPS]
        return {"sub_tasks": steps or [question], "current_task_index": 0}

    def retrieve(self, state: NL2SPARQLState) -> Update:
        """Find examples for the question and each step; the best of each come first."""
        shown, top_k = self._parts.shown, self._settings.top_k
        before = frozenset(state["shown_ids"])
        earlier = (one for one in state["retrieved_examples"] if one["id"] in before)
        nearest = max(earlier, key=lambda one: one["score"], default={"id": ""})["id"]
        needs = [Detected(name, score) for name, score in state["pattern_scores"].items()]
        found = [
            shown.retriever.retrieve(
                task,
                top_k,
                patterns=needs,
                without_groups=shown.without_groups,
                without_ids=shown.without_ids | (before - {nearest}),
            )
            for task in dict.fromkeys((asked(state), *state["sub_tasks"]))
        ]
        unique: dict[str, Retrieved] = {}
        # One of each list in turn, so that every step of the plan has one.
        for one in chain.from_iterable(zip_longest(*found)):
            if one is not None:
                unique.setdefault(one.example.id, one)
        return {
            "retrieved_examples": [
                {
                    "id": one.example.id,
                    "group": one.example.group,
                    "nl": one.example.question(state["language"]),
                    "sparql": one.example.sparql,
                    "patterns": list(one.example.patterns),
                    "score": one.score,
                }
                for one in list(unique.values())[:top_k]
            ],
            "current_task_index": max(0, len(state["sub_tasks"]) - 1),
        }

    def execute(self, state: NL2SPARQLState) -> Update:
        """Validate the query and execute it: SELECT, ASK, CONSTRUCT and DESCRIBE."""
        sparql = state["generated_sparql"]
        if not sparql:
            missing = _problem("syntax", "no-query", "the reply contains no query")
            return _unexecuted([missing], missing["text"])
        with self._parts.client() as client:
            found, checked = validate(
                sparql,
                self._parts.pack,
                patterns=state["detected_patterns"],
                endpoint=client,
                timeout=self._settings.timeout_s,
                question=asked(state),
            )
            form = ""
            with contextlib.suppress(QueryError):
                form = client.prepare(sparql).form
        problems = [_problem(one.fields.get("level", ""), one.code, str(one)) for one in found]
        if state["repeated"]:
            text = "this query was tried before; write another one"
            problems.append(_problem("semantic", "repeated", text))
        if checked is None or not checked.executed:
            failed = [one["text"] for one in problems if one["level"] in ("syntax", "endpoint")]
            error = "; ".join(failed) or "it was not executed"
            return _unexecuted(problems, error) | {"execution_form": form}
        return {
            "execution_form": form,
            "execution_result": {
                "rows": json.loads(json.dumps(checked.results, default=str)),
                "truncated": checked.truncated,
                "seconds": round(checked.seconds, 3),
            },
            "result_count": checked.rows,
            "execution_error": None,
            "problems": problems,
        }

    def verify(self, state: NL2SPARQLState) -> Update:
        """Decide whether the query is valid: no problem, and its rows answer the question."""
        problems = state["problems"]
        result = state["execution_result"]
        if not problems and result is not None and self._settings.verify:
            rows = json.dumps(result["rows"][:VERIFIED_ROWS], ensure_ascii=False)
            total = f"{state['execution_form']}, {state['result_count']} in all"
            said = self._parts.ask_fast(
                VerifyRows,
                question=asked(state),
                query=state["generated_sparql"],
                result=f"{rows[:VERIFIED_CHARS]} ({total})",
            )
            # A reply that cannot be parsed is no objection.
            if said and not said["valid"]:
                issues = _texts(said["issues"]) or ["the rows do not answer the question"]
                problems = [_problem("model", "wrong-result", issue) for issue in issues]
        errors = [one["text"] for one in problems]
        return {"is_valid": not errors, "validation_errors": errors, "problems": problems}

    def refine(self, state: NL2SPARQLState) -> Update:
        """Record the failed query and make room for the next."""
        return {"refinement_history": [attempt_of(state, "refine")], **without_attempt()}

    def explore(self, state: NL2SPARQLState) -> Update:
        """Record the failed query, and explore the data around its names."""
        parts = self._parts
        found = explore(
            state["generated_sparql"], parts.client, parts.episode.endpoint, parts.pack.schema
        )
        return {
            "refinement_history": [attempt_of(state, "explore")],
            "explored": True,
            "discovered_classes": list(found.classes),
            "discovered_properties": list(found.properties),
            "findings": as_lines(found.findings),
            **without_attempt(),
        }

    def output(self, state: NL2SPARQLState) -> Update:
        """Return the best query of all attempts, valid or not, with its confidence."""
        attempts = [*state["refinement_history"], attempt_of(state, "output")]
        best = best_attempt(attempts)
        table = self._parts.calibration
        if best is None:
            nothing = _problem("syntax", "no-query", "no query was written")
            best = {"sparql": "", "valid": False, "problems": [nothing], "result_count": 0}
            score = confidence = 0.0
        else:
            number = attempts.index(dict(best)) + 1
            score = confidence_score(
                valid=best["valid"], similarity=best.get("similarity", 0.0), attempts=number
            )
            confidence = table.rate(score) if table is not None else score
        return {
            "final_sparql": best["sparql"],
            "is_valid": best["valid"],
            "problems": best["problems"],
            "validation_errors": [one["text"] for one in best["problems"]],
            "result_count": best["result_count"],
            "score": score,
            "confidence": confidence,
            "calibrated": table is not None,
            "explanation": _explanation(state, best, len(attempts)),
        }


def asked(state: NL2SPARQLState) -> str:
    """Return the question, with the answer to the question back."""
    said = state["clarification"]
    return f"{state['question']} ({said})" if said else state["question"]


def _explanation(state: NL2SPARQLState, best: Mapping[str, Any], attempts: int) -> str:
    needs = ", ".join(state["detected_patterns"]) or "no known pattern"
    if not best["sparql"]:
        return f"It needs {needs}. No reply contained a query."
    writer = f"the writer for {best['family']}" if best["family"] else "the general writer"
    used = ", ".join(best.get("used_ids", ()))
    after = f" after the examples {used}" if used else ""
    count, graph = best["result_count"], best["form"] in ("CONSTRUCT", "DESCRIBE")
    noun = ("triple" if graph else "row") + ("" if count == 1 else "s")
    returns = "It was answered" if best["form"] == "ASK" else f"It returns {count} {noun}"
    outcome = f"{returns}; no problem was found." if best["valid"] else f"Problems: {best['error']}"
    return f"It needs {needs}. Written by {writer}{after}; attempts: {attempts}. {outcome}"


def _unexecuted(problems: list[dict[str, str]], error: str) -> Update:
    return {
        "execution_form": "",
        "execution_result": None,
        "result_count": 0,
        "execution_error": error,
        "problems": problems,
    }


def _problem(level: str, code: str, text: str) -> dict[str, str]:
    return {"level": level, "code": code, "text": text}


def _needs_service(parts: Parts, names: Collection[str]) -> bool:
    """Return whether a pattern is only answered at another endpoint."""
    rows = load_constraints(parts.pack).properties
    there = {name for row in rows if row.service for name in row.patterns}
    signs = [sign for name in names for sign in parts.patterns.named(name).signs]
    return bool(there & set(names)) or any(sign.services for sign in signs)


def _complexity(patterns: int) -> Complexity:
    return "simple" if patterns <= 1 else "moderate" if patterns == 2 else "complex"


def _texts(said: Any) -> list[str]:
    lines = said if isinstance(said, (list, tuple)) else [said]
    return [text for one in lines if (text := str(one).strip()) and text.lower() not in _NONE]
