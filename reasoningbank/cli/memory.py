"""`reasoningbank memory`: look at what was learned, and take care of a bank."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer

from reasoningbank.cli.memory_files import (
    FormatName,
    checked_target,
    format_for,
    save_items,
    written,
)
from reasoningbank.cli.memory_sources import (
    bank_file,
    existing,
    is_bank,
    opened,
    read_items,
    stream_of,
)
from reasoningbank.cli.memory_text import (
    change_json,
    change_row,
    difference_json,
    difference_rows,
    item_lines,
    item_row,
    step_rows,
    undo_json,
    undo_line,
)
from reasoningbank.cli.output import console, print_json, print_table, progress_console
from reasoningbank.errors import UsageError
from reasoningbank.memory import ItemSource, ItemStatus, MemoryBank, MemoryItem
from reasoningbank.memory.bank import import_items
from reasoningbank.memory.snapshot import difference

__all__ = ["app"]

app = typer.Typer(help="Look at what was learned, and take care of a bank.", no_args_is_help=True)

_EVERY = (*get_args(ItemStatus), "all")

Where = Annotated[
    Path,
    typer.Argument(
        help="A bank (.sqlite), a snapshot (.jsonl, .ttl, .nq, gzipped or not), or a run's folder.",
        metavar="WHERE",
    ),
]
OfRun = Annotated[
    str,
    typer.Option(
        "--snapshot", help="Of a run: a snapshot's hash, ARM.ORDER for a stream's last, or /STEP."
    ),
]
Bank = Annotated[Path, typer.Argument(help="A bank (.sqlite).", metavar="BANK")]
ItemId = Annotated[str, typer.Argument(help="An item's id, or its beginning.", metavar="ID")]
OfStatus = Annotated[str, typer.Option("--status", help=f"Only {', '.join(_EVERY)}.")]
OfSource = Annotated[
    list[str] | None,
    typer.Option("--src", help=f"Only {', '.join(get_args(ItemSource))}; may be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_items(
    where: Where,
    snapshot: OfRun = "",
    status: OfStatus = "active",
    src: OfSource = None,
    as_json: AsJson = False,
) -> None:
    """List the items of a bank, of a snapshot, or of a run.

    Example: reasoningbank memory list runs/uniprot_memory --snapshot learned.0 --src failure
    """
    items = _chosen(read_items(where, snapshot).items, status, src)
    if as_json:
        print_json([item.to_json() for item in items])
        return
    headers = ("id", "source", "status", "tasks", "shown", "helped", "hurt", "title")
    print_table(headers, [item_row(item) for item in items])


@app.command()
def show(where: Where, item_id: ItemId, snapshot: OfRun = "", as_json: AsJson = False) -> None:
    """Show one item: what it says, what it rests on, what came of it.

    Example: reasoningbank memory show bank.sqlite 3f9a
    """
    with opened(where, snapshot) as bank:
        item = bank.get(item_id)
    if as_json:
        print_json(item.to_json())
        return
    for line in item_lines(item):
        console.print(line, soft_wrap=True)


@app.command()
def search(
    where: Where,
    query: Annotated[str, typer.Argument(help="A question, or a few words.")],
    number: Annotated[int, typer.Option("-n", "--number", min=1, help="How many at most.")] = 10,
    src: OfSource = None,
    snapshot: OfRun = "",
    as_json: AsJson = False,
) -> None:
    """Find active items by meaning and by words, the best first.

    Example: reasoningbank memory search bank.sqlite "diseases of a protein" -n 3
    """
    _known("--src", src or [], get_args(ItemSource))
    if not query.strip():
        raise UsageError("the query is empty", where="QUERY", hint="give a question or a few words")
    with opened(where, snapshot) as bank:
        found = bank.match(query, number, keep=lambda item: not src or item.src in src)
    if as_json:
        print_json(
            [
                {"score": m.score, "semantic": m.semantic, "lexical": m.lexical, **item.to_json()}
                for item, m in found
            ]
        )
        return
    print_table(
        ("score", "meaning", "words", "id", "source", "title"),
        [
            (f"{m.score:.3f}", f"{m.semantic:.3f}", f"{m.lexical:.3f}", i.id, i.src, i.title)
            for i, m in found
        ],
    )


@app.command()
def history(
    where: Where,
    item_id: Annotated[
        str, typer.Argument(help="Only of this item, by its id.", metavar="[ID]")
    ] = "",
    snapshot: OfRun = "",
    as_json: AsJson = False,
) -> None:
    """Show what was changed, oldest first: in a bank, or step by step in a run's stream.

    Example: reasoningbank memory history bank.sqlite 3f9a
    """
    if where.is_dir():
        steps = stream_of(where, snapshot)
        wanted = item_id.strip().lower()
        rows = [row for step in steps for row in step_rows(step) if row[3].startswith(wanted)]
        if wanted and not rows:
            hint = "the history without an id shows what was changed"
            raise UsageError(f"no step changed an item {item_id!r}", where=str(where), hint=hint)
        headers: tuple[str, ...] = ("step", "task", "action", "item", "reason")
        if as_json:
            print_json([dict(zip(headers, row, strict=True)) for row in rows])
        else:
            print_table(headers, rows)
        return
    existing(where)
    if not is_bank(where):
        hint = "give a bank, or the folder of the run"
        raise UsageError("a snapshot has no history", where=str(where), hint=hint)
    with opened(where, snapshot) as bank:
        changes = bank.history(item_id or None)
    if as_json:
        print_json([change_json(change) for change in changes])
        return
    headers = ("number", "time", "action", "item", "title", "reason")
    print_table(headers, [change_row(change) for change in changes])


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="A bank, a snapshot, or a run's folder.")],
    after: Annotated[Path, typer.Argument(help="What it is compared with.")],
    first: Annotated[str, typer.Option("--from", help="Snapshot of the first, if a run.")] = "",
    second: Annotated[str, typer.Option("--to", help="Snapshot of the second, if a run.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show which items two banks or snapshots differ in, and in what.

    Example: reasoningbank memory diff runs/learn runs/learn --from learned.0/3 --to learned.0
    """
    found = difference(read_items(before, first).items, read_items(after, second).items)
    if as_json:
        print_json(difference_json(found))
        return
    print_table(("change", "id", "title", "what"), [*difference_rows(found)])


@app.command()
def export(
    where: Where,
    target: Annotated[
        Path | None, typer.Argument(help="File: .jsonl, .jsonl.gz, .ttl or .nq.", metavar="[FILE]")
    ] = None,
    format: Annotated[
        FormatName | None, typer.Option("--format", help="What a file's name does not tell.")
    ] = None,
    snapshot: OfRun = "",
    status: OfStatus = "all",
    src: OfSource = None,
) -> None:
    """Write items as JSON lines, or as RDF in the terms of PROV-O; without a file, here.

    Example: reasoningbank memory export bank.sqlite items.ttl
    """
    items = _chosen(read_items(where, snapshot).items, status, src)
    if target is None:
        sys.stdout.buffer.write(written(items, format or "jsonl"))
        return
    name = format_for(target, format)
    save_items(checked_target(target, where), items, name)
    progress_console.print(f"{len(items)} items: {target}", soft_wrap=True)


@app.command("import")
def import_file(
    bank: Annotated[Path, typer.Argument(help="A bank, made where there is none.", metavar="BANK")],
    source: Annotated[
        Path, typer.Argument(help="What to take in: .jsonl, .ttl, .nq, a bank, or a run's folder.")
    ],
    snapshot: OfRun = "",
    as_json: AsJson = False,
) -> None:
    """Take items into a bank: all of them, or none if one is bad.

    What the bank has already gains the evidence that is new to it; importing twice is importing
    once.

    Example: reasoningbank memory import bank.sqlite items.ttl
    """
    items = read_items(source, snapshot).items
    if bank.exists():
        bank_file(bank)
    elif bank.suffix not in (".sqlite", ".db"):
        raise UsageError("is no name of a bank", where=str(bank), hint="call it NAME.sqlite")
    with MemoryBank(bank) as opened_bank:
        outcome = import_items(opened_bank, items, reason=f"import of {source}")
    if as_json:
        print_json(outcome._asdict())
        return
    added, merged, same = (len(part) for part in outcome)
    console.print(f"{added} added, {merged} merged, {same} were there", soft_wrap=True)


@app.command()
def retire(
    bank: Bank,
    item_id: ItemId,
    reason: Annotated[str, typer.Option(help="Why, for the history.")] = "retired by hand",
    as_json: AsJson = False,
) -> None:
    """Keep an item from being retrieved; `undo` takes that back.

    Example: reasoningbank memory retire bank.sqlite 3f9a --reason "true of one release only"
    """
    with MemoryBank(bank_file(bank)) as opened_bank:
        item = opened_bank.get(item_id)
        if item.status != "active":
            raise UsageError(f"is {item.status} already", where=item.id)
        opened_bank.retire(item.id, reason=reason)
        change = opened_bank.history(item.id)[-1]
    if as_json:
        print_json(change_json(change))
        return
    console.print(f"retired {item.id}: {item.title}", soft_wrap=True)


@app.command()
def undo(
    bank: Bank,
    number: Annotated[
        int | None, typer.Argument(help="A change's number, as `history` shows it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take back the last change, or the one of a number; undone in turn, it is as before.

    Example: reasoningbank memory undo bank.sqlite 12
    """
    with MemoryBank(bank_file(bank)) as opened_bank:
        done = opened_bank.undo(number)
        every = opened_bank.history()
    # What was taken back is told by its number, or is what came last before.
    last = done.number - 1 if number is None else number
    operation = max(one.operation for one in every if one.number <= last)
    undone = [one for one in every if one.operation == operation]
    changes = [one for one in every if one.operation == done.operation]
    if as_json:
        print_json(undo_json(undone, changes))
        return
    console.print(undo_line(undone, changes), soft_wrap=True)


def _chosen(
    items: Sequence[MemoryItem], status: str, src: Sequence[str] | None
) -> list[MemoryItem]:
    _known("--status", [status], _EVERY)
    _known("--src", src or [], get_args(ItemSource))
    return [
        item for item in items if status in (item.status, "all") and (not src or item.src in src)
    ]


def _known(option: str, words: Sequence[str], known: Sequence[str]) -> None:
    for word in words:
        if word not in known:
            hint = f"use {', '.join(known)}"
            raise UsageError(f"unknown value {word!r}", where=option, hint=hint)
