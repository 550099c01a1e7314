"""Inline SVG follows the page, has a text for screen readers, and shares no names with the page."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from reasoningbank.analysis import load
from reasoningbank.analysis.figures import FIGURES, Chart, svg
from reasoningbank.analysis.figures.canvas import COLOURS, INK

COMMITTED = Path(__file__).resolve().parents[3] / "experiments" / "results"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> dict[str, tuple[Chart, str]]:
    frames = load(COMMITTED / "uniprot_tools")
    charts = {n: e.draw(frames, frames.manifests["uniprot_tools"]) for n, e in FIGURES.items()}
    return {name: (chart, svg(chart)) for name, chart in charts.items() if chart is not None}


def test_text_stays_text_and_takes_the_colours_of_the_page(
    drawn: dict[str, tuple[Chart, str]],
) -> None:
    for name, (_, text) in drawn.items():
        root = ElementTree.fromstring(text)
        said = {(element.text or "").strip() for element in root.iter(f"{SVG}text")}
        assert ("lm:local" if name == "judges" else "rlm") in " ".join(said), name
        assert INK not in text
        assert "currentColor" in text
        assert "DejaVu" not in text
        for colour in COLOURS:
            assert text.count(colour) == len(re.findall(rf"var\(--figure-\d, {colour}\)", text))
    assert "var(--figure-1, " in drawn["arms"][1]


def test_a_screen_reader_finds_title_and_description(
    drawn: dict[str, tuple[Chart, str]],
) -> None:
    for chart, text in drawn.values():
        root = ElementTree.fromstring(text)
        title, description = root[0], root[1]
        assert (title.tag, title.text) == (f"{SVG}title", chart.title)
        assert (description.tag, description.text) == (f"{SVG}desc", chart.description)
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == title.get("id")
        assert root.get("aria-describedby") == description.get("id")


def test_figures_on_one_page_share_no_id_and_every_reference_is_there(
    drawn: dict[str, tuple[Chart, str]],
) -> None:
    twice = [*(text for _, text in drawn.values()), svg(drawn["arms"][0], prefix="again")]
    page = ElementTree.fromstring(f"<body>{''.join(twice)}</body>")
    ids = [element.get("id") for element in page.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    values = [value for element in page.iter() for value in element.attrib.values()]
    referred = {i for value in values for i in re.findall(r"url\(#([^)]+)\)", value)}
    referred |= {e.get("href", "")[1:] for e in page.iter(f"{SVG}use")}
    assert referred
    assert referred <= set(ids)


def test_nothing_reaches_out_of_the_figure(drawn: dict[str, tuple[Chart, str]]) -> None:
    for _, text in drawn.values():
        # A style sheet inside inline SVG would hold for the whole page.
        assert "<style" not in text
        assert "<metadata" not in text
        assert not re.findall(r"(?:href|src)=\"(?!#)", text)
        assert 'width="' not in text.split(">")[0]


def test_the_same_figure_gives_the_same_text(drawn: dict[str, tuple[Chart, str]]) -> None:
    chart, text = drawn["cost"]
    assert svg(chart) == text


def test_words_of_the_records_cannot_break_the_page() -> None:
    chart = Chart("a <b> & c", height=1)
    chart.description = "</desc><script>"
    chart.add_subplot().set_title("<script>alert(1)</script>")
    root = ElementTree.fromstring(svg(chart))
    assert root[0].text == "a <b> & c"
    assert not list(root.iter(f"{SVG}script"))


def test_any_figure_of_matplotlib_will_do() -> None:
    figure = Figure(label="plain")
    figure.subplots().plot([1, 2])
    assert ElementTree.fromstring(svg(figure))[0].text == "plain"


def test_threads_leave_the_global_settings_as_they_were(
    drawn: dict[str, tuple[Chart, str]],
) -> None:
    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(svg, [drawn[n][0] for n in ("arms", "paired", "outcomes")] * 3))
    assert texts[:3] == texts[3:6] == texts[6:]
    assert dict(mpl.rcParams) == before
