"""Agents that learn to answer questions over SPARQL knowledge graphs, and the proof of it.

The public API: everything a notebook needs is importable from here, and loads when it is used.
`docs/api.md` has a runnable example of each name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reasoningbank.agents import Budget, make_agent
    from reasoningbank.algebra import read_program, run_program
    from reasoningbank.analysis import compare_runs, load, summarise_run
    from reasoningbank.analysis.report import write_report
    from reasoningbank.corpus import (
        Task,
        get_task_stats,
        load_pack,
        load_shacl_tasks,
        open_endpoint,
        sample_tasks,
        split_tasks,
    )
    from reasoningbank.errors import ReasoningBankError
    from reasoningbank.experiment import (
        Arm,
        Experiment,
        RunFolder,
        load_experiment,
        run_experiment,
    )
    from reasoningbank.experiment.ask import ask
    from reasoningbank.findings import Finding
    from reasoningbank.judge import ExecutionJudge, LMJudge
    from reasoningbank.lm import open_lm
    from reasoningbank.memory import MemoryBank, MemoryItem
    from reasoningbank.nl2sparql import NL2SPARQL
    from reasoningbank.refs import Ref
    from reasoningbank.sparql import EndpointConfig, SPARQLClient
    from reasoningbank.tools import EndpointTools, SPARQLTools

_HOMES = {
    "agents": ("Budget", "make_agent"),
    "algebra": ("read_program", "run_program"),
    "analysis": ("compare_runs", "load", "summarise_run"),
    "analysis.report": ("write_report",),
    "corpus": (
        "Task",
        "get_task_stats",
        "load_pack",
        "load_shacl_tasks",
        "open_endpoint",
        "sample_tasks",
        "split_tasks",
    ),
    "errors": ("ReasoningBankError",),
    "experiment": ("Arm", "Experiment", "RunFolder", "load_experiment", "run_experiment"),
    "experiment.ask": ("ask",),
    "findings": ("Finding",),
    "judge": ("ExecutionJudge", "LMJudge"),
    "lm": ("open_lm",),
    "memory": ("MemoryBank", "MemoryItem"),
    "nl2sparql": ("NL2SPARQL",),
    "refs": ("Ref",),
    "sparql": ("EndpointConfig", "SPARQLClient"),
    "tools": ("EndpointTools", "SPARQLTools"),
}
_ROOM_OF = {name: room for room, names in _HOMES.items() for name in names}

__all__ = [
    "NL2SPARQL",
    "Arm",
    "Budget",
    "EndpointConfig",
    "EndpointTools",
    "ExecutionJudge",
    "Experiment",
    "Finding",
    "LMJudge",
    "MemoryBank",
    "MemoryItem",
    "ReasoningBankError",
    "Ref",
    "RunFolder",
    "SPARQLClient",
    "SPARQLTools",
    "Task",
    "ask",
    "compare_runs",
    "get_task_stats",
    "load",
    "load_experiment",
    "load_pack",
    "load_shacl_tasks",
    "make_agent",
    "open_endpoint",
    "open_lm",
    "read_program",
    "run_experiment",
    "run_program",
    "sample_tasks",
    "split_tasks",
    "summarise_run",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
