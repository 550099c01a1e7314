"""Runs as logs of Inspect AI, so that `inspect view` and its dataframes open them.

The package ``inspect_ai`` is imported when a run is exported, not before.
"""

from reasoningbank.analysis.inspect_log.export import (
    ExportedLog,
    InspectExport,
    export_inspect,
)

__all__ = ["ExportedLog", "InspectExport", "export_inspect"]
