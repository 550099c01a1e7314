"""`reasoningbank tasks`: list, sample and check the tasks of a corpus."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Argument, Exit, Option, Typer

from reasoningbank import corpus
from reasoningbank.cli import output
from reasoningbank.cli.options import AsJson, Many, known
from reasoningbank.corpus.splits import PARTS
from reasoningbank.errors import UsageError
from reasoningbank.findings import counted
from reasoningbank.sparql import EndpointConfig, SPARQLClient

app = Typer(help="List, sample and check the tasks of a corpus.", no_args_is_help=True)

Where = Annotated[str, Argument(help="A pack's name or a folder of SHACL examples.")]
OfSplit = Annotated[str | None, Option("--split", help="Only train, dev or test.")]
OfComplexity = Annotated[
    Many,
    Option("--complexity", help="Only simple, moderate or complex; repeatable."),
]
OfForm = Annotated[
    Many,
    Option("--form", help="Only SELECT, ASK, CONSTRUCT, DESCRIBE or UPDATE; repeatable."),
]
OfGroup = Annotated[Many, Option("--group", help="Only this group; repeatable.")]


@app.command("list")
def list_tasks(
    pack: Where = "uniprot",
    split: OfSplit = None,
    complexity: OfComplexity = None,
    form: OfForm = None,
    group: OfGroup = None,
    as_json: AsJson = False,
) -> None:
    """List the tasks of a corpus.

    Example: reasoningbank tasks list uniprot --split dev --form ASK
    """
    _, parts, chosen = _chosen(pack, split, complexity, form, group)
    _print_tasks(chosen, parts, as_json)


@app.command()
def sample(
    pack: Where = "uniprot",
    n: Annotated[int, Option("-n", "--number", min=0, help="How many.")] = 10,
    seed: Annotated[int, Option(help="Seed of the sample.")] = 0,
    split: OfSplit = None,
    complexity: OfComplexity = None,
    form: OfForm = None,
    group: OfGroup = None,
    as_json: AsJson = False,
) -> None:
    """Draw a sample of tasks: the same each time, and extended by a larger number.

    Example: reasoningbank tasks sample uniprot -n 5 --complexity simple
    """
    _, parts, chosen = _chosen(pack, split, complexity, form, group)
    _print_tasks(corpus.sample_tasks(chosen, n, seed=seed), parts, as_json)


@app.command()
def show(
    task_id: Annotated[str, Argument(help="Id of a task.")],
    where: Annotated[str | None, Argument(metavar="[PACK]", help="A pack or a folder.")] = None,
    pack: Annotated[str, Option(help="The same as an option.")] = "uniprot",
    as_json: AsJson = False,
) -> None:
    """Show one task with its gold query.

    Example: reasoningbank tasks show 001_recommended_name_of_protein uniprot
    """
    loaded = corpus.load_corpus(where or pack)
    task = corpus.find_task(loaded.tasks, task_id, loaded.name)
    parts = loaded.split().by_id()
    head = (task.id, task.form, task.complexity, task.group, parts[task.id])
    lines = (" · ".join(head), task.query, task.expected_sparql)
    output.print_lines(lines, as_json, {**asdict(task), "split": parts[task.id]})


@app.command()
def stats(
    pack: Where = "uniprot",
    split: OfSplit = None,
    complexity: OfComplexity = None,
    form: OfForm = None,
    group: OfGroup = None,
    as_json: AsJson = False,
) -> None:
    """Count the tasks by form, complexity, endpoint and split, and the findings of loading.

    Example: reasoningbank tasks stats uniprot
    """
    loaded, parts, chosen = _chosen(pack, split, complexity, form, group)
    found = corpus.get_task_stats(chosen)
    counts = Counter(parts[task.id] for task in chosen)
    data: dict[str, Any] = {**found, "by_split": {part: counts[part] for part in PARTS}}
    data["findings"] = [corpus.finding_row(finding) for finding in loaded.findings]
    rows = [("total", "", found["total"])]
    for part in ("by_form", "by_complexity", "by_endpoint", "by_split"):
        rows += [(part, name, count) for name, count in data[part].items()]
    rows += [("groups", "", found["groups"]), ("findings", "", len(loaded.findings))]
    output.print_rows(("what", "which", "tasks"), rows, as_json, data)


@app.command("validate")
def validate_corpus(
    pack: Where = "uniprot",
    run: Annotated[bool, Option("--run", help="Run every gold query on the pack's data.")] = False,
    endpoint: Annotated[str | None, Option(metavar="URL", help="Run gold queries here.")] = None,
    slow: Annotated[float, Option(min=0, help="Seconds after which a gold query is slow.")] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Check a corpus and print the findings by file.

    Exit status 1 if there are errors; 0 with only warnings and remarks.

    Example: reasoningbank tasks validate uniprot --run
    """
    if run and endpoint:
        raise UsageError("give --run or --endpoint, not both", where="validate")
    chosen = corpus.load_pack(pack)
    with _client(chosen, run, endpoint) as client:
        findings = corpus.validate(chosen, client, slow_s=slow)
    loaded = corpus.load_corpus(chosen)
    counts = Counter(corpus.severity_of(finding) for finding in findings)
    listed = [corpus.finding_row(finding) for finding in findings]
    if as_json:
        numbers = {f"{name}s": counts[name] for name in get_args(corpus.Severity)}
        head = {"corpus": loaded.name, "tasks": len(loaded.tasks), **numbers}
        output.print_json({**head, "ran": client is not None, "findings": listed})
    else:
        if findings:
            rows = [tuple(one.values())[:4] for one in listed]
            output.print_table(("file", "severity", "code", "message"), rows)
        output.notice(_summary(loaded, counts, ran=client is not None))
    raise Exit(1 if counts["error"] else 0)


def _summary(loaded: corpus.Corpus, counts: Counter[corpus.Severity], *, ran: bool) -> str:
    words = ("error", "warning", "remark")
    kinds = zip(get_args(corpus.Severity), words, strict=True)
    found = ", ".join(counted(counts[kind], word) for kind, word in kinds)
    golds = "gold queries executed"
    if not ran:
        golds = "no gold query executed: use --run or --endpoint URL"
    return f"{loaded.name}: {counted(len(loaded.tasks), 'task')}, {found}; {golds}"


@contextlib.contextmanager
def _client(pack: corpus.Pack, run: bool, endpoint: str | None) -> Iterator[SPARQLClient | None]:
    if endpoint is not None and not pack.endpoint:
        # A bare folder names no endpoint.
        yield SPARQLClient(EndpointConfig(endpoint, prefixes=dict(pack.prefixes)))
    elif run or endpoint is not None:
        with corpus.open_endpoint(pack, endpoint) as config:
            yield SPARQLClient(config)
    else:
        yield None


@app.command()
def build(
    pack: Annotated[str, Argument(help="A pack with templates: its name or folder.")],
    number: Annotated[int, Option("-n", "--number", min=1, help="Per template.")] = 15,
    seed: Annotated[int, Option(help="Another seed draws other values.")] = 0,
    out: Annotated[Path | None, Option(metavar="FOLDER", help="Default: the pack's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the instances of a pack's templates, as SHACL examples.

    Example: reasoningbank tasks build uniprot --seed 7 --out my-instances
    """
    chosen = corpus.load_pack(pack)
    folder = out or chosen.instances
    if folder is None:
        hint = 'add instances = "instances" to its pack.toml, or give --out'
        raise UsageError("the pack names no folder for instances", where=pack, hint=hint)
    with corpus.open_endpoint(chosen) as config:
        made, findings = corpus.instantiate(chosen, SPARQLClient(config), number=number, seed=seed)
    if not made:
        what = findings[0].what if findings else ""
        raise UsageError(f"no template has an instance; {what}", where=pack, code="no-instances")
    files = corpus.write_instances(chosen, made, folder)
    counts = Counter(instance.split for instance in made)
    if as_json:
        listed = [corpus.finding_row(finding) for finding in findings]
        output.print_json({"instances": len(made), "by_split": counts, "findings": listed})
        return
    output.notice(*(finding.what for finding in findings))
    splits = ", ".join(f"{counts[part]} {part}" for part in PARTS)
    of = counted(len(files), "template")
    output.notice(f"{counted(len(made), 'instance')} of {of}: {splits}")
    output.say(str(folder))


@app.command("levels")
def show_levels(
    pack: Where = "uniprot",
    split: Annotated[str, Option(help="The tasks to classify: dev or test.")] = "test",
    bank: Annotated[
        Path | None, Option(metavar="FILE", help="Relative to this bank or file of items.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Classify tasks as iid, compositional or zero-shot relative to the training tasks.

    Also reports questions that nearly repeat a training question.

    Example: reasoningbank tasks levels uniprot-instances --split dev
    """
    known("--split", [split], PARTS)
    loaded = corpus.load_corpus(pack)
    parts = loaded.split()
    chosen: tuple[corpus.Task, ...] = getattr(parts, split)
    training: list[corpus.Task | str] = list(parts.train)
    if bank is not None:
        from reasoningbank.experiment.memory_sources import opened

        with opened(bank) as items:
            training = [item.pattern for item in items.items() if item.pattern]
    found = corpus.levels(chosen, training, corpus.load_pack(pack).prefixes)
    same = corpus.near_duplicates(chosen, parts.train) if split != "train" else []
    if as_json:
        names = ("task", "training_task", "similarity")
        repeated = [dict(zip(names, pair, strict=True)) for pair in same]
        output.print_json({"levels": found, "near_duplicates": repeated})
        return
    rows = []
    for level in corpus.LEVELS:
        own = [task for task in chosen if found[task.id] == level]
        rows.append((level, len(own), len({task.template or task.group for task in own})))
    output.print_table(("level", "tasks", "templates"), rows)
    for task, other, similarity in same:
        output.notice(f"{task} nearly repeats {other} ({similarity:.2f})")
    output.notice(f"questions that nearly repeat a training question: {len(same)}")


# -- choosing and printing -----------------------------------------------------------------


def _chosen(
    pack: str, split: str | None, complexity: Many, form: Many, group: Many
) -> tuple[corpus.Corpus, Mapping[str, str], Sequence[corpus.Task]]:
    """Return a corpus, the split of each task, and the tasks that pass the filters."""
    loaded = corpus.load_corpus(pack)
    parts = loaded.split().by_id()
    known("--split", [split] if split else [], PARTS)
    known("--complexity", complexity or [], get_args(corpus.Complexity))
    forms = [word.upper() for word in form or []]
    known("--form", forms, get_args(corpus.QueryForm))
    known("--group", group or [], sorted({task.group for task in loaded.tasks}))
    chosen = [
        task
        for task in loaded.tasks
        if (not split or parts[task.id] == split)
        and (not complexity or task.complexity in complexity)
        and (not forms or task.form in forms)
        and (not group or task.group in group)
    ]
    return loaded, parts, chosen


def _print_tasks(tasks: Sequence[corpus.Task], parts: Mapping[str, str], as_json: bool) -> None:
    rows = [(t.id, t.form, t.complexity, t.group, parts[t.id], t.query) for t in tasks]
    # Reading every field is slow in a large corpus.
    data = [{**asdict(task), "split": parts[task.id]} for task in tasks if as_json]
    output.print_rows(
        ("id", "form", "complexity", "group", "split", "question"), rows, as_json, data
    )
