"""The nodes of the graph: each takes the state and returns what it changes of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from reasoningbank.agents.confidence import confidence_score
from reasoningbank.agents.graph.attempts import attempt_of, best_attempt
from reasoningbank.agents.graph.exploring import explore
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.predictors import AnalyzeQuestion, PlanQuery, VerifyRows, ask
from reasoningbank.agents.graph.retrieving import retrieved
from reasoningbank.agents.graph.state import Complexity, NL2SPARQLState
from reasoningbank.errors import QueryError
from reasoningbank.nl2sparql import load_constraints, validate

__all__ = ["Node", "Nodes", "asked"]

Update = dict[str, Any]
Node = Callable[[NL2SPARQLState], Update]

#: What a model finds is less sure than what rules find; and it finds a lot: beside rules that
#: found something, a small model's additions sent the writer astray more often than not.
MODEL_SCORE, MOST_ADDED = 0.5, 2
MOST_STEPS = 5
#: Rows that the model sees that verifies, and characters of them.
VERIFIED_ROWS, VERIFIED_CHARS = 5, 1_500
_NONE = ("", "none", "no", "n/a", "nothing")


class Nodes:
    """The nodes over some parts.

    Args:
        parts: What they work with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.settings

    def analyze(self, state: NL2SPARQLState) -> Update:
        """Tell patterns, complexity, dialects and whether a second endpoint is needed.

        What the pack's rules find stands; where they find nothing, the model may name two.
        """
        patterns = self._parts.patterns
        found = self._parts.shown.detector.detect(state["question"])
        scores = {one.pattern: one.score for one in found}
        dialects: list[str] = []
        unclear = ""
        said_complexity = ""
        if self._settings.analyze:
            self._parts.turn()
            kinds = "\n".join(f"{one.name}: {one.title}" for one in patterns.patterns)
            said = ask(
                AnalyzeQuestion,
                self._parts.fast,
                kinds=kinds or "none",
                question=state["question"],
            )
            if said:
                if not scores:
                    added = patterns.known(said["patterns"])[:MOST_ADDED]
                    scores = dict.fromkeys(added, MODEL_SCORE)
                dialects = _texts(said["dialects"])
                said_complexity = said["complexity"]
                unclear = str(said["unclear"]).strip()
        names = list(scores)
        return {
            "detected_patterns": names,
            "pattern_scores": scores,
            "complexity": said_complexity or _complexity(len(names)),
            "requires_service": _asks_elsewhere(self._parts, names),
            "requires_translation": bool(dialects) or any("TRANSLATION" in n for n in names),
            "dialects_needed": dialects,
            "unclear": "" if unclear.lower().rstrip(".") in _NONE else unclear,
        }

    def plan(self, state: NL2SPARQLState) -> Update:
        """Break a question that is not simple into steps."""
        question = asked(state)
        steps = [question]
        if self._settings.plan and state["complexity"] != "simple":
            self._parts.turn()
            needs = ", ".join((*state["detected_patterns"], *state["dialects_needed"]))
            said = ask(PlanQuery, self._parts.fast, question=question, patterns=needs or "none")
            if said:
                steps = _texts(said["steps"])[:MOST_STEPS] or steps
        return {"sub_tasks": steps, "current_task_index": 0}

    def retrieve(self, state: NL2SPARQLState) -> Update:
        """Find examples for the question and for every step of the plan."""
        return retrieved(state, asked(state), self._parts.shown, self._settings.top_k)

    def execute(self, state: NL2SPARQLState) -> Update:
        """Check the query and execute it: SELECT, ASK, CONSTRUCT and DESCRIBE as such."""
        sparql = state["generated_sparql"]
        if not sparql:
            said = "the reply holds no query"
            return _unexecuted(said, [_problem("syntax", "no-query", said)])
        with self._parts.client() as client:
            problems, checked = validate(
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
        told = [_problem(one.fields["level"], one.code, str(one)) for one in problems]
        if state["repeated"]:
            said = "this query was tried before; write another one"
            told.append(_problem("semantic", "repeated", said))
        if checked is None or not checked.executed:
            failed = [one["text"] for one in told if one["level"] in ("syntax", "endpoint")]
            said = "; ".join(failed) or "it was not executed"
            return _unexecuted(said, told) | {"execution_form": form}
        return {
            "execution_form": form,
            "execution_result": {
                "rows": json.loads(json.dumps(checked.results, default=str)),
                "truncated": checked.truncated,
                "seconds": round(checked.seconds, 3),
            },
            "result_count": checked.rows,
            "execution_error": None,
            "problems": told,
        }

    def verify(self, state: NL2SPARQLState) -> Update:
        """Say whether the query stands: nothing against it, and its rows answer the question."""
        errors = [one["text"] for one in state["problems"]]
        result = state["execution_result"]
        if not errors and result is not None and self._settings.verify:
            self._parts.turn()
            rows = json.dumps(result["rows"][:VERIFIED_ROWS], ensure_ascii=False)
            more = f"{state['execution_form']}, {state['result_count']} in all"
            said = ask(
                VerifyRows,
                self._parts.fast,
                question=asked(state),
                query=state["generated_sparql"],
                result=f"{rows[:VERIFIED_CHARS]} ({more})",
            )
            # A reply that cannot be read is no objection.
            if said and not said["valid"]:
                issues = _texts(said["issues"])
                errors = issues or ["the rows do not answer the question"]
        return {"is_valid": not errors, "validation_errors": errors}

    def refine(self, state: NL2SPARQLState) -> Update:
        """Record the failed query and make room for the next."""
        return {"refinement_history": [attempt_of(state, "refine")], **_CLEAN}

    def explore(self, state: NL2SPARQLState) -> Update:
        """Record the failed query, and look at what the data have around its names."""
        found = explore(
            state["generated_sparql"],
            self._parts.client,
            self._parts.episode.endpoint,
            self._parts.pack.schema,
        )
        return {
            "refinement_history": [attempt_of(state, "explore")],
            "explored": True,
            "discovered_classes": list(found.classes),
            "discovered_properties": list(found.properties),
            "findings": list(found.findings),
            **_CLEAN,
        }

    def output(self, state: NL2SPARQLState) -> Update:
        """Give the best query of all attempts, valid or not, and how far to trust it."""
        attempts = [*state["refinement_history"], attempt_of(state, "output")]
        best = best_attempt(attempts)
        valid = best is not None and best["valid"]
        score = 0.0
        if best is not None:
            number = attempts.index(dict(best)) + 1
            score = confidence_score(
                valid=valid, likeness=best.get("likeness", 0.0), attempts=number
            )
        table = self._parts.calibration
        return {
            "final_sparql": best["sparql"] if best else "",
            "is_valid": valid,
            "validation_errors": list(best["errors"]) if best else ["no query was written"],
            "result_count": best["result_count"] if best else 0,
            "score": score,
            "confidence": table.rate(score) if table is not None and best else score,
            "calibrated": table is not None,
            "explanation": _explanation(state, best, len(attempts)),
        }


def asked(state: NL2SPARQLState) -> str:
    """Return the question, with what was said when it was asked back."""
    said = state["clarification"]
    return f"{state['question']} ({said})" if said else state["question"]


_CLEAN: Update = {
    "used_ids": [],
    "generated_sparql": "",
    "execution_form": "",
    "execution_result": None,
    "result_count": 0,
    "execution_error": None,
    "problems": [],
    "is_valid": False,
}


def _explanation(state: NL2SPARQLState, best: Mapping[str, Any] | None, attempts: int) -> str:
    needs = ", ".join(state["detected_patterns"]) or "no known pattern"
    lines = [f"It needs {needs}."]
    if best is None:
        return f"{lines[0]} No reply held a query."
    who = f"the writer for {best['family']}" if best["family"] else "the general writer"
    used = best.get("used_ids", ())
    like = f" after the examples {', '.join(used)}" if used else ""
    lines.append(f"Written by {who}{like}; attempts: {attempts}.")
    if best["valid"]:
        lines.append(f"{_came(best)}, and nothing was found against it.")
    else:
        lines.append(f"Against it: {best['error']}")
    return " ".join(lines)


def _came(best: Mapping[str, Any]) -> str:
    if best["form"] == "ASK":
        return "It was answered"
    noun = "triple" if best["form"] in ("CONSTRUCT", "DESCRIBE") else "row"
    return f"It gives {best['result_count']} {noun}{'' if best['result_count'] == 1 else 's'}"


def _unexecuted(said: str, problems: list[dict[str, str]]) -> Update:
    return {
        "execution_form": "",
        "execution_result": None,
        "result_count": 0,
        "execution_error": said,
        "problems": problems,
    }


def _problem(level: str, code: str, text: str) -> dict[str, str]:
    return {"level": level, "code": code, "text": text}


def _asks_elsewhere(parts: Parts, names: Collection[str]) -> bool:
    """Say whether what is needed is only known at another endpoint."""
    rows = load_constraints(parts.pack).properties
    there = {name for row in rows if row.service for name in row.patterns}
    signs = [sign for name in names for sign in parts.patterns.named(name).signs]
    return bool(there & set(names)) or any(sign.services for sign in signs)


def _complexity(patterns: int) -> Complexity:
    return "simple" if patterns <= 1 else "moderate" if patterns == 2 else "complex"


def _texts(said: Any) -> list[str]:
    lines = said if isinstance(said, list) else [said]
    return [text for one in lines if (text := str(one).strip()) and text.lower() not in _NONE]
