"""The page of a learning run: leaks first, streams apart, the bank, what was filtered out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from learned_run import item, item_of, records, rollout, shown, trial, write

from reasoningbank.analysis.report import Report, write_report
from reasoningbank.experiment import RunFolder
from reasoningbank.trajectory import Event, Trajectory

Visit = Callable[..., Any]

SAMPLED = "#trial/learned/h0/0"


@pytest.fixture(scope="module")
def learning_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    others = (rollout(1, False), rollout(2, True, error="cut off"), rollout(3, False, verdict=None,
              sparql=None, trajectory=Trajectory().to_json()))  # fmt: skip
    made = [
        replace(one, rollouts=others) if (one.key.task, one.key.seed) == ("h0", 0)
        and one.key.arm == "learned" else one
        for one in records()
    ]  # fmt: skip
    folder = write(tmp_path_factory.mktemp("learned") / "run", made)
    final = folder.path / "memory" / "b14.jsonl"
    items = [json.loads(line) for line in final.read_text().splitlines()]
    more = {"task": "s3", "trial": "learned/s3.1", "judge": "lm:local"}
    items[0] |= {"evidence": [more], "counters": {"retrieved": 9, "helped": 3, "hurt": 2}}
    final.write_text("\n".join(json.dumps(one) for one in items), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def learned(learning_run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report(learning_run, tmp_path_factory.mktemp("page") / "report.html")


def test_the_summary_keeps_practice_and_proof_apart(visit: Visit, learned: Report) -> None:
    page = visit(of=learned)
    text = page.inner_text("#view-summary")
    assert "Over 8 tasks, learned has 83% and none 12%" in text
    assert "1 of 2 pre-registered pairs are resolved" in text
    assert "LEARNING STREAMS" in text.upper()
    assert "(not part of any comparison above)" in text
    assert "random of learned" in text
    assert "unknown-class" in text
    assert "Judges of the streams' attempts against the execution judge" in text
    assert page.locator("#leaks").count() == 0
    assert "no leak." in page.inner_text("#leakage")


def test_a_leak_stands_before_every_number(tmp_path: Path, visit: Visit) -> None:
    bad = item("bad", "h3")
    leaky = trial("learned", "h3", 1, True, memory="b14", trajectory=shown(bad))
    kept = [one for one in records() if one.key != leaky.key]
    report = write_report(write(tmp_path / "run", [*kept, leaky]), tmp_path / "report.html")
    page = visit(of=report)
    above = page.locator("#view-summary > *").nth(2)
    assert above.get_attribute("id") == "leaks"
    assert "learned/h3.1: own task, item bad (h3)" in above.inner_text()


def test_the_bank_shows_what_became_of_an_item_in_each_stream(
    visit: Visit, learned: Report
) -> None:
    page = visit("#memory/i1", of=learned)
    page.wait_for_selector("#item-i1")
    text = page.inner_text("#item-i1")
    # In the first order it was met second and stayed; in the third it came last and was replaced.
    assert "learned · 0, step 2: active" in text
    assert "learned · 2, step 4: superseded" in text
    assert "retrieved 9, helped 3, hurt 2" in text
    assert "written by rules" in text
    fold = page.locator("#item-i1 details", has_text="and 1 more experience")
    fold.locator("summary").click()
    fold.locator("a", has_text="learned/s3.1").click()
    page.wait_for_selector(".verdict")
    assert page.evaluate("location.hash") == "#trial/learned/s3/1"


def test_an_item_leads_to_what_took_its_place(visit: Visit, learned: Report) -> None:
    page = visit("#memory/i1", of=learned)
    page.locator("#item-i1 .places a").first.click()
    page.wait_for_selector("#item-i2.flash")


@pytest.mark.parametrize(
    ("chosen", "n"),
    [
        ({"status": "superseded"}, 3),
        ({"place": "learned · 1", "status": "active"}, 2),
        ({"source": "failure"}, 0),
        ({}, 4),
    ],
)
def test_the_bank_can_be_narrowed(
    visit: Visit, learned: Report, chosen: dict[str, str], n: int
) -> None:
    page = visit("#memory", of=learned)
    for name, value in chosen.items():
        if name == "source":
            # No item began as a failure; there is no such choice.
            assert page.locator(f"#memory-source option[value={value}]").count() == 0
            return
        page.select_option(f"#memory-{name}", value)
    assert page.locator("#memory-list .item").count() == n


def test_the_reader_shows_what_was_filtered_out_and_leads_to_the_bank(
    visit: Visit, learned: Report
) -> None:
    page = visit("#trial/learned/s2/0", of=learned)
    page.wait_for_selector(".event.memory")
    memory = page.locator(".event.memory")
    fold = memory.locator("details", has_text="removed by the leakage filter: 1 item")
    fold.locator("summary").click()
    # What is folded is written when it is opened.
    fold.get_by_text("own-task").wait_for()
    memory.locator(".item a").first.click()
    page.wait_for_selector("#item-i0")


def test_what_was_found_and_not_shown_is_reported(tmp_path: Path, visit: Visit) -> None:
    full = shown(item_of("s1"))
    (event, *rest) = full.events
    data = {**event.data, "skipped": [{"id": "i9", "reason": "no room"}], "at_random": True}
    drawn = replace(full, events=(Event(0, event.kind, 0.0, 0.0, data), *rest))
    made = [trial("random", "h0", 0, False, memory="b04", trajectory=drawn)]
    report = write_report(write(tmp_path / "run", made), tmp_path / "report.html")
    page = visit("#trial/random/h0/0", of=report)
    page.wait_for_selector(".event.memory")
    text = page.inner_text(".event.memory")
    assert "drawn at random" in text
    assert "found, and not shown: 1 item" in text


def test_the_other_attempts_of_a_trial_are_shown(visit: Visit, learned: Report) -> None:
    page = visit(SAMPLED, of=learned)
    page.wait_for_selector(".rollout")
    shown_ones = page.locator(".rollout")
    assert shown_ones.count() == 3
    text = shown_ones.nth(0).inner_text()
    for said in ("Attempt 2", "rows differ", "result shared by 2", "LIMIT 1"):
        assert said in text
    assert "right" in shown_ones.nth(1).inner_text()
    assert "cut off" in shown_ones.nth(1).inner_text()
    assert "no query" in shown_ones.nth(2).inner_text()
    fold = shown_ones.nth(0).locator("details", has_text="what was done in this attempt")
    fold.locator("summary").first.click()
    fold.locator(".code-event").wait_for()
    assert "attempt 1 attempt 1" in fold.inner_text()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((n) => n.id)")
    assert len(ids) == len(set(ids))


def test_matrix_and_list_keep_the_parts_apart(visit: Visit, learned: Report) -> None:
    page = visit("#matrix", of=learned)
    assert page.locator("#matrix-body tr").count() == 8
    assert "20/24" in page.inner_text("#matrix-head")
    page.select_option("#matrix-part", "stream")
    assert page.locator("#matrix-body tr").count() == 4
    assert "7/12" in page.inner_text("#matrix-head")
    page.locator("#matrix-head a", has_text="learned").click()
    page.wait_for_selector("#rows .row")
    assert page.evaluate("location.hash") == "#trials?arm=learned&part=stream"
    assert "12 of 56 trials · 7 right of 12 counted" in page.inner_text("#found")
    page = visit("#trials", of=learned)
    found = page.inner_text("#found")
    assert "held out: 23 right of 40 counted" in found
    assert "stream: 9 right of 16 counted" in found


def test_a_page_without_streams_has_no_such_choice(visit: Visit) -> None:
    page = visit("#matrix")
    assert not page.is_visible("#matrix-part")
    assert page.locator("#filter-part").count() == 0
