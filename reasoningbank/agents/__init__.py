"""Agents that answer questions: one protocol, one kind of record.

`oracle` submits the gold query (the ceiling), `direct` asks the model once (the floor), `rlm` is
`dspy.RLM` with the tools in the sandbox, `react` is `dspy.ReAct` with the same tools, `algebra`
writes Web Algebra programs and runs them. `rag` and `graph` are the retrieval-augmented pipeline
and the self-correcting graph of `reasoningbank.nl2sparql`.
"""

from reasoningbank.agents.protocol import (
    UNJUDGED,
    Agent,
    Attempt,
    AttemptStatus,
    Budget,
    CodeTurn,
    Demonstration,
    Episode,
    FewShotExample,
    Meter,
    ToolCall,
    failure_of,
    load_demonstrations,
)
from reasoningbank.agents.registry import AGENTS, asks_model, make_agent, uses

__all__ = [
    "AGENTS",
    "PROMPT_VERSION",
    "UNJUDGED",
    "Agent",
    "Attempt",
    "AttemptStatus",
    "Budget",
    "CodeTurn",
    "Demonstration",
    "Episode",
    "FewShotExample",
    "Meter",
    "ToolCall",
    "asks_model",
    "failure_of",
    "load_demonstrations",
    "make_agent",
    "uses",
]

#: Version of all fixed texts that agents read; part of a run's manifest.
PROMPT_VERSION = "3"
