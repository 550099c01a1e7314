"""The systems that answer questions: one protocol, one kind of record.

`oracle` submits the gold (the ceiling), `direct` asks the model once (the floor), `rlm` is
`dspy.RLM` with the tools in the sandbox, `react` is `dspy.ReAct` with the same tools. `rag` is
the retrieval-augmented pipeline of `nl2sparql`, `graph` the self-correcting one. `algebra` writes
Web Algebra programs and runs them.
"""

from reasoningbank.agents.budget import Budget, Meter
from reasoningbank.agents.demonstrations import Call, Demonstration, Turn, load_demonstrations
from reasoningbank.agents.protocol import Agent, Attempt, AttemptStatus, Episode, Example
from reasoningbank.agents.registry import AGENTS, asks_model, make_agent, takes_examples

__all__ = [
    "AGENTS",
    "Agent",
    "Attempt",
    "AttemptStatus",
    "Budget",
    "Call",
    "Demonstration",
    "Episode",
    "Example",
    "Meter",
    "Turn",
    "asks_model",
    "load_demonstrations",
    "make_agent",
    "takes_examples",
]
