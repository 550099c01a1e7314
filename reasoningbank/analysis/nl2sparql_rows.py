"""Questions answered by translators, one row each: from a run's records, or from a report.

What a question needs, and in which language it is, the records do not hold: that is read off the
pack. Trials of learning streams are left out, as in every comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from rdflib.term import URIRef

from reasoningbank.corpus import Pack, load_pack, query_features
from reasoningbank.errors import QueryError, RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.storage import read_json
from reasoningbank.nl2sparql import (
    PackExample,
    load_examples,
    load_patterns,
    patterns_of_query,
    validate_syntax,
)
from reasoningbank.nl2sparql.confidence import confidence_in
from reasoningbank.nl2sparql.patterns import namespaces_of
from reasoningbank.nl2sparql.words import asked_language
from reasoningbank.schema import read_statements
from reasoningbank.sparql import STANDARD_PREFIXES, prepare
from reasoningbank.trajectory import Trajectory

__all__ = ["ArmRows", "TranslationRow", "components", "matched", "read_translations"]

_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: Steps of `rag` and of `graph` that say whether a query stands: one a query.
_CHECKS = ("validate", "verify")


@dataclass(frozen=True)
class TranslationRow:
    """One question, answered and judged.

    Attributes:
        task: The task's id.
        language: Language of the question.
        question: The question.
        sparql: The query; None where there was none.
        right: Whether it returns the right answer: execution accuracy.
        status: Why there was nothing to compare, or ``judged``.
        parses: Whether it is SPARQL.
        executes: Whether the endpoint answered it.
        components: Share of the right query's parts that it has.
        patterns: What the question needs.
        detected: What was detected; None where the agent detects nothing.
        valid: Whether the agent itself had nothing against it; None where it does not check.
        confidence: How probable the agent thought it right; None where it does not say.
        score: What that is made of; None likewise.
        calls: Calls of a model.
        tokens: Tokens sent and generated.
        seconds: Wall time.
        complexity: The task's complexity class; empty where that is not told.
        queries: Queries that the agent made and checked; None where it does not check.
    """

    task: str
    language: str
    question: str
    sparql: str | None
    right: bool
    status: str
    parses: bool
    executes: bool
    components: float
    patterns: tuple[str, ...]
    detected: tuple[str, ...] | None
    valid: bool | None
    confidence: float | None
    score: float | None
    calls: int
    tokens: int
    seconds: float
    complexity: str = ""
    queries: int | None = None

    @property
    def counts(self) -> bool:
        """Whether it is judged: a task whose gold is defective has no right answer."""
        return self.status != "gold_defect"

    @property
    def first_stood(self) -> bool | None:
        """Whether the first query stood, so that none was mended; None where none is checked."""
        return None if self.queries is None else bool(self.valid) and self.queries == 1


@dataclass(frozen=True)
class ArmRows:
    """The rows of one arm.

    Attributes:
        arm: Its name; with the run's before it, where several were read.
        agent: Its agent.
        model: Name of its model.
        pack: The pack's name.
        rows: Its judged trials.
        left_out: Trials that are not judged: errors of the infrastructure, defective golds.
    """

    arm: str
    agent: str
    model: str
    pack: str
    rows: tuple[TranslationRow, ...]
    left_out: int = 0


def read_translations(sources: Sequence[Path], pack: str = "") -> list[ArmRows]:
    """Read runs, and reports of ``nl2sparql evaluate``.

    Args:
        sources: Folders of runs, and files of reports.
        pack: The pack's name or folder, where it is elsewhere than the runs say.

    Returns:
        A table an arm, in the order of the sources and of their manifests.

    Raises:
        UsageError: There is no such run, or no such pack.
        RecordError: A file is damaged.
    """
    found: list[ArmRows] = []
    for source in sources:
        arms = _report(source) if source.is_file() else _run(source, pack)
        if len(sources) > 1:
            arms = [replace(one, arm=f"{source.stem}/{one.arm}") for one in arms]
        found += arms
    return found


def matched(sparql: str | None, gold: str, pack: Pack) -> float:
    """Return the share of the gold's components that a query has, from 0 to 1."""
    wanted = components(gold, pack)
    if not sparql or not wanted:
        return 0.0
    return round(len(wanted & components(sparql, pack)) / len(wanted), 4)


def components(sparql: str, pack: Pack) -> frozenset[tuple[str, str]]:
    """Return what a query is made of: properties, classes, graphs, services, features.

    A query that does not parse has none.
    """
    return _components(sparql, tuple(sorted(namespaces_of(pack).items())))


@lru_cache(maxsize=4096)
def _components(sparql: str, namespaces: tuple[tuple[str, str], ...]) -> frozenset[tuple[str, str]]:
    try:
        prepared = prepare(sparql, prefixes=dict(namespaces))
    except QueryError:
        return frozenset()
    if prepared.parsed is None:
        return frozenset()
    walked = read_statements(prepared.text)
    found: set[tuple[str, str]] = {("form", prepared.form)}
    for one in walked.statements:
        kind = "class" if str(one.predicate) == _TYPE else "property"
        name = one.object if kind == "class" else one.predicate
        places = (("graph", one.graph), ("service", one.service), (kind, name))
        found.update((kind, str(term)) for kind, term in places if isinstance(term, URIRef))
    found.update(("graph", name) for name in walked.dataset)
    found.update(("feature", name) for name in query_features(prepared.text).features)
    return frozenset(found)


def _run(source: Path, pack_name: str) -> list[ArmRows]:
    folder = RunFolder(source)
    manifest = folder.manifest
    if manifest is None:
        hint = "name the folder of a run, or a report of nl2sparql evaluate"
        raise UsageError("holds no run", where=str(source), hint=hint)
    experiment = manifest["experiment"]
    try:
        pack = load_pack(pack_name or str(experiment.get("pack")))
    except UsageError as error:
        raise UsageError(error.what, where=str(source), hint="name the pack with --pack") from error
    examples = {one.id: one for one in load_examples(pack)}
    named = {str(arm["name"]): arm for arm in experiment.get("arms") or ()}
    rows: dict[str, list[TranslationRow]] = {name: [] for name in named}
    left_out = dict.fromkeys(rows, 0)
    for record in folder.trials(skip_damaged=True):
        if record.step is not None:
            continue
        arm = record.key.arm
        if not record.verdict or record.verdict.get("status") == "gold_defect":
            left_out[arm] = left_out.get(arm, 0) + 1
        else:
            row = _row(record, record.verdict, examples.get(record.key.task), pack)
            rows.setdefault(arm, []).append(row)
    return [
        ArmRows(
            arm,
            str(named.get(arm, {}).get("agent", "")),
            str(named.get(arm, {}).get("lm", "")),
            pack.key,
            tuple(own),
            left_out.get(arm, 0),
        )
        for arm, own in rows.items()
        if own or left_out.get(arm)
    ]


def _row(
    record: TrialRecord, verdict: Mapping[str, Any], example: PackExample | None, pack: Pack
) -> TranslationRow:
    patterns = load_patterns(pack)
    gold = record.gold or (example.sparql if example else "")
    told = example.questions if example else ()
    guessed = asked_language(record.question, pack)
    trust = confidence_in(record.trajectory)
    queries = sum(e.data.get("step") in _CHECKS for e in record.trajectory.of("step")) or None
    status = str(verdict.get("status"))
    usage = record.usage
    return TranslationRow(
        task=record.key.task,
        language=next((tag for tag, text in told if text == record.question), guessed),
        question=record.question,
        sparql=record.sparql,
        right=record.strict,
        status=status,
        parses=record.sparql is not None and validate_syntax(record.sparql, pack).ok,
        executes=status in ("judged", "wrong_form"),
        components=matched(record.sparql, gold, pack),
        patterns=example.patterns if example else patterns_of_query(gold, patterns),
        detected=_detected(record.trajectory),
        valid=None if queries is None else record.status == "submitted",
        confidence=trust.confidence if trust else None,
        score=trust.score if trust else None,
        calls=usage.lm_calls + usage.cached_calls,
        tokens=usage.tokens,
        seconds=usage.seconds,
        complexity=record.complexity,
        queries=queries,
    )


def _detected(trajectory: Trajectory) -> tuple[str, ...] | None:
    for event in trajectory.of("step"):
        data = trajectory.resolve(event.data)
        if data.get("step") in ("detect", "analyze"):
            return tuple(data.get("patterns") or data.get("detected_patterns") or ())
    return None


def _report(source: Path) -> list[ArmRows]:
    data = read_json(source)
    try:
        rows = TypeAdapter(tuple[TranslationRow, ...]).validate_python(data["questions"])
        agent, model, pack = (str(data[name]) for name in ("agent", "model", "pack"))
    except (KeyError, TypeError, ValidationError) as error:
        hint = "name what `nl2sparql evaluate --output` wrote"
        raise RecordError("is no report", where=str(source), hint=hint) from error
    judged = tuple(row for row in rows if row.counts)
    return [ArmRows(agent, agent, model, pack, judged, len(rows) - len(judged))]
