"""The report: a run as one self-contained HTML page that needs no network.

`write_report` reads the records once and writes the page as it reads. `page/` holds its template,
style and scripts; `docs/report.md` describes the design.
"""

from reasoningbank.analysis.report.writer import Report, write_report

__all__ = ["Report", "write_report"]
