"""The views of the page: the summary with its headline, the figures, and the frame of the bank."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from reasoningbank.analysis.comparison import ArmComparison
from reasoningbank.analysis.leakage import Leakage
from reasoningbank.analysis.run_tables import (
    arm_table,
    bank_table,
    comparison_table,
    judge_table,
    learning_table,
    level_table,
    pass_table,
    rejected_table,
    sampled_table,
    stream_judge_table,
    stream_table,
    use_table,
)
from reasoningbank.analysis.statistics import Interval
from reasoningbank.analysis.summary import RunSummary
from reasoningbank.analysis.tables import (
    Html,
    counted,
    element,
    ends,
    html_section,
    html_table,
    joined,
    number,
    plain,
    share,
    typeset,
)
from reasoningbank.experiment import RunFolder

_METRIC_NAMES = {"strict": "strict match", "lenient": "lenient match", "f1": "row F1"}
#: Width, height and margin of the headline's drawing, in its own units.
_WIDTH, _HEIGHT, _MARGIN = 640, 74, 14
#: Leaks that are listed one by one.
_MOST_LEAKS = 50


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
    """Return the view that the page opens with; it needs no script."""
    experiment: Mapping[str, Any] = manifest.get("experiment") or {}
    pair = experiment.get("comparison")
    when = str(manifest.get("created", ""))[:16].replace("T", " ")
    facts = [
        experiment.get("name"),
        f"pack {experiment['pack']}" if experiment.get("pack") else None,
        f"{trials:,} trials" if trials != 1 else "1 trial",
        f"started {when} UTC" if when else None,
    ]
    return joined(
        [
            element("h1", title, tabindex="-1"),
            element("p", " · ".join(str(fact) for fact in facts if fact), class_="quiet"),
            _leak_note(summary.leakage),
            _headline(summary, (str(pair[0]), str(pair[1])) if pair else None),
            *(
                element("p", f"{line[0].upper()}{line[1:]}.", class_="sentence")
                for line in summary.preregistered_lines()[1:]
            ),
            element("h2", "Arms"),
            _arms(summary),
            *html_section(level_table(summary), left=2),
            *html_section(
                comparison_table(summary.others, "other arms against the baseline", narrow=True)
            ),
            *html_section(pass_table(summary.arms)),
            *html_section(sampled_table(summary.arms)),
            *html_section(judge_table(summary.arms), left=2),
            *_learning(summary),
            element("h2", "Leakage"),
            element("p", f"{summary.leakage.sentence()}.", class_="sentence", id="leakage"),
            element("h2", "Not counted"),
            _not_counted(summary, damaged),
            element("h2", "How it was made"),
            _made(manifest, experiment),
        ]
    )


def figures_view(folder: RunFolder) -> Html:
    """Return every figure that the records can fill, with its caption; nothing without any."""
    # matplotlib and pandas take a second to import.
    from reasoningbank.analysis.figures import FIGURES, svg
    from reasoningbank.analysis.frames import load

    frames = load(folder)
    manifest = next(iter(frames.manifests.values()), {})
    shown = []
    for name, (title, draw) in FIGURES.items():
        chart = draw(frames, manifest)
        if chart is None:
            continue
        drawing = Html(plain(svg(chart, prefix=f"figure-{name}")))
        shown.append(
            element(
                "figure",
                element("h2", title),
                element("div", drawing, class_="scroll", tabindex="0"),
                element("figcaption", chart.description) if chart.description else None,
                class_="figure",
                id=f"figure-{name}",
            )
        )
    if not shown:
        return Html()
    head = element("h1", "Figures", tabindex="-1")
    return element("section", head, joined(shown), class_="view", id="view-figures", hidden=True)


def memory_view() -> Html:
    """Return the frame of the memory view, which the page's script fills."""
    search = element(
        "input", type="search", id="memory-search", placeholder="Search the bank",
        aria_label="Search the memory bank", autocomplete="off",
    )  # fmt: skip
    choices = [
        element(
            "label",
            element("span", label),
            element("select", element("option", "any", value=""), id=f"memory-{name}"),
            class_="choice",
        )
        for label, name in (("Source", "source"), ("Status", "status"), ("Bank", "place"))
    ]
    lead = "What was learned, where it comes from, and which trials it was shown to."
    return element(
        "section",
        element("h1", "Memory bank", tabindex="-1"),
        element("p", lead, class_="lead quiet"),
        element("div", joined([search, *choices]), class_="bar-line"),
        element("p", id="memory-found", class_="quiet", role="status"),
        element("div", id="memory-list"),
        element("button", "Show more", type="button", class_="more", id="memory-more", hidden=True),
        class_="view",
        id="view-memory",
        hidden=True,
    )


def _headline(summary: RunSummary, registered: tuple[str, str] | None) -> Html:
    """Return the card of the pre-registered comparison, or of why there is none."""
    found = summary.comparison
    if found is None:
        text = (
            f"{registered[0]} against {registered[1]} is pre-registered; no task is judged in "
            "both yet."
            if registered
            else "No comparison is pre-registered, so this page claims no difference."
        )
        return element("section", element("p", text, class_="said"), class_="verdict-card")
    name = _METRIC_NAMES.get(summary.metric, summary.metric)
    shown = number if summary.metric == "f1" else share
    first, second = shown(found.first_mean), shown(found.second_mean)
    verdict = f"{found.verdict.capitalize()}."
    if found.resolved:
        verdict = f"{found.first if found.difference > 0 else found.second} is better."
    means = (
        f" Over {counted(found.tasks, 'task')}, {found.first} has {first} and {found.second} "
        f"{second}: a difference of {_signed(found.difference)}."
    )
    eyebrow = f"Pre-registered: {found.first} against {found.second}, {name}"
    return element(
        "section",
        element("p", eyebrow, class_="eyebrow"),
        element("p", element("b", verdict), means, class_="said"),
        _forest(found),
        _comparison_facts(found),
        class_="verdict-card",
        id="comparison",
        aria_label="The pre-registered comparison",
    )


def _comparison_facts(found: ArmComparison) -> Html:
    p = number(found.p, 3) if not found.p < 0.001 else "< 0.001"
    facts = [
        ("95% CI", typeset(ends(found.low, found.high, "+")).replace(" -", " −")),
        ("p", typeset(p)),
        ("observations", counted(found.observations, found.unit)),
        ("seeds", " and ".join(str(n) for n in sorted(set(found.seeds)))),
        (f"better with {found.first}", f"{found.first_better} of {found.tasks} tasks"),
        (f"better with {found.second}", f"{found.second_better} of {found.tasks} tasks"),
        ("smallest detectable difference", typeset(number(found.detectable))),
        ("method", found.method),
    ]
    if found.left_out:
        facts.append(("tasks judged in only one arm, left out", str(found.left_out)))
    if found.defective:
        facts.append(("tasks with a defective gold query, left out", str(found.defective)))
    if any(found.errors):
        head = f"infrastructure errors: {sum(found.errors)}; with them, worst to best"
        facts.append((head, f"{_signed(found.worst_case)} to {_signed(found.best_case)}"))
    pairs = (element("div", element("dt", k), element("dd", v)) for k, v in facts)
    return element("dl", joined(pairs), class_="tiles")


def _forest(found: ArmComparison) -> Html:
    """Draw the difference with its interval, and the range of undetectable differences."""
    values = [abs(v) for v in (found.low, found.high, found.difference) if math.isfinite(v)]
    most = min(1.0, math.ceil(max([*values, found.detectable or 0.0, 0.15]) * 10 + 0.5) / 10)

    def at(value: float) -> str:
        return f"{_MARGIN + (value / most + 1) / 2 * (_WIDTH - 2 * _MARGIN):.1f}"

    def line(x1: str, x2: str, y: int, stroke: str, opacity: float, width: float) -> Html:
        return element("line", x1=x1, x2=x2, y1=y, y2=y, stroke=stroke, opacity=opacity,
                       stroke_width=width, stroke_linecap="round")  # fmt: skip

    parts = []
    if found.detectable is not None:
        low, high = at(-min(most, found.detectable)), at(min(most, found.detectable))
        parts.append(
            element("rect", x=low, y=8, width=f"{float(high) - float(low):.1f}", height=34, rx=4,
                    fill="currentColor", opacity=0.05)
        )  # fmt: skip
    parts += [
        line(at(-most), at(most), 42, "currentColor", 0.2, 1),
        element("line", x1=at(0), x2=at(0), y1=6, y2=46, stroke="currentColor", opacity=0.45,
                stroke_dasharray="3 3"),
    ]  # fmt: skip
    colour = "var(--figure-1)"
    if math.isfinite(found.low):
        parts.append(line(at(max(-most, found.low)), at(min(most, found.high)), 25, colour, 1, 4))
    if math.isfinite(found.difference):
        parts.append(element("circle", cx=at(found.difference), cy=25, r=7, fill=colour))
    for text, x, anchor in (
        (f"{_signed(-most)}  {found.second} better", -most, "start"),
        ("0", 0, "middle"),
        (f"{found.first} better  {_signed(most)}", most, "end"),
    ):
        parts.append(element("text", text, x=at(x), y=62, text_anchor=anchor))
    return element(
        "svg", joined(parts), viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="forest", role="img",
        aria_label=found.sentence(),
    )  # fmt: skip


def _signed(value: float) -> str:
    return typeset(number(value, sign="+"))


def _leak_note(leakage: Leakage) -> Html:
    """Return the warning of a run that leaked, which precedes every number; else nothing."""
    leaks = leakage.leaks
    if leaks:
        lines = [element("li", leak.sentence()) for leak in leaks[:_MOST_LEAKS]]
        if len(leaks) > _MOST_LEAKS:
            lines.append(element("li", f"and {len(leaks) - _MOST_LEAKS} more"))
        head = f"Leakage: {counted(len(leaks), 'leak')}."
        text = " Trials were shown answers; the numbers below prove nothing."
        parts = [element("p", element("b", head), text), element("ul", joined(lines))]
    elif leakage.unread:
        text = f"{leakage.unread} files of memory cannot be read, so nothing is proven."
        parts = [element("p", element("b", "Leakage: "), text)]
    else:
        return Html()
    return element("section", *parts, class_="note error", id="leaks", role="alert")


def _arms(summary: RunSummary) -> Html:
    if not summary.arms:
        return element("p", "No trial is on disk yet.", class_="quiet")
    columns = ["arm", "score", "95% CI", "right", "row F1", "ran", "ended", "seconds", "tokens"]
    if any(arm.dollars is not None for arm in summary.arms):
        columns.append("dollars")
    table = arm_table(summary, columns)
    rows: list[list[object]] = []
    for arm, cells in zip(summary.arms, table.rows, strict=True):
        row: list[object] = [typeset(cell) for cell in cells]
        row[0] = _trials_link(arm.arm, arm=arm.arm)
        row[1] = typeset(number(arm.mean.rate) if arm.metric == "f1" else share(arm.mean.rate))
        row[2] = _interval(arm.mean)
        row[6] = element("span", cells[6], class_="wrapped")
        rows.append(row)
    methods = sorted({arm.mean.method for arm in summary.arms if arm.mean.method})
    note = "Seconds and tokens: median, and in brackets the 95th percentile."
    note += f" Intervals: {'; '.join(methods)}." if methods else ""
    headers = [_METRIC_NAMES.get(head, head) for head in table.headers]
    return joined([html_table(headers, rows, wide=True), element("p", note, class_="quiet")])


def _trials_link(text: object, **query: str) -> Html:
    return element("a", text, href=f"#trials?{urlencode(query)}")


def _interval(mean: Interval) -> Html | str:
    """Return an interval in words and drawn on a line from 0 to 1."""
    if not all(math.isfinite(v) for v in (mean.rate, mean.low, mean.high)):
        return "none"
    rate, low, high = (f"{5 + v * 140:.1f}" for v in (mean.rate, mean.low, mean.high))
    bar = element(
        "svg",
        element("line", x1=5, x2=145, y1=7, y2=7, stroke="currentColor", opacity=0.18),
        element("line", x1=low, x2=high, y1=7, y2=7, stroke="var(--figure-1)",
                stroke_width=3, stroke_linecap="round", opacity=0.55),
        element("circle", cx=rate, cy=7, r=4.5, fill="var(--figure-1)"),
        viewBox="0 0 150 14", class_="interval", aria_hidden="true",
    )  # fmt: skip
    return joined([bar, element("small", f"{share(mean.low)} to {share(mean.high)}")])


def _learning(summary: RunSummary) -> list[Html]:
    parts: list[Html] = []
    if summary.online:
        notes = (
            "Practice: the bank was still growing.",
            *(f"{found.sentence()}." for found in summary.online.comparisons),
        )
        parts += html_section(stream_table(summary.online), *notes)
        parts += html_section(stream_judge_table(summary.online))
    return [
        *parts,
        *html_section(use_table(summary.memory), left=3),
        *html_section(bank_table(summary.memory), wide=True),
        *html_section(learning_table(summary.memory)),
        *html_section(rejected_table(summary.memory), left=2),
    ]


def _not_counted(summary: RunSummary, damaged: Sequence[Damaged]) -> Html:
    def line(head: str, *rest: object, **attributes: object) -> Html:
        return element("li", element("b", f"{head}: "), *rest, **attributes)

    parts = []
    if errors := sum(arm.errors for arm in summary.arms):
        cases = "; ".join(
            f"{arm.arm} {share(arm.worst_case)} to {share(arm.best_case)}"
            for arm in summary.arms
            if arm.errors
        )
        text = f". These are not failures of the agents. If all had been wrong, or right: {cases}."
        link = _trials_link(counted(errors, "trial"), outcome="error")
        parts.append(line("Infrastructure errors", link, text))
    if defects := sum(arm.defective for arm in summary.arms):
        link = _trials_link(counted(defects, "trial"), outcome="defect")
        parts.append(line("Defective gold queries", link, ". Their tasks have no right answer."))
    online = summary.online
    if online is not None and online.errors + online.defective:
        text = (
            f"{counted(online.errors, 'infrastructure error')}, "
            f"{counted(online.defective, 'trial')} with a defective gold query. "
            "Nothing was learned from them."
        )
        parts.append(line("In learning streams", text))
    if damaged:
        text = (
            f"{len(damaged)} cannot be read and {'is' if len(damaged) == 1 else 'are'} not in this "
            "page. Running the experiment again sets them aside and repeats their trials."
        )
        files = (element("li", element("code", d.path), f" {d.reason}") for d in damaged)
        parts.append(line("Damaged files", text, element("ul", joined(files)), id="damaged"))
    if not parts:
        return element("p", "Nothing: every trial on disk is judged and counts.", class_="quiet")
    return element("ul", joined(parts), class_="plain")


def _made(manifest: Mapping[str, Any], experiment: Mapping[str, Any]) -> Html:
    hashes: Mapping[str, Any] = manifest.get("hashes") or {}
    stores = " · ".join(str(hashes[k]) for k in ("corpus", "store") if k in hashes)
    facts: list[tuple[str, str]] = [
        ("fingerprint", str(manifest.get("fingerprint", ""))),
        ("corpus and store", stores),
        ("versions", _pairs(manifest.get("versions"))),
        ("machine", _pairs(manifest.get("machine"))),
        ("budget", _pairs(experiment.get("budget"))),
        ("seeds", ", ".join(str(s) for s in experiment.get("seeds") or ())),
        ("mode", str(experiment.get("mode") or "")),
    ]
    models: Mapping[str, Any] = hashes.get("models") or {}
    facts += [(f"model {name}", _pairs(print_)) for name, print_ in models.items()]
    for arm in experiment.get("arms") or ():
        settings = {key: value for key, value in arm.items() if key != "name"}
        facts.append((f"arm {arm.get('name')}", _pairs(settings)))
    rows = (element("div", element("dt", k), element("dd", v)) for k, v in facts if v)
    raw = json.dumps(manifest, indent=1, ensure_ascii=False, default=str)
    details = element(
        "details",
        element("summary", "The complete manifest"),
        element("pre", raw, class_="text", tabindex="0"),
        class_="folded",
    )
    return joined([element("dl", joined(rows), class_="facts"), details])


def _pairs(data: object) -> str:
    if not isinstance(data, Mapping):
        return str(data or "")
    kept = {k: v for k, v in data.items() if v not in (None, [], {}, "")}
    return " · ".join(
        f"{k} {json.dumps(v, ensure_ascii=False) if isinstance(v, (list, dict)) else v}"
        for k, v in kept.items()
    )
