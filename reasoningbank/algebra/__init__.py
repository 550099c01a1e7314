"""Web Algebra: programs over RDF data on the Web, written as JSON, validated, then run.

`read_program` validates a program in full before anything runs. `run_program` runs it with a
runtime, which makes every request. Each operation is one small class (`Operation`).
"""

from rdflib import Graph

import reasoningbank.algebra.builtin  # noqa: F401 - registers the operations
from reasoningbank.algebra.evaluation import Evaluation, Limits, QueryRequest, Sent
from reasoningbank.algebra.operation import (
    Example,
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
from reasoningbank.algebra.queries import as_query, is_empty
from reasoningbank.algebra.runtime import Planned, Runtime, RuntimeOf
from reasoningbank.algebra.source import parse_program, with_prefixes
from reasoningbank.algebra.terms import (
    PREFIXES,
    ProgramError,
    Term,
    graph_from_jsonld,
    graph_from_quads,
    graph_to_jsonld,
)
from reasoningbank.algebra.values import (
    Row,
    Stream,
    Table,
    Value,
    from_json,
    json_chunks,
    kept,
    to_json,
)
from reasoningbank.algebra.web import Credential, credentials_from

__all__ = [
    "PREFIXES",
    "Credential",
    "Evaluation",
    "Example",
    "Graph",
    "Limits",
    "Operation",
    "Planned",
    "Program",
    "ProgramError",
    "QueryRequest",
    "Row",
    "Runtime",
    "RuntimeOf",
    "Sent",
    "Stream",
    "Table",
    "Term",
    "Value",
    "agent_prompt",
    "as_query",
    "credentials_from",
    "from_json",
    "graph_from_jsonld",
    "graph_from_quads",
    "graph_to_jsonld",
    "is_empty",
    "json_chunks",
    "kept",
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
    "with_prefixes",
]
