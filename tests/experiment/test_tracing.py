"""What a local MLflow store holds after a run was traced."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import learned_run
import mlflow
import pytest
from mlflow import MlflowClient
from opentelemetry import trace as opentelemetry
from recorded import (
    GOLD,
    MANIFEST,
    MODEL,
    QUERY,
    STARTED,
    records,
    trial,
    verdict,
    write_run,
)

from reasoningbank.analysis import summarise
from reasoningbank.errors import SetupError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord, tracing
from reasoningbank.experiment.mlflow_store import TraceStore, metrics_by_arm, nanoseconds
from reasoningbank.experiment.tracing import mlflow_tracer

BEGAN = nanoseconds(STARTED)


def no_failure(message: str) -> None:
    raise AssertionError(message)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One database for all tests, since making one takes seconds; runs differ by id."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"


@pytest.fixture(scope="module", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("cwd"))
    yield
    os.chdir(before)


@pytest.fixture(scope="module")
def client(uri: str) -> MlflowClient:
    return MlflowClient(tracking_uri=uri)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, uri: str) -> RunFolder:
    """A run that was on disk before it was traced."""
    folder = write_run(tmp_path_factory.mktemp("traced"))
    with mlflow_tracer(uri, folder, on_failure=no_failure):
        pass
    return folder


_NUMBERS = itertools.count()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of its own experiment, without trials."""
    run = RunFolder(tmp_path / "run")
    name = f"other_{next(_NUMBERS)}"
    experiment = {**MANIFEST["experiment"], "name": name}
    run.write_manifest({**MANIFEST, "experiment": experiment, "fingerprint": name})
    return run


def experiment_of(client: MlflowClient, folder: RunFolder) -> str:
    assert folder.manifest is not None
    return str(client.get_experiment_by_name(folder.manifest["experiment"]["name"]).experiment_id)


def traces(client: MlflowClient, folder: RunFolder) -> dict[str, Any]:
    found = client.search_traces(locations=[experiment_of(client, folder)])
    by_name = {trace.info.tags["reasoningbank.trial"]: trace for trace in found}
    assert len(by_name) == len(found), "a trial has two traces"
    return by_name


def run_of(client: MlflowClient, folder: RunFolder) -> Any:
    (run,) = client.search_runs([experiment_of(client, folder)])
    return run


def test_a_trial_is_a_trace(client: MlflowClient, traced: RunFolder) -> None:
    found = traces(client, traced)
    assert set(found) == {f"{r.key.arm}/{r.key.task}/{r.key.seed}" for r in records()}
    info = found["rlm/t1/3"].info
    assert info.request_time * 10**6 == BEGAN
    assert info.execution_duration == 7500
    assert (info.request_preview, info.response_preview) == ("Which trees? (t1)", QUERY)
    assert info.trace_metadata["mlflow.sourceRun"] == run_of(client, traced).info.run_id
    tags = {k: info.tags.get(k) for k in ("arm", "task", "seed", "status", "strict", "group")}
    assert tags == {
        "arm": "rlm", "task": "t1", "seed": "3", "status": "submitted", "strict": "true",
        "group": "g1",
    }  # fmt: skip


def test_traces_can_be_searched_by_what_they_were(client: MlflowClient, traced: RunFolder) -> None:
    wrong = client.search_traces(
        locations=[experiment_of(client, traced)],
        filter_string="tag.arm = 'direct' AND tag.strict = 'false'",
    )
    assert {trace.info.tags["reasoningbank.trial"] for trace in wrong} == {
        "direct/t1/3",
        "direct/t2/3",
        "direct/t2/7",
    }


def test_spans_keep_their_times_their_parents_and_their_tokens(
    client: MlflowClient, traced: RunFolder
) -> None:
    spans = traces(client, traced)["rlm/t1/3"].data.spans
    names = {span.span_id: span.name for span in spans}
    seen = [
        (
            span.name,
            span.span_type,
            (span.start_time_ns - BEGAN) / 1e9,
            (span.end_time_ns - BEGAN) / 1e9,
            names.get(span.parent_id),
        )
        for span in sorted(spans, key=lambda span: (span.start_time_ns, -span.end_time_ns))
    ]
    assert seen == [
        ("rlm · t1", "AGENT", 0.0, 7.5, None),
        ("memory", "RETRIEVER", 0.0, 0.0, "rlm · t1"),
        ("solver", "LLM", 1.0, 3.0, "rlm · t1"),
        ("python", "CHAIN", 3.0, 4.0, "rlm · t1"),
        ("sparql_query", "TOOL", 3.2, 3.7, "python"),
        ("solver", "LLM", 5.0, 6.0, "rlm · t1"),
        ("sparql_peek", "TOOL", 6.0, 6.5, "rlm · t1"),
        ("execution judge", "EVALUATOR", 7.0, 7.5, "rlm · t1"),
    ]


def test_spans_hold_what_went_in_and_out(client: MlflowClient, traced: RunFolder) -> None:
    trace = traces(client, traced)["rlm/t1/3"]
    spans = trace.data.spans
    root, _, first, code, query, cached, peek, judge = sorted(
        spans, key=lambda span: (span.start_time_ns, -span.end_time_ns)
    )
    assert root.inputs == {"question": "Which trees? (t1)"}
    assert root.outputs["sparql"] == QUERY
    assert [(e.name, (e.timestamp - BEGAN) / 1e9) for e in root.events] == [
        ("error", 4.0),
        ("submit", 7.0),
    ]
    assert [m["role"] for m in first.inputs["messages"]] == ["system", "user"]
    assert len(first.inputs["messages"][0]["content"]) > 1000
    # Half a surrogate pair, as small models write it.
    assert first.outputs["choices"][0]["message"]["content"] == "I look. \\ud83d"
    assert first.model_name == MODEL
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    assert first.get_attribute("mlflow.chat.tokenUsage") == {
        **usage,
        "cache_read_input_tokens": 60,
    }
    assert first.llm_cost["total_cost"] == 0.25
    assert cached.get_attribute("from_cache") is True
    assert cached.get_attribute("mlflow.chat.tokenUsage") is None
    assert code.outputs == {"output": "{'count': 3}"}
    assert (query.inputs, query.outputs) == ({"query": QUERY}, {"count": 3})
    assert (peek.status.status_code, peek.status.description) == ("ERROR", "ToolError: no r9")
    assert judge.outputs["reason"] == "equal"
    assert usage.items() <= trace.info.token_usage.items()
    assert trace.info.cost["total_cost"] == 0.25


def test_verdicts_are_assessments(client: MlflowClient, traced: RunFolder) -> None:
    found = traces(client, traced)
    said = {a.name: a for a in found["direct/t2/7"].info.assessments}
    assert said["gold"].value == GOLD
    assert (said["strict"].value, said["f1"].value) == (False, 0.25)
    assert said["strict"].rationale == "rows differ"
    assert (said["lm:local"].value, said["lm:local"].source.source_type) == (True, "LLM_JUDGE")
    broken = {a.name: a for a in found["rlm/urn:trees/3/3"].info.assessments}
    assert broken["strict"].feedback.error.error_code == "gold_defect"


def test_an_infrastructure_error_is_an_error_and_a_failure_is_none(
    client: MlflowClient, traced: RunFolder
) -> None:
    found = traces(client, traced)
    assert {name for name, trace in found.items() if trace.info.state == "ERROR"} == {"rlm/t2/3"}
    lost = found["rlm/t2/3"]
    assert {a.name for a in lost.info.assessments} == {"gold"}
    assert lost.data.spans[0].status.description == "the endpoint is gone"
    assert "strict" not in lost.info.tags


def test_the_run_says_what_was_run_and_what_came_of_it(
    client: MlflowClient, traced: RunFolder
) -> None:
    run = run_of(client, traced)
    assert run.info.status == "FINISHED"
    assert run.info.end_time >= run.info.start_time
    assert run.info.run_name == traced.path.name
    assert run.data.params["arms"] == "direct, rlm"
    assert run.data.params["arm.rlm.temperature"] == "0.5"
    assert run.data.params["seeds"] == "7, 3"
    assert run.data.tags["hash.corpus"] == MANIFEST["hashes"]["corpus"]
    for arm in summarise(traced.trials()).arms:
        found = {
            k.removeprefix(f"{arm.arm}/"): v
            for k, v in run.data.metrics.items()
            if k.startswith(f"{arm.arm}/")
        }
        assert found["trials"] == arm.trials
        assert found["judged"] == arm.judged
        assert found["errors"] == arm.errors
        assert found["strict_rate"] == pytest.approx(arm.rate.rate)
        assert found["f1"] == pytest.approx(arm.f1)
        assert found["tokens_median"] == arm.tokens[0]
        assert found["seconds_median"] == arm.seconds[0]


def test_a_trial_is_never_traced_twice(client: MlflowClient, uri: str, folder: RunFolder) -> None:
    first, second = trial("rlm", "t1", 3), trial("rlm", "o'neil", 3)
    for record in (first, second):
        # As the runner does, and again as if the run had been killed and gone on.
        for _ in range(2):
            folder.write(record)
            with mlflow_tracer(uri, folder, on_failure=no_failure) as observe:
                observe(record)
                observe(record)
    found = traces(client, folder)
    assert set(found) == {"rlm/t1/3", "rlm/o'neil/3"}
    assert all(len(trace.data.spans) == 8 for trace in found.values())
    assert all(len(trace.info.assessments) == 5 for trace in found.values())
    run_of(client, folder)


def test_a_new_run_is_traced_from_its_first_trial(
    client: MlflowClient, uri: str, folder: RunFolder
) -> None:
    manifest = folder.manifest
    assert manifest is not None
    fresh = RunFolder(folder.path.parent / "fresh")
    with mlflow_tracer(uri, fresh, on_failure=no_failure) as observe:
        fresh.write_manifest(manifest)
        fresh.write(trial("rlm", "t1", 3))
        observe(trial("rlm", "t1", 3))
    assert set(traces(client, fresh)) == {"rlm/t1/3"}


def test_a_trial_of_a_learning_stream_says_its_place_and_its_memory(
    client: MlflowClient, uri: str, folder: RunFolder
) -> None:
    folder.write(trial("rlm", "t1", 3, step=4, memory="abc", tries=2))
    with mlflow_tracer(uri, folder, on_failure=no_failure):
        pass
    (trace,) = traces(client, folder).values()
    tags = trace.info.tags
    assert (tags["step"], tags["memory"], tags["tries"]) == ("4", "abc", "2")


def test_a_run_that_never_begins_leaves_nothing(uri: str, tmp_path: Path) -> None:
    with mlflow_tracer(uri, RunFolder(tmp_path), on_failure=no_failure):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_untraced_is_caught_up_with(
    client: MlflowClient, uri: str, folder: RunFolder
) -> None:
    assert folder.manifest is not None
    # Killed between writing the spans and the rest: a trace without tags.
    store = TraceStore(uri, folder.manifest, "x")
    store.log(trial("rlm", "t1", 3))
    monkey = store._traces.start_trace
    store._traces.start_trace = lambda _: None
    store.log(trial("rlm", "t2", 3))
    store._traces.start_trace = monkey
    for task in ("t1", "t2", "t3"):
        folder.write(trial("rlm", task, 3))
    with mlflow_tracer(uri, folder, on_failure=no_failure):
        pass
    found = traces(client, folder)
    assert set(found) == {"rlm/t1/3", "rlm/t2/3", "rlm/t3/3"}
    assert all(len(trace.data.spans) == 8 for trace in found.values())
    assert all(len(trace.info.assessments) == 5 for trace in found.values())


def test_a_trial_run_again_takes_the_place_of_the_old(
    client: MlflowClient, uri: str, folder: RunFolder
) -> None:
    old = trial("rlm", "t1", 3, status="error", verdict=None, error="down")
    folder.write(old)
    with mlflow_tracer(uri, folder, on_failure=no_failure) as observe:
        new = replace(
            old, started="2026-02-01T00:00:00+00:00", status="submitted", verdict=verdict(True)
        )
        folder.write(new)
        observe(new)
    (trace,) = traces(client, folder).values()
    assert trace.info.tags["strict"] == "true"
    assert run_of(client, folder).data.metrics["rlm/errors"] == 0


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("x"), "FAILED"), (KeyboardInterrupt(), "KILLED")]
)
def test_a_run_that_ends_early_says_so(
    client: MlflowClient, uri: str, folder: RunFolder, error: BaseException, status: str
) -> None:
    folder.write(trial("rlm", "t1", 3))

    def run() -> None:
        with mlflow_tracer(uri, folder, on_failure=no_failure) as observe:
            observe(trial("rlm", "t1", 3))
            raise error

    with pytest.raises(type(error)):
        run()
    assert run_of(client, folder).info.status == status
    assert len(traces(client, folder)) == 1


def test_a_failure_is_reported_once_and_the_run_goes_on(folder: RunFolder, tmp_path: Path) -> None:
    reported: list[str] = []
    folder.write(trial("rlm", "t1", 3))
    nowhere = f"sqlite:///{tmp_path / 'no' / 'such' / 'folder' / 'x.db'}"
    (tmp_path / "no").write_text("a file, not a folder")
    with mlflow_tracer(nowhere, folder, on_failure=reported.append) as observe:
        for task in ("t1", "t2", "t3"):
            folder.write(trial("rlm", task, 3))
            observe(trial("rlm", task, 3))
    assert len(reported) == 1
    assert "the run goes on" in reported[0]
    assert "\n" not in reported[0]


def test_a_store_that_hangs_holds_nobody_up(
    folder: RunFolder, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    hang = threading.Event()
    monkeypatch.setattr(TraceStore, "log", lambda self, record: hang.wait())
    folder.write(trial("rlm", "t1", 3))
    monkeypatch.setattr(tracing, "PATIENCE_S", 0.1)
    with mlflow_tracer(uri, folder, on_failure=reported.append) as observe:
        observe(trial("rlm", "t1", 3))
    # The store still hangs.
    assert len(reported) == 1
    hang.set()


def test_a_password_is_not_reported(folder: RunFolder) -> None:
    reported: list[str] = []
    address = "postgresql://me:s3cret@127.0.0.1:9/x"
    folder.write(trial("rlm", "t1", 3))
    with mlflow_tracer(address, folder, on_failure=reported.append):
        pass
    assert len(reported) == 1
    assert "s3cret" not in reported[0]


def test_nothing_global_is_changed(uri: str, folder: RunFolder) -> None:
    callbacks = list(dspy.settings.callbacks or ())
    provider = opentelemetry.get_tracer_provider()
    folder.write(trial("rlm", "t1", 3))
    with mlflow_tracer(uri, folder, on_failure=no_failure):
        pass
    assert not mlflow.is_tracking_uri_set()
    assert mlflow.active_run() is None
    assert list(dspy.settings.callbacks or ()) == callbacks
    assert opentelemetry.get_tracer_provider() is provider


def test_missing_packages_and_wrong_addresses_are_reported_before_the_run(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError), mlflow_tracer("./mlruns", folder):
        pass
    for absent in ("mlflow", "sqlalchemy"):
        monkeypatch.setattr("importlib.util.find_spec", without(absent))
        with (
            pytest.raises(SetupError, match=r'pip install "reasoningbank\[mlflow\]"'),
            mlflow_tracer("sqlite:///x.db", folder),
        ):
            pass


def without(absent: str) -> Callable[[str], object]:
    return lambda name: None if name == absent else object()


def test_the_address_of_the_environment_is_taken(
    client: MlflowClient, uri: str, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    folder.write(trial("rlm", "t1", 3))
    with mlflow_tracer(None, folder, on_failure=no_failure):
        pass
    assert set(traces(client, folder)) == {"rlm/t1/3"}


def test_importing_the_room_does_not_import_mlflow() -> None:
    code = "import sys, reasoningbank.experiment.tracing; print('mlflow' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )
    assert said.stdout.strip() == "False"


def test_metrics_survive_an_arm_without_verdicts() -> None:
    lost: TrialRecord = trial("rlm", "t1", 3, status="error", verdict=None)
    assert "rlm/strict_rate" not in metrics_by_arm([lost])
    metrics = metrics_by_arm([lost, trial("rlm", "t2", 3)])
    assert (metrics["rlm/trials"], metrics["rlm/errors"], metrics["rlm/strict_rate"]) == (2, 1, 1)


def test_streams_have_metrics_of_their_own() -> None:
    found = metrics_by_arm(learned_run.records())
    assert (found["learned/trials"], found["learned/strict"]) == (24, 20)
    assert (found["learned/stream/trials"], found["learned/stream/strict"]) == (12, 7)
    assert found["random/strict_rate"] == 0.25
    assert "random/stream/trials" not in found
