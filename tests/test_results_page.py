"""`docs/results.md` shows every committed run, and what a second look found."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    sys.modules.pop("results_page", None)
    import results_page

    return results_page


def copied(run: str, to: Path, **experiment: object) -> None:
    """Copy a committed run under another name, with keys of its experiment replaced."""
    shutil.copytree(RESULTS / run, to)
    manifest = json.loads((to / "manifest.json").read_text(encoding="utf-8"))
    manifest["experiment"] |= experiment
    (to / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_every_run_is_on_the_page() -> None:
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    names = {path.name for path in RESULTS.iterdir()} - {"judge_attempts"}
    assert {name for name in names if f"`{name}`" not in text} == set()
    assert len(text.splitlines()) <= 482


def test_a_new_run_is_shown_by_level(page, tmp_path: Path) -> None:
    copied("uniprot_demo", tmp_path / "uniprot_learning", name="uniprot_learning", level="iid")
    text = page.measured_results(tmp_path)
    assert "1 pre-registered pair: 1 resolved" in text
    summary = json.loads((RESULTS / "uniprot_demo" / "summary.json").read_text("utf-8"))
    (iid,) = [r for r in summary["levels"] if (r["level"], r["arm"]) == ("iid", "learned")]
    pair = "| [uniprot_learning](#uniprot_learning) | iid | `learned` against `none` |"
    assert f"{pair} +{iid['strict'] / 6:.2f} |" in text
    low, high = iid["rate"]["low"], iid["rate"]["high"]
    assert f"{iid['strict']} of 6 ({low:.2f} to {high:.2f})" in text
    assert "What memory transfers at each level of generalization, and what of it matters." in text
    # The level of the claim has the verdict, the others stand beside it.
    (line,) = [one for one in text.splitlines() if one.startswith("- `learned`")]
    assert "iid, on 6 tasks" in line
    beside = line.partition("Beside it: ")[2]
    assert "compositional" in beside
    assert "iid" not in beside


def test_a_second_look_is_set_beside_the_first(page, tmp_path: Path) -> None:
    copied("uniprot_demo", tmp_path / "uniprot_demo")
    copied("uniprot_demo", tmp_path / "uniprot_demo_again")
    copied("liita_memory", tmp_path / "liita_memory")
    copied("liita_memory_fresh", tmp_path / "liita_memory_fresh")
    text = page.measured_results(tmp_path)
    looks = text.partition("## What was looked at again")[2].partition("## Experiments")[0]
    found = [line.strip("| ").split(" | ") for line in looks.splitlines() if line.startswith("| [")]
    verdicts = [(row[0].partition("]")[0], row[1], row[-1]) for row in found]
    assert verdicts == [
        ("[uniprot_demo_again", "`learned` against `none`", "yes"),
        ("[liita_memory_fresh", "`learned` against `none`", "no"),
        ("[liita_memory_fresh", "`learned` against `matched`", "no"),
        ("[liita_memory_fresh", "`learned` against `random`", "was not resolved"),
        ("[liita_memory_fresh", "`learned` against `begun`", "was not resolved"),
    ]


def test_further_arms_are_shown_with_their_experiment(page, tmp_path: Path) -> None:
    copied("nl2sparql", tmp_path / "nl2sparql")
    copied("nl2sparql_graph_again", tmp_path / "nl2sparql_graph_again")
    text = page.measured_results(tmp_path)
    assert text.count("\n### ") == 1
    assert "| graph (`nl2sparql_graph_again`) | 20 | 3 |" in text
