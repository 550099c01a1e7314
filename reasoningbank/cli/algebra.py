"""`reasoningbank algebra`: programs over RDF data on the Web, checked and run."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from reasoningbank.algebra import (
    Limits,
    ProgramError,
    Runtime,
    Value,
    from_json,
    mistakes,
    operation,
    operations,
    read_program,
)
from reasoningbank.algebra.reference import agent_prompt, reference, signature, summary
from reasoningbank.algebra.writes import Unanswered
from reasoningbank.algebra.reference import program_schema
from reasoningbank.algebra.source import parse_program
from reasoningbank.algebra.terms import scalar
from reasoningbank.algebra.addresses import credentials_from
from reasoningbank.cli.algebra_asking import ask
from reasoningbank.cli.algebra_model import open_author, open_stage_of
from reasoningbank.cli.algebra_running import (
    Address,
    AllowWrite,
    DryRun,
    addresses_of,
    digest_of,
    pair_of,
    print_run,
)
from reasoningbank.cli.output import console, print_json, print_table, progress_console
from reasoningbank.errors import UsageError
from reasoningbank.lm.names import parse_name

__all__ = ["app"]

app = typer.Typer(
    help="Programs over RDF data on the Web: write them, check them, run them.",
    no_args_is_help=True,
)
app.command()(ask)

File = Annotated[str, typer.Argument(help="A program (JSON), or - for standard input.")]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--var",
        metavar="NAME=VALUE",
        help="A variable ($NAME): a string, or NAME:=JSON for any value; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def run(
    file: File,
    variables: Variables = None,
    dry_run: DryRun = False,
    allow_write: AllowWrite = None,
    allow_read: Annotated[
        list[str] | None,
        typer.Option(metavar="BASE", help="Where alone it may read; may be repeated."),
    ] = None,
    address: Address = None,
    journal: Annotated[
        Path | None, typer.Option(help="A file that notes the writes, so that they are resumed.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the journal: no write is done twice.")
    ] = False,
    unanswered: Annotated[
        str,
        typer.Option(help="A write of the journal that nobody answered: ask, done or again."),
    ] = "ask",
    credentials: Annotated[
        Path | None, typer.Option(help="A TOML file of [[credential]] tables, one a server.")
    ] = None,
    requests: Annotated[int, typer.Option(min=1, help="Requests at most.")] = 10_000,
    rows: Annotated[int, typer.Option(min=1, help="Rows at most.")] = 1_000_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Seconds at most.")] = 3_600.0,
    lm: Annotated[
        str | None, typer.Option(help="A model that writes the queries of SPARQLString.")
    ] = None,
    pack: Annotated[
        str | None, typer.Option(help="A pack whose data stand for its endpoint, offline.")
    ] = None,
) -> None:
    """Run a program; its result is JSON on standard output.

    Example: reasoningbank algebra run cities.json --allow-write http://localhost/denmark/
    """
    # rdflib tells of ill-typed literals in the data, which are kept as they are.
    warnings.filterwarnings("ignore", module=r"rdflib\.")
    data, text = _read(file)
    given = dict(_variable(one) for one in variables or [])
    program = read_program(data, given)
    # What is wrong is told before an endpoint or a model is opened.
    addresses, policy = addresses_of(address), _unanswered(unanswered)
    known = credentials_from(credentials) if credentials else ()
    if lm:
        parse_name(lm)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(open_stage_of(pack)) if pack else None
        author = stack.enter_context(open_author(lm, stage)) if lm else None
        runtime = Runtime(
            allow_write=allow_write or (),
            allow_read=allow_read,
            limits=Limits(requests=requests, rows=rows, seconds=seconds),
            addresses={**(stage.addresses if stage else {}), **addresses},
            credentials=known,
            compose=author.compose if author else None,
            dry_run=dry_run,
            journal=journal,
            resume=resume,
            program=digest_of(text, variables or []),
            unanswered=policy,
        )
        print_run(program, stack.enter_context(runtime), given)


@app.command()
def validate(file: File, variables: Variables = None, as_json: AsJson = False) -> None:
    """Check a program without running it; every mistake is told with its JSON path.

    Example: reasoningbank algebra validate cities.json
    """
    data, _ = _read(file)
    names = dict(_variable(one) for one in variables or [])
    wrong = mistakes(data, names)
    if as_json:
        print_json([{"path": one.where, "what": one.what, "hint": one.hint} for one in wrong])
    else:
        for one in wrong:
            progress_console.print(str(one), soft_wrap=True)
    if wrong:
        raise typer.Exit(1)
    if not as_json:
        program = read_program(data, names)
        does = "writes" if program.writes else "only reads"
        console.print(f"valid: {len(program.calls)} operations, {does}")


@app.command()
def ops(
    name: Annotated[str, typer.Argument(help="Only this one, in full.", metavar="[NAME]")] = "",
    prompt: Annotated[bool, typer.Option("--prompt", help="As an agent is told them.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the operations, or show one in full.

    Example: reasoningbank algebra ops ForEach
    """
    names = [name] if name else None
    if prompt:
        sys.stdout.write(agent_prompt(names))
    elif as_json:
        print_json(
            [
                {"op": kind.op, "signature": signature(kind), "writes": kind.writes,
                 "summary": summary(kind)}
                for kind in ([operation(name)] if name else operations().values())
            ]
        )  # fmt: skip
    elif names:
        sys.stdout.write(reference(names))
    else:
        print_table(
            ("operation", "what it does"),
            [(signature(kind), summary(kind)) for kind in operations().values()],
        )


@app.command()
def schema(
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="An operation; may be repeated.")
    ] = None,
) -> None:
    """Print the JSON Schema of programs, for editors and constrained decoding.

    Example: reasoningbank algebra schema > algebra.schema.json
    """
    print_json(program_schema(only))


def _read(file: str) -> tuple[Any, str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", where=file) from None
    except UnicodeDecodeError:
        raise UsageError("is no UTF-8 text", where=file) from None
    return parse_program(text), text


def _variable(text: str) -> tuple[str, Value]:
    name, value = pair_of("--var", text)
    plain = name.removeprefix("$").removesuffix(":")
    if not name.endswith(":"):
        return plain, scalar(value)
    try:
        return plain, from_json(parse_program(value))
    except ProgramError as error:
        raise UsageError(f"the value of {plain} is no JSON: {error}", where="--var") from None


def _unanswered(word: str) -> Unanswered:
    known: Unanswered
    for known in get_args(Unanswered):
        if word == known:
            return known
    hint = "use ask, done or again"
    raise UsageError(f"unknown value {word!r}", where="--unanswered", hint=hint)
