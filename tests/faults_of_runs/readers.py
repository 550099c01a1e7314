"""What reads runs when a file of theirs is damaged: it says so, and shows the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from .commands import Done
from .scenario import Fault, Scenario

__all__ = ["READERS"]


def reading(*words: str) -> Callable[[Scenario], Done]:
    """Return what finishes a run, cuts its third trial's file off, and reads the run."""

    def inject(scenario: Scenario) -> Done:
        first = scenario.run()
        assert first.status == 0, first.err
        os.truncate(scenario.trial(2), LEFT)
        return scenario.command(*words)

    return inject


def comparing(scenario: Scenario) -> Done:
    first = scenario.run()
    assert first.status == 0, first.err
    shutil.copytree(scenario.path, scenario.folder / "other")
    os.truncate(scenario.trial(2), LEFT)
    return scenario.command("compare", "run", "other")


#: Bytes that are left of the file.
LEFT = 200
NAMED = r"t002.0.json"

READERS = [
    Fault("`status`", reading("status", "run"), NAMED, 0, 5),
    Fault("`status --json`", reading("status", "run", "--json"), NAMED, 0, 5),
    Fault("`compare run other`", comparing, r"1 unreadable file", 0, 5),
    Fault("`report run`", reading("report", "run"), NAMED, 0, 5),
    Fault("`export parquet run`", reading("export", "parquet", "run"), NAMED, 0, 5),
    Fault("`export inspect run`", reading("export", "inspect", "run"), NAMED, 0, 5),
    Fault("`archive run copy`", reading("archive", "run", "copy"), NAMED, 0, 5),
    Fault("`rerun run`", reading("rerun", "run"), NAMED, 0, 5),
]
