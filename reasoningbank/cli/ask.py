"""`reasoningbank ask`: one question, answered."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.agents import make_agent
from reasoningbank.cli.memory_sources import opened
from reasoningbank.cli.output import console, print_json, progress_console, seconds
from reasoningbank.cli.steps import Steps, confidence_line, print_query
from reasoningbank.corpus import Task, load_pack, load_shacl_tasks
from reasoningbank.errors import ModelError, ReasoningBankError, ToolError, UsageError
from reasoningbank.experiment import Arm, EndpointSettings, Experiment, MemorySettings
from reasoningbank.experiment.plan import hidden_tasks
from reasoningbank.experiment.recall import NOTHING
from reasoningbank.experiment.trial import attempt_task
from reasoningbank.experiment.world import open_world
from reasoningbank.lm import open_lm, parse_name
from reasoningbank.nl2sparql import asked_language
from reasoningbank.nl2sparql.confidence import confidence_in
from reasoningbank.tools import SPARQLTools
from reasoningbank.trajectory import Usage

__all__ = ["ask"]


def ask(
    question: Annotated[str, typer.Argument(help="A question in natural language.")],
    agent: Annotated[str, typer.Option(help="rlm, react, direct, rag, graph or algebra.")] = "rlm",
    pack: Annotated[str, typer.Option(help="A pack's name or folder.")] = "uniprot",
    lm: Annotated[str, typer.Option(help="A model: local, or a LiteLLM name.")] = "local",
    url: Annotated[str | None, typer.Option(help="A running endpoint to ask instead.")] = None,
    memory: Annotated[
        Path | None,
        typer.Option(help="A bank, file of items or run; its items for the question are shown."),
    ] = None,
    snapshot: Annotated[
        str, typer.Option(help="Which snapshot of a run: ARM.ORDER, ARM.ORDER/STEP or its hash.")
    ] = "",
    stream: Annotated[
        bool, typer.Option("--stream", help="Show each step as it completes, on standard error.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Answer one question; shows the query, its rows, what it cost and how far to trust it.

    Example: reasoningbank ask "Which human proteins are kinases?" --agent rlm --stream
    """
    if not question.strip():
        raise UsageError("the question is empty", hint='reasoningbank ask "Which …?"')
    solver = make_agent(agent)
    if solver.sees_gold:
        raise UsageError(
            f"{agent} answers only tasks that have a gold",
            hint="choose rlm, react, direct, rag, graph or algebra",
        )
    if snapshot and memory is None:
        raise UsageError("a snapshot is of a run", where="--snapshot", hint="name it with --memory")
    endpoint = EndpointSettings(url=url) if url else None
    loaded = load_pack(pack)
    remembered = MemorySettings(source="bank", bank=str(memory)) if memory else MemorySettings()
    arm = Arm(name="ask", agent=agent, lm=lm, memory=remembered)
    experiment = Experiment(name="ask", pack=pack, arms=(arm,))
    spoken = asked_language(question, loaded)
    task = Task("ask", question, "", loaded.endpoint, language=spoken)
    corpus = load_shacl_tasks(pack)
    with contextlib.ExitStack() as stack:
        bank = stack.enter_context(opened(memory, snapshot)) if memory else None
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        progress_console.print(f"opening {loaded.name} and {lm} …")
        model = stack.enter_context(open_lm(lm))
        world = stack.enter_context(
            open_world(
                loaded,
                scratch,
                endpoint=endpoint,
                models={lm: model},
                hidden=hidden_tasks(corpus, ()),
            )
        )
        recall = NOTHING
        if bank is not None:
            from reasoningbank.experiment.learning.asking import recalled

            recall = recalled(world, loaded, corpus, arm, task, bank)
        progress_console.print("thinking …")
        steps = Steps() if stream else None
        attempt = attempt_task(world, experiment, arm, task, seed=0, recall=recall, watch=steps)
        rows, note = [], ""
        if attempt.status == "error":
            raise ModelError(attempt.error)
        if attempt.sparql is not None:
            tools = SPARQLTools(world.endpoint, client=world.client)
            try:
                shown = tools.sparql_peek(tools.sparql_query(attempt.sparql), 20)
                rows, note = list(shown), shown.note
            except ToolError as error:
                note = f"the query does not run: {error}"
    usage = attempt.usage
    trust = confidence_in(attempt.trajectory)
    if as_json:
        cost = {"seconds": usage.seconds, "tokens": usage.tokens, "dollars": usage.dollars}
        print_json(
            {"sparql": attempt.sparql, "status": attempt.status, "rows": rows, "note": note,
             "turns": usage.iterations, "tool_calls": usage.tool_calls, **cost,
             "memory": [one["id"] for one in (recall.event or {}).get("items", ())],
             "confidence": trust.confidence if trust else None,
             "calibrated": trust.calibrated if trust else None,
             "explanation": trust.explanation if trust else None}
        )  # fmt: skip
    if attempt.sparql is None:
        raise ReasoningBankError(
            f"no query came out ({attempt.error or attempt.status})",
            hint="ask in other words, or try a larger model with --lm",
        )
    if as_json:
        return
    print_query(attempt.sparql)
    for row in rows:
        console.print(row, soft_wrap=True)
    console.print(note or f"{len(rows)} rows")
    if trust is not None:
        console.print(trust.explanation, soft_wrap=True)
        console.print(confidence_line(trust))
    console.print(
        f"{attempt.status} · {usage.iterations} turns · {usage.tool_calls} tool calls · "
        f"{usage.tokens} tokens · {seconds(usage.seconds)} · {_price(lm, usage)}"
    )


def _price(lm: str, usage: Usage) -> str:
    if parse_name(lm).is_local:
        return "free"
    if usage.unpriced:
        return "no known price"
    return f"${usage.dollars or 0:.4f}"
