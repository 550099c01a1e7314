"""Print what a run of the algebra agent measured, as the Markdown of docs/algebra.md.

python scripts/measure_algebra.py RUN   # the folder of a run, e.g. experiments/results/algebra

Records are read and nothing is run.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reasoningbank.algebra import ProgramError
from reasoningbank.algebra.source import parse_program
from reasoningbank.analysis.statistics import wilson
from reasoningbank.corpus import load_corpus
from reasoningbank.errors import ReasoningBankError
from reasoningbank.experiment import RunFolder, TrialRecord

Part = Callable[[TrialRecord], bool]
COSTS: tuple[tuple[str, Callable[[TrialRecord], float]], ...] = (
    ("model calls", lambda r: r.usage.lm_calls),
    ("tokens generated", lambda r: r.usage.completion_tokens),
    ("tokens read", lambda r: r.usage.prompt_tokens),
    ("seconds", lambda r: round(r.usage.seconds)),
)


def main(run: str = "experiments/results/algebra") -> int:
    """Print one table of verdicts by kind of task, and one of what became of the programs."""
    try:
        records = [record for record in RunFolder(Path(run)).trials() if record.verdict]
        split = load_corpus("algebra").split().by_id()
    except ReasoningBankError as error:
        print(error, file=sys.stderr)
        return 1
    arms: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        arms[record.key.arm].append(record)
    parts: dict[str, Part] = {
        "all": lambda _: True,
        "those that ask": lambda r: r.form != "UPDATE",
        "those that write": lambda r: r.form == "UPDATE",
        **{
            f"{name} split": lambda r, name=name: split.get(r.key.task) == name  # type: ignore[misc]
            for name in ("train", "dev", "test")
        },
    }
    _print(("tasks", *arms), (_verdicts(name, part, arms) for name, part in parts.items()))
    programs = {arm: [_program(record) for record in found] for arm, found in arms.items()}
    rows = {
        "first reply is JSON": lambda p: p["json"],
        "first program is valid": lambda p: p["valid"],
        "a program is valid in the end": lambda p: p["valid in the end"],
        "a program ran": lambda p: p["ran"],
        "strict with the first program": lambda p: p["strict"] and p["written"] == 1,
        "strict after a repair": lambda p: p["strict"] and p["written"] > 1,
    }
    print()
    _print(
        ("of all trials", *arms),
        (
            (
                name,
                *(
                    f"{sum(map(bool, map(holds, found)))} of {len(found)}"
                    for found in programs.values()
                ),
            )
            for name, holds in rows.items()
        ),
    )
    print()
    _print(
        ("median (most)", *arms),
        (
            (name, *(_spread(list(map(cost, found))) for found in arms.values()))
            for name, cost in COSTS
        ),
    )
    return 0


def _verdicts(name: str, part: Part, arms: Mapping[str, Sequence[TrialRecord]]) -> tuple[str, ...]:
    cells = []
    for records in arms.values():
        right = [bool((r.verdict or {})["strict"]) for r in records if part(r)]
        if not right:
            cells.append("-")
            continue
        share = wilson(sum(right), len(right))
        cells.append(f"{sum(right)} of {len(right)} ({share.low:.2f} to {share.high:.2f})")
    return (name, *cells)


def _program(record: TrialRecord) -> dict[str, Any]:
    """Return what became of the programs of a trial."""
    steps = [record.trajectory.resolve(event.data) for event in record.trajectory.of("step")]
    written = [step for step in steps if step["step"] == "write"]
    return {
        "json": bool(written) and _is_json(written[0]["program"]),
        "valid": bool(written) and not written[0]["problems"],
        "valid in the end": any(not step["problems"] for step in written),
        "ran": any(step["step"] == "run" and step["answer"] for step in steps),
        "written": len(written),
        "strict": bool((record.verdict or {})["strict"]),
    }


def _is_json(text: str) -> bool:
    try:
        parse_program(text)
    except ProgramError:
        return False
    return True


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):g} ({max(values):g})" if values else "-"


def _print(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
