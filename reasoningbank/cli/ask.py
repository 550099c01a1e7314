"""`reasoningbank ask`: answer one question; `agent-viz`: draw the graph agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.options import AsJson, Lm, PackName, Url
from reasoningbank.cli.output import notice, print_json, say, seconds
from reasoningbank.cli.steps import Steps, confidence_line, print_query
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.experiment.ask import open_solver
from reasoningbank.lm import parse_name
from reasoningbank.nl2sparql.confidence import confidence_in
from reasoningbank.nl2sparql.graph import GraphSettings, mermaid_picture, save_picture
from reasoningbank.trajectory import Usage


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
    with open_solver(
        agent, pack=pack, lm=lm, url=url, memory=memory, snapshot=snapshot, on_notice=notice
    ) as solver:
        notice("thinking …")
        result = solver.ask(question, Steps() if stream else None)
    attempt, rows, note = result.attempt, result.rows, result.note
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
                "memory": list(result.memory),
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


def _price(lm: str, usage: Usage) -> str:
    if parse_name(lm).is_local:
        return "free"
    if usage.unpriced:
        return "no known price"
    return f"${usage.dollars or 0:.4f}"
