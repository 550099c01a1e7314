"""All commands of `reasoningbank`. The module of a command is loaded when the command is called."""

from __future__ import annotations

import functools
import os
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from reasoningbank.version import __version__

#: Command → ``module:attribute``, and the first line of its help, so that `--help` loads no module.
COMMANDS = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
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
    what = pkgutil.resolve_name(f"reasoningbank.cli.{COMMANDS[name][0]}")
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
