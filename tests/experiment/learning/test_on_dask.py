"""On a Dask cluster a run with memory and streams ends as in threads, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults_of_runs.commands import Command, begin

from reasoningbank.errors import UsageError
from reasoningbank.experiment import (
    Experiment,
    RunFolder,
    TrialKey,
    cluster,
    parse_experiment,
    trial,
)
from reasoningbank.experiment.runner import run_experiment
from reasoningbank.sparql import EndpointConfig

from .on_workers import HELD, Workers, enrol_on_dask, wait_for, workers
from .orchard import STREAM, TEST, experiment_data, write_orchard
from .test_resume import left_by

LEARNED: dict[str, Any] = {"name": "learned", "agent": "pupil", "memory": "learned"}
#: Every way in which a trial is given something of others, of the bank or of the endpoint.
ARMS: tuple[dict[str, Any], ...] = (
    {"name": "none", "agent": "pupil", "stream": True},
    LEARNED,
    {"name": "again", "agent": "pupil", "memory": {"source": "shared", "of": "learned"}},
    {"name": "random", "agent": "pupil", "memory": {"source": "random", "of": "learned"}},
    {"name": "gold", "agent": "pupil", "memory": "gold", "layers": ["L0", "L1"]},
    {
        "name": "linked",
        "agent": "pupil",
        "entity_linking": True,
        "sampling": {"kind": "sequential"},
    },
)
FILE = """
name = "orchard"
pack = "trees"
mode = "learn"
seeds = [0, 1]
endpoint = {{ url = "{url}", min_interval_s = 0.0 }}
tasks = {{ ids = {test} }}
learning = {{ tasks = {{ ids = {stream} }} }}
executor = {{ {executor} }}
[[arms]]
name = "learned"
agent = "pupil"
memory = "learned"
"""


class Place:
    """A cluster, an experiment of two streams, and the same run in threads."""

    def __init__(self, folder: Path, url: str, cluster: Workers) -> None:
        self.folder, self.url, self.cluster = folder, url, cluster
        write_orchard(folder / "trees")
        threads = self.begin("whole", "workers = 2").wait()
        assert threads.status == 0, threads.err
        self.whole = left_by(RunFolder(folder / "whole"))

    def begin(self, out: str, executor: str = "") -> Command:
        """Begin the run, on the cluster unless another executor is given."""
        executor = executor or f'kind = "dask", scheduler = "{self.cluster.address}"'
        lists = {"test": json.dumps(TEST), "stream": json.dumps(STREAM)}
        text = FILE.format(url=self.url, executor=executor, **lists)
        (self.folder / "orchard.toml").write_text(text, encoding="utf-8")
        words = ("run", "orchard.toml", "--out", out)
        environment = {"REASONINGBANK_CACHE": str(self.folder / "cache")}
        return begin(words, self.folder, environment, (enrol_on_dask,))

    def check(self, out: str, command: Command) -> None:
        """Check that a run ends as the one in threads did."""
        done = command.wait()
        assert done.status == 0, done.err
        assert left_by(RunFolder(self.folder / out)) == self.whole


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, trees: EndpointConfig) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("dask")
    with workers(folder / "cluster") as cluster:
        yield Place(folder, trees.address, cluster)


def test_all_kinds_of_arms_end_as_in_threads(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "datetime", vars(trial)["datetime"])
    data = experiment_data(place.folder / "trees", place.url, *ARMS, seeds=[0, 1])
    threads = parse_experiment({**data, "executor": {"workers": 2}})
    dask = {"kind": "dask", "scheduler": place.cluster.address}
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    reported: list[str] = []
    run_experiment(threads, one)
    run_experiment(parse_experiment({**data, "executor": dask}), two, on_notice=reported.append)
    assert reported[-1] == "2 Dask workers, 2 trials at one time"
    assert _left(one) == _left(two)
    for key in (record.key for record in one.trials()):
        shown = [folder.read(key).trajectory.of("memory_retrieved") for folder in (one, two)]
        assert [event.data for event in shown[0]] == [event.data for event in shown[1]]
    assert len(list(two.trials())) == 2 * (len(ARMS) * len(TEST) + 2 * len(STREAM))
    assert len(two.taken("learned", 1)) == len(STREAM)
    assert len(two.read(TrialKey("linked", TEST[0], 0)).rollouts) > 0


def _left(folder: RunFolder) -> dict[str, Any]:
    """Return what a run left, of attempts that were not chosen without what time they took."""
    files = left_by(folder)
    for data in files.values():
        for attempt in data.get("rollouts", ()) if isinstance(data, dict) else ():
            del attempt["trajectory"], attempt["usage"]
    return files


def test_a_killed_worker_costs_nothing_and_doubles_nothing(place: Place) -> None:
    place.cluster.hold()
    command = place.begin("worker")
    held = place.cluster.held()
    # A worker that lacks something and joins late is sent away.
    lacking = place.cluster.add_worker(number=2)
    wait_for(lambda: lacking.poll() is not None)
    os.kill(held, signal.SIGKILL)
    place.cluster.release()
    place.check("worker", command)


def test_a_killed_driver_goes_on_to_the_same_end(place: Place) -> None:
    place.cluster.hold()
    command = place.begin("driver")
    place.cluster.held()
    command.send(signal.SIGKILL)
    assert command.wait().status == -signal.SIGKILL
    folder = RunFolder(place.folder / "driver")
    assert not [r for r in folder.trials() if r.key.task == f"t{HELD:03}"]
    place.cluster.release()
    place.check("driver", place.begin("driver"))


def test_a_killed_scheduler_is_reported_and_the_run_goes_on_with_the_next(place: Place) -> None:
    place.cluster.hold()
    command = place.begin("scheduler")
    place.cluster.held()
    place.cluster.kill()
    done = command.wait()
    assert done.status != 0
    assert "executor: the Dask cluster is gone" in done.said
    assert "Traceback" not in done.err
    place.cluster.release()
    place.cluster.start()
    place.check("scheduler", place.begin("scheduler"))


def test_workers_say_before_the_run_what_they_lack(
    learning: Callable[..., Experiment], tmp_path: Path
) -> None:
    # Workers of a local cluster begin without the pupil that this process has enrolled.
    reported: list[str] = []
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(UsageError) as caught:
        run_experiment(
            learning(executor={"kind": "dask", "workers": 2}), folder, on_notice=reported.append
        )
    assert caught.value.code == "workers-lack"
    ((what, lacking),) = caught.value.fields["lacks"].items()
    assert "pupil" in what
    assert len(lacking) == 2
    assert "\n" not in str(caught.value)
    assert not list(folder.trials())
