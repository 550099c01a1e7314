"""The benchmarks run, and their numbers stand in the table the right way round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_a_benchmark_runs_and_prints_a_table() -> None:
    done = benchmarks("--quick", "--only", "slices", "--only", "results")
    assert done.returncode == 0, done.stderr
    head, rule, *rows = done.stdout.splitlines()
    assert head.startswith("| what | unit | reasoningbank | instead | ratio |")
    assert rule.count("---") == 6
    assert len(rows) == 2 + 7
    numbers = {row.split("|")[1].strip(): float(row.split("|")[5].replace(",", "")) for row in rows}
    assert numbers["20,000 rows: characters that reach a model, beside 20 of them"] > 2
    assert numbers["20,000 rows: characters that reach a model"] > 1_000
    assert numbers["20,000 rows: peak memory above the start"] > 1


@pytest.mark.sandbox
def test_a_trial_beside_the_bare_loop() -> None:
    done = benchmarks("--quick", "--only", "overhead")
    assert done.returncode == 0, done.stderr
    _, _, *rows = done.stdout.splitlines()
    assert len(rows) == 4
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert all(what.startswith("a trial of 4 turns of 100 ms: ") for what, *_ in cells)
    recorded, from_nothing, judged = (float(row[2]) for row in cells[:3])
    # To two decimals, which a busy machine makes equal.
    assert 0.4 < recorded == from_nothing <= judged
    assert all(float(row[3].replace(",", "")) > 0 for row in cells)


def test_a_long_run_is_resumed_looked_at_and_reported() -> None:
    done = benchmarks("--quick", "--only", "long_runs")
    assert done.returncode == 0, done.stderr
    _, _, *rows = done.stdout.splitlines()
    assert len(rows) == 11
    assert all(float(row.split("|")[3].replace(",", "")) > 0 for row in rows)


def test_the_replayed_model_says_what_the_script_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.model import reply_to
    from benchmarks.turns import TURNS, some_tasks, turns_of

    task, other = some_tasks(2)
    script = turns_of([task, other])
    assert all(len(replies) == TURNS for replies in script.values())
    asked = f"question: {task.query}\n[[ ## iteration ## ]]\n2/6"
    assert reply_to([{"content": other.query}, {"content": asked}], script) == script[task.query][1]
    with pytest.raises(LookupError, match="no turn"):
        reply_to([{"content": "extract"}], script)


def test_an_unknown_benchmark_is_reported() -> None:
    done = benchmarks("--only", "nothing")
    assert done.returncode == 2
    assert "invalid choice: 'nothing'" in done.stderr


@pytest.mark.parametrize(("unit", "ratio"), [("s", 5.0), ("calls/s", 0.2)])
def test_a_ratio_above_one_is_good_for_times_and_for_rates(
    unit: str, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.measure import Row

    assert Row("x", unit, 2.0, 10.0, "y").ratio == pytest.approx(ratio)
