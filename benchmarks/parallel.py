"""Many trials at once: how much of what one alone takes is lost, and what it costs.

Run as a module it is one measured process:
`python -m benchmarks.parallel URL WORKERS TRIALS KIND WARM`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Row, in_own_processes
from benchmarks.model import serving
from benchmarks.trials import model_at, run_trials
from benchmarks.turns import some_tasks, turns_of

__all__ = ["parallel"]

#: Tasks that the trials take turns with.
TASKS = 16


def parallel(workers: tuple[int, ...], seconds: float, repeats: int) -> list[Row]:
    """Run trials one at a time and many at once, with a model that takes `seconds`.

    Args:
        workers: Trials at one time.
        seconds: What a call of the model takes.
        repeats: Runs of each, of which the median counts.
    """
    with serving(turns_of(some_tasks(TASKS)), seconds) as url:
        ways = {"1": [url, "1", str(TASKS), "threads", str(TASKS)]}
        for number in workers:
            trials = str(max(2 * number, TASKS) if number < 64 else number)
            ways[f"{number} warm"] = [url, str(number), trials, "threads", trials]
        ways["2 threads"] = [url, "2", str(TASKS), "threads", "0"]
        ways["2 dask"] = [url, "2", str(TASKS), "dask", "0"]
        found = in_own_processes("benchmarks.parallel", ways, repeats)
    alone = found["1"]["trial_s"]
    rows = []
    for number in workers:
        than = f"{number} times what one alone does"
        rate = found[f"{number} warm"]["rate"]
        what = f"{number} trials at once, sandboxes warm"
        rows.append(Row(what, "trials/s", rate, number / alone, than))
    rows.append(
        Row(
            "2 trials at once on Dask",
            "trials/s",
            found["2 dask"]["later_rate"],
            found["2 threads"]["later_rate"],
            "2 threads",
        )
    )
    one = found["1"]
    rows.append(
        Row(
            "a trial: processor time of the harness",
            "ms",
            1000 * one["processor_s"],
            1000 * one["sandbox_s"],
            "processor time of its sandbox",
        )
    )
    return rows


def _process(url: str, workers: int, trials: int, kind: str, warm: int) -> dict[str, float]:
    tasks = some_tasks(TASKS)
    executor = {"kind": kind, "workers": workers}
    with tempfile.TemporaryDirectory() as folder, model_at(url):
        ran = run_trials(
            Path(folder), tasks, seeds=-(-trials // len(tasks)), executor=executor, warm=warm
        )
    done = len(ran.trials)
    return {
        "trials": done,
        "rate": done / ran.wall,
        "later_rate": (done - 1) / ran.since_first,
        "trial_s": statistics.mean(ran.trials.values()),
        "processor_s": ran.processor / done,
        "sandbox_s": ran.sandboxes / done,
        "record_bytes": statistics.median(ran.record_bytes),
    }


if __name__ == "__main__":
    url, workers, trials, kind, warm = sys.argv[1:]
    print(json.dumps(_process(url, int(workers), int(trials), kind, int(warm))))
