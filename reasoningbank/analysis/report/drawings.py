"""The run's figures in the page: inline SVG in the page's own colours."""

from __future__ import annotations

from reasoningbank.analysis.figures import FIGURES, svg
from reasoningbank.analysis.frames import load
from reasoningbank.analysis.report.markup import Html, element, joined, plain
from reasoningbank.experiment import RunFolder

__all__ = ["figures_view"]


def figures_view(folder: RunFolder) -> Html:
    """Return every figure that the records can fill, with its caption; nothing without any."""
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
    return element(
        "section",
        element("h1", "Figures", tabindex="-1"),
        joined(shown),
        class_="view",
        id="view-figures",
        hidden=True,
    )
