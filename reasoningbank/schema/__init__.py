"""The schema of an endpoint: classes, properties, what leads where and how often.

`Schema` holds it; `lint` says what is wrong with a query, `explain_empty` why a query returned
nothing, `explain_error` what was meant where a query cannot be sent, and `explain_query` does
whichever of these fits. Each result is a list of `Finding`; `as_lines` renders them for an agent.

Codes of the findings and their fields:

- Names: ``unknown-class``, ``unknown-property`` (name, iri, role, subject, replacements: texts to
  write instead, notes: note by replacement, counting, class and has, owner), ``unknown-name``
  (in a query that does not parse), ``wrong-role`` (name, instead), ``resource-as-class`` (name,
  class), ``not-in-data``, ``only-subclasses`` (subclasses, instead), ``wrong-prefix`` (prefix,
  declared, known), ``unknown-prefix`` (prefix, replacements).
- Places: ``missing-service``, ``wrong-service`` (name, service), ``unknown-graph``.
- Columns: ``unbound-column`` (column, unselected).
- Values: ``value-form`` (pattern, instead), ``unknown-value`` (predicate, value, sample,
  replacements, owner), ``unknown-resource`` (name, replacements, owner), ``other-value`` (values),
  ``other-property`` (property, sample), ``no-property`` (subject, predicate, has),
  ``text-for-resource`` (resource, class, place, instead), ``resource-for-text`` (instead, sample).
- Joins: ``reversed-direction`` (pattern, instead), ``wrong-subject``, ``wrong-object`` (pattern,
  because), ``disconnected`` (parts, bridges), ``missing-step`` (pattern, instead, guess),
  ``misfit`` (variable, pattern, here, there), ``wrong-class`` (variable, here),
  ``class-lacks-property`` (class, property, has), ``same-variable``, ``no-match`` (pattern).
- Conditions: ``filter-removes-all`` (filter, variable, sample, instead, owner),
  ``filter-unbound`` (filter, variable), ``minus-removes-all``, ``having-removes-all``.
- Graphs: ``missing-graph``, ``wrong-graph`` (pattern, graph, instead).
"""

from reasoningbank.findings import Finding
from reasoningbank.schema.empty import (
    explain_empty,
    explain_error,
    explain_query,
    explainer,
    is_empty,
    probe_run,
)
from reasoningbank.schema.links import Link, SchemaMap, SchemaStep, observed_values
from reasoningbank.schema.lint import as_lines, lint
from reasoningbank.schema.names import (
    describe_names,
    is_label,
    local_name,
    namespace_of,
    nearest_names,
    nearest_prefixes,
    words,
)
from reasoningbank.schema.profile import EndpointProfile
from reasoningbank.schema.schema import NamedTerm, Schema
from reasoningbank.schema.statements import Statement, Statements, read_statements

__all__ = [
    "EndpointProfile",
    "Finding",
    "Link",
    "NamedTerm",
    "Schema",
    "SchemaMap",
    "SchemaStep",
    "Statement",
    "Statements",
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
    "nearest_prefixes",
    "observed_values",
    "probe_run",
    "read_statements",
    "words",
]
