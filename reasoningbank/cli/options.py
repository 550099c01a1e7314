"""Arguments and options that several commands share."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.errors import UsageError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PackName = Annotated[str, typer.Option(help="A pack's name or folder.")]
Lm = Annotated[str, typer.Option(help="A model: local, or a LiteLLM name.")]
Url = Annotated[
    str | None, typer.Option(help="Query this running endpoint instead of the pack's own.")
]
RunPath = Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/uniprot_demo.")]
AllowWrite = Annotated[
    list[str] | None,
    typer.Option(metavar="BASE", help="Where programs may write; may be repeated."),
]
PublicAddress = Annotated[
    list[str] | None,
    typer.Option(metavar="PUBLIC=REAL", help="Send requests for an address elsewhere."),
]
Credentials = Annotated[
    Path | None, typer.Option(help="A TOML file of [[credential]] tables, one a server.")
]


def known(option: str, words: Sequence[str], choices: Sequence[str]) -> None:
    """Check the values of an option.

    Raises:
        UsageError: If a value is not among the choices.
    """
    for word in words:
        if word not in choices:
            near = difflib.get_close_matches(word, choices, n=3, cutoff=0.4)
            some = ", ".join(choices[:8]) + (", …" if len(choices) > 8 else "")
            hint = f"did you mean {', '.join(near)}?" if near else f"choose {some}"
            raise UsageError(
                f"unknown value {word!r}", where=option, hint=hint, code="unknown-value"
            )


def pair_of(option: str, text: str) -> tuple[str, str]:
    """Return name and value of an option written ``NAME=VALUE``.

    Raises:
        UsageError: If it has another form.
    """
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{text!r} is not of the form NAME=VALUE", where=option, code="not-a-pair")
    return name, value
