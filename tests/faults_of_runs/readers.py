"""What reads runs when a file of theirs is damaged: it says so, and shows the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from .nursery import Done
from .scene import Fault, Stage

__all__ = ["READERS"]


def reading(*words: str) -> Callable[[Stage], Done]:
    """Return what finishes a run, cuts its third trial's file off, and reads the run."""

    def act(stage: Stage) -> Done:
        first = stage.run()
        assert first.status == 0, first.err
        os.truncate(stage.trial(2), LEFT)
        return stage.command(*words)

    return act


def comparing(stage: Stage) -> Done:
    first = stage.run()
    assert first.status == 0, first.err
    shutil.copytree(stage.path, stage.folder / "other")
    os.truncate(stage.trial(2), LEFT)
    return stage.command("compare", "run", "other")


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
