"""Web Algebra: programs over RDF data on the Web, written as JSON, checked, and run.

`read_program` checks a program in full before anything runs; `run_program` runs it with a runtime,
which is all that reaches out of the process. Each operation is one small class (`Operation`).
"""

import reasoningbank.algebra.builtin
import reasoningbank.algebra.ldh  # noqa: F401 - both register operations
from reasoningbank.algebra.contract import Evaluation, LimitsOf, RuntimeOf, SentTo
from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.interpreter import run_program
from reasoningbank.algebra.jsonld import graph_from_jsonld, graph_from_quads, graph_to_jsonld
from reasoningbank.algebra.operation import Example, Operation, operation, operations, register
from reasoningbank.algebra.program import Program, mistakes, read_program
from reasoningbank.algebra.runtime import Limits, Planned, Runtime, Sent
from reasoningbank.algebra.terms import Term
from reasoningbank.algebra.values import (
    Graph,
    Row,
    Stream,
    Table,
    Value,
    from_json,
    json_chunks,
    to_json,
)

__all__ = [
    "Evaluation",
    "Example",
    "Graph",
    "Limits",
    "LimitsOf",
    "Operation",
    "Planned",
    "Program",
    "ProgramError",
    "Row",
    "Runtime",
    "RuntimeOf",
    "Sent",
    "SentTo",
    "Stream",
    "Table",
    "Term",
    "Value",
    "from_json",
    "graph_from_jsonld",
    "graph_from_quads",
    "graph_to_jsonld",
    "json_chunks",
    "mistakes",
    "operation",
    "operations",
    "read_program",
    "register",
    "run_program",
    "to_json",
]
