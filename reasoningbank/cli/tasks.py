"""`reasoningbank tasks`: look at a corpus."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from reasoningbank.cli.output import console, print_json, print_table
from reasoningbank.corpus import get_task_stats, load_corpus
from reasoningbank.errors import UsageError

__all__ = ["app"]

app = typer.Typer(help="Look at a corpus of tasks.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(help="A pack's name or a folder of SHACL examples.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_tasks(pack: Where = "uniprot", as_json: AsJson = False) -> None:
    """List the tasks of a corpus.

    Example: reasoningbank tasks list uniprot
    """
    tasks = load_corpus(pack).tasks
    if as_json:
        print_json([asdict(task) for task in tasks])
        return
    rows = [(t.id, t.form, t.complexity, t.group, t.query) for t in tasks]
    print_table(("id", "form", "complexity", "group", "question"), rows)


@app.command()
def show(
    task_id: Annotated[str, typer.Argument(help="Id of a task.")],
    pack: Annotated[str, typer.Option(help="A pack's name or a folder.")] = "uniprot",
    as_json: AsJson = False,
) -> None:
    """Show one task with its gold query.

    Example: reasoningbank tasks show 001_example --pack uniprot
    """
    for task in load_corpus(pack).tasks:
        if task.id == task_id:
            if as_json:
                print_json(asdict(task))
                return
            console.print(f"{task.id} · {task.form} · {task.complexity} · {task.group}")
            console.print(task.query, markup=False)
            console.print(task.expected_sparql, markup=False, soft_wrap=True)
            return
    raise UsageError(f"unknown task {task_id!r}", where=pack, mend="see: reasoningbank tasks list")


@app.command()
def stats(pack: Where = "uniprot", as_json: AsJson = False) -> None:
    """Count the tasks by form, complexity and endpoint, and list findings.

    Example: reasoningbank tasks stats uniprot
    """
    corpus = load_corpus(pack)
    found = get_task_stats(corpus.tasks)
    if as_json:
        print_json({**found, "findings": [asdict(f) for f in corpus.findings]})
        return
    rows = [("total", "", found["total"])]
    for part in ("by_form", "by_complexity", "by_endpoint"):
        rows += [(part, name, count) for name, count in found[part].items()]
    rows.append(("findings", "", len(corpus.findings)))
    print_table(("what", "which", "tasks"), rows)
