"""`reasoningbank ask`: answer one question; `agent-viz`: draw the graph agent."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from reasoningbank.agents import make_agent
from reasoningbank.cli.memory_sources import opened
from reasoningbank.cli.options import AsJson, Lm, PackName, Url
from reasoningbank.cli.output import notice, print_json, say, seconds
from reasoningbank.cli.steps import Steps, confidence_line, print_query
from reasoningbank.corpus import Task, load_pack, load_shacl_tasks
from reasoningbank.errors import ModelError, ReasoningBankError, ToolError, UsageError
from reasoningbank.experiment import Arm, BankMemory, EndpointSettings, Experiment, NoMemory
from reasoningbank.experiment.context import NOTHING, RunContext, open_context
from reasoningbank.experiment.plan import hidden_tasks
from reasoningbank.experiment.trial import attempt_task
from reasoningbank.lm import open_lm, parse_name
from reasoningbank.nl2sparql import asked_language
from reasoningbank.nl2sparql.confidence import confidence_in
from reasoningbank.nl2sparql.graph import GraphSettings, mermaid_picture, save_picture
from reasoningbank.tools import SPARQLTools
from reasoningbank.trajectory import Usage

__all__ = ["agent_viz", "ask"]


def ask(
    question: Annotated[str, typer.Argument(help="A question in natural language.")],
    agent: Annotated[str, typer.Option(help="rlm, react, direct, rag, graph or algebra.")] = "rlm",
    pack: PackName = "uniprot",
    lm: Lm = "local",
    url: Url = None,
    memory: Annotated[
        Path | None,
        typer.Option(help="A bank, file of items or run; its items for the question are shown."),
    ] = None,
    snapshot: Annotated[
        str,
        typer.Option(help="Which snapshot of a run: ARM.PERMUTATION[/STEP], or its hash."),
    ] = "",
    stream: Annotated[
        bool, typer.Option("--stream", help="Show each step as it completes, on standard error.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer one question: show the query, its rows, its cost and how far to trust it.

    Example: reasoningbank ask "Which human proteins are kinases?" --agent rlm --stream
    """
    if not question.strip():
        raise UsageError("the question is empty", hint='reasoningbank ask "Which …?"')
    if make_agent(agent).sees_gold:
        raise UsageError(
            f"{agent} answers only tasks that have a gold query",
            hint="choose rlm, react, direct, rag, graph or algebra",
        )
    if snapshot and memory is None:
        raise UsageError("a snapshot needs a run", where="--snapshot", hint="name it with --memory")
    loaded = load_pack(pack)
    remembered = BankMemory(source="bank", bank=str(memory)) if memory else NoMemory()
    arm = Arm(name="ask", agent=agent, lm=lm, memory=remembered)
    experiment = Experiment(name="ask", pack=pack, arms=(arm,))
    language = asked_language(question, loaded)
    task = Task("ask", question, "", loaded.endpoint, language=language)
    corpus = load_shacl_tasks(pack)
    with contextlib.ExitStack() as stack:
        bank = stack.enter_context(opened(memory, snapshot)) if memory else None
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        notice(f"opening {loaded.name} and {lm} …")
        model = stack.enter_context(open_lm(lm))
        world = stack.enter_context(
            open_context(
                loaded,
                scratch,
                endpoint=EndpointSettings(url=url) if url else None,
                models={lm: model},
                hidden=hidden_tasks(corpus, ()),
            )
        )
        recall = NOTHING
        if bank is not None:
            from reasoningbank.experiment.recall import recalled

            recall = recalled(world, loaded, corpus, arm, task, bank)
        notice("thinking …")
        watch = Steps() if stream else None
        attempt = attempt_task(world, experiment, arm, task, recall=recall, watch=watch)
        if attempt.status == "error":
            raise ModelError(attempt.error)
        rows, note = _rows(world, attempt.sparql)
    usage = attempt.usage
    trust = confidence_in(attempt.trajectory)
    if as_json:
        print_json(
            {
                "sparql": attempt.sparql,
                "status": attempt.status,
                "rows": rows,
                "note": note,
                "turns": usage.iterations,
                "tool_calls": usage.tool_calls,
                "seconds": usage.seconds,
                "tokens": usage.tokens,
                "dollars": usage.dollars,
                "memory": [one["id"] for one in (recall.event or {}).get("items", ())],
                "confidence": trust.confidence if trust else None,
                "calibrated": trust.calibrated if trust else None,
                "explanation": trust.explanation if trust else None,
            }
        )
    if attempt.sparql is None:
        raise ReasoningBankError(
            f"the agent wrote no query ({attempt.error or attempt.status})",
            hint="ask in other words, or try a larger model with --lm",
            code="no-query",
        )
    if as_json:
        return
    print_query(attempt.sparql)
    for row in rows:
        say(row)
    say(note or f"{len(rows)} rows")
    if trust is not None:
        say(trust.explanation)
        say(confidence_line(trust))
    say(
        f"{attempt.status} · {usage.iterations} turns · {usage.tool_calls} tool calls · "
        f"{usage.tokens} tokens · {seconds(usage.seconds)} · {_price(lm, usage)}"
    )


def agent_viz(
    pack: Annotated[
        str, typer.Option(help="The pack whose pattern families have writers.")
    ] = "liita",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .png, .svg or .mmd file.")
    ] = None,
    inside: Annotated[bool, typer.Option(help="Also draw the writers.")] = False,
    human: Annotated[bool, typer.Option(help="With the step that asks a person.")] = False,
) -> None:
    """Draw the graph agent: Mermaid text on standard output, or a file.

    Example: reasoningbank agent-viz --inside -o graph.png
    """
    settings = GraphSettings(human=human)
    if output is None:
        print(mermaid_picture(pack, settings, inside=inside), end="")
        return
    save_picture(output, pack, settings, inside=inside)
    notice(f"wrote {output}")


def _rows(world: RunContext, sparql: str | None) -> tuple[Sequence[dict[str, Any]], str]:
    """Return the first rows of a query, and a note about them."""
    if sparql is None:
        return [], ""
    tools = SPARQLTools(world.endpoint, client=world.client)
    try:
        shown = tools.sparql_peek(tools.sparql_query(sparql), 20)
    except ToolError as error:
        return [], f"the query does not run: {error}"
    return list(shown), shown.note


def _price(lm: str, usage: Usage) -> str:
    if parse_name(lm).is_local:
        return "free"
    if usage.unpriced:
        return "no known price"
    return f"${usage.dollars or 0:.4f}"
