"""The page in a real browser: what a reader does with it, by mouse, keyboard, link and phone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reasoningbank.analysis.report import Report, write_report
from reasoningbank.experiment import RunFolder

from .handmade import HOSTILE, many_records

Visit = Callable[..., Any]

PLAIN = "#trial/second/a_task/0"
#: A trial whose texts are hostile, and whose task's name is odd.
ODD = "#trial/first/b%2F%20odd%3Ftask%231/0"


def rows(page: Any) -> list[str]:
    """Return the labels of the rows that are shown."""
    return [row.get_attribute("aria-label") for row in page.query_selector_all("#rows .row")]


def until(page: Any, expression: str) -> None:
    """Wait until an expression holds; the page's own policy forbids the browser to poll it."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def test_the_stated_comparison_is_first_and_needs_no_script(report: Report, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.path.as_uri())
    card = page.locator("#view-summary > *").nth(2)
    assert card.get_attribute("id") == "comparison"
    assert "Pre-registered: first against second" in card.inner_text()
    assert page.locator("#figure-arms .drawing:not(.narrow) svg").count() == 1
    context.close()


def test_filters_and_search_narrow_the_list_and_stand_in_the_address(visit: Visit) -> None:
    page = visit("#trials")
    assert len(rows(page)) == 8
    page.select_option("#filter-arm", "second")
    page.select_option("#filter-outcome", "wrong")
    assert len(rows(page)) == 3
    page.fill("#search", "no query")
    assert [label.split(":")[0] for label in rows(page)] == ["b/ odd?task#1, second, seed 0"]
    assert page.evaluate("location.hash") == "#trials?arm=second&outcome=wrong&q=no+query"
    page.click("#clear")
    assert len(rows(page)) == 8
    assert page.input_value("#search") == ""
    page.fill("#search", "nothing has these words")
    assert page.is_visible("#none")


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ("status=exhausted", 1),
        ("complexity=complex", 2),
        ("form=ASK", 2),
        ("outcome=error", 1),
        ("outcome=defect", 1),
        ("strict=no", 6),
        ("verdict=no_query", 1),
        ("task=a_task", 4),
        ("memory=m1", 1),
        ("q=UNREACHABLE", 1),
        ("q=tall+rdfs:label+a_task", 4),
        ("arm=nobody", 0),
    ],
)
def test_a_link_to_filters_shows_what_they_find(visit: Visit, query: str, n: int) -> None:
    page = visit(f"#trials?{query}")
    assert len(rows(page)) == n


def test_a_deep_link_opens_a_trial_with_all_that_it_holds(visit: Visit) -> None:
    page = visit(PLAIN)
    page.wait_for_selector(".turns")
    text = page.inner_text("#view-trial")
    for said in (
        "How tall is each tree of a_task?", "2 of 3 rows missing", "lm:test says right",
        "differs from execution", "Look at one instance first", "sparql_peek",
        "unknown handle 'results_7'", "the reply could not be parsed", "Submits",
        "2 returned, 3 in the gold", "examples oaks (0.95), pines (0.5)", "patterns HEIGHT 0.98",
    ):  # fmt: skip
        assert said in text
    missing = page.locator(".evidence .side").nth(0)
    assert "2 missing" in missing.inner_text()
    assert missing.locator("tr.differs").count() == 2
    surplus = page.locator(".evidence .side").nth(1)
    assert "moss" in surplus.locator("tr.differs").inner_text()
    assert page.title().startswith("How tall is each tree of a_task?")


def test_a_step_shows_a_confidence_only_where_it_was_measured(visit: Visit) -> None:
    page = visit(PLAIN)
    page.wait_for_selector(".turns")
    steps = page.locator(".step-event").all_text_contents()
    shown = [text for text in steps if "output" in text]
    assert ["confidence" in text for text in shown] == [False, True]


def test_a_record_without_evidence_says_so(visit: Visit) -> None:
    page = visit("#trial/second/a_task/1")
    page.wait_for_selector("#no-evidence")
    assert "made before records kept them" in page.inner_text("#no-evidence")


def test_an_unknown_trial_is_reported(visit: Visit) -> None:
    page = visit("#trial/second/no_task/0")
    assert "No such trial" in page.inner_text("#view-trial")


def test_queries_and_code_are_coloured_without_losing_a_character(visit: Visit) -> None:
    page = visit(PLAIN)
    page.wait_for_selector(".turns")
    gold = page.locator("pre.sparql").first
    assert gold.locator(".t-keyword").first.inner_text() == "SELECT"
    assert gold.locator(".t-comment").inner_text() == "# all of them"
    code = page.locator(".code-event pre.python").first
    assert code.locator(".t-query .t-variable").first.inner_text() == "?oak"
    assert code.inner_text().endswith("# a query\nprint(sparql_peek(r), 42)")


def test_prompts_are_folded_and_made_when_opened(visit: Visit) -> None:
    page = visit(PLAIN)
    page.wait_for_selector(".turns")
    fold = page.locator("details.folded", has_text="prompt, 2 messages")
    assert fold.locator(".message").count() == 0
    fold.locator("summary").click()
    fold.locator(".message").first.wait_for()
    assert "You write SPARQL." in fold.inner_text()


def test_a_handle_leads_to_where_it_was_made(visit: Visit) -> None:
    page = visit(PLAIN)
    page.wait_for_selector(".turns")
    made = page.evaluate("document.querySelector('.result .opened').closest('.result').id")
    page.locator(".arguments .handle").first.click()
    assert page.evaluate("document.activeElement.id") == made


def test_the_matrix_leads_to_trials(visit: Visit) -> None:
    page = visit("#matrix")
    assert page.locator("#matrix-body tr").count() == 3
    page.get_by_label("first, c_task, seed 0: infrastructure error").click()
    page.wait_for_selector(".verdict.error")
    assert page.evaluate("location.hash") == "#trial/first/c_task/0"


def test_a_trial_shows_the_turns_it_was_shown(visit: Visit) -> None:
    page = visit(PLAIN)
    fold = page.locator("details.folded", has_text="shown as a demonstration")
    assert "turns of first/a_task/0" in fold.inner_text()
    fold.locator("summary").click()
    # What is folded is written when it is opened.
    fold.get_by_text("=== Step 1 ===").wait_for()
    assert "1 demonstration" in page.inner_text("#view-trial")


def test_the_memory_bank_shows_where_items_come_from(visit: Visit) -> None:
    page = visit("#memory/m1")
    page.wait_for_selector("#item-m1")
    text = page.inner_text("#item-m1")
    assert "shown to 1 trial, 0 right" in text
    assert "s1: active retrieved 2, success 1, failure 1" in text
    page.select_option("#memory-source", "failure")
    assert page.locator("#memory-list .item").count() == 1
    page.select_option("#memory-source", "")
    page.fill("#memory-search", "instance first")
    page.locator("#item-m1 a", has_text="trial").first.click()
    page.wait_for_selector(".verdict.right")


def test_everything_can_be_done_by_keyboard(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("t")
    page.wait_for_selector("#rows .row")
    page.keyboard.press("j")
    page.keyboard.press("j")
    current = page.locator("#rows .row[aria-current]")
    assert current.get_attribute("id") == "row-2"
    assert page.evaluate("document.activeElement.id") == "row-2"
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_selector(".turns")
    assert page.evaluate("location.hash") == "#trial/first/a_task/1"
    page.keyboard.press("j")
    until(page, "location.hash === '#trial/second/a_task/0'")
    page.keyboard.press("Escape")
    page.wait_for_selector("#row-2[aria-current]")
    assert page.evaluate("location.hash") == "#trials"
    page.keyboard.press("/")
    until(page, "document.activeElement.id === 'search'")
    page.keyboard.type("c_task")
    assert len(rows(page)) == 2
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.evaluate("document.getElementById('help').open")
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('help').open")
    page.keyboard.press("m")
    page.wait_for_selector("#matrix-body tr")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("l")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label == "second, b/ odd?task#1, seed 0: wrong"


def test_focus_can_be_seen(visit: Visit) -> None:
    page = visit("#trials")
    page.keyboard.press("j")
    style = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(style) == "solid"


def test_what_can_be_pressed_or_filled_has_a_name(visit: Visit) -> None:
    nameless = """[...document.querySelectorAll("a[href], button, input, select")].filter(e =>
        !(e.innerText || e.textContent || "").trim() && !e.ariaLabel && !e.labels?.length
    ).map(e => e.outerHTML)"""
    for place in ("#matrix", "#trials", PLAIN, "#memory"):
        page = visit(place)
        assert page.evaluate(nameless) == []


def test_it_follows_the_systems_dark_and_can_be_turned(visit: Visit) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    page = visit(color_scheme="dark")
    dark = page.evaluate(colour)
    page.click("#light")
    light = page.evaluate(colour)
    assert sum(map(int, dark[4:-1].split(","))) < 150 < 600 < sum(map(int, light[4:-1].split(",")))
    page.reload()
    page.wait_for_selector("html.ready")
    assert page.evaluate(colour) == light


@pytest.mark.parametrize("place", ["", "#figures", "#matrix", "#trials", "#memory", PLAIN, ODD])
def test_a_phone_shows_every_view_without_scrolling_sideways(visit: Visit, place: str) -> None:
    page = visit(place, viewport={"width": 360, "height": 740}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_figures_of_a_phone_are_whole(visit: Visit) -> None:
    page = visit("#figures", viewport={"width": 360, "height": 740}, has_touch=True)
    drawn = page.locator(".figure svg:visible")
    assert drawn.count() == page.locator(".figure").count()
    inside = """[...document.querySelectorAll(".drawing.narrow svg")].every((svg) => {
        const { left, right, width } = svg.getBoundingClientRect();
        return left >= 0 && right <= innerWidth && width / svg.viewBox.baseVal.width > 1;
    })"""
    assert page.evaluate(inside)


def test_open_filters_of_a_phone_do_not_cover_what_they_find(visit: Visit) -> None:
    page = visit("#trials", viewport={"width": 360, "height": 740}, has_touch=True)
    page.click(".filter-fold summary")
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("document.querySelector('.bar').getBoundingClientRect().bottom") < 100


@pytest.mark.parametrize("name", ["summary", "figures"])
def test_the_contents_lead_to_every_part(visit: Visit, name: str) -> None:
    page = visit(f"#{name}")
    links = page.locator(f"#view-{name} .contents a")
    assert links.count() > 3
    for place in range(links.count()):
        links.nth(place).click()
        target = page.evaluate("document.querySelector(location.hash).getBoundingClientRect().top")
        assert page.is_visible(f"#view-{name}")
        assert 0 <= target < 720


def test_hostile_text_is_shown_and_never_run(visit: Visit) -> None:
    page = visit(ODD)
    page.wait_for_selector(".turns")
    for fold in page.query_selector_all("#view-trial details.folded summary"):
        fold.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    shown = page.evaluate("document.querySelector('#view-trial h1').textContent")
    assert (
        shown == HOSTILE.replace("\ud83d", "\ufffd").replace("\udc00", "\ufffd") or shown == HOSTILE
    )


def test_it_prints_all_that_the_list_found(visit: Visit) -> None:
    page = visit("#trials")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(rows(page)) == 8
    assert not page.is_visible("#filters")
    assert len(page.pdf()) > 1000


def test_the_page_may_ask_no_network(report: Report, browser: Any) -> None:
    page = browser.new_page()
    page.goto(report.path.as_uri())
    asked = page.evaluate("fetch('https://example.org/').then(() => 'reached', () => 'refused')")
    # The page's own policy refuses, before any network is tried.
    violated = """new Promise(done => {
        document.addEventListener("securitypolicyviolation", e => done(e.effectiveDirective));
        document.body.append(Object.assign(new Image(), {src: "https://example.org/a.png"}));
    })"""
    assert (asked, page.evaluate(violated)) == ("refused", "img-src")
    page.close()


def test_five_thousand_trials_stay_quick(
    visit: Visit, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("many") / "many")
    many_records(folder, 5000)
    page = visit(of=write_report(folder, folder.path / "report.html"))
    page.keyboard.press("t")
    page.wait_for_selector("#rows .row")
    assert page.inner_text("#found").startswith("5,000 trials")
    assert len(rows(page)) < 60
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_selector("#row-4999")
    assert len(rows(page)) < 60
    page.evaluate("""() => setFilter("q", "tree 2499")""")
    assert page.inner_text("#found").startswith("2 of 5,000 trials")
    page.goto(page.url.split("#")[0] + "#trial/first/task_2499/0")
    page.wait_for_selector(".turns")
