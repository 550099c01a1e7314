"""`reasoningbank export`: a run for other tools."""

from __future__ import annotations

import typer

from reasoningbank.cli import export_inspect, export_parquet

__all__ = ["app"]

app = typer.Typer(help="Write a run for other tools.", no_args_is_help=True)
app.command("inspect")(export_inspect.inspect)
app.command("parquet")(export_parquet.parquet)


@app.callback()
def _export() -> None:
    """Write a run for other tools."""
