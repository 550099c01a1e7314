"""The same trials on a Dask cluster give the same verdicts, byte by byte."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from distributed.comm import CommClosedError

from reasoningbank.corpus import load_pack
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.experiment import Experiment, RunFolder, plan_run, run_experiment
from reasoningbank.experiment.cluster import (
    Cluster,
    WorkerSetup,
    _check_reach,
    _register,
    packed,
    share_limits,
)
from reasoningbank.experiment.config import Executor
from reasoningbank.experiment.context import Given
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.http import Gate, gate_for
from reasoningbank.lm import ModelHandle
from reasoningbank.lm.calls import model_gate
from reasoningbank.sparql import EndpointConfig


@pytest.mark.parametrize(("deaths", "registered"), [(0, True), (2, True), (3, False)])
def test_a_worker_that_dies_while_it_is_set_up_ends_no_run(deaths: int, registered: bool) -> None:
    calls: list[str] = []

    class Client:
        status = "running"

        def register_plugin(self, setup: object, name: str) -> None:
            calls.append(name)
            if len(calls) <= deaths:
                raise CommClosedError("closed")

    setup = cast("WorkerSetup", object())
    if registered:
        _register(Client(), setup, "run")
    else:
        with pytest.raises(CommClosedError):
            _register(Client(), setup, "run")
    assert len(calls) == min(deaths + 1, 3)


def _verdicts(folder: RunFolder) -> dict[str, str]:
    return {
        f"{t.key.arm}/{t.key.task}.{t.key.seed}": json.dumps([t.verdict, t.evidence, t.status])
        for t in folder.trials()
    }


def test_two_workers_judge_as_one_thread_does(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment]
) -> None:
    pack = make_pack(12)
    threads = experiment_on(pack, seeds=[0, 1])
    dask = threads.model_copy(update={"executor": Executor(kind="dask", workers=2)})
    assert threads.fingerprint() == dask.fingerprint()
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    reported: list[str] = []
    run_experiment(threads, one)
    run_experiment(dask, two, on_notice=reported.append)
    assert _verdicts(one) == _verdicts(two)
    assert len(_verdicts(two)) == 24
    assert all(trial.strict for trial in two.trials())
    assert reported == ["2 Dask workers, 2 trials at one time"]
    # The driver alone writes: what workers leave is in temporary folders.
    assert not (two.path / "gold").exists()


def test_a_worker_with_another_version_is_refused(
    make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment]
) -> None:
    experiment = experiment_on(make_pack(1))
    setup = WorkerSetup(experiment, EndpointConfig("https://e/"), plan_run(experiment), {})
    setup.version = ("0.0.1", "1")
    called: list[Any] = []
    loop = SimpleNamespace(call_later=lambda _, call: called.append(call))
    with pytest.raises(UsageError) as caught:
        setup.setup(SimpleNamespace(name="w1", loop=loop, close="close"))
    assert called == ["close"]
    setup.teardown(None)
    assert caught.value.code == "workers-lack"
    ((what, workers),) = caught.value.fields["lacks"].items()
    assert "0.0.1" in what
    assert workers == ["w1"]


def test_a_worker_says_all_that_it_lacks(
    make_pack: Callable[..., Path],
    experiment_on: Callable[..., Experiment],
    trees: EndpointConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    own = {"name": "own", "agent": "nowhere.parts:Agent"}
    asking = {"name": "asking", "agent": "direct", "lm": "openai/gpt-4o-mini"}
    pack = make_pack(1)
    gone = {
        "openai/gpt-4o-mini": ModelHandle("openai/gpt-4o-mini"),
        "near": ModelHandle("local", api_base="http://127.0.0.1:9/v1"),
        "moved": ModelHandle("ollama/x", {"api_base": trees.address}),
    }
    asks = experiment_on(pack, asking)
    worker = WorkerSetup(asks, trees, plan_run(asks), gone)
    worker.experiment = experiment_on(pack, own, asking)
    found = worker.lacking()
    assert len(found) == 4
    for part in ("nowhere", "http://127.0.0.1:9/v1", "OPENAI_API_KEY", "ollama/x"):
        assert any(part in one for one in found)
    mine = {"name": "mine", "agent": "reasoningbank.agents.direct:OracleAgent"}
    equal = experiment_on(pack, mine)
    worker = WorkerSetup(equal, trees, plan_run(equal), {})
    assert worker.lacking() == []
    worker.own = dict.fromkeys(worker.own, "another hash")
    (changed,) = worker.lacking()
    assert mine["agent"] in changed


def test_a_pack_travels_without_its_data() -> None:
    pack = load_pack("uniprot")
    names = zipfile.ZipFile(io.BytesIO(packed(pack))).namelist()
    assert {"pack.toml", "schema.ttl", "hints/demonstrations.json"} <= set(names)
    assert any(name.startswith("examples/") for name in names)
    assert not [name for name in names if name.startswith("data/")]
    names = zipfile.ZipFile(io.BytesIO(packed(load_pack("liita-test")))).namelist()
    assert {name.split("/")[0] for name in names} >= {"examples", "examples-test"}


def test_data_travel_with_documents_that_are_to_be_written() -> None:
    names = zipfile.ZipFile(io.BytesIO(packed(load_pack("algebra")))).namelist()
    assert {"data/cities.nt.gz", "documents.trig", "hints/programs.json"} <= set(names)


def test_loopback_is_refused_to_workers_of_another_machine() -> None:
    here = EndpointConfig("https://e/sparql", query_url="http://127.0.0.1:1/query")
    there = EndpointConfig("https://e/sparql")
    remote = Executor(kind="dask", scheduler="tcp://10.1.2.3:8786")
    local_model = {"local": ModelHandle("local", api_base="http://127.0.0.1:2/v1")}
    with pytest.raises(UsageError) as caught:
        _check_reach(remote, here, {})
    assert caught.value.fields["address"] == "http://127.0.0.1:1/query"
    with pytest.raises(UsageError) as caught:
        _check_reach(remote, there, local_model)
    assert caught.value.fields["address"] == "http://127.0.0.1:2/v1"
    _check_reach(remote, there, {})
    _check_reach(_at(remote, "tcp://127.0.0.1:8786"), here, local_model)


def test_a_trial_is_dated_by_the_clock_of_the_driver(
    tmp_path: Path, record: Callable[..., TrialRecord]
) -> None:
    # Else items that a skewed worker learned from would seem older than they are.
    ran = record(started="2031-01-01T00:00:00.000+00:00")
    ended = datetime(2031, 1, 1, 0, 0, 20, tzinfo=UTC)
    future = SimpleNamespace(result=lambda: (ran.to_json(), ended))
    client = SimpleNamespace(status="running", submit=lambda *_, **__: future)
    cluster = Cluster(client, "run", RunStorage(tmp_path), lambda _: None, driver=True)
    dated = cluster.run(cast("Job", None), Given())
    ago = datetime.now(UTC) - datetime.fromisoformat(dated.started)
    assert timedelta(seconds=19) < ago < timedelta(seconds=40)
    assert replace(dated, started=ran.started) == ran


def _at(executor: Executor, address: str) -> Executor:
    return executor.model_copy(update={"scheduler": address})


def test_limits_are_divided_again_when_workers_join_or_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reported, workers = [1000.0], [], {"a": 2}

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(
        "reasoningbank.http.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    )

    def spaced(gate: Gate) -> float:
        """Return the seconds between two starts that one process would keep 1 s apart."""
        gate.start(0.0)
        began = now[0]
        gate.start(1.0)
        gate.start(0.0)
        return now[0] - began

    def submit(_: object, *parts: Any, **__: Any) -> Any:
        reported.append(parts[-1])
        raise CancelledError

    client = SimpleNamespace(status="running", nthreads=lambda: workers, submit=submit)
    embedded = EndpointConfig("https://own/", query_url="http://127.0.0.1:1/")
    public = EndpointConfig("https://e/", federated=(EndpointConfig("https://f/"), embedded))
    share = partial(share_limits, public, {"openai/m": ModelHandle("openai/m")})
    cluster = Cluster(client, "run", RunStorage(tmp_path), share, driver=True)
    for workers in ({"a": 2}, {"a": 2, "b": 1, "c": 1}, {"b": 1}):
        cluster.slots()
        with pytest.raises(SetupError):
            cluster.run(cast("Job", None), Given())
        for gate in map(gate_for, ("https://e/", "https://f/")):
            assert spaced(gate) == len(workers) + 1
        assert spaced(model_gate("openai/m")) == len(workers) + 1
        assert spaced(gate_for(embedded.address)) == 1.0
    assert reported == [2, 4, 2]
    share(1)
    assert spaced(model_gate("openai/m")) == 1.0
