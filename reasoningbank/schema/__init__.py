"""The schema of an endpoint: classes, properties, what leads where and how often.

`Schema` holds it; `lint` says what is wrong with a query, `explain_empty` why a query returned
nothing, `explain_error` what was meant where a query cannot be sent, and `explain_query` does
whichever of these fits. docs/diagnosis.md lists the codes of the findings and their fields.
"""

from reasoningbank.findings import Finding
from reasoningbank.schema.diagnosis import (
    as_lines,
    explain_empty,
    explain_error,
    explain_query,
    explainer,
    is_empty,
    lint,
    probe_run,
)
from reasoningbank.schema.links import Link, SchemaMap, observed_values
from reasoningbank.schema.names import (
    describe_names,
    is_label,
    local_name,
    namespace_of,
    nearest_names,
    words,
)
from reasoningbank.schema.sampling import EndpointProfile
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.schema.statements import Statement, read_statements

__all__ = [
    "EndpointProfile",
    "Finding",
    "Link",
    "NamedTerm",
    "Schema",
    "SchemaMap",
    "Statement",
    "as_lines",
    "describe_names",
    "explain_empty",
    "explain_error",
    "explain_query",
    "explainer",
    "is_empty",
    "is_label",
    "lint",
    "local_name",
    "namespace_of",
    "nearest_names",
    "observed_values",
    "probe_run",
    "read_statements",
    "words",
]
