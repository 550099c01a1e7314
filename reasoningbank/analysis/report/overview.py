"""The summary: the stated comparison, the arms, what was not counted, and how it was made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from reasoningbank.analysis.arm_summary import ArmSummary
from reasoningbank.analysis.comparison import Comparison
from reasoningbank.analysis.memory_tables import sampled_table
from reasoningbank.analysis.online import Online
from reasoningbank.analysis.report.headline import (
    METRIC_NAMES,
    headline,
    interval_bar,
    number,
    share,
)
from reasoningbank.analysis.report.learning_view import leak_note, learning_view
from reasoningbank.analysis.report.markup import Html, element, joined
from reasoningbank.analysis.report.tables import section, table
from reasoningbank.analysis.statistics import Interval
from reasoningbank.analysis.summary import RunSummary
from reasoningbank.analysis.summary_tables import judge_table

__all__ = ["Damaged", "overview"]


class Damaged(NamedTuple):
    """A file of the run that cannot be read, and why; the page leaves it out."""

    path: Path
    reason: str


def overview(
    title: str,
    manifest: Mapping[str, Any],
    summary: RunSummary,
    damaged: Sequence[Damaged],
    trials: int,
) -> Html:
    """Return the view that the page opens with; it needs no script to be read."""
    experiment: Mapping[str, Any] = manifest.get("experiment") or {}
    pair = experiment.get("comparison")
    stated = (str(pair[0]), str(pair[1])) if pair else None
    when = str(manifest.get("created", ""))[:16].replace("T", " ")
    said = [
        experiment.get("name"),
        f"pack {experiment['pack']}" if experiment.get("pack") else None,
        f"{trials:,} trials" if trials != 1 else "1 trial",
        f"begun {when} UTC" if when else None,
    ]
    return joined(
        [
            element("h1", title, tabindex="-1"),
            element("p", " · ".join(str(part) for part in said if part), class_="quiet"),
            leak_note(summary.leakage),
            headline(summary.comparison, stated, summary.metric),
            *_claims(summary),
            element("h2", "Arms"),
            _arms(summary),
            *_others(summary.others),
            *_repeats(summary.arms),
            *section(sampled_table(summary.arms)),
            *section(judge_table(summary.arms), left=2),
            *learning_view(summary),
            element("h2", "Leakage"),
            element("p", f"{summary.leakage.sentence()}.", class_="sentence", id="leakage"),
            element("h2", "Not counted"),
            _not_counted(summary.arms, damaged, summary.online),
            element("h2", "How it was made"),
            _made(manifest, experiment),
        ]
    )


def trials_link(text: object, **query: str) -> Html:
    """Return a link to the list of trials, filtered."""
    return element("a", text, href=f"#trials?{urlencode(query)}")


def _arms(summary: RunSummary) -> Html:
    if not summary.arms:
        return element("p", "No trial is on disk yet.", class_="quiet")
    priced = any(arm.dollars is not None for arm in summary.arms)
    head = ["arm", METRIC_NAMES.get(summary.metric, summary.metric), "95 % interval", "right",
            "row F1", "query ran", "how they ended", "seconds", "tokens"]  # fmt: skip
    rows = [
        [
            trials_link(arm.arm, arm=arm.arm),
            number(arm.mean.rate) if summary.metric == "f1" else share(arm.mean.rate),
            _interval(arm.mean),
            f"{arm.strict} of {arm.judged}",
            number(arm.f1) if arm.judged else "–",
            str(arm.executed),
            element(
                "span",
                ", ".join(f"{n} {name}" for name, n in sorted(arm.statuses.items())),
                class_="wrapped",
            ),
            _median(arm.seconds, 1),
            _median(arm.tokens, 0),
            *([f"${arm.dollars:.4f}" if arm.dollars is not None else "–"] if priced else []),
        ]
        for arm in summary.arms
    ]
    methods = sorted({arm.mean.method for arm in summary.arms if arm.mean.method})
    return joined(
        [
            table([*head, *(["cost"] if priced else [])], rows, wide=True),
            element(
                "p",
                "Seconds and tokens: median, and in brackets the 95th percentile. "
                + (f"Intervals: {'; '.join(methods)}." if methods else ""),
                class_="quiet",
            ),
        ]
    )


def _interval(mean: Interval) -> Html | str:
    if not math.isfinite(mean.low):
        return "none"
    bar = interval_bar(mean.rate, mean.low, mean.high)
    return joined([bar or "", element("small", f"{share(mean.low)} to {share(mean.high)}")])


def _median(pair: tuple[float, float], digits: int) -> str:
    median, p95 = pair
    if not math.isfinite(median):
        return "–"
    return f"{median:,.{digits}f} ({p95:,.{digits}f})"


def _claims(summary: RunSummary) -> list[Html]:
    stated = summary.stated_lines()
    if len(stated) < 2:
        return []
    said = [f"{line[0].upper()}{line[1:]}." for line in stated[1:]]
    return [element("p", line, class_="sentence") for line in said]


def _others(others: Sequence[Comparison]) -> list[Html]:
    if not others:
        return []
    rows = [
        [
            f"{c.first} against {c.second}",
            number(c.difference, sign=True),
            f"{number(c.low, sign=True)} to {number(c.high, sign=True)}",
            "–" if math.isnan(c.p_holm) else f"{c.p_holm:.3f}",
            c.verdict,
        ]
        for c in others
    ]
    head = ["comparison", "difference", "95 % interval", "p after Holm", ""]
    return [element("h2", "Other arms against the base line"), table(head, rows)]


def _repeats(arms: Sequence[ArmSummary]) -> list[Html]:
    rows = [
        [arm.arm, str(p.k), str(p.tasks), number(p.one), number(p.all)]
        for arm in arms
        for p in arm.passes
    ]
    if not rows:
        return []
    head = ["arm", "k", "tasks", "pass@k: one of k right", "pass^k: all k right"]
    return [element("h2", "Several runs a task"), table(head, rows)]


def _not_counted(
    arms: Sequence[ArmSummary], damaged: Sequence[Damaged], online: Online | None
) -> Html:
    errors = sum(arm.errors for arm in arms)
    defects = sum(arm.defective for arm in arms)
    parts = []
    if errors:
        worst = "; ".join(
            f"{arm.arm} {share(arm.worst_case)} to {share(arm.best_case)}"
            for arm in arms
            if arm.errors
        )
        parts.append(
            element(
                "li",
                element("b", "Infrastructure errors: "),
                trials_link(f"{errors} {'trial' if errors == 1 else 'trials'}", outcome="error"),
                f". They are not the agents' failures. Had all been wrong, or all right: {worst}.",
            )
        )
    if defects:
        parts.append(
            element(
                "li",
                element("b", "Defective golds: "),
                trials_link(f"{defects} {'trial' if defects == 1 else 'trials'}", outcome="defect"),
                ". Their task has no right answer to compare with.",
            )
        )
    if online is not None and online.errors + online.defective:
        parts.append(
            element(
                "li",
                element("b", "In learning streams: "),
                f"{online.errors} infrastructure errors, {online.defective} trials whose gold is "
                "defective. Nothing was learned from them.",
            )
        )
    if damaged:
        parts.append(
            element(
                "li",
                element("b", "Damaged files: "),
                f"{len(damaged)} cannot be read and {'is' if len(damaged) == 1 else 'are'} not in "
                "this page. The run's own command, given again, sets them aside and runs their "
                "trials anew.",
                element(
                    "ul",
                    joined(element("li", element("code", d.path), f" {d.reason}") for d in damaged),
                ),
                id="damaged",
            )
        )
    if not parts:
        return element("p", "Nothing: every trial on disk is judged and counts.", class_="quiet")
    return element("ul", joined(parts), class_="plain")


def _made(manifest: Mapping[str, Any], experiment: Mapping[str, Any]) -> Html:
    hashes: Mapping[str, Any] = manifest.get("hashes") or {}
    facts: list[tuple[str, str]] = [
        ("fingerprint", str(manifest.get("fingerprint", ""))),
        (
            "corpus and store",
            " · ".join(str(hashes[k]) for k in ("corpus", "store") if k in hashes),
        ),
        ("versions", _pairs(manifest.get("versions"))),
        ("machine", _pairs(manifest.get("machine"))),
        ("budget", _pairs(experiment.get("budget"))),
        ("seeds", ", ".join(str(s) for s in experiment.get("seeds") or ())),
        ("mode", str(experiment.get("mode") or "")),
    ]
    models: Mapping[str, Any] = hashes.get("models") or {}
    facts += [(f"model {name}", _pairs(print_)) for name, print_ in models.items()]
    for arm in experiment.get("arms") or ():
        facts.append((f"arm {arm.get('name')}", _pairs(arm, leave=("name",))))
    rows = (element("div", element("dt", k), element("dd", v)) for k, v in facts if v)
    raw = json.dumps(manifest, indent=1, ensure_ascii=False, default=str)
    return joined(
        [
            element("dl", joined(rows), class_="facts"),
            element(
                "details",
                element("summary", "The manifest as it is"),
                element("pre", raw, class_="text", tabindex="0"),
                class_="folded",
            ),
        ]
    )


def _pairs(data: object, leave: Sequence[str] = ()) -> str:
    if not isinstance(data, Mapping):
        return str(data or "")
    kept = {k: v for k, v in data.items() if k not in leave and v not in (None, [], {}, "")}
    return " · ".join(f"{k} {_brief(v)}" for k, v in kept.items())


def _brief(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
