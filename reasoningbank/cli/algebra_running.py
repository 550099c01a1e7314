"""Running a program for a person: its result whole or not at all, its writes told."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from reasoningbank.algebra import Planned, Program, Runtime, Value, json_chunks, run_program
from reasoningbank.cli.output import progress_console
from reasoningbank.errors import ReasoningBankError, UsageError

__all__ = [
    "Address",
    "AllowWrite",
    "DryRun",
    "addresses_of",
    "digest_of",
    "pair_of",
    "print_run",
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Read, and list what would be written.")]
AllowWrite = Annotated[
    list[str] | None, typer.Option(metavar="BASE", help="Where it may write; may be repeated.")
]
Address = Annotated[
    list[str] | None,
    typer.Option(metavar="PUBLIC=REAL", help="Where an address is really asked."),
]

#: Bytes of a result that stay in memory until all of it is there.
_IN_MEMORY = 16 * 1024 * 1024


def pair_of(option: str, text: str) -> tuple[str, str]:
    """Return name and value of an option that is written ``NAME=VALUE``.

    Raises:
        UsageError: It is not.
    """
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{text!r} has no NAME=VALUE form", where=option)
    return name, value


def addresses_of(options: Sequence[str] | None) -> dict[str, str]:
    """Return where public addresses are really asked, as ``--address`` says it."""
    return dict(pair_of("--address", one) for one in options or [])


def digest_of(text: str, variables: Sequence[str] = ()) -> str:
    """Return what a journal knows a program by: its text, and the variables as they were given."""
    return hashlib.sha256(json.dumps([text, sorted(variables)]).encode()).hexdigest()


def print_run(program: Program, runtime: Runtime, given: Mapping[str, Value]) -> None:
    """Run a program and write its result as JSON to standard output.

    Nothing is printed of a run that fails but, on standard error, the writes that were done; and a
    long result never lies in memory.

    Raises:
        ReasoningBankError: The program failed.
    """
    with _told(runtime), tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+") as kept:
        for chunk in _written(program, runtime, given):
            kept.write(chunk)
        kept.seek(0)
        shutil.copyfileobj(kept, sys.stdout)
        sys.stdout.write("\n")


def _written(program: Program, runtime: Runtime, given: Mapping[str, Value]) -> Iterator[str]:
    chunks = json_chunks(run_program(program, runtime, given))
    if not runtime.dry_run:
        yield from chunks
        return
    yield '{"result": '
    yield from chunks
    writes = [_planned(one) for one in runtime.planned]
    yield f',\n"writes": {json.dumps(writes, ensure_ascii=False)}}}'


def _planned(one: Planned) -> dict[str, Any]:
    return {"method": one.method, "url": one.url, "allowed": one.allowed, "body": one.body}


@contextlib.contextmanager
def _told(runtime: Runtime) -> Iterator[None]:
    """Say which writes were done, when a run fails."""
    try:
        yield
    except (ReasoningBankError, KeyboardInterrupt):
        for one in runtime.writes:
            status = f" ({one.status})" if one.status else ""
            line = f"{one.state}: {one.method} {one.url}{status}"
            progress_console.print(line, soft_wrap=True)
        raise
