"""The report: a run as one self-contained HTML page that asks no network.

`write_report` reads the records once and writes the page as it reads. `page/` holds its
template, style and scripts; `docs/report.md` says how it is built and why.
"""

from reasoningbank.analysis.report.writer import Report, write_report

__all__ = ["Report", "write_report"]
