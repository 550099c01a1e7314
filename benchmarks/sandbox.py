"""Tool calls through the sandbox beside the same calls in plain Python."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Row
from reasoningbank import EndpointConfig, SPARQLTools
from reasoningbank.agents.sandbox.interpreter import Sandbox
from reasoningbank.sparql import OxigraphServer

__all__ = ["tool_calls"]

THAN = "the same call in plain Python"
ITEMS = 1_000
CALLS = {
    "peeks at a handle": "sparql_peek(ref, 5)",
    "queries with peek": "sparql_peek(sparql_query(query), 5)",
}


def tool_calls(calls: int) -> list[Row]:
    """Call tools so often, or queries a tenth as often, from the real Deno sandbox and directly."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.nt")
        lines = [f'<http://e/{n:04}> <urn:b:label> "item {n}"@en .\n' for n in range(ITEMS)]
        data.write_text("".join(lines), encoding="utf-8")
        with OxigraphServer([data]) as server:
            tools = SPARQLTools(EndpointConfig(server.url, "generated"))
            box = Sandbox(timeout_s=120)
            box.tools.update(tools.as_dspy_tools())
            try:
                return [
                    _rate(what, call, tools, box, calls if "ref" in call else calls // 10)
                    for what, call in CALLS.items()
                ]
            finally:
                box.shutdown()
                tools.close()


def _rate(what: str, call: str, tools: SPARQLTools, box: Sandbox, calls: int) -> Row:
    """Run the very same code both ways; each must end with five rows in hand."""
    query = "SELECT ?item ?label WHERE { ?item <urn:b:label> ?label }"
    setting = f"query = {query!r}\nref = sparql_query(query)\n{call}\n"
    loop = f"for _ in range({calls}):\n    rows = {call}\nprint(len(rows))"
    names: dict[str, object] = {**tools.as_dspy_tools()}

    def directly(code: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(code, names)
        return said.getvalue()

    rates: dict[str, float] = {}
    for way, run in {"sandbox": box.execute, "directly": directly}.items():
        run(setting)
        began = time.perf_counter()
        said = run(loop)
        rates[way] = calls / (time.perf_counter() - began)
        if said != "5\n":
            raise AssertionError(f"the calls did not give five rows: {said!r}")
    label = f"{calls:,} {what}, from the sandbox"
    return Row(label, "calls/s", rates["sandbox"], rates["directly"], THAN)
