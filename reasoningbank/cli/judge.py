"""`reasoningbank judge`: compare two result files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.output import print_json
from reasoningbank.judge import compare_files as compare_results

__all__ = ["app"]

app = typer.Typer(help="Compare results.", no_args_is_help=True)


@app.callback()
def _judge() -> None:
    """Compare results."""


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
    print_json(asdict(verdict))
