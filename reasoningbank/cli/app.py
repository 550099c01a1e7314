"""The commands, gathered."""

from __future__ import annotations

import typer

from reasoningbank.cli import (
    agent_viz,
    algebra,
    ask,
    compare,
    doctor,
    endpoint,
    export,
    judge,
    ldp,
    lm,
    mcp,
    memory,
    report,
    run,
    status,
    tasks,
)

__all__ = ["app"]

app = typer.Typer(
    name="reasoningbank",
    help="Agents that learn to answer questions over SPARQL knowledge graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(doctor.doctor)
app.command()(ask.ask)
app.command()(run.run)
app.command()(run.rerun)
app.command()(status.status)
app.command()(status.archive)
app.command()(compare.compare)
app.command()(report.report)
app.command()(mcp.mcp)
app.command("agent-viz")(agent_viz.agent_viz)
app.add_typer(tasks.app, name="tasks")
app.add_typer(endpoint.app, name="endpoint")
app.add_typer(judge.app, name="judge")
app.add_typer(export.app, name="export")
app.add_typer(lm.app, name="lm")
app.add_typer(memory.app, name="memory")
app.add_typer(algebra.app, name="algebra")
app.add_typer(ldp.app, name="ldp")
