"""A long run: what its records cost to start with, look at, load, report and compare.

The run is real in its first trials; the others are copies of their records and of an archived
run's under other keys. Each command runs in a process of its own, as a user runs it, and its
processor time and peak memory are what the kernel counted, engines included.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Row
from benchmarks.turns import PACK
from reasoningbank.experiment import RunFolder, load_experiment, run_experiment
from reasoningbank.experiment.plan import plan_run

__all__ = ["long_runs", "made_run", "spent"]

ARMS = ("first", "second")
#: Records of `direct`, copied under other keys.
SOURCE = Path(__file__).resolve().parents[1] / "experiments" / "results" / "uniprot_baseline"
_LOADS = "import sys; from reasoningbank import load; load(sys.argv[1])"
_PARSES = (
    "import json, pathlib, sys\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('trials/*/*.json'): json.loads(path.read_bytes())"
)


#: Between us and the command, since a child's peak begins with what its parent held.
_WATCHES = (
    "import json, resource, subprocess, sys\n"
    "status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
    "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
    "print(json.dumps([status, used.ru_utime + used.ru_stime, used.ru_maxrss]))"
)


def long_runs(trials: int) -> list[Row]:
    """Measure each command on a run of so many trials, beside parsing each record once."""
    with tempfile.TemporaryDirectory(prefix="long-run-") as name:
        experiment, folder, lost = made_run(Path(name), trials)
        for path in lost:
            path.unlink()
        module = [sys.executable, "-m", "reasoningbank"]
        run = str(folder)
        jobs = {
            "resume, three trials missing": [*module, "run", str(experiment), "--out", run],
            "status": [*module, "status", run],
            "load into pandas": [sys.executable, "-c", _LOADS, run],
            "report": [*module, "report", run],
            "compare": [*module, "compare", run, run, "--arm", ARMS[0], "--with", ARMS[1]],
        }
        other = spent([sys.executable, "-c", _PARSES, run])
        rows = []
        for what, command in jobs.items():
            ours = spent(command)
            for unit, mine, theirs in zip(("s of processor", "MB"), ours, other, strict=True):
                than = "parsing each record once"
                rows.append(Row(f"{trials:,} trials: {what}", unit, mine, theirs, than))
        missing = [path for path in lost if not path.exists()]
        assert not missing, f"not resumed: {missing}"
        size = (folder / "report.html").stat().st_size / 1e6
        records = sum(path.stat().st_size for path in folder.rglob("trials/*/*.json")) / 1e6
        rows.append(Row(f"{trials:,} trials: the page", "MB", size, records, "the records"))
        return rows


def made_run(home: Path, trials: int) -> tuple[Path, Path, list[Path]]:
    """Make a run of so many trials.

    Returns:
        Its experiment, its folder, and the three trials that really ran.
    """
    first = _experiment(home, 1)
    tasks = len(plan_run(load_experiment(first)).tasks)
    experiment = _experiment(home, -(-trials // (len(ARMS) * tasks)))
    loaded, folder = load_experiment(experiment), RunFolder(home / "run")
    jobs = plan_run(loaded).jobs
    run_experiment(loaded, folder, limit=1, only=ARMS[:1])
    real = [folder.file(job.key.path) for job in jobs if folder.exists(job.key.path)][:3]
    copied = itertools.cycle(
        trial.to_json() for trial in RunFolder(SOURCE).trials() if trial.key.arm == "direct"
    )
    for job, data in zip(jobs, copied, strict=False):
        path = folder.file(job.key.path)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            key = {"arm": job.key.arm, "task": job.key.task, "seed": job.key.seed}
            path.write_text(json.dumps({**data, "key": key}, indent=1), encoding="utf-8")
    return experiment, folder.path, real


def spent(command: Sequence[str]) -> tuple[float, float]:
    """Run a command and return its processor seconds and its peak memory in megabytes."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHES, *command], check=True, capture_output=True, text=True
    )
    status, processor, peak = json.loads(done.stdout)
    # A run of copied records shows no proof against leakage, which ends with status 1.
    if status not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(done.stderr)
    return processor, peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def _experiment(home: Path, seeds: int) -> Path:
    path = home / "long.toml"
    arms = "".join(f'[[arms]]\nname = "{arm}"\nagent = "oracle"\n' for arm in ARMS)
    path.write_text(
        f'name = "long"\npack = "{PACK}"\nrepeats = {seeds}\ncomparison = {list(ARMS)}\n'
        f'[tasks]\nsplit = "dev"\nsample = 50\n{arms}',
        encoding="utf-8",
    )
    return path


if __name__ == "__main__":
    from benchmarks.measure import table

    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_runs", description=__doc__)
    parser.add_argument("trials", type=int, nargs="?", default=2_000)
    print(table(long_runs(parser.parse_args().trials)))
