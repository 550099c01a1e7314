"""`reasoningbank algebra`: write, check and run programs over RDF data on the Web."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from reasoningbank import algebra
from reasoningbank.agents import Budget, Episode, Meter
from reasoningbank.agents.algebra import ProgramDraft, Writing, composer, shown_programs
from reasoningbank.algebra.operation import summary
from reasoningbank.algebra.stage import Stage, open_stage
from reasoningbank.algebra.terms import locating, scalar
from reasoningbank.cache import write_bytes_atomically
from reasoningbank.cli import options, output
from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.findings import counted
from reasoningbank.lm import ModelHandle, UsageCounter, open_lm
from reasoningbank.lm.names import check_model
from reasoningbank.memory.context import ContextBuilder
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder

app = typer.Typer(
    help="Programs over RDF data on the Web: write them, check them, run them.",
    no_args_is_help=True,
)

File = Annotated[str, Argument(help="A program (JSON), or - for standard input.")]
_VARIABLE = "A variable ($NAME): a string, or NAME:=JSON for any value; repeatable."
Variables = Annotated[options.Many, Option("--var", metavar="NAME=VALUE", help=_VARIABLE)]
DryRun = Annotated[bool, Option("--dry-run", help="Read, and list what would be written.")]

#: Tokens of a program.
MAX_TOKENS = 1024
#: Planned writes that are shown one by one.
MAX_SHOWN = 20
#: Bytes of a result kept in memory until all of it is there.
_IN_MEMORY = 16 * 1024 * 1024


@app.command()
def ask(
    instruction: Annotated[str, Argument(help="What to do, in natural language.")],
    pack: options.PackName = "algebra",
    lm: options.Lm = "local",
    url: options.Url = None,
    dry_run: DryRun = False,
    allow_write: options.AllowWrite = None,
    address: options.PublicAddress = None,
    journal: Annotated[Path | None, Option(help="A file that records the run's writes.")] = None,
    yes: Annotated[bool, Option("--yes", help="Write without asking.")] = False,
    save: Annotated[Path | None, Option(help="Save the program to this file.")] = None,
    free: Annotated[bool, Option("--free", help="Do not hold the model to the schema.")] = False,
    repairs: Annotated[int, Option(min=0, help="How often an invalid program is rewritten.")] = 2,
) -> None:
    """Let a model write a program, show it and what it would write, and run it.

    The program and the plan go to standard error, the result to standard output.

    Example: reasoningbank algebra ask "Which cities does Denmark have?" --pack algebra
    """
    if not instruction.strip():
        raise UsageError("the instruction is empty", hint='reasoningbank algebra ask "Take …"')
    # Check everything before a model is opened and paid for.
    check_model(lm)
    addresses = options.addresses_of(address)
    options.check_folder_of(save)
    if journal is not None and journal.exists() and journal.stat().st_size:
        what, hint = "the journal already exists", "name another file"
        raise UsageError(what, where=str(journal), hint=hint, code="journal-exists")
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(_open_stage(pack, url))
        author = stack.enter_context(_open_author(lm, stage))
        draft = _write(author, stage, instruction, constrained=not free, repairs=repairs)
        text = json.dumps(draft.program, ensure_ascii=False, indent=2) + "\n"
        if save is not None:
            write_bytes_atomically(save, text.encode(), code="cannot-write")
        program = algebra.read_program(draft.program, prefixes=stage.endpoint.prefixes)
        settings: dict[str, Any] = {
            "allow_write": allow_write or (),
            "addresses": {**stage.addresses, **addresses},
            # The run uses the queries of its plan.
            "compose": functools.cache(author.compose),
            "limits": algebra.Limits(),
        }
        if program.writes and not dry_run:
            _confirm(program, settings, yes=yes)
        # The saved program resumes with the journal: `algebra run FILE --journal … --resume`.
        runtime = algebra.Runtime(
            **settings, dry_run=dry_run, journal=journal, program=_digest(text)
        )
        _print_run(program, stack.enter_context(runtime), {})


@app.command()
def run(
    file: File,
    variables: Variables = None,
    dry_run: DryRun = False,
    allow_write: options.AllowWrite = None,
    allow_read: Annotated[
        options.Many,
        Option(metavar="BASE", help="Read only here; repeatable."),
    ] = None,
    address: options.PublicAddress = None,
    journal: Annotated[Path | None, Option(help="Records the writes, to resume from.")] = None,
    resume: Annotated[bool, Option("--resume", help="Resume; no write is done twice.")] = False,
    unanswered: Annotated[
        Literal["ask", "done", "again"],
        Option(help="What to do about a journalled write that got no answer."),
    ] = "ask",
    credentials: options.Credentials = None,
    requests: Annotated[int, Option(min=1, help="Request limit.")] = 10_000,
    rows: Annotated[int, Option(min=1, help="Row limit.")] = 1_000_000,
    seconds: Annotated[float, Option(min=0.1, help="Time limit.")] = 3_600.0,
    lm: Annotated[str | None, Option(help="A model that writes its queries.")] = None,
    pack: Annotated[str | None, Option(help="A pack to use offline instead.")] = None,
) -> None:
    """Run a program; its result is JSON on standard output.

    Example: reasoningbank algebra run cities.json --allow-write http://localhost/denmark/
    """
    data, text = _read(file)
    given = dict(_variable(one) for one in variables or [])
    program = algebra.read_program(data, given, _prefixes(pack))
    # Check everything before an endpoint or a model is opened.
    addresses = options.addresses_of(address)
    loaded = algebra.credentials_from(credentials) if credentials else ()
    if lm:
        check_model(lm)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(_open_stage(pack)) if pack else None
        author = stack.enter_context(_open_author(lm, stage)) if lm else None
        runtime = algebra.Runtime(
            allow_write=allow_write or (),
            allow_read=allow_read,
            limits=algebra.Limits(requests=requests, rows=rows, seconds=seconds),
            addresses={**(stage.addresses if stage else {}), **addresses},
            credentials=loaded,
            compose=author.compose if author else None,
            dry_run=dry_run,
            journal=journal,
            resume=resume,
            program=_digest(text, variables or []),
            unanswered=unanswered,
        )
        _print_run(program, stack.enter_context(runtime), given)


@app.command()
def validate(
    file: File,
    variables: Variables = None,
    as_json: options.AsJson = False,
    pack: Annotated[str | None, Option(help="A pack whose prefixes it need not declare.")] = None,
) -> None:
    """Check a program without running it; report every mistake with its JSON path.

    Example: reasoningbank algebra validate cities.json
    """
    data, _ = _read(file)
    names, prefixes = dict(_variable(one) for one in variables or []), _prefixes(pack)
    wrong = algebra.mistakes(data, names, prefixes)
    if as_json:
        output.print_json([one.to_json() for one in wrong])
    else:
        output.notice(*wrong)
    if wrong:
        raise typer.Exit(1)
    if not as_json:
        program = algebra.read_program(data, names, prefixes)
        does = "writes" if program.writes else "only reads"
        output.say(f"valid: {counted(len(program.calls), 'operation')}, {does}")


@app.command()
def ops(
    name: Annotated[str, Argument(help="Only this one, in full.", metavar="[NAME]")] = "",
    prompt: Annotated[bool, Option("--prompt", help="As an agent reads them.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the operations, or show one in full.

    Example: reasoningbank algebra ops ForEach
    """
    names = [name] if name else None
    if prompt:
        sys.stdout.write(algebra.agent_prompt(names))
    elif names and not as_json:
        sys.stdout.write(algebra.reference(names))
    else:
        kinds = [algebra.operation(name)] if name else algebra.operations().values()
        keys = ("op", "signature", "writes", "summary")
        found = [(k.op, algebra.signature(k), k.writes, summary(k)) for k in kinds]
        data = [dict(zip(keys, one, strict=True)) for one in found]
        rows = [(signature, said) for _, signature, _, said in found]
        output.print_rows(("operation", "what it does"), rows, as_json, data)


@app.command()
def schema(
    only: Annotated[options.Many, Option(metavar="NAME", help="An operation; repeatable.")] = None,
) -> None:
    """Print the JSON Schema of programs, for editors and constrained decoding.

    Example: reasoningbank algebra schema > algebra.schema.json
    """
    output.print_json(algebra.program_schema(only))


# -- reading options -----------------------------------------------------------------------


def _read(file: str) -> tuple[Any, str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        what = f"cannot read ({error.strerror})"
        raise UsageError(what, where=file, code="cannot-read") from None
    except UnicodeDecodeError:
        raise UsageError("not UTF-8 text", where=file) from None
    with locating(file):
        return algebra.parse_program(text), text


def _prefixes(pack: str | None) -> Mapping[str, str]:
    return load_pack(pack).prefixes if pack else {}


def _variable(text: str) -> tuple[str, algebra.Value]:
    name, value = options.pair_of("--var", text)
    plain = name.removeprefix("$").removesuffix(":")
    if not name.endswith(":"):
        return plain, scalar(value)
    try:
        return plain, algebra.from_json(algebra.parse_program(value))
    except algebra.ProgramError as error:
        what = f"the value of {plain} cannot be used: {error}"
        raise UsageError(what, where="--var", code="not-json") from None


def _digest(text: str, variables: Sequence[str] = ()) -> str:
    """Return what a journal identifies a program by: its text and the given variables."""
    return hashlib.sha256(json.dumps([text, sorted(variables)]).encode()).hexdigest()


# -- writing a program ---------------------------------------------------------------------


@dataclass(frozen=True)
class Author:
    """A model that writes programs, and the queries that programs leave to it."""

    model: ModelHandle
    known: ContextBuilder | None  #: What is known of the pack's endpoint, if there is one

    def episode(self, question: str, endpoint: EndpointConfig) -> Episode:
        """Return the episode of one question about an endpoint."""
        recorder = Recorder(redact=list(self.model.secrets))
        counter = UsageCounter(recorder)
        own = self.known if self.known and endpoint == self.known.endpoint else None
        return Episode(
            endpoint=endpoint,
            tools={},
            lm=self.model.lm(temperature=0.0, max_tokens=MAX_TOKENS, seed=0),
            recorder=recorder,
            meter=Meter(Budget(), lambda: counter.usage),
            callbacks=[counter],
            context=own.build(question).text if own else "",
            pack=own.pack if own else None,
        )

    def compose(self, request: algebra.QueryRequest) -> str:
        """Return a query for a question of a program; see `algebra.Runtime`."""
        about = self.known.endpoint if self.known else None
        if request.endpoint and not (about and about.is_at(request.endpoint)):
            about = EndpointConfig(request.endpoint)
        if about is None:
            hint = "put the SPARQLString into an operation with an endpoint, or give --pack"
            raise UsageError("no endpoint is known for the question", hint=hint)
        return composer(self.episode(request.question, about))(request)


@contextlib.contextmanager
def _open_stage(pack: str, url: str | None = None) -> Iterator[Stage]:
    loaded = load_pack(pack)
    with open_endpoint(loaded, url) as endpoint, open_stage(loaded, endpoint) as stage:
        yield stage


@contextlib.contextmanager
def _open_author(lm: str, stage: Stage | None) -> Iterator[Author]:
    output.notice(f"opening {lm} …")
    with open_lm(lm) as model:
        known = None
        if stage is not None:
            at, pack = stage.endpoint, stage.pack
            vocabulary = Schema.of(at, pack.schema if pack else None)
            known = ContextBuilder(("L1", "L3"), endpoint=at, vocabulary=vocabulary, pack=pack)
        yield Author(model, known)


def _write(
    author: Author, stage: Stage, instruction: str, *, constrained: bool, repairs: int
) -> ProgramDraft:
    output.notice("writing …")
    episode = author.episode(instruction, stage.endpoint)
    writing = Writing(
        episode, instruction, constrained=constrained, shown=shown_programs(stage.pack)
    )
    draft = writing.first()
    for _ in range(repairs):
        if not draft.problems:
            break
        output.notice(f"invalid: {draft.problems[0]}")
        draft = writing.repaired(draft, draft.problems)
    # An invalid program may be nested too deeply to be serialised again.
    valid = not draft.problems
    text = json.dumps(draft.program, ensure_ascii=False, indent=2) if valid else draft.text
    output.print_query(text, output.progress_console, "json")
    usage = episode.meter.usage()
    output.notice(
        f"{usage.lm_calls} calls · {usage.tokens} tokens · {output.seconds(usage.seconds)}"
    )
    if draft.problems:
        raise ReasoningBankError(
            f"the model wrote no valid program: {draft.problems[0]}",
            hint="use other words or smaller steps, or try a larger model with --lm",
            code="no-program",
        )
    return draft


def _confirm(program: algebra.Program, settings: dict[str, Any], *, yes: bool) -> None:
    """Show what would be written, and go on only if the user agrees."""
    with algebra.Runtime(**settings, dry_run=True) as runtime:
        stopped = ""
        try:
            for _ in algebra.json_chunks(algebra.run_program(program, runtime)):
                pass
        except ReasoningBankError as error:
            stopped = str(error)
        planned = runtime.planned
    for one in planned[:MAX_SHOWN]:
        mark = "" if one.allowed else " (not allowed; see --allow-write)"
        output.notice(f"would {one.method} {one.url}{mark}")
    if len(planned) > MAX_SHOWN:
        output.notice(f"and {len(planned) - MAX_SHOWN} more")
    if stopped:
        output.notice(f"the plan stopped at: {stopped}")
    refused = next((one for one in planned if not one.allowed), None)
    if refused is not None:
        hint = "allow its base with --allow-write, or only show the plan with --dry-run"
        what = "writing is not allowed"
        raise UsageError(what, where=refused.url, hint=hint, code="write-not-allowed")
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        what = "cannot ask for confirmation without a terminal"
        raise UsageError(what, hint="look with --dry-run, then use --yes", code="no-terminal")
    if not typer.confirm(f"Write {counted(len(planned), 'document')}?", err=True):
        raise UsageError("nothing was written")


# -- running a program ---------------------------------------------------------------------


def _print_run(
    program: algebra.Program, runtime: algebra.Runtime, given: Mapping[str, algebra.Value]
) -> None:
    """Run a program and print its result as JSON, or if it fails only the completed writes."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+") as kept:
        try:
            kept.writelines(algebra.json_chunks(algebra.run_program(program, runtime, given)))
        except (ReasoningBankError, KeyboardInterrupt):
            for one in runtime.writes:
                status = f" ({one.status})" if one.status else ""
                output.notice(f"{one.state}: {one.method} {one.url}{status}")
            raise
        kept.seek(0)
        before, after = "", "\n"
        if runtime.dry_run:
            writes = [asdict(one) for one in runtime.planned]
            before = '{"result": '
            after = f',\n"writes": {json.dumps(writes, ensure_ascii=False)}}}\n'
        sys.stdout.write(before)
        shutil.copyfileobj(kept, sys.stdout)
        sys.stdout.write(after)
