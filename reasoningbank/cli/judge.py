"""`reasoningbank judge`: compare two result files, or judge a run again."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from reasoningbank.analysis.run_tables import AGREEMENT, agreement_cells
from reasoningbank.analysis.tables import Table
from reasoningbank.cli.output import console, print_json, progress_console, seconds, show
from reasoningbank.experiment import RunFolder, TrialKey
from reasoningbank.experiment.rejudge import Change, Rejudged, rejudge_run
from reasoningbank.judge import Agreement
from reasoningbank.judge import compare_files as compare_results

__all__ = ["app"]

app = typer.Typer(help="Compare results; judge a run again.", no_args_is_help=True)


@app.callback()
def _judge() -> None:
    """Compare results; judge a run again."""


@app.command("compare")
def compare_files(
    gold: Annotated[Path, typer.Argument(help="Gold: .srj, .srx, .tsv, or a graph.")],
    predicted: Annotated[Path, typer.Argument(help="Prediction, in any of these forms.")],
    bag: Annotated[bool, typer.Option("--bag", help="Duplicate rows count.")] = False,
    ordered: Annotated[bool, typer.Option("--ordered", help="The order of rows counts.")] = False,
    lenient: Annotated[bool, typer.Option("--lenient", help="Extra columns may be there.")] = False,
) -> None:
    """Print the verdict on a result as JSON.

    Example: reasoningbank judge compare gold.srj predicted.srj --ordered
    """
    verdict = compare_results(gold, predicted, bag=bag, ordered=ordered, lenient=lenient)
    print_json(verdict.to_json())


@app.command("run")
def judge_run(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", metavar="RUN")],
    judge: Annotated[
        str, typer.Option("--with", help="execution, rule, or lm:NAME, e.g. lm:local.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Judge a copy there; one that exists is continued.")
    ] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Only this arm; may be repeated.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many trials.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Judge also what this model has judged.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Let verdicts that changed take the old ones' place.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Judge the trials of a run again, without running agents.

    `execution` runs the submitted queries and compares; `lm:NAME` asks a model that sees no gold,
    and keeps what it says beside the verdict; `rule` says yes where a query ran and has rows. With
    these two the same command goes on where it stopped.

    Example: reasoningbank judge run runs/uniprot_demo --with lm:local
    """
    outcome = rejudge_run(
        RunFolder(folder),
        judge,
        out=RunFolder(out) if out else None,
        arms=tuple(arm or ()),
        limit=limit,
        again=again,
        overwrite=replace,
        on_progress=_tell,
        on_notice=lambda notice: progress_console.print(notice, soft_wrap=True),
    )
    if as_json:
        print_json(outcome.to_json())
    else:
        _print(outcome)
    if outcome.failed or any(not change.written for change in outcome.changed):
        raise typer.Exit(1)


def _tell(done: int, total: int, key: TrialKey) -> None:
    line = f"[{done + 1}/{total}] {key.arm} · {key.task} · {key.seed}"
    progress_console.print(line, soft_wrap=True)


def _print(outcome: Rejudged) -> None:
    kinds: list[tuple[str, Agreement | None]] = [
        (outcome.judge, outcome.agreement),
        ("rule: ran and has rows", outcome.rule if outcome.judge != "rule" else None),
    ]
    if outcome.judge != "execution":
        rows = [(name, *agreement_cells(found)) for name, found in kinds if found is not None]
        show(Table("agreement with the execution judge (strict)", ("judge", *AGREEMENT), rows))
    for change in outcome.changed:
        _say(_changed(change))
    for key, error in outcome.failed:
        _say(f"{key.arm} · {key.task} · {key.seed} is left as it was: {error}")
    parts = [
        f"{outcome.judged} judged" + _pace(outcome.seconds),
        f"{outcome.known} judged before" if outcome.known else "",
        f"{outcome.undecided} undecided" if outcome.undecided else "",
        f"{outcome.without_verdict} without a verdict" if outcome.without_verdict else "",
        f"{len(outcome.changed)} came out differently" if outcome.judge == "execution" else "",
        f"{len(outcome.failed)} failed" if outcome.failed else "",
    ]
    _say(" · ".join(part for part in parts if part))
    _say(f"records: {outcome.folder.path}")


def _changed(change: Change) -> str:
    key = change.key
    before, after = (
        f"{'strict' if v.get('strict') else v.get('status')} (F1 {v.get('f1') or 0:.2f})"
        for v in (change.before, change.after)
    )
    kept = "" if change.written else "; kept, give --replace or --out to write the new one"
    return f"{key.arm} · {key.task} · {key.seed}: was {before}, is {after}{kept}"


def _pace(took: tuple[float, ...]) -> str:
    return f" in {seconds(sum(took))}, median {seconds(median(took))}" if took else ""


def _say(line: str) -> None:
    console.print(line, soft_wrap=True)
