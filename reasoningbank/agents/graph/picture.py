"""The graph as a picture: Mermaid text, and a PNG that is rendered offline."""

from __future__ import annotations

import importlib
from pathlib import Path

from reasoningbank.agents.graph.build import build_graph
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.sparql import EndpointConfig

__all__ = ["mermaid_picture", "save_picture"]

#: Nobody is asked when a picture is drawn.
_NOWHERE = EndpointConfig("http://127.0.0.1:9/sparql", "nowhere")


def mermaid_picture(
    pack: Pack | str = "liita", settings: GraphSettings | None = None, *, inside: bool = False
) -> str:
    """Return the graph as Mermaid text.

    Args:
        pack: The pack, whose pattern families have writers of their own.
        settings: Which steps are taken.
        inside: Whether the writers are drawn, too.

    Raises:
        UsageError: No such pack.

    Examples:
        >>> [line.strip() for line in mermaid_picture("liita").splitlines() if "verify -" in line]
        ['verify -.-> explore;', 'verify -.-> output;', 'verify -.-> refine;']
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    parts = Parts(Episode(_NOWHERE, {}), found, settings or GraphSettings())
    graph = build_graph(parts)
    # Depth 1 draws the routing to the writers, 2 the steps of each.
    return str(graph.get_graph(xray=2 if inside else False).draw_mermaid())


def save_picture(
    file: Path,
    pack: Pack | str = "liita",
    settings: GraphSettings | None = None,
    *,
    inside: bool = False,
) -> None:
    """Write the picture into a file: ``.png``, ``.svg``, or ``.mmd`` for the text.

    Args:
        file: The file, by whose ending the form is chosen.
        pack: As for `mermaid_picture`.
        settings: Likewise.
        inside: Likewise.

    Raises:
        UsageError: Another ending, no such pack, or the file cannot be written.
        SetupError: The renderer is not installed, or fails.
    """
    ending = file.suffix.lower()
    if ending not in (".png", ".svg", ".mmd"):
        raise UsageError(
            f"no picture of the form {ending or 'without an ending'!r} can be drawn",
            where=str(file),
            hint="end the name in .png, .svg or .mmd",
        )
    text = mermaid_picture(pack, settings, inside=inside)
    data = text.encode() if ending == ".mmd" else _rendered(text, ending[1:])
    try:
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(file)) from error


def _rendered(text: str, form: str) -> bytes:
    hint = "pip install mermaid-render, or write a .mmd file and render it elsewhere"
    try:
        renderer = importlib.import_module("mermaid_render")
    except ImportError as error:
        raise SetupError("the renderer of pictures is not installed", hint=hint) from error
    try:
        return bytes(renderer.convert(text, format=form))
    except Exception as error:  # QuickJS, resvg and the renderer raise their own
        raise SetupError(f"the picture cannot be drawn: {error}", hint=hint) from error
