"""All commands of `reasoningbank`."""

from __future__ import annotations

import typer

from reasoningbank.cli import (
    algebra,
    ask,
    endpoint,
    judge,
    memory,
    page,
    runs,
    servers,
    setup,
    tasks,
)

app = typer.Typer(
    name="reasoningbank",
    help="Agents that learn to answer questions over SPARQL knowledge graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    setup.doctor,
    ask.ask,
    runs.run,
    runs.rerun,
    runs.status,
    runs.archive,
    runs.compare,
    runs.report,
    page.serve,
    servers.mcp,
    ask.agent_viz,
):
    app.command(command.__name__.replace("_", "-"))(command)
for name, group in {
    "tasks": tasks.app,
    "endpoint": endpoint.app,
    "judge": judge.app,
    "export": runs.export,
    "lm": setup.app,
    "memory": memory.app,
    "algebra": algebra.app,
    "ldp": servers.app,
}.items():
    app.add_typer(group, name=name)
