"""`reasoningbank agent-viz`: the graph agent as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.output import progress_console
from reasoningbank.nl2sparql.graph import GraphSettings, mermaid_picture, save_picture

__all__ = ["agent_viz"]


def agent_viz(
    pack: Annotated[
        str, typer.Option(help="The pack whose pattern families have writers.")
    ] = "liita",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .png, .svg or .mmd file.")
    ] = None,
    inside: Annotated[bool, typer.Option(help="Draw the writers, too.")] = False,
    human: Annotated[bool, typer.Option(help="With the step that asks back.")] = False,
) -> None:
    """Draw the graph agent: Mermaid text on standard output, or a file.

    Example: reasoningbank agent-viz --inside -o graph.png
    """
    settings = GraphSettings(human=human)
    if output is None:
        print(mermaid_picture(pack, settings, inside=inside), end="")
        return
    save_picture(output, pack, settings, inside=inside)
    progress_console.print(f"wrote {output}", soft_wrap=True)
