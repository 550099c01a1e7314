"""`nl2sparql tables` and `nl2sparql calibration`: what the records of runs say of translators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from reasoningbank.analysis.tables import Table
from reasoningbank.analysis.translators import (
    ArmRows,
    agent_table,
    brier_table,
    calibration_figures,
    language_table,
    pattern_table,
    read_translations,
    reliability_table,
    repair_table,
    scenario_table,
    translation_figures,
)
from reasoningbank.cli.output import console, print_json, progress_console, show
from reasoningbank.errors import UsageError
from reasoningbank.lm import asked_as
from reasoningbank.nl2sparql.confidence import fit_calibration

__all__ = ["calibration", "tables"]

Sources = Annotated[
    list[Path], typer.Argument(help="Folders of runs, or reports of `nl2sparql evaluate`.")
]
PackName = Annotated[
    str, typer.Option(help="The pack's name or folder, if not where the runs say.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_TABLES = {
    "agent": agent_table,
    "language": language_table,
    "pattern": pattern_table,
    "scenario": scenario_table,
    "repair": repair_table,
}


def tables(
    sources: Sources,
    by: Annotated[
        Literal["agent", "language", "pattern", "scenario", "repair", "all"],
        typer.Option(help="Which table."),
    ] = "all",
    pack: PackName = "",
    as_json: AsJson = False,
) -> None:
    """Tell what translators' queries were worth: in all, by language, by pattern, and when which.

    Example: nl2sparql tables runs/nl2sparql --by pattern
    """
    arms = _read(sources, pack)
    if as_json:
        print_json([_head(one) | translation_figures(one.rows) for one in arms if one.rows])
        return
    for make in _TABLES.values() if by == "all" else (_TABLES[by],):
        _print(make(arms))


def calibration(
    sources: Sources,
    pack: PackName = "",
    arm: Annotated[str, typer.Option(help="One arm alone.")] = "",
    write: Annotated[
        Path | None,
        typer.Option(help="Write what the arm's scores are worth, as a pack's hints hold it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tell how far confidence can be trusted: Brier score and reliability, from a run's records.

    Example: nl2sparql calibration runs/nl2sparql --arm graph --write calibration.json
    """
    arms = [one for one in _read(sources, pack) if one.rows and arm in ("", one.arm)]
    if not arms:
        raise UsageError(f"there is no arm {arm!r} with judged trials", where=str(sources[0]))
    if not any(row.confidence is not None for one in arms for row in one.rows):
        names = ", ".join(one.arm for one in arms)
        hint = "rag and graph say it with their last step"
        raise UsageError(f"no trial of {names} says how sure it is", hint=hint)
    if write is not None:
        _write(arms, write)
    if as_json:
        print_json([_head(one) | calibration_figures(one.rows) for one in arms])
        return
    _print(brier_table(arms))
    _print(reliability_table(arms))


def _read(sources: list[Path], pack: str) -> list[ArmRows]:
    arms = read_translations(sources, pack)
    if not any(one.rows for one in arms):
        raise UsageError("there is no judged trial", where=", ".join(map(str, sources)))
    return arms


def _write(arms: list[ArmRows], path: Path) -> None:
    if len(arms) != 1:
        names = ", ".join(one.arm for one in arms)
        raise UsageError("a table is of one arm", where="--write", hint=f"name it: --arm {names}")
    judged = [(row.score, row.right) for row in arms[0].rows if row.score is not None]
    table = fit_calibration(judged, asked_as(arms[0].model))
    try:
        path.write_text(table.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written: {error}", where=str(path)) from error
    progress_console.print(f"wrote {path}, of {table.trials} trials", soft_wrap=True)


def _head(one: ArmRows) -> dict[str, object]:
    return {
        "arm": one.arm,
        "agent": one.agent,
        "model": one.model,
        "pack": one.pack,
        "not_judged": one.left_out,
    }


def _print(table: Table) -> None:
    if table.rows and not console.is_terminal:
        console.print(f"# {table.title}")
    show(table)
