"""Attempts that tests distil: right ones, wrong ones, and one by turns of code."""

from __future__ import annotations

from typing import Any

from reasoningbank.memory.experience import Experience
from reasoningbank.trajectory import Recorder, Trajectory

__all__ = ["MASS", "MASS_QUESTION", "attempt", "by_turns"]

MASS_QUESTION = "What is the molecular mass in dalton of protein P04637?"
MASS = "SELECT ?mass WHERE {\n  uniprotkb:P04637 up:sequence/up:mass ?mass .\n}"


def attempt(
    sparql: str | None, *, success: bool = False, question: str = MASS_QUESTION, **rest: Any
) -> Experience:
    """Return an attempt that ran and had a row, unless something else is said."""
    given = {"ran": sparql is not None, "rows": 1, "trial": "direct/t1.0", "model": "m"} | rest
    return Experience("t1", "masses", "uniprot", question, sparql, success, "execution", **given)


def by_turns(*turns: tuple[str, str, str], query: str = MASS) -> Trajectory:
    """Return the trajectory of turns: why, code, output. Code that names `query` ran the query."""
    recorder = Recorder()
    for reasoning, code, output in turns:
        reply = f"[[ ## reasoning ## ]]\n{reasoning}\n\n[[ ## code ## ]]\n{code}"
        recorder.add("lm_call", {"role": "solver", "response": reply})
        repeated = {"repeated": True} if output.startswith("[Repeated]") else {}
        index = recorder.add("code", {"code": code, "output": output, **repeated})
        if "sparql_query(query)" in code:
            call = {"tool": "sparql_query", "arguments": {"query": query, "limit": 100}}
            made = recorder.add("tool_call", call, parent=index)
            ref = {"key": "results_0", "dtype": "results", "rows": 1, "sz": 0, "source": "UniProt"}
            recorder.add("tool_result", {"result": "Ref(…)", "ref": ref}, parent=made)
            call = {"tool": "sparql_peek", "arguments": {"ref": "results_0", "n": 3}}
            made = recorder.add("tool_call", call, parent=index)
            recorder.add("tool_result", {"result": [{"mass": 43653}]}, parent=made)
    return recorder.trajectory()
