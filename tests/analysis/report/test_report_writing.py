"""Writing the page: nothing breaks it, nothing is held in memory, nothing is lost or kept twice."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.analysis import summarise
from reasoningbank.analysis.report import (
    PayloadPool,
    Report,
    TrialIndex,
    chunk,
    encode,
    environment,
    overview,
    write_report,
)
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.storage import write_atomically

from .handmade import HOSTILE, MANIFEST, record, records, trajectory, verdict

RESULTS = Path(__file__).resolve().parents[3] / "experiments" / "results"


def decode(text: str) -> Any:
    """Read what the page keeps."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


class Page(HTMLParser):
    """What a browser finds in a page: scripts that run, and parts by their id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.run: list[str] = []
        self.parts: dict[str, str] = {}
        self.addresses: list[str] = []
        self.policy = ""
        self._into: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [str(given[k]) for k in ("src", "href", "action") if given.get(k)]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(given["content"])
        self._into = (given.get("id") or "") if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._into == "":
            self.run.append(data)
        elif self._into is not None:
            self.parts[self._into] = self.parts.get(self._into, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._into = None


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    """The page as a browser reads it."""
    return Page(report.path.read_text("utf-8"))


def test_only_its_own_two_scripts_run_and_the_policy_knows_them(page: Page) -> None:
    assert len(page.run) == 2
    for script in page.run:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in page.policy


def test_it_names_no_address_outside_itself(page: Page) -> None:
    assert {a for a in page.addresses if not a.startswith("#")} == {"data:,"}


def test_hostile_text_stays_text(report: Report, page: Page) -> None:
    html = report.path.read_text("utf-8")
    assert "window.hacked" not in re.sub(r"<script type=.*?</script>", "", html)
    assert "First against second &amp; &lt;both&gt;" in html


def test_a_trial_is_whole_in_the_page(page: Page) -> None:
    expected = {r.key: r for r in records()}
    index = decode(page.parts["index"])
    assert len(index["trials"]["arm"]) == len(expected) == 8
    blocks = [decode(v) for k, v in page.parts.items() if k.startswith("payloads-")]
    for number in range(8):
        whole = decode(page.parts[f"trial-{number}"])
        arm = index["trials"]["arm"][number]
        task = index["trials"]["task"][number]
        seed = index["trials"]["seed"][number]
        was = next(r for k, r in expected.items() if (k.arm, k.task, k.seed) == (arm, task, seed))
        assert (whole["gold"], whole["sparql"], whole["error"]) == (was.gold, was.sparql, was.error)
        assert whole["verdict"] == was.verdict
        texts = {k: blocks[block][at] for k, (block, at) in whole["payloads"].items()}
        assert texts == was.trajectory.payloads
        assert whole["events"] == was.to_json()["trajectory"]["events"]


def test_halves_of_surrogates_and_what_json_lacks_survive() -> None:
    data = {"text": HOSTILE, "numbers": [float("nan"), float("inf"), 1.5]}
    text = encode(data)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)
    assert decode(text) == {"text": HOSTILE, "numbers": [None, None, 1.5]}
    assert encode(data) == text


def test_a_text_of_many_trials_is_kept_once() -> None:
    written: list[str] = []
    pool = PayloadPool(written.append, block_chars=1000)
    shared = "You write SPARQL. " * 50
    places = [(pool.place(shared), pool.place(f"{n} " * 60)) for n in range(20)]
    pool.flush()
    assert len({one for one, _ in places}) == 1
    assert len({other for _, other in places}) == 20
    blocks = [decode(element.split(">")[1].split("<")[0]) for element in written]
    assert sum(text == shared for block in blocks for text in block) == 1
    block, at = places[7][1]
    assert blocks[block][at] == "7 " * 60


def test_different_texts_have_different_places() -> None:
    pool = PayloadPool(lambda element: None)
    assert pool.place("one") != pool.place("another")


def test_the_same_records_give_the_same_page(
    run: RunFolder, report: Report, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        write_report(run, tmp_path / "experiment.toml")
    assert caught.value.code == "not-a-page"
    again = write_report(run, tmp_path / "again.html")
    assert again.path.read_bytes() == report.path.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.html"]


def test_damaged_files_are_distinguished_from_errors(report: Report) -> None:
    html = report.path.read_text("utf-8")
    assert [path.as_posix() for path in report.damaged] == ["trials/first/d_task.0.json"]
    assert "trials/first/d_task.0.json" in html
    assert "Infrastructure errors and bugs: " in html
    assert 'href="#trials?outcome=error">1 trial</a>' in html
    assert 'href="#trials?outcome=defect">1 trial</a>' in html


def test_a_damaged_memory_snapshot_is_reported_and_loses_nothing_else(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest(MANIFEST)
    folder.write(record("first", "a_task", trajectory=trajectory(memory=True)))
    (folder.path / "memory").mkdir()
    (folder.path / "memory" / "s1.jsonl").write_text("{not json", encoding="utf-8")
    report = write_report(folder, tmp_path / "report.html")
    assert [path.as_posix() for path in report.damaged] == ["memory/s1.jsonl"]
    assert report.trials == 1
    assert "memory/s1.jsonl" in report.path.read_text("utf-8")


def test_a_page_holds_a_part_of_many_trials_whole_and_parses_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest(MANIFEST)
    for arm in ("first", "second"):
        for task in range(40):
            folder.write(record(arm, f"task{task}"))
    parsed: list[str] = []
    real = RunFolder.trial
    monkeypatch.setattr(RunFolder, "trial", lambda s, n: parsed.append(n) or real(s, n))
    report = write_report(folder, tmp_path / "report.html", most=20)
    assert sorted(parsed) == folder.trial_names()
    html = report.path.read_text("utf-8")
    page = Page(html)
    columns = decode(page.parts["index"])["trials"]
    whole = [int(name[6:]) for name in page.parts if name.startswith("trial-")]
    assert len(columns["arm"]) == report.trials == 80
    assert 0 < len(whole) == report.whole < 40
    assert f"{report.whole} of them whole in this page" in html
    by_arm = [{columns["task"][n] for n in whole if columns["arm"][n] == arm}
              for arm in ("first", "second")]  # fmt: skip
    assert by_arm[0] == by_arm[1]
    assert write_report(folder, tmp_path / "all.html", most=80).whole == 80


def test_a_run_without_trials_has_a_page(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest({"experiment": {}})
    report = write_report(folder, tmp_path / "report.html")
    assert report.trials == 0
    assert "No trial is on disk yet." in report.path.read_text("utf-8")


#: What records did not hold at first.
SINCE = {"gold", "evidence", "judgements", "judge_seconds", "tries", "wasted", "step", "memory"}


@pytest.mark.parametrize("name", ["uniprot_floor", "uniprot_tools"])
def test_old_records_are_shown(name: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest(RunFolder(RESULTS / name).manifest or {})
    for trial in RunFolder(RESULTS / name).trials():
        old = {k: v for k, v in trial.to_json().items() if k not in SINCE}
        write_atomically(folder.path / trial.key.path, old)
    report = write_report(folder, tmp_path / "report.html")
    page = Page(report.path.read_text("utf-8"))
    assert report.trials == sum(1 for _ in folder.trials()) > 0
    whole = decode(page.parts["trial-0"])
    assert (whole["gold"], whole["evidence"]) == ("", {})


def test_a_folder_without_a_run_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        write_report(RunFolder(tmp_path), tmp_path / "report.html")


def test_a_page_that_cannot_be_written_is_reported_and_the_old_one_stays(
    run: RunFolder, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot be written"):
        write_report(run, tmp_path / "file" / "report.html")
    assert (tmp_path / "file").read_text("utf-8") == "mine"


def test_the_index_tells_outcomes_apart() -> None:
    index = TrialIndex(["second"])
    for made in records():
        index.add(made)
    data = index.to_json()
    assert sorted(data["trials"]["outcome"]) == ["defect", "error", *["right"] * 2, *["wrong"] * 4]
    assert data["arms"] == ["second", "first"]
    assert sorted(data["trials"]["items"]) == [[]] * 7 + [["m1"]]


@pytest.mark.parametrize(
    ("claims", "headline"),
    [
        ([], "a is better."),
        ([("a", "d")], "2 of 2 pre-registered pairs are resolved in favour of the first arm."),
        ([("a", "c"), ("a", "d")], "2 of 3 pre-registered pairs are resolved in favour of the first"
         " arm; a claim that rests on all of them does not hold."),
        ([("a", "missing")], "1 of 2 pre-registered pairs are resolved in favour of the first arm;"
         " a claim that rests on all of them does not hold."),
    ],
)  # fmt: skip
def test_the_headline_says_no_more_than_all_pairs_show(
    claims: list[tuple[str, str]], headline: str
) -> None:
    trials = [
        record(arm, f"task{n}", verdict=verdict(right))
        for arm, right in (("a", True), ("b", False), ("c", True), ("d", False))
        for n in range(10)
    ]
    summary = summarise(trials, comparison=("a", "b"), claims=claims)
    template = environment().get_template("summary.html")
    html = template.render(**overview("Trees", {}, summary, [], 40))
    assert f'<p class="said"><b>{headline}</b> Over 10 tasks' in html


@pytest.mark.parametrize("text", [HOSTILE, "a\x00b", "\ud800", "<&>\"'", "</title>", "\ufffe"])
def test_static_html_holds_any_text(text: str) -> None:
    template = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    html = template.render(text=text)
    html.encode("utf-8")
    found: list[tuple[str, Any]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, attrs))

        def handle_data(self, data: str) -> None:
            found.append(("text", data))

    reader = Reader(convert_charrefs=True)
    reader.feed(html)
    reader.close()
    expected = re.sub("[\x00\ud800-\udfff\ufffe]", "\ufffd", text)
    assert found == [("p", [("title", expected)]), ("text", expected)]


def test_a_chunk_cannot_be_ended_from_within() -> None:
    assert chunk("x", "</script>").count("</script>") == 1
