"""Run a pack's demonstrations, code and tool calls, and store what they really gave.

`python scripts/record_demonstrations.py uniprot` rewrites the outputs in
`ontology/uniprot/hints/demonstrations.json`; with `--check` nothing is written and the exit
status is 1 where an output is no longer what the tools return.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from dspy.primitives.code_interpreter import FinalOutput

from reasoningbank.agents import Demonstration, ToolCall, load_demonstrations
from reasoningbank.agents.sandbox.interpreter import Sandbox
from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools


def replay(config: EndpointConfig, demonstration: Demonstration) -> Demonstration:
    """Return the demonstration with the outputs that its code prints now."""
    sandbox, tools = Sandbox(), SPARQLTools(config)
    sandbox.tools.update(tools.as_dspy_tools())
    sandbox.output_fields = [{"name": "sparql", "type": "str"}]
    turns = []
    try:
        for turn in demonstration.turns:
            result = sandbox.execute(turn.code)
            output = "" if isinstance(result, FinalOutput) else str(result)
            turns.append(turn.model_copy(update={"output": output}))
    finally:
        sandbox.shutdown()
        tools.close()
    calls = tuple(recall(config, demonstration))
    return demonstration.model_copy(update={"turns": tuple(turns), "calls": calls})


def recall(config: EndpointConfig, demonstration: Demonstration) -> Iterator[ToolCall]:
    """Yield the demonstration's tool calls with what they return now."""
    tools = SPARQLTools(config)
    named = tools.as_dspy_tools()
    try:
        for call in demonstration.calls:
            seen = (
                str(named[call.tool](**call.arguments)) if call.tool != "finish" else "Completed."
            )
            yield call.model_copy(update={"observation": seen})
    finally:
        tools.close()


def main() -> int:
    """Record or check one pack's demonstrations; returns the exit status."""
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or ["uniprot"]
    pack = load_pack(names[0])
    path = pack.root / "hints" / "demonstrations.json"
    stored = load_demonstrations(path)
    with open_endpoint(pack) as config:
        now = tuple(replay(config, demonstration) for demonstration in stored)
    if now == stored:
        return 0
    if "--check" in sys.argv:
        print(f"{path.name}: outputs differ; run python scripts/record_demonstrations.py")
        return 1
    data = [demonstration.model_dump() for demonstration in now]
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
