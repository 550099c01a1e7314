"""`reasoningbank ask`: answer one question; `agent-viz`: draw the graph agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from reasoningbank.cli import output
from reasoningbank.cli.options import AsJson, Lm, PackName, Url
from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.experiment.ask import ShownStep, StepReader, open_solver
from reasoningbank.findings import counted
from reasoningbank.lm import parse_name
from reasoningbank.nl2sparql.confidence import Confidence, confidence_in
from reasoningbank.nl2sparql.graph import mermaid_picture, save_picture
from reasoningbank.nl2sparql.nodes import GraphSettings
from reasoningbank.trajectory import Event


def ask(
    question: Annotated[str, Argument(help="A question in natural language.")],
    agent: Annotated[str, Option(help="rlm, react, direct, rag, graph or algebra.")] = "rag",
    pack: PackName = "uniprot",
    lm: Lm = "local",
    url: Url = None,
    memory: Annotated[Path | None, Option(help="Show items of this bank, file or run.")] = None,
    snapshot: Annotated[str, Option(help="Of a run: ARM.PERMUTATION[/STEP], or its hash.")] = "",
    stream: Annotated[bool, Option("--stream", help="Show each step on standard error.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer one question: show the query, its rows, its cost and how far to trust it.

    Example: reasoningbank ask "Which human proteins are kinases?" --stream
    """
    if not question.strip():
        raise UsageError("the question is empty", hint='reasoningbank ask "Which …?"')
    with open_solver(
        agent, pack=pack, lm=lm, url=url, memory=memory, snapshot=snapshot, on_notice=output.notice
    ) as solver:
        output.notice("thinking …")
        result = solver.ask(question, step_printer() if stream else None)
    attempt, usage = result.attempt, result.attempt.usage
    trust = confidence_in(attempt.trajectory)
    if as_json:
        data: dict[str, Any] = {"sparql": attempt.sparql, "status": attempt.status}
        data |= {name: getattr(result, name) for name in ("answer", "rows", "note")}
        data |= {"turns": usage.iterations, "memory": list(result.memory)}
        costs = ("tool_calls", "seconds", "tokens", "dollars")
        data |= {name: getattr(usage, name) for name in costs}
        data["confidence"] = trust.confidence if trust and trust.calibrated else None
        data |= {name: getattr(trust, name, None) for name in ("calibrated", "explanation")}
        output.print_json(data)
    if attempt.sparql is None:
        raise ReasoningBankError(
            f"the agent wrote no query ({attempt.error or attempt.status})",
            hint="ask in other words, or try a larger model with --lm",
            code="no-query",
        )
    if as_json:
        return
    if result.answer:
        output.say(result.answer)
    output.print_query(attempt.sparql)
    output.print_objects(result.rows)
    output.say(result.note or counted(len(result.rows), "row"))
    price = "no known price" if usage.unpriced else f"${usage.dollars or 0:.4f}"
    price = "free" if parse_name(lm).is_local else price
    if trust is not None:
        output.say(trust.explanation)
    if line := confidence_line(trust):
        output.say(line)
    output.say(
        f"{attempt.status} · {usage.iterations} turns · {usage.tool_calls} tool calls · "
        f"{usage.tokens} tokens · {output.seconds(usage.seconds)} · {price}"
    )


def agent_viz(
    pack: Annotated[str, Option(help="The pack whose pattern families have writers.")] = "liita",
    file: Annotated[Path | None, Option("--output", "-o", help="A .png, .svg or .mmd.")] = None,
    inside: Annotated[bool, Option(help="Also draw the writers.")] = False,
    human: Annotated[bool, Option(help="With the step that asks a person.")] = False,
) -> None:
    """Draw the graph agent: Mermaid text on standard output, or a file.

    Example: reasoningbank agent-viz --inside -o graph.png
    """
    text = mermaid_picture(pack, GraphSettings(human=human), inside=inside)
    if file is None:
        print(text, end="")
        return
    save_picture(file, text)
    output.notice(f"wrote {file}")


def confidence_line(found: Confidence | None) -> str:
    """Return a measured confidence in words; empty if there is none.

    Examples:
        >>> confidence_line(Confidence(0.8, 0.6, True, ""))
        'confidence 0.60 (measured)'
    """
    return f"confidence {found.confidence:.2f} (measured)" if found and found.calibrated else ""


# -- steps of an attempt, shown as each completes ------------------------------------------


def step_printer(to: Console = output.progress_console) -> Callable[[Event], None]:
    """Return what prints the steps of an attempt as their events are recorded."""
    read = StepReader()

    def show(event: Event) -> None:
        if (step := read(event)) is not None:
            print_step(step, to)

    return show


def print_step(step: ShownStep, to: Console = output.progress_console) -> None:
    """Print a step: its outcome, what it wrote, and what that returned."""
    output.say(f"[{step.name}] {step.text}".rstrip(), to=to)
    if step.code:
        output.print_query(step.code, to, step.language)
    if step.output:
        output.say(step.output, to=to)
