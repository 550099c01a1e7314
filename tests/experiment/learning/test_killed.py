"""SIGKILL in the midst of a stream: the same command ends with the very bank."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faults_of_runs.commands import Done, begin

from reasoningbank.experiment import RunFolder
from reasoningbank.sparql import EndpointConfig

from .kills import dies_before_the_step, dies_in_mid_snapshot, dies_in_mid_step
from .orchard import STREAM, TEST, enrol, write_orchard
from .test_resume import left_by

FILE = """
name = "orchard"
pack = "trees"
mode = "learn"
endpoint = {{ url = "{url}", min_interval_s = 0.0 }}
tasks = {{ ids = {test} }}
learning = {{ tasks = {{ ids = {stream} }} }}
[[arms]]
name = "learned"
agent = "pupil"
memory = "learned"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, trees: EndpointConfig) -> Path:
    """A folder with the experiment, and a whole run of it."""
    folder = tmp_path_factory.mktemp("killed")
    write_orchard(folder / "trees")
    lists = {"test": json.dumps(TEST), "stream": json.dumps(STREAM)}
    (folder / "orchard.toml").write_text(FILE.format(url=trees.address, **lists), encoding="utf-8")
    done = command(folder, "whole", enrol)
    assert done.status == 0, done.err
    return folder


def command(folder: Path, out: str, *changes: Callable[[], None]) -> Done:
    words = ("run", "orchard.toml", "--out", out)
    environment = {"REASONINGBANK_CACHE": str(folder / "cache")}
    return begin(words, folder, environment, changes).wait(120)


@pytest.mark.parametrize(
    ("death", "steps"),
    [(dies_in_mid_snapshot, 2), (dies_before_the_step, 2), (dies_in_mid_step, 3)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_it_goes_on_to_the_same_end(place: Path, death: Callable[[], None], steps: int) -> None:
    # The process looks into the folder `run`.
    folder = RunFolder(place / "run")
    killed = command(place, "run", death)
    assert killed.status == -signal.SIGKILL
    assert len(folder.taken("learned", 0)) == steps
    again = command(place, "run", enrol)
    assert again.status == 0, again.err
    assert left_by(folder) == left_by(RunFolder(place / "whole"))
    folder.path.rename(place / f"ended-{death.__name__}")
