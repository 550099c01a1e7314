"""The generated part of `docs/results.md`: what each committed experiment asked and found."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from measured_results import RESULTS

from reasoningbank.analysis import (
    ArmComparison,
    ArmSummary,
    RunSummary,
    compare_arms,
    summarise_run,
)
from reasoningbank.analysis.scores import Score
from reasoningbank.analysis.tables import (
    TextTable,
    capital,
    cells,
    ends,
    markdown,
    number,
)
from reasoningbank.corpus import LEVELS
from reasoningbank.experiment import RunFolder
from reasoningbank.findings import counted

EXPERIMENTS = RESULTS.parent
#: Runs that ask again what another one asked, under a name of their own. Runs of one experiment
#: that have the same pack are found without this table.
AGAIN = {
    "liita_memory_fresh": "liita_memory",
    "uniprot_practised": "uniprot_learning",
    "uniprot_again": "uniprot_learning",
    "liita_again": "liita_learning",
}
#: Archives that are no experiments.
LEFT_OUT = ("judge_attempts",)
#: Names of arms in the records, and what they are called now.
ARMS = {"placebo": "random"}  # old spelling


@dataclass
class Run:
    """A committed run with its summary."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def folder(self) -> RunFolder:
        return RunFolder(self.path)

    @cached_property
    def summary(self) -> RunSummary:
        return summarise_run(self.folder)

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        return self.folder.require_manifest()

    @property
    def title(self) -> str:
        """The title in its experiment's file, or in its manifest where no file has its name."""
        file = EXPERIMENTS / f"{self.name}.toml"
        if not file.exists():
            return str(self.manifest["experiment"]["title"])
        return str(tomllib.loads(file.read_text(encoding="utf-8"))["title"])

    def first_look(self, runs: Mapping[str, Run]) -> Run | None:
        """Return the run that asked first what this one asks; None if this one did."""
        if self.name in AGAIN:
            return runs.get(AGAIN[self.name])
        same = [one for one in runs.values() if one._asked == self._asked]
        first = min(same, key=lambda one: (len(one.name), one.name))
        return None if first is self else first

    @property
    def _asked(self) -> tuple[str, str]:
        return self.manifest["experiment"]["name"], self.manifest["experiment"]["pack"]


def measured_results(results: Path = RESULTS) -> str:
    """Return what is resolved, what was found again, and a section for each experiment."""
    paths = sorted(path for path in results.iterdir() if path.is_dir())
    runs = {path.name: Run(path) for path in paths if path.name not in LEFT_OUT}
    asked = questions()
    order = {name: place for place, name in enumerate(asked)}
    shown = sorted(
        runs.values(),
        key=lambda run: (not run.summary.levels, order.get(run.name, len(order))),
    )
    # Further arms of an experiment, run without a comparison of their own, are shown with it.
    hosts: dict[str, list[Run]] = {run.name: [] for run in shown}
    for run in shown:
        host = None if run.summary.registered else run.first_look(runs)
        if host is not None:
            hosts[host.name].append(run)
            del hosts[run.name]
    sections = [section(runs[name], asked.get(name, ""), more) for name, more in hosts.items()]
    parts = [resolved(shown), again(shown, runs), "## Experiments", *sections]
    return "\n\n".join(filter(None, parts)) + "\n"


def questions() -> dict[str, str]:
    """Return what each experiment asks, in the order of the table of `experiments/README.md`."""
    found = {}
    for line in (EXPERIMENTS / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            files, question = line.strip("| ").split(" | ")[:2]
            found |= dict.fromkeys(re.findall(r"`(\w+)\.toml`", files), question)
    return found


def resolved(runs: Sequence[Run]) -> str:
    """Return how many pre-registered pairs are resolved, and these."""
    pairs = [(run, one) for run in runs for one in run.summary.registered]
    verdicts = Counter(one.verdict for _, one in pairs)
    rows = [
        cells(_link(run), run.summary.level or "all", _pair(one), *_difference(one))
        for run, one in pairs
        if one.resolved
    ]
    headers = ("experiment", "level", "pair", "difference", "95% CI")
    said = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))
    text = f"## What is resolved\n\n{counted(len(pairs), 'pre-registered pair')}: {said}."
    return f"{text} Resolved are:\n\n{markdown(TextTable('', headers, rows))}" if rows else text


def again(shown: Sequence[Run], runs: Mapping[str, Run]) -> str:
    """Return the pairs that were compared twice, and whether the second look found the same."""
    looks = [
        (run, old, new)
        for run in shown
        if (first := run.first_look(runs))
        for new in run.summary.registered
        for old in first.summary.registered
        if (old.first, old.second) == (new.first, new.second)
    ]
    rows = [
        cells(_link(run), _pair(new), *map(_in_brackets, (old, new)), _found_again(old, new))
        for run, old, new in looks
    ]
    headers = ("second look", "pair", "first", "again", "found again")
    if not rows:
        return ""
    return f"## What was looked at again\n\n{markdown(TextTable('', headers, rows))}"


def _found_again(old: ArmComparison, new: ArmComparison) -> str:
    if not old.resolved:
        return "was not resolved"
    return "yes" if new.resolved and old.difference * new.difference > 0 else "no"


def section(run: Run, question: str, more: Sequence[Run] = ()) -> str:
    """Return what a run asked, its arms and those of further runs, and its pre-registered pairs."""
    summary = run.summary
    looks = (run, *more)
    models = sorted(run.manifest["hashes"].get("models") or ())
    said = [f"**{run.title}.**"]
    if question:
        said.append(f"*{capital(question)}{'' if question.endswith('?') else '.'}*")
    said.append(
        f"{sum(arm.trials for one in looks for arm in one.summary.arms)} trials, intervals by "
        f"{summary.unit}; {', '.join(f'`{one.name}`' for one in looks)}."
    )
    if models not in ([], ["local"]):
        said.append(f"Models: {', '.join(models)}.")
    if summary.online:
        arms = (f"`{arm.arm}` {arm.strict} of {arm.judged}" for arm in summary.online.arms)
        said.append(f"Right in its learning streams: {', '.join(arms)}.")
    levels = [level for level in LEVELS if any(arm.level == level for arm in summary.levels)]
    at_level = {(arm.arm, arm.level): arm for one in looks for arm in one.summary.levels}
    headers = ("arm", "n", "right", f"95% CI of {summary.metric}", *levels, "tokens", "seconds")
    rows = [
        cells(
            ARMS.get(arm.arm, arm.arm) + (f" (`{one.name}`)" if one is not run else ""),
            *(arm.judged, arm.strict, ends(arm.mean.low, arm.mean.high)),
            *(_right(at_level.get((arm.arm, level))) for level in levels),
            *(number(arm.tokens[0], 0), number(arm.seconds[0], 0)),
        )
        for one in looks
        for arm in one.summary.arms
    ]
    parts = [
        f"### {run.name}",
        " ".join(said),
        markdown(TextTable("", headers, rows)),
        "\n".join(_stated(run, levels)),
    ]
    return "\n\n".join(filter(None, parts))


def _right(arm: ArmSummary | None) -> str:
    return f"{arm.strict} of {arm.judged} ({ends(arm.mean.low, arm.mean.high)})" if arm else "-"


def _stated(run: Run, levels: Sequence[str]) -> Iterator[str]:
    """Yield a line for each pre-registered pair, with what it is at the other levels."""
    summary = run.summary
    records = run.folder.trials(skip_damaged=True) if levels else ()
    trials = [trial for trial in map(Score.of, records) if trial.step is None]
    for stated in summary.registered:
        beside = []
        for level in levels:
            arms = [
                [trial for trial in trials if (trial.arm, trial.level) == (name, level)]
                for name in (stated.first, stated.second)
            ]
            found = compare_arms(*arms, metric=summary.metric, unit=summary.unit)
            if found is not None and level != summary.level:
                beside.append(f"{level} {_in_brackets(found)} on {found.tasks}")
        at = f", {summary.level}" if summary.level else ""
        line = f"- {_pair(stated)}{at}, on {stated.tasks} tasks: {_in_brackets(stated)}"
        small = "p < 0.001" if stated.p < 0.001 else f"p {number(stated.p, 3)}"
        line += "" if math.isnan(stated.p) else f", {small}"
        line += f": **{stated.verdict}**"
        if stated.verdict == "unresolved" and stated.detectable is not None:
            line += f" ({number(stated.detectable)} would show)"
        yield line + (f". Beside it: {'; '.join(beside)}" if beside else "")


def _pair(one: ArmComparison) -> str:
    first, second = (ARMS.get(name, name) for name in (one.first, one.second))
    return f"`{first}` against `{second}`"


def _difference(one: ArmComparison) -> tuple[str, str]:
    return number(one.difference, sign="+"), ends(one.low, one.high, "+")


def _in_brackets(one: ArmComparison) -> str:
    return "{} ({})".format(*_difference(one))


def _link(run: Run) -> str:
    return f"[{run.name}](#{run.name})"
