"""`reasoningbank judge`: compare two result files, or judge a run again."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Annotated

from typer import Argument, Exit, Option, Typer

from reasoningbank.analysis.tables import AGREEMENT, TextTable, agreement_cells
from reasoningbank.cli.options import AsJson, Many
from reasoningbank.cli.output import notice, print_json, say, seconds, show, trial_name
from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.rejudge import Rejudged, VerdictChange, rejudge_run
from reasoningbank.judge import compare_files as compare_results

app = Typer(help="Compare results; judge a run again.", no_args_is_help=True)


@app.command("compare")
def compare_files(
    gold: Annotated[Path, Argument(help="Gold: .srj, .srx, .tsv, or a graph.")],
    predicted: Annotated[Path, Argument(help="Prediction, in any of these forms.")],
    bag: Annotated[bool, Option("--bag", help="Duplicate rows count.")] = False,
    ordered: Annotated[bool, Option("--ordered", help="Row order counts.")] = False,
    lenient: Annotated[bool, Option("--lenient", help="Extra columns are allowed.")] = False,
) -> None:
    """Print the verdict on a result as JSON.

    Example: reasoningbank judge compare gold.srj predicted.srj --ordered
    """
    verdict = compare_results(gold, predicted, bag=bag, ordered=ordered, lenient=lenient)
    print_json(verdict.to_json())


@app.command("run")
def judge_run(
    folder: Annotated[Path, Argument(help="Folder of a run.", metavar="RUN")],
    judge: Annotated[str, Option("--with", help="execution, rule, or lm:NAME, e.g. lm:local.")],
    out: Annotated[Path | None, Option(help="Judge a copy there, or resume that.")] = None,
    arm: Annotated[Many, Option(help="Only this arm; repeatable.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Judge at most N trials.")] = None,
    again: Annotated[bool, Option("--again", help="Also what this model has judged.")] = False,
    replace: Annotated[bool, Option("--replace", help="Replace verdicts that changed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge the trials of a run again, without running agents.

    `execution` executes the submitted queries and compares results; `lm:NAME` asks a model that
    does not see the gold, and stores its judgement beside the verdict; `rule` accepts every query
    that returns rows. With the last two the same command resumes.

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
        on_progress=lambda done, total, key: notice(f"[{done + 1}/{total}] {trial_name(key)}"),
        on_notice=notice,
    )
    if as_json:
        print_json(outcome.to_json())
    else:
        _print(outcome)
    if outcome.failed or any(not change.written for change in outcome.changed):
        raise Exit(1)


def _print(outcome: Rejudged) -> None:
    kinds = [(outcome.judge, outcome.agreement)]
    if outcome.judge != "rule":
        kinds.append(("rule: ran and has rows", outcome.rule))
    if outcome.judge != "execution":
        rows = [(name, *agreement_cells(found)) for name, found in kinds if found is not None]
        show(TextTable("agreement with the execution judge (strict)", ("judge", *AGREEMENT), rows))
    say(*map(_changed, outcome.changed))
    say(*(f"{trial_name(key)} is unchanged: {error}" for key, error in outcome.failed))
    took = outcome.seconds
    pace = f" in {seconds(sum(took))}, median {seconds(median(took))}" if took else ""
    counts = {
        "judged before": outcome.known,
        "undecided": outcome.undecided,
        "without a verdict": outcome.without_verdict,
        "changed": len(outcome.changed),
        "failed": len(outcome.failed),
    }
    always = "changed" if outcome.judge == "execution" else ""
    parts = [f"{n} {what}" for what, n in counts.items() if n or what == always]
    say(" · ".join([f"{outcome.judged} judged{pace}", *parts]))
    say(f"records: {outcome.folder.path}")


def _changed(change: VerdictChange) -> str:
    before, after = (
        f"{'strict' if v.get('strict') else v.get('status')} (F1 {v.get('f1') or 0:.2f})"
        for v in (change.before, change.after)
    )
    kept = "" if change.written else "; not written, use --replace or --out"
    return f"{trial_name(change.key)}: was {before}, now {after}{kept}"
