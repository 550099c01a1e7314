"""Write the tables of columns into `docs/analysis.md`, from the code that makes the frames.

Run `python scripts/generate_columns.py`; with `--check` nothing is written and the exit status is
1 when the page is out of date, which is how the tests use it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reasoningbank.analysis.columns import columns_page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "analysis.md"
BEGIN, END = "<!-- columns: generated from the code -->\n", "<!-- end of columns -->"


def page(text: str) -> str:
    """Return the page with its tables as the code says they are."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{columns_page()}\n{END}{tail}"


def main() -> int:
    """Write the tables, or check them; returns the exit status."""
    text = PAGE.read_text(encoding="utf-8")
    if page(text) == text:
        return 0
    if "--check" in sys.argv[1:]:
        print("out of date: docs/analysis.md; run scripts/generate_columns.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
