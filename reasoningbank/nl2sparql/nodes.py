"""The nodes of the graph: each takes the state and returns its changes to it.

The state is plain data that a checkpoint can hold. Keys, clients and packs are never part of it;
of models, only the names are.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from operator import add
from typing import Annotated, Any, Literal, TypedDict, cast, get_args, get_origin, get_type_hints

import dspy
from pyoxigraph import NamedNode
from rdflib.term import URIRef

from reasoningbank.agents.calling import RecordedClient, ask_once
from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Complexity
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.findings import counted
from reasoningbank.nl2sparql.confidence import Confidence, confidence_score, load_calibration
from reasoningbank.nl2sparql.detection import Detected, detector_of
from reasoningbank.nl2sparql.examples import ExampleSettings, Retrieved
from reasoningbank.nl2sparql.hints import load_constraints, load_patterns
from reasoningbank.nl2sparql.validation import validate
from reasoningbank.schema import (
    Schema,
    Statement,
    as_lines,
    explain_empty,
    namespace_of,
    probe_run,
    read_statements,
)
from reasoningbank.sparql import STANDARD_PREFIXES, EndpointConfig, SPARQLClient
from reasoningbank.sparql.terms import written

Update = dict[str, Any]

#: Score of a pattern that the model names, which is less certain than one of the rules, and most
#: of them: with more, a small model misled the writer more often than not.
MODEL_SCORE, MOST_ADDED = 0.5, 2
MOST_STEPS = 5
#: Rows that the verifying model sees, and characters of them.
VERIFIED_ROWS, VERIFIED_CHARS = 5, 1_500
#: Metered lookups at one endpoint, seconds of each, and names that one or a namespace gives.
MOST_LOOKUPS, LOOKUP_S, MOST_FOUND = 10, 10.0, 30
#: Explored classes and properties that are passed on to the prompt.
MOST_KEPT = 40
_NONE = ("", "none", "no", "n/a", "nothing")
#: Parts of the state that other events hold, or that repeat others in full.
_LONG = ("retrieved_examples", "relevant_constraints", "refinement_history", "execution_result")
_TYPE = STANDARD_PREFIXES["rdf"] + "type"


@dataclass
class GraphSettings(ExampleSettings):
    """Settings of a graph; each of its own steps can be switched off."""

    #: Whether a model says what the question needs; otherwise the pack's rules do
    analyze: bool = True
    plan: bool = True  #: Whether a question that is not simple is split into steps
    #: Whether a model checks that the rows answer the question; validation always runs
    verify: bool = True
    explore: bool = True  #: Whether the schema is explored after an empty result
    specialists: bool = True  #: Whether each pattern family has its own writer
    #: Whether an unclear question is asked back; the graph waits for the answer
    human: bool = False
    max_attempts: int = 3  #: Most queries that are written
    top_k: int = 5  #: Examples that are retrieved
    shown: int = 3  #: Examples that the writer sees
    timeout_s: float = 30.0  #: Seconds a query may take

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or min(self.top_k, self.shown) < 0 or self.timeout_s <= 0:
            what = "max_attempts must be at least 1, top_k and shown at least 0, timeout_s above 0"
            raise UsageError(what, where="GraphSettings")


class WriterOutput(TypedDict, total=False):
    """What a writer returns; a returned `refinement_history` would be appended to itself."""

    # Retrieval: the examples, best first; the ids that this attempt, and that any, was shown.
    retrieved_examples: list[dict[str, Any]]
    used_ids: list[str]
    shown_ids: list[str]
    relevant_constraints: str
    # Generation: the family whose writer is used, empty for the general one; the query, empty if
    # the reply contained none; whether it repeats an earlier one.
    family: str
    generated_sparql: str
    generation_attempts: int
    repeated: bool


class NL2SPARQLState(WriterOutput, total=False):
    """What is known about one question so far."""

    # Input: provider and model are empty if the models were given, pack is empty in a trial; human
    # says whether questions can be asked back, advice is the memory context.
    question: str
    language: str
    provider: str
    model: str | None
    pack: str
    human: bool
    advice: str
    # Analysis: the patterns with the most certain first, a question back if it is unclear, and the
    # answer to that.
    detected_patterns: list[str]
    pattern_scores: dict[str, float]
    complexity: Complexity
    requires_service: bool
    requires_translation: bool
    dialects_needed: list[str]
    unclear: str
    clarification: str
    # Plan: the steps, or only the question; the last step with retrieved examples.
    sub_tasks: list[str]
    current_task_index: int
    # Execution: the form, empty if the query does not parse; `rows`, `truncated` and `seconds` of
    # the result; rows or triples, 1 for an answered ASK; why it was not executed.
    execution_form: str
    execution_result: dict[str, Any] | None
    result_count: int
    execution_error: str | None
    # Verification: `level`, `code` and `text` of each problem, and the texts alone.
    problems: list[dict[str, str]]
    is_valid: bool
    validation_errors: list[str]
    # Refinement: the failed attempts, which accumulate.
    refinement_history: Annotated[list[dict[str, Any]], add]
    # Exploration: names that the data contain, and why the explored query returned nothing.
    explored: bool
    discovered_properties: list[str]
    discovered_classes: list[str]
    findings: list[str]
    # Output: the best query, the evidence for it, and the probability that it is right.
    final_sparql: str
    score: float
    confidence: float
    calibrated: bool
    explanation: str


#: What is reset before the next attempt.
_ATTEMPT = (
    "used_ids", "generated_sparql", "execution_form", "execution_result", "result_count",
    "execution_error", "problems", "is_valid",
)  # fmt: skip


def _emptied(names: Iterable[str]) -> dict[str, Any]:
    """Return fields with their empty values: None, an empty container or text, 0 or False."""
    kinds = get_type_hints(NL2SPARQLState)

    def empty(kind: Any) -> Any:
        if kind == Complexity:
            return "simple"
        return None if type(None) in get_args(kind) else (get_origin(kind) or kind)()

    return {name: empty(kinds[name]) for name in names}


def initial_state(question: str, language: str = "", **given: Any) -> NL2SPARQLState:
    """Return a state in which only the question, and the values given by name, are known."""
    state = _emptied(get_type_hints(NL2SPARQLState))
    return cast(NL2SPARQLState, state | {"question": question, "language": language} | given)


def next_attempt(state: NL2SPARQLState, step: str) -> dict[str, Any]:
    """Return the changes that record a failed attempt and make room for the next."""
    return {"refinement_history": [attempt_of(state, step)], **_emptied(_ATTEMPT)}


def attempt_of(state: NL2SPARQLState, step: str) -> dict[str, Any]:
    """Return the attempt of a verified state, as the history keeps it under the step's name."""
    return {
        "sparql": state["generated_sparql"],
        "error": "; ".join(state["validation_errors"]),
        "errors": state["validation_errors"],
        "problems": state["problems"],
        "result_count": state["result_count"],
        "form": state["execution_form"],
        "executed": state["execution_result"] is not None,
        "parses": all(one["level"] != "syntax" for one in state["problems"]),
        "valid": state["is_valid"],
        "family": state["family"],
        "used_ids": state["used_ids"],
        "similarity": max((one["score"] for one in state["retrieved_examples"]), default=0.0),
        "step": step,
    }


def best_attempt(state: NL2SPARQLState) -> tuple[dict[str, Any], int]:
    """Return the best attempt and its number, of equals the first; 0 if none has a query."""
    attempts = [*state["refinement_history"], attempt_of(state, "output")]

    def rank(one: dict[str, Any]) -> tuple[bool, bool, bool, bool, int]:
        rows = one["executed"] and one["result_count"] > 0
        return one["valid"], rows, one["executed"], one["parses"], -len(one["errors"])

    best = max((one for one in attempts if one["sparql"]), key=rank, default=None)
    if best is not None:
        return best, attempts.index(best) + 1
    nothing = _problem("syntax", "no-query", "no query was written")
    return {"sparql": "", "valid": False, "problems": [nothing], "result_count": 0}, 0


# -- nodes --------------------------------------------------------------------------------


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


class Nodes:
    """The nodes over one episode; the model of its extract step does all but write."""

    def __init__(self, episode: Episode, settings: GraphSettings) -> None:
        self.episode, self.settings = episode, settings
        self.pack = episode.required_pack("graph")
        self._calibration = load_calibration(self.pack, model=getattr(episode.lm, "model", ""))

    def ask_fast(self, signature: Any, **inputs: str) -> dict[str, Any]:
        """Count a turn, and ask the fast model; empty if its reply cannot be parsed."""
        self.episode.meter.turn()
        return ask_once(signature, inputs, lm=self.episode.extractor or self.episode.lm)

    def record(self, step: str, found: Mapping[str, Any]) -> None:
        data = {key: value for key, value in found.items() if key not in _LONG}
        if "retrieved_examples" in found:
            kept = ("id", "group", "score")
            data["examples"] = [
                {key: one[key] for key in kept} for one in found["retrieved_examples"]
            ]
        self.episode.recorder.add("step", {"step": step, **data})

    def analyze(self, state: NL2SPARQLState) -> Update:
        """Find patterns, complexity, dialects, and whether a second endpoint is needed."""
        patterns = load_patterns(self.pack)
        found = detector_of(self.pack).detect(state["question"])
        scores = {one.pattern: one.score for one in found}
        said: dict[str, Any] = {}
        if self.settings.analyze:
            kinds = "\n".join(f"{one.name}: {one.title}" for one in patterns.patterns) or "none"
            said = self.ask_fast(AnalyzeQuestion, kinds=kinds, question=state["question"])
        if said and not scores:
            scores = dict.fromkeys(patterns.known(said["patterns"])[:MOST_ADDED], MODEL_SCORE)
        names = list(scores)
        levels = ("simple", "simple", "moderate", "complex")
        rows = load_constraints(self.pack).properties
        signs = [sign for name in names for sign in patterns.named(name).signs]
        dialects = _texts(said.get("dialects", ()))
        unclear = str(said.get("unclear", "")).strip()
        return {
            "detected_patterns": names,
            "pattern_scores": scores,
            "complexity": said.get("complexity") or levels[min(len(names), 3)],
            "requires_service": any(sign.services for sign in signs)
            or any(row.service and set(row.patterns) & set(names) for row in rows),
            "requires_translation": bool(dialects) or any("TRANSLATION" in n for n in names),
            "dialects_needed": dialects,
            "unclear": "" if unclear.lower().rstrip(".") in _NONE else unclear,
        }

    def clarify(self, state: NL2SPARQLState) -> Update:
        """Ask an unclear question back, and wait for the answer."""
        from langgraph.types import interrupt

        if not state["unclear"]:
            return {}
        said = interrupt({"question": state["question"], "unclear": state["unclear"]})
        return {"clarification": str(said or "").strip()}

    def plan(self, state: NL2SPARQLState) -> Update:
        """Split a question that is not simple into steps."""
        question = asked(state)
        steps: list[str] = []
        if self.settings.plan and state["complexity"] != "simple":
            needs = ", ".join((*state["detected_patterns"], *state["dialects_needed"])) or "none"
            said = self.ask_fast(PlanQuery, question=question, patterns=needs)
            steps = _texts(said.get("steps", ()))[:MOST_STEPS]
        return {"sub_tasks": steps or [question], "current_task_index": 0}

    def retrieve(self, state: NL2SPARQLState) -> Update:
        """Find examples for the question and each step; the best of each come first."""
        top_k, before = self.settings.top_k, frozenset(state["shown_ids"])
        earlier = (one for one in state["retrieved_examples"] if one["id"] in before)
        nearest = max(earlier, key=lambda one: one["score"], default={"id": ""})["id"]
        needs = [Detected(name, score) for name, score in state["pattern_scores"].items()]
        retriever = self.settings.retriever(self.pack, self.episode.hidden)
        retriever = retriever.without(ids=before - {nearest})
        tasks = dict.fromkeys((asked(state), *state["sub_tasks"]))
        found = [retriever.retrieve(task, top_k, patterns=needs) for task in tasks]
        unique: dict[str, Retrieved] = {}
        # One of each list in turn, so that every step of the plan has one.
        for one in filter(None, chain.from_iterable(zip_longest(*found))):
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
        form, checked = "", None
        if sparql:
            with RecordedClient(self.episode) as client:
                found, checked = validate(
                    sparql,
                    self.pack,
                    patterns=state["detected_patterns"],
                    endpoint=client,
                    timeout=self.settings.timeout_s,
                    question=asked(state),
                )
                with contextlib.suppress(QueryError):
                    form = client.prepare(sparql).form
            problems = [_problem(one.fields.get("level", ""), one.code, str(one)) for one in found]
            if state["repeated"]:
                text = "this query was tried before; write another one"
                problems.append(_problem("semantic", "repeated", text))
        else:
            problems = [_problem("syntax", "no-query", "the reply contains no query")]
        result, error = None, None
        if checked is not None and checked.executed:
            result = {
                "rows": json.loads(json.dumps(checked.results, default=str)),
                "truncated": checked.truncated,
                "seconds": round(checked.seconds, 3),
            }
        else:
            failed = [one["text"] for one in problems if one["level"] in ("syntax", "endpoint")]
            error = "; ".join(failed) or "it was not executed"
        return {
            "execution_form": form,
            "execution_result": result,
            "result_count": checked.rows if checked is not None else 0,
            "execution_error": error,
            "problems": problems,
        }

    def verify(self, state: NL2SPARQLState) -> Update:
        """Decide whether the query is valid: no problem, and its rows answer the question."""
        problems = state["problems"]
        result = state["execution_result"]
        if not problems and result is not None and self.settings.verify:
            rows = json.dumps(result["rows"][:VERIFIED_ROWS], ensure_ascii=False)
            total = f"{state['execution_form']}, {state['result_count']} in all"
            said = self.ask_fast(
                VerifyRows,
                question=asked(state),
                query=state["generated_sparql"],
                result=f"{rows[:VERIFIED_CHARS]} ({total})",
            )
            # A reply that cannot be parsed is not an objection.
            if said and not said["valid"]:
                issues = _texts(said["issues"]) or ["the rows do not answer the question"]
                problems = [_problem("model", "wrong-result", issue) for issue in issues]
        errors = [one["text"] for one in problems]
        return {"is_valid": not errors, "validation_errors": errors, "problems": problems}

    def refine(self, state: NL2SPARQLState) -> Update:
        return next_attempt(state, "refine")

    def explore(self, state: NL2SPARQLState) -> Update:
        """Record the failed query, and explore the data around its names at each endpoint."""
        config = self.episode.endpoint
        classes: dict[str, None] = {}
        properties: dict[str, None] = {}
        findings: list[str] = []
        with contextlib.suppress(QueryError):
            with RecordedClient(self.episode) as client:
                prepared = client.prepare(state["generated_sparql"])
            own = Schema.of(config, self.pack.schema)
            for endpoint, statements in _by_endpoint(prepared.text, config):
                with RecordedClient(self.episode, endpoint) as client:
                    schema = own if endpoint is config else own.services[endpoint.url]
                    near, around = _explored(client, schema, statements)
                    names = client.config.namespaces
                classes |= {written(iri, names): None for iri in near}
                properties |= {written(iri, names): None for iri in around}
            probe = probe_run(config)
            findings += as_lines(explain_empty(prepared, own, probe, namespaces=config.namespaces))
        return next_attempt(state, "explore") | {
            "explored": True,
            "discovered_classes": list(classes)[:MOST_KEPT],
            "discovered_properties": list(properties)[:MOST_KEPT],
            "findings": findings,
        }

    def output(self, state: NL2SPARQLState) -> Update:
        """Return the best query of all attempts, valid or not, with its confidence."""
        best, number = best_attempt(state)
        score, table = 0.0, None
        if number:
            like = best["similarity"]
            score = confidence_score(valid=best["valid"], similarity=like, attempts=number)
            table = self._calibration
        return {
            "final_sparql": best["sparql"],
            "is_valid": best["valid"],
            "problems": best["problems"],
            "validation_errors": [one["text"] for one in best["problems"]],
            "result_count": best["result_count"],
            **vars(Confidence.of(score, table, _explanation(state, best))),
            "calibrated": self._calibration is not None,
        }


def asked(state: NL2SPARQLState) -> str:
    """Return the question, with the answer to the question back."""
    said = state["clarification"]
    return f"{state['question']} ({said})" if said else state["question"]


def _explanation(state: NL2SPARQLState, best: Mapping[str, Any]) -> str:
    needs = ", ".join(state["detected_patterns"]) or "no known pattern"
    if not best["sparql"]:
        return f"It needs {needs}. No reply contained a query."
    writer = f"the writer for {best['family']}" if best["family"] else "the general writer"
    used = ", ".join(best["used_ids"])
    after = f" after the examples {used}" if used else ""
    count, graph = best["result_count"], best["form"] in ("CONSTRUCT", "DESCRIBE")
    shown = counted(count, "triple" if graph else "row")
    returns = "It was answered" if best["form"] == "ASK" else f"It returns {shown}"
    outcome = f"{returns}; no problem was found." if best["valid"] else f"Problems: {best['error']}"
    attempts = len(state["refinement_history"]) + 1
    return f"It needs {needs}. Written by {writer}{after}; attempts: {attempts}. {outcome}"


def _problem(level: str, code: str, text: str) -> dict[str, str]:
    return {"level": level, "code": code, "text": text}


def _texts(said: Any) -> list[str]:
    lines = said if isinstance(said, (list, tuple)) else [said]
    return [text for one in lines if (text := str(one).strip()) and text.lower() not in _NONE]


def _by_endpoint(
    query: str, config: EndpointConfig
) -> list[tuple[EndpointConfig, list[Statement]]]:
    """Return the known endpoints, each with the statements of a query that it answers."""
    groups: dict[str, list[Statement]] = {}
    for one in read_statements(query).statements:
        groups.setdefault(str(one.service or ""), []).append(one)
    found = []
    for address, own in groups.items():
        known = [config, *config.federated] if address else [config]
        # A prepared query contains the local address of a public endpoint.
        found += [(one, own) for one in known if not address or one.is_at(address)][:1]
    return found


def _explored(
    client: SPARQLClient, schema: Schema, statements: list[Statement]
) -> tuple[list[str], list[str]]:
    """Return classes with a query's properties, and properties around its names.

    They come from the endpoint's schema, or from lookups of what the schema lacks.
    """
    left = iter(range(MOST_LOOKUPS))

    def looked_up(pattern: str) -> list[str]:
        if next(left, None) is None:
            return []
        # A default graph need not contain the named graphs.
        either = f"{{ {pattern} }} UNION {{ GRAPH ?g {{ {pattern} }} }}"
        query = f"SELECT DISTINCT ?name WHERE {{ {either} }} LIMIT {MOST_FOUND}"
        try:
            result = client.query(query, timeout_s=LOOKUP_S, max_rows=MOST_FOUND)
        except QueryError:
            return []
        terms = [row[0] for row in result.rows(0, MOST_FOUND)]  # type: ignore[union-attr]
        return [term.value for term in terms if isinstance(term, NamedNode)]

    types = [s for s in statements if str(s.predicate) == _TYPE]
    others = [s for s in statements if str(s.predicate) != _TYPE]
    used = sorted({str(s.predicate) for s in others if isinstance(s.predicate, URIRef)})
    ends = {str(t) for s in others for t in (s.subject, s.object) if isinstance(t, URIRef)}
    classes = [
        kind
        for name in used
        for kind in sorted(schema.subjects_of(name)) or looked_up(f"?s <{name}> ?o ; a ?name .")
    ]
    properties = [
        name
        for kind in (*sorted({str(s.object) for s in types}), *classes)
        for name in list(schema.properties_of(kind)) or looked_up(f"?s a <{kind}> ; ?name ?o .")
    ]
    for name in sorted(ends):
        properties += looked_up(f"<{name}> ?name ?o .") + looked_up(f"?s ?name <{name}> .")
    known = schema.properties
    for namespace in sorted({namespace_of(name) for name in used if name not in known}):
        properties += [p for p in known if namespace_of(p) == namespace][:MOST_FOUND]
    return classes, properties
