"""The loop that one would write instead: `dspy.RLM` with the same tools, and nothing around it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import dspy

from benchmarks.trials import MODEL, Ran
from reasoningbank.agents.sandbox.interpreter import deno_command
from reasoningbank.corpus import Task
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import DEFAULT_TOOLS, SPARQLTools

__all__ = ["plain_interpreter", "run_bare"]


def plain_interpreter() -> dspy.PythonInterpreter:
    """Return DSPy's own sandbox, started as for us but from nothing, as DSPy starts it."""
    command = [part for part in deno_command() if not part.startswith("--snapshot=")]
    return dspy.PythonInterpreter(deno_command=command)


def run_bare(
    tasks: Sequence[Task], url: str, config: EndpointConfig, interpreter: Callable[[], Any]
) -> Ran:
    """Answer each task once, one after the other, and return what that took.

    Args:
        tasks: The tasks.
        url: Address of the model.
        config: The endpoint.
        interpreter: Makes the sandbox of one task.

    Raises:
        AssertionError: A turn failed, or no query came out.
    """
    ran = Ran()
    lm = dspy.LM(MODEL, api_base=url, api_key="none", temperature=0, max_tokens=700, cache=False)
    query_tools = SPARQLTools(config)
    tools = query_tools.as_dspy_tools()
    rlm = dspy.RLM(
        "question -> sparql",
        tools=[dspy.Tool(tools[name], name=name) for name in DEFAULT_TOOLS],
        max_iters=6,
        interpreter_factory=interpreter,
    )
    with contextlib.closing(query_tools), dspy.context(lm=lm):
        for task in tasks:
            began, spent = time.perf_counter(), time.process_time()
            said = rlm(question=task.query)
            ran.trials[task.id, 0] = time.perf_counter() - began
            ran.processor_of[task.id, 0] = time.process_time() - spent
            failed = any("[Error]" in str(turn) for turn in said.trajectory)
            if failed or "as I wrote it" not in said.sparql:
                raise AssertionError(f"{task.id}: {said}")
    return ran
