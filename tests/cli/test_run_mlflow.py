"""`run --mlflow` traces what it runs, and what an earlier run left untraced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from mlflow import MlflowClient

from .conftest import Said

Cli = Callable[..., Said]


def test_a_run_is_traced_and_caught_up_with(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path], tmp_path: Path
) -> None:
    file = experiment_file(make_pack(2))
    assert cli("run", file, "--limit", 1).status == 0
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    said = cli("run", file, "--mlflow", uri, "--json")
    assert said.status == 0
    assert json.loads(said.out)["arms"][0]["strict"] == 2
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("small").experiment_id
    traces = client.search_traces(locations=[experiment])
    assert {t.info.tags["reasoningbank.trial"] for t in traces} == {"one/t000/0", "one/t001/0"}
    assert {t.info.tags["strict"] for t in traces} == {"true"}
    (run,) = client.search_runs([experiment])
    assert (run.info.status, run.data.metrics["one/strict_rate"]) == ("FINISHED", 1.0)


def test_a_store_that_fails_ends_no_run(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "full").write_text("no folder")
    uri = f"sqlite:///{tmp_path / 'full' / 'mlflow.db'}"
    said = cli("run", experiment_file(make_pack(1)), "--mlflow", uri)
    assert said.status == 0
    assert said.err.count("the run goes on untraced") == 1
    assert Path("runs/small/trials/one/t000.0.json").exists()


def test_an_address_that_takes_no_traces_is_reported_before_anything_runs(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    said = cli("run", experiment_file(make_pack(1)), "--mlflow", "./mlruns")
    assert (said.status, said.out) == (1, "")
    assert "--mlflow: './mlruns' cannot store traces; give sqlite:///mlflow.db" in said.err
    assert not Path("runs").exists()
