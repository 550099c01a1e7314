"""Why a query gave nothing: names that do not exist, and the first part that leaves no rows.

`is_empty(result, prepared)` tells whether there is something to diagnose;
`diagnose(prepared, run, names, namespaces=config.namespaces)` gives a few short lines, where
`run` is `probe_run(config)` and `names` a `Vocabulary` that all trials share; `unknown_names`
gives those about names alone; `suggest_for_error` a line behind a `QueryError`'s message.
`explain_query` does whichever of these fits.
"""

from reasoningbank.tools.diagnosis.empty_results import (
    MOST_CHARS,
    MOST_LINES,
    diagnose,
    is_empty,
    probe_run,
    suggest_for_error,
    unknown_names,
)
from reasoningbank.tools.diagnosis.explaining import explain_query, explainer

__all__ = [
    "MOST_CHARS",
    "MOST_LINES",
    "diagnose",
    "explain_query",
    "explainer",
    "is_empty",
    "probe_run",
    "suggest_for_error",
    "unknown_names",
]
