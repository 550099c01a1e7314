"""`reasoningbank memory`: inspect what was learned, and maintain a bank."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from typer import Argument, Option, Typer

from reasoningbank import memory
from reasoningbank.cache import write_bytes_atomically
from reasoningbank.cli.options import AsJson, Many, PackName, check_folder_of, known
from reasoningbank.cli.output import notice, print_lines, print_rows
from reasoningbank.errors import UsageError
from reasoningbank.experiment import memory_sources
from reasoningbank.experiment.memory_sources import LearnedFeedback
from reasoningbank.experiment.records import Step
from reasoningbank.findings import counted
from reasoningbank.memory.bank import import_items
from reasoningbank.memory.rdf import rdf_name, to_rdf
from reasoningbank.memory.snapshot import Difference, difference, fields_changed
from reasoningbank.sparql.terms import short

app = Typer(help="Inspect what was learned, and maintain a bank.", no_args_is_help=True)

FormatName = Literal["jsonl", "turtle", "nquads"]
Row = tuple[Any, ...]

#: How the names of banks end.
BANK_ENDINGS = (".sqlite", ".db")
#: Longer values are shortened in a table.
_MOST = 40
_EVERY = (*get_args(memory.ItemStatus), "all")

_WHERE = "A bank (.sqlite), a snapshot (.jsonl, .ttl, .nq, gzipped or not), or a run's folder."
_SNAPSHOT = "Of a run: a snapshot's hash, or ARM.PERMUTATION[/STEP] (default the last step)."
Where = Annotated[Path, Argument(help=_WHERE, metavar="WHERE")]
OfRun = Annotated[str, Option("--snapshot", help=_SNAPSHOT)]
Bank = Annotated[Path, Argument(help="A bank (.sqlite).", metavar="BANK")]
ItemId = Annotated[str, Argument(help="An item's id, or its beginning.", metavar="ID")]
OfStatus = Annotated[str, Option("--status", help=f"Only {', '.join(_EVERY)}.")]
OfSource = Annotated[
    Many,
    Option("--src", help=f"Only {', '.join(get_args(memory.ItemSource))}; repeatable."),
]


@app.command("list")
def list_items(
    where: Where,
    snapshot: OfRun = "",
    status: OfStatus = "active",
    src: OfSource = None,
    as_json: AsJson = False,
) -> None:
    """List the items of a bank, of a snapshot, or of a run.

    Example: reasoningbank memory list experiments/results/uniprot_practice --src failure
    """
    items = _chosen(where, snapshot, status, src)
    headers = ("id", "source", "status", "tasks", "shown", "helped", "hurt", "title")
    data = [item.to_json() for item in items]
    print_rows(headers, list(map(_item_row, items)), as_json, data)


@app.command()
def show(where: Where, item_id: ItemId, snapshot: OfRun = "", as_json: AsJson = False) -> None:
    """Show one item: its content, its evidence, and its effect.

    Example: reasoningbank memory show bank.sqlite 3f9a
    """
    with memory_sources.opened(where, snapshot) as bank:
        item = bank.get(item_id)
    print_lines(_item_lines(item), as_json, item.to_json())


@app.command()
def search(
    where: Where,
    query: Annotated[str, Argument(help="A question, or a few words.")],
    number: Annotated[int, Option("-n", "--number", min=1, help="How many at most.")] = 10,
    src: OfSource = None,
    snapshot: OfRun = "",
    as_json: AsJson = False,
) -> None:
    """Find active items by dense and lexical search, the best first.

    Example: reasoningbank memory search bank.sqlite "diseases of a protein" -n 3
    """
    known("--src", src or [], get_args(memory.ItemSource))
    if not query.strip():
        raise UsageError("the query is empty", where="QUERY", hint="give a question or a few words")
    with memory_sources.opened(where, snapshot) as bank:
        found = bank.match(query, number, keep=lambda item: not src or item.src in src)
    rows = [
        (f"{m.score:.3f}", f"{m.semantic:.3f}", f"{m.lexical:.3f}", i.id, i.src, i.title)
        for i, m in found
    ]
    data = [
        {"score": m.score, "semantic": m.semantic, "lexical": m.lexical, **item.to_json()}
        for item, m in found
    ]
    print_rows(("score", "dense", "lexical", "id", "source", "title"), rows, as_json, data)


@app.command()
def history(
    where: Where,
    item_id: Annotated[str, Argument(help="Only of this item, by its id.", metavar="[ID]")] = "",
    snapshot: OfRun = "",
    as_json: AsJson = False,
) -> None:
    """Show the changes, oldest first: of a bank, or step by step of a run's stream.

    Example: reasoningbank memory history bank.sqlite 3f9a
    """
    if where.is_dir():
        steps = memory_sources.stream_of(where, snapshot)
        wanted = item_id.strip().lower()
        rows = [row for step in steps for row in _step_rows(step) if row[3].startswith(wanted)]
        if wanted and not rows:
            hint = "omit the id to see every change"
            raise UsageError(f"no step changed an item {item_id!r}", where=str(where), hint=hint)
        print_rows(("step", "task", "action", "item", "reason"), rows, as_json)
        return
    memory_sources.existing(where)
    if not memory_sources.is_bank(where):
        what, hint = "a snapshot has no history", "give a bank, or the folder of the run"
        raise UsageError(what, where=str(where), hint=hint, code="no-history")
    with memory_sources.opened(where, snapshot) as bank:
        changes = bank.history(item_id or None)
    headers = ("number", "time", "action", "item", "title", "reason")
    data = [_change_json(change) for change in changes]
    print_rows(headers, [_change_row(change) for change in changes], as_json, data)


@app.command()
def diff(
    before: Annotated[Path, Argument(help="A bank, a snapshot, or a run's folder.")],
    after: Annotated[Path, Argument(help="What it is compared with.")],
    first: Annotated[str, Option("--from", help="Snapshot of the first, if a run.")] = "",
    second: Annotated[str, Option("--to", help="Snapshot of the second, if a run.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show which items differ between two banks or snapshots, and how.

    Example: reasoningbank memory diff runs/learn runs/learn --from learned.0/3 --to learned.0
    """
    found = difference(
        memory_sources.read_items(before, first).items,
        memory_sources.read_items(after, second).items,
    )
    data = {
        "added": [item.to_json() for item in found.added],
        "removed": [item.to_json() for item in found.removed],
        "changed": [
            {"id": item.id, "title": item.title, "fields": fields} for item, fields in found.changed
        ],
    }
    print_rows(("change", "id", "title", "what"), [*_difference_rows(found)], as_json, data)


@app.command()
def export(
    where: Where,
    target: Annotated[
        Path | None, Argument(help="File: .jsonl, .jsonl.gz, .ttl or .nq.", metavar="[FILE]")
    ] = None,
    format: Annotated[
        FormatName | None, Option("--format", help="The format, if the file name does not say it.")
    ] = None,
    snapshot: OfRun = "",
    status: OfStatus = "all",
    src: OfSource = None,
) -> None:
    """Write items as JSON lines or as RDF (PROV-O), to a file or standard output.

    Example: reasoningbank memory export bank.sqlite items.ttl
    """
    items = _chosen(where, snapshot, status, src)
    name = _format_for(target, format) if target else format or "jsonl"
    if target is not None:
        _check_target(target, where)
    raw = memory.Snapshot.of(items).lines() if name == "jsonl" else to_rdf(items, name)
    if target is None:
        sys.stdout.buffer.write(raw)
        return
    data = gzip.compress(raw, mtime=0) if target.suffix == ".gz" else raw
    write_bytes_atomically(target, data, hint="free space or choose another file")
    notice(f"{counted(len(items), 'item')}: {target}")


@app.command("import")
def import_file(
    bank: Annotated[Path, Argument(help="A bank; created if missing.", metavar="BANK")],
    source: Annotated[Path, Argument(help="A .jsonl, .ttl, .nq, a bank, or a run's folder.")],
    snapshot: OfRun = "",
    as_json: AsJson = False,
) -> None:
    """Import items into a bank: all of them, or none if one is invalid.

    Items that the bank already has gain new evidence; a second import changes nothing.

    Example: reasoningbank memory import bank.sqlite items.ttl
    """
    items = memory_sources.read_items(source, snapshot).items
    with memory.MemoryBank(_bank_to_fill(bank)) as opened_bank:
        outcome = import_items(opened_bank, items, reason=f"import of {source}")
    added, merged, same = map(len, outcome)
    line = f"{added} added, {merged} merged, {same} unchanged"
    print_lines([line], as_json, outcome._asdict())


@app.command()
def learn(
    bank: Annotated[Path, Argument(help="A bank; created if missing.", metavar="BANK")],
    feedback: Annotated[Path, Argument(help="The folder that `reasoningbank serve` keeps.")],
    as_json: AsJson = False,
) -> None:
    """Learn from people's verdicts on answers; a second time changes nothing.

    Example: reasoningbank memory learn bank.sqlite feedback
    """
    found = memory_sources.read_feedback(feedback)
    if not found:
        raise UsageError("no feedback there", where=str(feedback), hint="rate an answer first")
    with memory.MemoryBank(_bank_to_fill(bank)) as opened_bank:
        learned = memory_sources.learn_feedback(opened_bank, found)
    _print_learned(learned, as_json)


@app.command()
def compose(bank: Bank, pack: PackName, as_json: AsJson = False) -> None:
    """Add to a bank what its strategies make in pairs, for questions that combine them.

    Example: reasoningbank memory compose bank.sqlite --pack uniprot
    """
    with memory.MemoryBank(memory_sources.bank_file(bank)) as opened_bank:
        learned = memory_sources.compose_items(opened_bank, pack)
    _print_learned(learned, as_json)


@app.command()
def retire(
    bank: Bank,
    item_id: ItemId,
    reason: Annotated[str, Option(help="Why, for the history.")] = "retired by hand",
    as_json: AsJson = False,
) -> None:
    """Stop an item from being retrieved; `undo` reverts it.

    Example: reasoningbank memory retire bank.sqlite 3f9a --reason "true of one release only"
    """
    with memory.MemoryBank(memory_sources.bank_file(bank)) as opened_bank:
        item = opened_bank.get(item_id)
        if item.status != "active":
            raise UsageError(f"the item is already {item.status}", where=item.id, code="not-active")
        opened_bank.retire(item.id, reason=reason)
        change = opened_bank.history(item.id)[-1]
    print_lines([f"retired {item.id}: {item.title}"], as_json, _change_json(change))


@app.command()
def undo(
    bank: Bank,
    number: Annotated[int | None, Argument(help="A change's number, as in `history`.")] = None,
    as_json: AsJson = False,
) -> None:
    """Undo the last change, or the change with a number; an undo can be undone too.

    Example: reasoningbank memory undo bank.sqlite 12
    """
    with memory.MemoryBank(memory_sources.bank_file(bank)) as opened_bank:
        done = opened_bank.undo(number)
        every = opened_bank.history()
    undone = [one for one in every if one.operation == done.undoes]
    changes = [one for one in every if one.operation == done.operation]
    numbers = [one.number for one in undone]
    which = f"changes {numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"change {numbers[0]}"
    reason = f" ({_line(undone[0].reason)})" if undone[0].reason.strip() else ""
    ids = list(dict.fromkeys(one.item_id for one in changes))
    line = f"undo of {which}{reason}: {ids[0] if len(ids) == 1 else counted(len(ids), 'item')}"
    made = [_change_json(one) for one in changes]
    data = {"undone": numbers, "reason": undone[0].reason, "changes": made}
    print_lines([line], as_json, data)


def _bank_to_fill(bank: Path) -> Path:
    """Return a bank that can be changed, or the name of a new one."""
    if bank.exists():
        return memory_sources.bank_file(bank)
    if bank.suffix not in BANK_ENDINGS:
        hint = "call it NAME.sqlite"
        raise UsageError("not a bank name", where=str(bank), hint=hint, code="not-a-bank")
    return bank


def _chosen(
    where: Path, snapshot: str, status: str, src: Sequence[str] | None
) -> list[memory.MemoryItem]:
    items = memory_sources.read_items(where, snapshot).items
    known("--status", [status], _EVERY)
    known("--src", src or [], get_args(memory.ItemSource))
    return [
        item for item in items if status in (item.status, "all") and (not src or item.src in src)
    ]


def _format_for(target: Path, wanted: FormatName | None) -> FormatName:
    """Return the format of a file to write: from its name, or else the one wanted."""
    ending = Path(target.name.removesuffix(".gz")).suffix
    named = "jsonl" if ending == ".jsonl" else rdf_name(target)
    where = str(target)
    if ending in BANK_ENDINGS:
        hint = "use .jsonl, .ttl or .nq; `reasoningbank memory import` makes a bank"
        raise UsageError("cannot export to a bank", where=where, hint=hint, code="target-is-bank")
    if named and wanted and named != wanted:
        what = f"the file name says {named}, not {wanted}"
        hint = "leave --format out, or name another file"
        raise UsageError(what, where=where, hint=hint, code="format-mismatch")
    name = wanted or named
    if name is None:
        hint = "use .jsonl, .jsonl.gz, .ttl or .nq, or give --format"
        raise UsageError("the file name says no format", where=where, hint=hint, code="no-format")
    return name


def _check_target(target: Path, source: Path) -> None:
    """Refuse a file that holds the source, a part of the run, or another database."""
    where, hint = str(target), "name another file"
    check_folder_of(target)
    if target.is_dir():
        raise UsageError("this is a folder", where=where, hint="name a file", code="is-folder")
    if not target.exists():
        return
    if target.samefile(source):
        raise UsageError("this is the source", where=where, hint=hint, code="target-is-source")
    if source.resolve() in target.resolve().parents:
        raise UsageError("this file is of the run", where=where, hint=hint, code="target-is-run")
    if memory_sources.is_bank(target):
        raise UsageError("this is a database", where=where, hint=hint, code="target-is-bank")


# -- text and JSON ---------------------------------------------------------------------------


def _print_learned(learned: LearnedFeedback, as_json: bool) -> None:
    data = {**learned._asdict(), "rejected": [asdict(one) for one in learned.rejected]}
    print_lines([f"{len(learned.added)} added, {len(learned.known)} known"], as_json, data)
    if not as_json:
        notice(*(f"not learned: {one.title} ({one.reason})" for one in learned.rejected))


def _item_row(item: memory.MemoryItem) -> Row:
    tasks = {(origin.corpus, origin.task) for origin in item.origins if origin.task}
    counts = item.counters
    shown = (counts.retrieved, counts.helped, counts.hurt)
    return (item.id, item.src, item.status, len(tasks), *shown, _line(item.title))


def _item_lines(item: memory.MemoryItem) -> Iterator[str]:
    status = f"superseded by {item.superseded_by}" if item.superseded_by else item.status
    head = (item.id, item.src, status, item.scope.pack, item.scope.endpoint)
    yield " · ".join(filter(None, head))
    yield item.title
    for name, text in (
        ("when", item.description),
        ("question", item.question),
        ("query", item.query),
        ("content", item.content),
        ("pattern", item.pattern),
        ("tags", ", ".join(item.tags)),
    ):
        if text:
            yield f"\n{name}:\n{text}"
    for number, turn in enumerate(item.turns, 1):
        yield f"\nturn {number}: {turn.reasoning}\n{turn.code}"
        if turn.output:
            yield f"prints: {turn.output}"
    counts = item.counters
    yield (
        f"\nshown in {counts.retrieved} trials: {counts.success} right, {counts.failure} wrong; "
        f"beside the same task without memory it helped {counts.helped} and hurt {counts.hurt}"
    )
    yield "evidence:"
    yield from (f"  {_origin(origin)}" for origin in item.origins)


def _change_row(change: memory.Change) -> Row:
    item = change.after or change.before
    title = _line(item.title) if item else ""
    action = _action(change.action, change.after.superseded_by if change.after else "")
    return change.number, change.time, action, change.item_id, title, _line(change.reason)


def _change_json(change: memory.Change) -> dict[str, Any]:
    before, after = change.before, change.after
    item = after or before
    return {
        "number": change.number,
        "operation": change.operation,
        "time": change.time,
        "action": change.action,
        "item": change.item_id,
        "title": item.title if item else "",
        "reason": change.reason,
        "changed": fields_changed(before, after) if before and after else {},
    }


def _step_rows(step: Step) -> Iterator[Row]:
    for action, items in (("add", step.added), ("merge", step.merged)):
        for item in items:
            yield step.step, step.task, action, item, f"learned from {step.trial}"
    for change in step.changes:
        said = {name: str(value) for name, value in change.items()}
        action = _action(said.get("action", ""), said.get("superseded_by", ""))
        yield step.step, step.task, action, said.get("item", ""), said.get("reason", "")


def _difference_rows(found: Difference) -> Iterator[Row]:
    for kind, items in (("added", found.added), ("removed", found.removed)):
        yield from ((kind, item.id, _line(item.title), item.src) for item in items)
    for item, fields in found.changed:
        what = ", ".join(
            f"{name} {short(f'{before}', _MOST)} → {short(f'{after}', _MOST)}"
            for name, (before, after) in fields.items()
        )
        yield "changed", item.id, _line(item.title), what


def _origin(origin: memory.Provenance) -> str:
    task = f"{origin.corpus}/{origin.task}" if origin.task else ""
    names = ("trial", "task", "group", "judge", "model", "author", "time")
    parts = {name: task if name == "task" else getattr(origin, name) for name in names}
    return ", ".join(f"{name} {text}" for name, text in parts.items() if text) or "not recorded"


def _action(action: str, merged_into: str) -> str:
    """Return the name of an action; a bank records a merge as its parts."""
    # An item that replaces another has the same content (the id) and gained evidence.
    if action == "replace":
        return "merge"
    if action == "supersede" and merged_into:
        return f"merged into {merged_into}"
    return action


def _line(text: str) -> str:
    return " ".join(text.split())
