"""The comparison stated beforehand, first on the page: what is known, drawn and in words."""

from __future__ import annotations

import math

from reasoningbank.analysis.comparison import Comparison
from reasoningbank.analysis.report.markup import Html, element, joined

__all__ = ["METRIC_NAMES", "headline", "interval_bar", "number", "share"]

METRIC_NAMES = {
    "strict": "strict match",
    "lenient": "lenient match",
    "f1": "row F1",
}

#: Width and height of the drawing, in its own units.
WIDTH, HEIGHT, MARGIN = 640, 74, 14


def number(value: float, *, sign: bool = False) -> str:
    """Return a number for people, with a real minus sign; a dash for none.

    Examples:
        >>> number(-0.25), number(0.25, sign=True), number(float("nan"))
        ('−0.25', '+0.25', '–')
    """
    if not math.isfinite(value):
        return "–"
    return f"{value:{'+' if sign else ''}.2f}".replace("-", "−")


def share(value: float) -> str:
    """Return a share in per cent; a dash for none.

    Examples:
        >>> share(0.254), share(float("nan"))
        ('25 %', '–')
    """
    return f"{value:.0%}".replace("%", " %") if math.isfinite(value) else "–"


def headline(found: Comparison | None, stated: tuple[str, str] | None, metric: str) -> Html:
    """Return the card of the stated comparison, or of why there is none."""
    if found is None:
        said = (
            f"{stated[0]} against {stated[1]} was stated beforehand; no task is judged in both yet."
            if stated
            else "No comparison was stated beforehand, so this page claims no difference."
        )
        return element("section", element("p", said, class_="said"), class_="verdict-card")
    name = METRIC_NAMES.get(metric, metric)
    return element(
        "section",
        element("p", f"Stated beforehand: {found.first} against {found.second}, {name}",
                class_="eyebrow"),
        element("p", element("b", _word(found)), f" {_means(found, metric)}", class_="said"),
        _forest(found),
        _facts(found),
        class_="verdict-card",
        id="comparison",
        aria_label="The comparison stated beforehand",
    )  # fmt: skip


def _word(found: Comparison) -> str:
    if not found.resolved:
        return f"{found.verdict.capitalize()}."
    return f"{found.first if found.difference > 0 else found.second} is better."


def _means(found: Comparison, metric: str) -> str:
    first, second = found.first_mean, found.second_mean
    shown = (number(first), number(second)) if metric == "f1" else (share(first), share(second))
    tasks = "task" if found.tasks == 1 else "tasks"
    return (
        f"Over {found.tasks} {tasks}, {found.first} has {shown[0]} and {found.second} {shown[1]}: "
        f"a difference of {number(found.difference, sign=True)}."
    )


def _facts(found: Comparison) -> Html:
    interval = (
        f"{number(found.low, sign=True)} to {number(found.high, sign=True)}"
        if math.isfinite(found.low)
        else "none"
    )
    p = "none" if math.isnan(found.p) else "< 0.001" if found.p < 0.001 else f"{found.p:.3f}"
    seeds = sorted(set(found.seeds))
    facts = [
        ("95 % interval", interval),
        ("p", p),
        ("observations", f"{found.unit}s: {found.groups if found.unit == 'group' else found.tasks}"
         if found.unit != "order" else f"orders: {min(found.seeds)}"),
        ("seeds", " and ".join(str(n) for n in seeds)),
        (f"better with {found.first}", f"{found.first_better} of {found.tasks} tasks"),
        (f"better with {found.second}", f"{found.second_better} of {found.tasks} tasks"),
        ("smallest difference it could show",
         number(found.detectable) if found.detectable is not None else "none"),
        ("method", found.method),
    ]  # fmt: skip
    if found.left_out:
        facts.append(("tasks judged in one arm only, left out", str(found.left_out)))
    if found.defective:
        facts.append(("tasks with a defective gold, left out", str(found.defective)))
    if any(found.errors):
        facts.append(
            (
                f"infrastructure errors: {sum(found.errors)}; with them, worst to best",
                f"{number(found.worst_case, sign=True)} to {number(found.best_case, sign=True)}",
            )
        )
    pairs = (element("div", element("dt", k), element("dd", v)) for k, v in facts)
    return element("dl", joined(pairs), class_="tiles")


def _forest(found: Comparison) -> Html:
    """Draw the difference with its interval, and the zone in which nothing could be shown."""
    ends = [abs(v) for v in (found.low, found.high, found.difference) if math.isfinite(v)]
    most = min(1.0, math.ceil(max([*ends, found.detectable or 0.0, 0.15]) * 10 + 0.5) / 10)

    def at(value: float) -> str:
        return f"{MARGIN + (value / most + 1) / 2 * (WIDTH - 2 * MARGIN):.1f}"

    parts = []
    if found.detectable is not None:
        low, high = at(-min(most, found.detectable)), at(min(most, found.detectable))
        parts.append(
            element("rect", x=low, y=8, width=f"{float(high) - float(low):.1f}", height=34, rx=4,
                    fill="currentColor", opacity=0.05)
        )  # fmt: skip
    parts += [
        _line(at(-most), at(most), 42, opacity=0.2),
        element("line", x1=at(0), x2=at(0), y1=6, y2=46, stroke="currentColor", opacity=0.45,
                stroke_dasharray="3 3"),
    ]  # fmt: skip
    if math.isfinite(found.low):
        parts.append(_line(at(max(-most, found.low)), at(min(most, found.high)), 25, width=4))
    colour = "var(--figure-1)"
    if math.isfinite(found.difference):
        parts.append(element("circle", cx=at(found.difference), cy=25, r=7, fill=colour))
    parts += [
        element("text", f"{number(-most)}  {found.second} better", x=at(-most), y=62,
                text_anchor="start"),
        element("text", "0", x=at(0), y=62, text_anchor="middle"),
        element("text", f"{found.first} better  {number(most, sign=True)}", x=at(most), y=62,
                text_anchor="end"),
    ]  # fmt: skip
    return element(
        "svg", joined(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="forest", role="img",
        aria_label=found.sentence(),
    )  # fmt: skip


def _line(x1: str, x2: str, y: int, *, opacity: float = 1, width: float = 1) -> Html:
    stroke = "var(--figure-1)" if width > 1 else "currentColor"
    return element("line", x1=x1, x2=x2, y1=y, y2=y, stroke=stroke, opacity=opacity,
                   stroke_width=width, stroke_linecap="round")  # fmt: skip


def interval_bar(rate: float, low: float, high: float) -> Html | None:
    """Draw a rate with its interval on a line from 0 to 1; nothing where there is none."""
    if not all(math.isfinite(v) for v in (rate, low, high)):
        return None
    x = [5 + v * 140 for v in (rate, low, high)]
    return element(
        "svg",
        element("line", x1=5, x2=145, y1=7, y2=7, stroke="currentColor", opacity=0.18),
        element("line", x1=f"{x[1]:.1f}", x2=f"{x[2]:.1f}", y1=7, y2=7, stroke="var(--figure-1)",
                stroke_width=3, stroke_linecap="round", opacity=0.55),
        element("circle", cx=f"{x[0]:.1f}", cy=7, r=4.5, fill="var(--figure-1)"),
        viewBox="0 0 150 14", class_="interval", aria_hidden="true",
    )  # fmt: skip
