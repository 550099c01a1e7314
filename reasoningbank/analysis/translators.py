"""Translators from questions to SPARQL: their answers as rows, metrics, calibration and tables.

Execution accuracy is the first number everywhere. The patterns and the language of a question are
not in the records; they are read from the pack. Trials of learning streams are left out.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError
from rdflib.term import URIRef

from reasoningbank.analysis.scores import RunPlan, Score, pooled_mean
from reasoningbank.analysis.statistics import wilson
from reasoningbank.analysis.tables import Cells, TextTable, cells, ends, number
from reasoningbank.corpus import Pack, load_pack, query_features
from reasoningbank.corpus.pack import namespaces_of
from reasoningbank.errors import QueryError, RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.storage import read_json
from reasoningbank.judge import RAN, is_judged
from reasoningbank.nl2sparql import (
    PackExample,
    load_examples,
    load_patterns,
    pattern_report,
    patterns_of_query,
    validate_syntax,
)
from reasoningbank.nl2sparql.confidence import confidence_in, fit_calibration
from reasoningbank.nl2sparql.words import asked_language
from reasoningbank.schema import read_statements
from reasoningbank.sparql import STANDARD_PREFIXES, prepare

_TYPE = STANDARD_PREFIXES["rdf"] + "type"
#: Steps of `rag` and of `graph` that report whether a query is valid: one per query.
_CHECKS = ("validate", "verify")
#: Bins of the reliability table, and folds of the cross-fitted calibration.
_BINS = _FOLDS = 5
_COMPLEXITIES = ("simple", "moderate", "complex")
_PATTERN_COUNTS = ("no pattern", "one pattern", "two patterns", "three patterns or more")
FAILED_FIRST = "the pipeline's first query failed its checks"


@dataclass(frozen=True)
class TranslationRow:
    """One question, answered and judged."""

    task: str  #: The task's id
    language: str  #: Language of the question
    question: str  #: The question
    sparql: str | None  #: The query; None if there was none
    right: bool  #: Whether it returns the right answer: execution accuracy
    status: str  #: Why there was nothing to compare, or ``judged``
    parses: bool  #: Whether it is valid SPARQL
    executes: bool  #: Whether the endpoint answered it
    components: float  #: Share of the gold query's components that it has
    patterns: tuple[str, ...]  #: The patterns that the question needs
    detected: tuple[str, ...] | None  #: The detected patterns; None if the agent detects none
    valid: bool | None  #: Whether the agent's own checks passed; None if it does not check
    #: The agent's estimate of the probability that it is right, if it gives one.
    confidence: float | None
    score: float | None  #: What the estimate is computed from; None likewise
    calls: int  #: Calls of a model
    tokens: int  #: Prompt and completion tokens
    seconds: float  #: Wall time
    complexity: str = ""  #: The task's complexity class; empty if unknown
    #: Queries that the agent made and checked; None if it does not check.
    queries: int | None = None
    group: str = ""  #: Its task's group, in a run that compares groups

    @property
    def first_passed(self) -> bool | None:
        """Whether the first query passed its checks; None if queries are not checked."""
        return None if self.queries is None else bool(self.valid) and self.queries == 1


@dataclass(frozen=True)
class ArmRows:
    """The rows of one arm."""

    arm: str  #: Its name; with the run's before it if several were read
    agent: str  #: Its agent
    model: str  #: Name of its model
    pack: str  #: The pack's name
    rows: tuple[TranslationRow, ...]  #: Its judged trials
    #: Trials that are not judged: infrastructure errors and defective gold queries.
    left_out: int = 0


def read_translations(sources: Sequence[Path], pack: str = "") -> list[ArmRows]:
    """Read runs, and reports of ``nl2sparql evaluate``.

    Args:
        sources: Folders of runs, and report files.
        pack: The pack's name or folder, if it is not where the runs say.

    Returns:
        The rows of each arm, in the order of the sources and of their manifests.
    """
    found: list[ArmRows] = []
    for source in sources:
        arms = _report(source) if source.is_file() else _run(source, pack)
        if len(sources) > 1:
            arms = [replace(one, arm=f"{source.stem}/{one.arm}") for one in arms]
        found += arms
    return found


def component_match(sparql: str | None, gold: str, pack: Pack) -> float:
    """Return the share of the gold query's components that a query has, from 0 to 1."""
    wanted = components(gold, pack)
    found = components(sparql, pack) if sparql else frozenset()
    return round(len(wanted & found) / len(wanted), 4) if wanted else 0.0


def components(sparql: str, pack: Pack) -> frozenset[tuple[str, str]]:
    """Return the components of a query: properties, classes, graphs, services, features."""
    return _components(sparql, tuple(namespaces_of(pack).items()))


@functools.lru_cache(maxsize=4_096)  # a gold is asked for once per trial
def _components(sparql: str, prefixes: tuple[tuple[str, str], ...]) -> frozenset[tuple[str, str]]:
    try:
        prepared = prepare(sparql, prefixes=dict(prefixes))
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
    plan = RunPlan(manifest)
    try:
        pack = load_pack(pack_name or str(plan.settings.get("pack")))
    except UsageError as error:
        raise UsageError(error.what, where=str(source), hint="name the pack with --pack") from error
    examples = {one.id: one for one in load_examples(pack)}
    rows: dict[str, list[TranslationRow]] = defaultdict(list, {name: [] for name in plan.arms})
    left_out: Counter[str] = Counter()
    for record in folder.trials(skip_damaged=True):
        if record.step is None:
            own = [_row(record, examples.get(record.key.task), pack)] if record.judged else []
            if plan.unit == "group":
                own = [replace(row, group=Score.of(record).group) for row in own]
            rows[record.key.arm] += own
            left_out[record.key.arm] += not own
    return [
        ArmRows(
            name,
            str(plan.arms.get(name, {}).get("agent", "")),
            str(plan.arms.get(name, {}).get("lm", "")),
            pack.key,
            tuple(own),
            left_out[name],
        )
        for name, own in rows.items()
        if own or left_out[name]
    ]


def _row(record: TrialRecord, example: PackExample | None, pack: Pack) -> TranslationRow:
    gold = record.gold or (example.sparql if example else "")
    questions = {text: tag for tag, text in example.questions} if example else {}
    confidence = confidence_in(record.trajectory)
    steps = [record.trajectory.resolve(event.data) for event in record.trajectory.of("step")]
    queries = sum(data.get("step") in _CHECKS for data in steps) or None
    detected = [
        tuple(data.get("patterns") or data.get("detected_patterns") or ())
        for data in steps
        if data.get("step") in ("detect", "analyze")
    ]
    status, usage = str((record.verdict or {}).get("status")), record.usage
    return TranslationRow(
        task=record.key.task,
        language=questions.get(record.question) or asked_language(record.question, pack),
        question=record.question,
        sparql=record.sparql,
        right=record.strict,
        status=status,
        parses=record.sparql is not None and validate_syntax(record.sparql, pack).ok,
        executes=status in RAN,
        components=component_match(record.sparql, gold, pack),
        patterns=example.patterns if example else patterns_of_query(gold, load_patterns(pack)),
        detected=detected[0] if detected else None,
        valid=None if queries is None else record.status == "submitted",
        confidence=confidence.confidence if confidence else None,
        score=confidence.score if confidence else None,
        calls=usage.lm_calls + usage.cached_calls,
        tokens=usage.tokens,
        seconds=usage.seconds,
        complexity=record.complexity,
        queries=queries,
    )


def _report(source: Path) -> list[ArmRows]:
    data = read_json(source)
    try:
        rows = TypeAdapter(tuple[TranslationRow, ...]).validate_python(data["questions"])
        agent, model, pack = (str(data[name]) for name in ("agent", "model", "pack"))
    except (KeyError, TypeError, ValidationError) as error:
        hint = "name a file that `nl2sparql evaluate --output` wrote"
        raise RecordError("is not a report", where=str(source), hint=hint) from error
    judged = tuple(row for row in rows if is_judged(vars(row)))
    return [ArmRows(agent, agent, model, pack, judged, len(rows) - len(judged))]


def translation_figures(rows: Sequence[TranslationRow]) -> dict[str, Any]:
    """Return the metrics of rows in all, by pattern and by language, as JSON-able data.

    Args:
        rows: At least one.
    """
    by_pattern: dict[str, list[TranslationRow]] = defaultdict(list)
    by_language: dict[str, list[TranslationRow]] = defaultdict(list)
    for row in rows:
        by_language[row.language].append(row)
        for name in row.patterns:
            by_pattern[name].append(row)
    known = [(row.detected, row.patterns) for row in rows if row.detected is not None]
    return {
        "metrics": translation_metrics(rows),
        "by_pattern": {name: translation_metrics(own) for name, own in by_pattern.items()},
        "by_language": {n: translation_metrics(own) for n, own in sorted(by_language.items())},
        "pattern_detection": {n: round(v, 4) for n, v in vars(pattern_report(known)).items()}
        if known
        else {},
        "calibration": calibration_figures(rows),
    }


def translation_metrics(rows: Collection[TranslationRow]) -> dict[str, Any]:
    """Return the metrics of rows as JSON-able data; None for what was not measured.

    One row per task has Wilson's interval. If a task has several rows (languages, seeds), whole
    tasks are resampled, since its rows are not independent; or the groups that were compared.
    """
    by_task: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(row.right)
    right = pooled_mean(by_task, {row.task: row.group for row in rows if row.group} or None)
    seconds = [row.seconds for row in rows]
    detected = [set(row.detected) == set(row.patterns) for row in rows if row.detected is not None]
    return {
        "n": len(rows),
        "tasks": len(by_task),
        "execution_accuracy": round(right.rate, 4),
        "execution_accuracy_interval": [
            None if np.isnan(end) else round(float(end), 4) for end in (right.low, right.high)
        ],
        "interval_by": right.method,
        "syntax_validity": _mean(row.parses for row in rows),
        "execution_success": _mean(row.executes for row in rows),
        "component_match": _mean(row.components for row in rows),
        "pattern_accuracy": _mean(detected) if detected else None,
        "calls": _mean(row.calls for row in rows),
        "tokens": _mean(row.tokens for row in rows),
        "seconds_median": round(float(np.median(seconds)), 3),
        "seconds_p95": round(float(np.percentile(seconds, 95)), 3),
    }


def calibration_figures(rows: Iterable[TranslationRow]) -> dict[str, Any]:
    """Return Brier score (Brier 1950) and reliability table; empty without any confidence.

    Two reference scores are given: that of always predicting the share of right queries, and that
    of confidence recalibrated on the other tasks (`fit_calibration`, five folds over tasks).
    """
    every = [(row.group or row.task, row.confidence, row.score, row.right) for row in rows]
    known = [(stated, right) for _, stated, _, right in every if stated is not None]
    if not known:
        return {}
    base = sum(right for _, right in known) / len(known)
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for stated, right in known:
        # Rounded, since 3 / 5 is slightly above 0.6 in binary.
        bins[int(min(np.round(stated * _BINS, 9), _BINS - 1))].append((stated, right))
    table = []
    for index, here in sorted(bins.items()):
        rate = wilson(sum(right for _, right in here), len(here))
        table.append(
            {
                "from": round(index / _BINS, 2),
                "to": round((index + 1) / _BINS, 2),
                "n": len(here),
                "confidence": _mean(stated for stated, _ in here),
                "right": round(rate.rate, 4),
                "interval": [round(rate.low, 4), round(rate.high, 4)],
            }
        )
    return {
        "n": len(known),
        "silent": len(every) - len(known),
        "brier": _mean((stated - right) ** 2 for stated, right in known),
        "brier_base_rate": round(base * (1 - base), 4),
        "brier_calibrated": _cross_fitted([(t, s, r) for t, _, s, r in every if s is not None]),
        "reliability": table,
    }


def _cross_fitted(known: Sequence[tuple[str, float, bool]]) -> float | None:
    """Return the Brier score of confidence calibrated on other tasks; None for too few tasks."""
    tasks = {task: place for place, task in enumerate(sorted({task for task, _, _ in known}))}
    if len(tasks) < 2 * _FOLDS:
        return None
    errors: list[float] = []
    for fold in range(_FOLDS):
        rest = [(score, right) for task, score, right in known if tasks[task] % _FOLDS != fold]
        table = fit_calibration(rest)
        errors += [(table.rate(s) - r) ** 2 for t, s, r in known if tasks[t] % _FOLDS == fold]
    return _mean(errors)


def _mean(numbers: Iterable[float]) -> float:
    return round(float(np.mean([float(one) for one in numbers])), 4)


#: The metrics that tables show: by header, the name and the decimal places.
_METRICS = {
    "n": ("n", 0),
    "execution accuracy": ("execution_accuracy", 2),
    "95% CI": ("execution_accuracy_interval", 2),
    "syntax validity": ("syntax_validity", 2),
    "execution success": ("execution_success", 2),
    "component match": ("component_match", 2),
    "pattern accuracy": ("pattern_accuracy", 2),
    "calls": ("calls", 1),
    "tokens": ("tokens", 0),
    "s median": ("seconds_median", 1),
    "s p95": ("seconds_p95", 1),
}
METRICS_SHOWN = tuple(_METRICS)
#: The metrics that matter for the choice between agents.
_COSTS = ("n", "execution accuracy", "95% CI", "calls", "tokens", "s median", "s p95")


def metric_cells(metrics: Mapping[str, Any], columns: Sequence[str] = METRICS_SHOWN) -> Cells:
    """Return what `translation_metrics` returned as text, under the given headers."""
    shown = [(metrics[name], places) for name, places in map(_METRICS.__getitem__, columns)]
    return tuple(ends(*v) if isinstance(v, list) else number(v, places) for v, places in shown)


def agent_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return one row per arm, with its pack, its model and the number of unjudged trials."""
    nothing = ("0", *["-"] * (len(METRICS_SHOWN) - 1))
    rows = [
        (one.arm, one.agent, one.pack, one.model,
         *(metric_cells(translation_metrics(one.rows)) if one.rows else nothing), str(one.left_out))
        for one in arms
    ]  # fmt: skip
    headers = ("arm", "agent", "pack", "model", *METRICS_SHOWN, "not judged")
    return TextTable("by agent", headers, rows)


def language_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return every arm by the language of its questions."""
    return _grouped("by language", "language", arms, lambda _, row: [row.language])


def pattern_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return every arm by pattern; a question counts for each of its patterns."""
    return _grouped("by pattern", "pattern", arms, lambda _, row: row.patterns or ["(none)"])


def scenario_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return when to use which agent: every arm by the kind of question."""
    pipelines = {one.pack: one for one in reversed(arms) if one.agent == "rag"}
    failed = {
        (pack, row.task, row.language)
        for pack, one in pipelines.items()
        for row in one.rows
        if row.first_passed is False
    }

    def scenarios(one: ArmRows, row: TranslationRow) -> list[str]:
        found = [row.complexity, _PATTERN_COUNTS[min(len(row.patterns), 3)]]
        return [*found, FAILED_FIRST] if (one.pack, row.task, row.language) in failed else found

    order = (*_COMPLEXITIES, *_PATTERN_COUNTS[1:], FAILED_FIRST)
    return _grouped("when to use which agent", "questions", arms, scenarios, order, _COSTS)


def repair_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return the outcome of queries that failed their checks, for arms that check them."""
    headers = (
        "arm", "first query passed", "of these right", "first query failed", "a later one passed",
        "right in the end", "queries per question",
    )  # fmt: skip
    rows = []
    for one in arms:
        passed = [row for row in one.rows if row.first_passed]
        failed = [row for row in one.rows if row.first_passed is False]
        if passed or failed:
            later = _share([bool(row.valid) for row in failed])
            queries = sum(row.queries or 0 for row in (*passed, *failed))
            rows.append(
                cells(one.arm, len(passed), _share([row.right for row in passed]), len(failed),
                      later, _share([row.right for row in failed]),
                      queries / len(passed + failed))
            )  # fmt: skip
    return TextTable("checking and repairing queries", headers, rows)


def brier_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return the Brier score of each arm that gives a confidence."""
    names = ("n", "silent", "brier", "brier_base_rate", "brier_calibrated")
    found = [(one.arm, calibration_figures(one.rows)) for one in arms]
    rows = [cells(arm, *(one[name] for name in names)) for arm, one in found if one]
    headers = (
        "arm", "n", "no confidence", "Brier score", "of the base rate", "calibrated on other tasks",
    )  # fmt: skip
    return TextTable("confidence: Brier score, 0 is best", headers, rows)


def reliability_table(arms: Sequence[ArmRows]) -> TextTable:
    """Return the share of right queries by confidence."""
    rows = [
        cells(one.arm, f"{part['from']:.1f} to {part['to']:.1f}", part["n"], part["confidence"],
              part["right"], ends(*part["interval"]))
        for one in arms
        for part in calibration_figures(one.rows).get("reliability", ())
    ]  # fmt: skip
    headers = ("arm", "confidence", "n", "mean confidence", "right", "95% CI")
    return TextTable("confidence: reliability", headers, rows)


def _grouped(
    title: str,
    head: str,
    arms: Sequence[ArmRows],
    groups: Callable[[ArmRows, TranslationRow], Iterable[str]],
    order: Sequence[str] = (),
    columns: Sequence[str] = METRICS_SHOWN,
) -> TextTable:
    """Return one row per group and arm; the groups in alphabetical order if none is given."""
    found: dict[str, dict[str, list[TranslationRow]]] = defaultdict(lambda: defaultdict(list))
    for one in arms:
        for row in one.rows:
            for group in groups(one, row):
                found[group][one.arm].append(row)
    rows = [
        (group, arm, *metric_cells(translation_metrics(own), columns))
        for group in order or sorted(found)
        for arm, own in found[group].items()
    ]
    return TextTable(title, (head, "arm", *columns), rows)


def _share(yes: Sequence[bool]) -> str:
    return f"{sum(yes)} of {len(yes)}" if yes else "-"
