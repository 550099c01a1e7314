"""Web Algebra: programs over RDF data on the Web, written as JSON, validated, then run.

`read_program` validates a program in full before anything runs. `run_program` runs it with a
runtime, which makes every request. Each operation is one small class (`Operation`).
"""

import reasoningbank.algebra.builtin  # noqa: F401 - registers the operations
from reasoningbank.algebra.evaluation import Evaluation, Limits, QueryRequest
from reasoningbank.algebra.operation import (
    Operation,
    agent_prompt,
    operation,
    operations,
    program_schema,
    reference,
    register,
    signature,
)
from reasoningbank.algebra.program import Program, mistakes, read_program, run_program
from reasoningbank.algebra.runtime import Runtime
from reasoningbank.algebra.source import from_json, parse_program
from reasoningbank.algebra.terms import (
    ProgramError,
    graph_from_jsonld,
    graph_from_quads,
    graph_to_jsonld,
)
from reasoningbank.algebra.values import (
    Row,
    Stream,
    Table,
    Value,
    json_chunks,
    to_json,
)
from reasoningbank.algebra.web import credentials_from

__all__ = [
    "Evaluation",
    "Limits",
    "Operation",
    "Program",
    "ProgramError",
    "QueryRequest",
    "Row",
    "Runtime",
    "Stream",
    "Table",
    "Value",
    "agent_prompt",
    "credentials_from",
    "from_json",
    "graph_from_jsonld",
    "graph_from_quads",
    "graph_to_jsonld",
    "json_chunks",
    "mistakes",
    "operation",
    "operations",
    "parse_program",
    "program_schema",
    "read_program",
    "reference",
    "register",
    "run_program",
    "signature",
    "to_json",
]
