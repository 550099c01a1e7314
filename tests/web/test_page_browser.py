"""The page in a real browser: ask, watch a run, change a bank; by mouse, keyboard and phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from analysis.report.handmade import record

from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.memory_sources import read_feedback
from reasoningbank.experiment.state import StateWriter, hold_run
from reasoningbank.memory import MemoryBank

from .conftest import EMPTY, MANIFEST, QUERY, QUESTION, Page, rewritten, written

Visit = Callable[..., Any]
PHONE = {"width": 360, "height": 740}


def until(page: Any, expression: str) -> None:
    """Wait until an expression holds; the page's own policy forbids the browser to poll it."""
    for _ in range(1_200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def ask(page: Any, question: str = QUESTION) -> None:
    """Ask by keyboard, and wait for the answer."""
    page.fill("#question", question)
    page.press("#question", "Enter")
    page.wait_for_selector(".answer .said")


def test_a_question_is_answered_step_by_step(visit: Visit, page: Page) -> None:
    page.script(written(EMPTY), written(QUERY))
    shown = visit()
    ask(shown)
    assert "t:oak" in shown.inner_text(".answer .said")
    assert shown.locator(".answer table.data tbody tr").count() == 3
    link = shown.locator(".answer table.data a", has_text="t:oak")
    assert link.get_attribute("href") == "http://e/oak"
    shown.click(".steps summary")
    steps = shown.locator(".steps li b").all_inner_texts()
    assert steps[:2] == ["detect", "retrieve"]
    assert shown.locator(".steps li pre .t-keyword").count() > 0
    assert shown.input_value(".editor textarea") == QUERY
    assert shown.locator(".editor .t-variable").count() > 0


def test_the_query_is_changed_and_run_again(visit: Visit, page: Page) -> None:
    page.script(written(QUERY))
    shown = visit()
    ask(shown)
    shown.fill(".editor textarea", f"{QUERY} LIMIT 1")
    shown.press(".editor textarea", "Control+Enter")
    until(shown, "document.querySelectorAll('.answer tbody tr').length === 1")
    assert "1 row" in shown.inner_text(".checks")
    shown.fill(".editor textarea", "SELECT ?x {")
    shown.click("text=Run it again")
    shown.wait_for_selector(".checks .against")


def test_a_follow_up_keeps_the_conversation_until_a_new_one(visit: Visit, page: Page) -> None:
    page.script(written(QUERY), rewritten("Which of them are tall?"), written(QUERY))
    shown = visit()
    assert not shown.is_visible("#afresh")
    ask(shown)
    shown.fill("#question", "And tall ones?")
    shown.press("#question", "Enter")
    shown.wait_for_selector("text=Understood as: Which of them are tall?")
    until(shown, "document.querySelectorAll('.answer .said').length === 2")
    shown.click("#afresh")
    assert not shown.is_visible("#afresh")
    page.script(written(QUERY))
    shown.fill("#question", "Which are trees?")
    shown.press("#question", "Enter")
    until(shown, "document.querySelectorAll('.answer .said').length === 3")
    assert len(page.model.asked) == 1


def test_examples_are_asked_with_a_click_and_rated(visit: Visit, page: Page) -> None:
    page.script(written(QUERY))
    shown = visit()
    shown.wait_for_selector("#examples button")
    shown.locator("#examples button").first.click()
    shown.wait_for_selector(".answer .said")
    before = len(read_feedback(page.folder / "feedback"))
    shown.click(".thumb >> nth=0")
    shown.wait_for_selector(".thumb[aria-pressed='true']")
    assert len(read_feedback(page.folder / "feedback")) == before + 1


def test_a_failure_is_one_line_and_the_next_question_is_answered(visit: Visit, page: Page) -> None:
    page.script(written(QUERY))
    shown = visit()
    shown.click("#choices summary")
    shown.fill("#lm", "no model")
    shown.fill("#question", QUESTION)
    shown.click("#send")
    assert "unknown model" in shown.inner_text(".answer .note.error")
    shown.fill("#lm", page.settings.default.lm)
    ask(shown)


def test_hostile_text_is_shown_and_never_run(visit: Visit, page: Page) -> None:
    page.script(written('SELECT ("<img src=x onerror=window.hacked=1>" AS ?x) {}'))
    shown = visit(f"/?q={'<script>window.hacked=1</script>'}")
    shown.press("#question", "Enter")
    shown.wait_for_selector(".answer .said")
    assert shown.evaluate("window.hacked") is None
    assert shown.locator("main img, main script").count() == 0


def test_a_run_is_watched_as_it_goes_on(visit: Visit, page: Page) -> None:
    folder = RunFolder(page.folder / "runs" / "live")
    folder.write_manifest(MANIFEST)
    with hold_run(folder):
        state = StateWriter(folder.path, total=2, done=0, workers=1)
        state.write()
        shown = visit("/runs")
        shown.click("a[href='/runs/live/live']")
        shown.wait_for_selector("#run-state")
        until(shown, "document.querySelector('#run-state').innerText.includes('0 of 2')")
        for number in range(2):
            trial = record("first", f"t{number}")
            state.started(trial.key)
            folder.write(trial)
            state.ended(trial.key, recorded=True)
            rows = f"document.querySelectorAll('.trial-row').length === {number + 1}"
            until(shown, rows)
        assert "running" in shown.inner_text("#run-state")
        state.write(status="finished")
        until(shown, "document.querySelector('#run-state').innerText.includes('finished')")
    assert "2 of 2" in shown.inner_text("#run-arms")
    # The report is of the same run, and has its own policy and scripts.
    shown.locator(".trial-row").first.click()
    shown.wait_for_selector(".turns")
    shown.click("text=← All runs")
    assert shown.url.endswith("/runs")


def test_two_arms_are_chosen_and_compared_down_to_a_trial(visit: Visit) -> None:
    shown = visit("/runs")
    shown.click("text=Compare runs or arms")
    shown.select_option("[name=first]", "trees/first")
    shown.select_option("[name=second]", "trees/second")
    shown.click("form >> text=Compare")
    shown.wait_for_selector(".verdict-card svg.forest")
    assert "95% CI" in shown.inner_text(".verdict-card .said")
    assert shown.input_value("[name=first]") == "trees/first"
    assert shown.locator("main tbody tr").count() == 1
    shown.locator("main tbody td a").last.click()
    shown.wait_for_selector(".turns")
    assert shown.url.endswith("/runs/trees#trial/second/a_task/0")


def test_an_item_is_found_retired_and_brought_back(visit: Visit, page: Page) -> None:
    shown = visit("/memory")
    shown.click("text=bank.sqlite")
    shown.fill("[name=q]", "kinds of trees")
    shown.press("[name=q]", "Enter")
    shown.click("text=Trees by kind >> nth=0")
    # A click before the page's script has run does nothing.
    shown.wait_for_load_state()
    assert "helped 2 times and hurt 1" in shown.inner_text("main")
    assert "direct/trees.0" in shown.inner_text("main")
    with shown.expect_navigation():
        shown.click("text=Retire this item")
    assert shown.inner_text(".chips").split()[1] == "retired"
    with MemoryBank(page.bank, readonly=True) as bank:
        assert len(bank.items()) == 1
    with shown.expect_navigation():
        shown.locator("text=Undo").first.click()
    with MemoryBank(page.bank, readonly=True) as bank:
        assert len(bank.items()) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/runs",
        "/runs/trees/live",
        "/compare?first=trees/first&second=trees/second",
        "/memory",
        "/memory/bank.sqlite",
    ],
)
def test_a_phone_shows_every_page_without_scrolling_sideways(visit: Visit, path: str) -> None:
    shown = visit(path, viewport=PHONE, has_touch=True)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_an_answer_fits_a_phone(visit: Visit, page: Page) -> None:
    page.script(written(QUERY))
    shown = visit(viewport=PHONE, has_touch=True)
    ask(shown)
    assert shown.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_it_follows_the_systems_dark_and_can_be_turned(visit: Visit) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    shown = visit(color_scheme="dark")
    dark = shown.evaluate(colour)
    shown.click("#light")
    light = shown.evaluate(colour)
    assert sum(map(int, dark[4:-1].split(","))) < 150 < 600 < sum(map(int, light[4:-1].split(",")))
    shown.reload()
    assert shown.evaluate(colour) == light


def test_all_that_can_be_pressed_is_reached_by_keyboard_and_has_a_name(
    visit: Visit, page: Page
) -> None:
    page.script(written(QUERY))
    shown = visit()
    ask(shown)
    nameless = """[...document.querySelectorAll("a[href], button, input, select, textarea")]
        .filter(e => !(e.innerText || "").trim() && !e.ariaLabel && !e.labels?.length)
        .map(e => e.outerHTML)"""
    assert shown.evaluate(nameless) == []
    shown.locator("body").click(position={"x": 2, "y": 300})
    shown.keyboard.press("/")
    assert shown.evaluate("document.activeElement.id") == "question"
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.id") == "chosen"
    assert shown.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
