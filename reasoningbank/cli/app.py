"""All commands of `reasoningbank`. The module of a command is loaded when the command is called."""

from __future__ import annotations

import functools
import importlib
import os
import re
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from reasoningbank.version import __version__

#: Command → ``module:attribute``, and the first line of its help, so that `--help` loads no module.
COMMANDS = {
    "demo": (
        "start:demo",
        "Ask ten questions without and with a memory: fetch the model, run, and write the report.",
    ),
    "init": (
        "start:init",
        "Begin a pack for an endpoint: prefixes, classes, five examples and an experiment.",
    ),
    "packs": ("start:packs", "List the packs that can be named, and their sets of examples."),
    "doctor": (
        "setup:doctor",
        "Check what this machine needs and how to get it; exit status 1 if anything is missing.",
    ),
    "ask": (
        "ask:ask",
        "Answer one question: show the query, its rows, its cost and how far to trust it.",
    ),
    "run": ("runs:run", "Run an experiment; the same command resumes it."),
    "rerun": (
        "runs:rerun",
        "Run trials again, by how they ended; each new record replaces the old one.",
    ),
    "status": (
        "runs:status",
        "Show what a run has so far, and whether it is running, dead or finished.",
    ),
    "archive": (
        "runs:archive",
        "Copy a run with its trials compressed, small enough to commit.",
    ),
    "compare": ("runs:compare", "Compare the arms of two runs on the tasks that both have."),
    "report": (
        "runs:report",
        "Write one self-contained HTML page of a run: summary, figures, every trial.",
    ),
    "serve": (
        "page:serve",
        "Serve one local page: ask questions, watch runs, read memory.",
    ),
    "mcp": (
        "servers:mcp",
        "Serve a pack's tools over the Model Context Protocol, to desktop clients and agents.",
    ),
    "agent-viz": (
        "ask:agent_viz",
        "Draw the graph agent: Mermaid text on standard output, or a file.",
    ),
    "tasks": ("tasks:app", "List, sample and check the tasks of a corpus."),
    "endpoint": ("endpoint:app", "Serve a pack's endpoint, or query it by hand."),
    "judge": ("judge:app", "Compare results; judge a run again."),
    "export": ("runs:export", "Write a run for other tools."),
    "lm": ("setup:app", "Download, list and serve local models."),
    "memory": ("memory:app", "Inspect what was learned, and maintain a bank."),
    "algebra": (
        "algebra:app",
        "Programs over RDF data on the Web: write them, check them, run them.",
    ),
    "ldp": ("servers:app", "Serve documents that can be read and written."),
}
#: Headings, options and names of commands in a page of help.
_MARKS = re.compile(r"^[A-Z]\w+:|(?<!\S)--?[a-z][\w-]*|(?<=^  )[a-z][\w-]*(?=  )", re.MULTILINE)


class _Coloured(typer.Context):
    def get_help(self) -> str:
        # Where the output is no terminal, colours are taken out when it is printed.
        text = super().get_help()
        return text if os.environ.get("NO_COLOR") else _MARKS.sub(_coloured, text)


def _coloured(mark: re.Match[str]) -> str:
    heading = mark[0].endswith(":")
    return typer.style(mark[0], bold=heading or None, fg=None if heading else "cyan")


class _Commands(TyperGroup):
    """Holds a name and a line of help for each command, and loads the one that is called."""

    context_class = _Coloured

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(name)), rest


@functools.cache
def load_command(name: str) -> Any:
    """Return a command, or a group with its commands, by its name."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    what = getattr(importlib.import_module(f"reasoningbank.cli.{module}"), attribute)
    holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(what, typer.Typer):
        holder.add_typer(what, name=name)
    else:
        holder.command(name)(what)
    command = get_group(holder).commands[name]
    for each in (command, *getattr(command, "commands", {}).values()):
        each.context_class = _Coloured
    return command


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"reasoningbank {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="reasoningbank",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Agents that learn to answer questions over SPARQL knowledge graphs."""


for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)
