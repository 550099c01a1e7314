"""`reasoningbank algebra ask`: an instruction becomes a program: shown, planned, run."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.syntax import Syntax

from reasoningbank.agents.algebra import Draft, Writing, shown_programs
from reasoningbank.algebra import Limits, Program, Runtime, json_chunks, read_program, run_program
from reasoningbank.cli.algebra_model import Author, open_author, open_stage_of
from reasoningbank.cli.algebra_running import (
    Address,
    AllowWrite,
    DryRun,
    addresses_of,
    digest_of,
    print_run,
)
from reasoningbank.cli.output import progress_console, seconds
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.lm.names import parse_name

__all__ = ["ask"]

#: Planned writes that are told one by one.
MOST_TOLD = 20


def ask(
    instruction: Annotated[str, typer.Argument(help="What is to be done, in natural language.")],
    pack: Annotated[str, typer.Option(help="A pack's name or folder.")] = "algebra",
    lm: Annotated[str, typer.Option(help="A model: local, or a LiteLLM name.")] = "local",
    url: Annotated[str | None, typer.Option(help="A running endpoint to ask instead.")] = None,
    dry_run: DryRun = False,
    allow_write: AllowWrite = None,
    address: Address = None,
    journal: Annotated[
        Path | None, typer.Option(help="A file that notes the writes of the run.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    save: Annotated[Path | None, typer.Option(help="Keep the program in this file.")] = None,
    free: Annotated[
        bool, typer.Option("--free", help="Do not hold the model to the schema of programs.")
    ] = False,
    repairs: Annotated[
        int, typer.Option(min=0, help="How often a wrong program is written again.")
    ] = 2,
) -> None:
    """Let a model write a program, look at it and at what it would write, and run it.

    Program and plan go to standard error, the result to standard output.

    Example: reasoningbank algebra ask "Which cities does Denmark have?" --pack algebra
    """
    if not instruction.strip():
        raise UsageError("the instruction is empty", hint='reasoningbank algebra ask "Take …"')
    # What is wrong is told before a model is opened and paid for.
    parse_name(lm)
    addresses = addresses_of(address)
    if save is not None and not save.absolute().parent.is_dir():
        raise UsageError("there is no such folder", where=str(save.parent))
    if journal is not None and journal.exists() and journal.stat().st_size:
        raise UsageError("there is a journal already", where=str(journal), hint="name another file")
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(open_stage_of(pack, url))
        author = stack.enter_context(open_author(lm, stage))
        draft = _written(author, instruction, constrained=not free, repairs=repairs)
        text = json.dumps(draft.program, ensure_ascii=False, indent=2) + "\n"
        if save is not None:
            _keep(save, text)
        program = read_program(draft.program)
        settings: dict[str, Any] = {
            "allow_write": allow_write or (),
            "addresses": {**stage.addresses, **addresses},
            # The run has the queries of its plan.
            "compose": functools.cache(author.compose),
            "limits": Limits(),
        }
        if program.writes and not dry_run:
            _agreed(program, settings, yes=yes)
        # The saved program goes on with the journal: `algebra run FILE --journal … --resume`.
        runtime = Runtime(**settings, dry_run=dry_run, journal=journal, program=digest_of(text))
        print_run(program, stack.enter_context(runtime), {})


def _written(author: Author, instruction: str, *, constrained: bool, repairs: int) -> Draft:
    assert author.stage is not None
    progress_console.print("writing …")
    episode = author.episode(instruction, author.stage.endpoint)
    writing = Writing(
        episode, instruction, constrained=constrained, shown=shown_programs(author.stage.pack)
    )
    draft = writing.first()
    for _ in range(repairs):
        if not draft.problems:
            break
        progress_console.print(f"wrong: {draft.problems[0]}", soft_wrap=True)
        draft = writing.mended(draft, draft.problems)
    # One that is wrong may be nested too deeply to be written anew.
    right = not draft.problems
    text = json.dumps(draft.program, ensure_ascii=False, indent=2) if right else draft.text
    progress_console.print(Syntax(text, "json", background_color="default", word_wrap=True))
    usage = episode.meter.usage()
    cost = f"{usage.lm_calls} calls · {usage.tokens} tokens · {seconds(usage.seconds)}"
    progress_console.print(cost)
    if draft.problems:
        raise ReasoningBankError(
            f"no valid program came out: {draft.problems[0]}",
            hint="say it in other words or in smaller steps, or try a larger model with --lm",
        )
    return draft


def _keep(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be written ({error.strerror})", where=str(file)) from None


def _agreed(program: Program, settings: dict[str, Any], *, yes: bool) -> None:
    """Show what would be written, and go on only where somebody agrees."""
    with Runtime(**settings, dry_run=True) as runtime:
        hindered = ""
        try:
            for _ in json_chunks(run_program(program, runtime)):
                pass
        except ReasoningBankError as error:
            hindered = str(error)
        planned = runtime.planned
    for one in planned[:MOST_TOLD]:
        mark = "" if one.allowed else " (may not be written; see --allow-write)"
        line = f"would {one.method} {one.url}{mark}"
        progress_console.print(line, soft_wrap=True)
    if len(planned) > MOST_TOLD:
        progress_console.print(f"and {len(planned) - MOST_TOLD} more")
    if hindered:
        progress_console.print(f"planned as far as: {hindered}", soft_wrap=True)
    refused = next((one for one in planned if not one.allowed), None)
    if refused is not None:
        hint = "allow its base with --allow-write, or look at the plan alone with --dry-run"
        raise UsageError("may not be written", where=refused.url, hint=hint)
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("nobody is there to agree", hint="look with --dry-run, agree with --yes")
    if not typer.confirm(f"Write {len(planned)} documents?", err=True):
        raise UsageError("nothing was written")
