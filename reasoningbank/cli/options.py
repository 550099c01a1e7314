"""Arguments and options that several commands share."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from reasoningbank.errors import UsageError

#: Values of an option that can be given several times.
Many = list[str] | None

AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
PackName = Annotated[str, Option(help="A pack's name or folder.")]
Lm = Annotated[str, Option(help="A model: local, or a LiteLLM name.")]
Url = Annotated[str | None, Option(help="Query this running endpoint instead of the pack's own.")]
Port = Annotated[int | None, Option(min=1, max=65535, help="Port; default a free one.")]
RunPath = Annotated[Path, Argument(help="Folder of a run, e.g. runs/uniprot_demo.")]
AllowWrite = Annotated[Many, Option(metavar="BASE", help="Where programs may write; repeatable.")]
PublicAddress = Annotated[
    Many, Option(metavar="PUBLIC=REAL", help="Send requests for an address elsewhere.")
]
Credentials = Annotated[Path | None, Option(help="A TOML file of [[credential]] tables.")]


def known(option: str, words: Sequence[str], choices: Sequence[str]) -> None:
    """Check that the values of an option are among the choices."""
    for word in words:
        if word not in choices:
            near = difflib.get_close_matches(word, choices, n=3, cutoff=0.4)
            some = ", ".join(choices[:8]) + (", …" if len(choices) > 8 else "")
            hint = f"did you mean {', '.join(near)}?" if near else f"choose {some}"
            what = f"unknown value {word!r}"
            raise UsageError(what, where=option, hint=hint, code="unknown-value")


def pair_of(option: str, text: str) -> tuple[str, str]:
    """Return name and value of an option written ``NAME=VALUE``."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{text!r} is not of the form NAME=VALUE", where=option, code="not-a-pair")
    return name, value


def addresses_of(options: Sequence[str] | None) -> dict[str, str]:
    """Return the real address of each public address that ``--address`` names."""
    return dict(pair_of("--address", one) for one in options or ())


def check_folder_of(file: Path | None) -> None:
    """Check that a file can be written where it is asked for, before anything is paid for."""
    if file is not None and not file.absolute().parent.is_dir():
        raise UsageError("no such folder", where=str(file.parent), code="no-folder")
