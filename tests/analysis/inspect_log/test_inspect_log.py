"""Inspect itself reads what is exported, and finds the same numbers as the summary."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import learned_run
import pytest
from inspect_ai import analysis
from inspect_ai import log as inspect_log
from recorded import GOLD, LONG, MANIFEST, MODEL, QUERY, STARTED, records, trial, write_run

from reasoningbank.analysis import summarise
from reasoningbank.analysis.inspect_log import InspectExport, export_inspect
from reasoningbank.errors import RecordError, SetupError, UsageError
from reasoningbank.experiment import RunFolder

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def exported(run: RunFolder) -> InspectExport:
    return export_inspect(run.path)


@pytest.fixture(scope="module")
def logs(exported: InspectExport) -> dict[str, Any]:
    return {log.arm: inspect_log.read_eval_log(log.path) for log in exported.logs}


def sample(log: Any, task: str, epoch: int) -> Any:
    return next(s for s in log.samples if s.id == task and s.epoch == epoch)


def test_an_arm_is_a_log_a_task_a_sample_a_seed_an_epoch(
    exported: InspectExport, logs: dict[str, Any], run: RunFolder
) -> None:
    assert exported.folder == run.path / "inspect"
    assert [(log.arm, log.samples, log.errors) for log in exported.logs] == [
        ("direct", 5, 0),
        ("rlm", 6, 1),
    ]
    spec = logs["rlm"].eval
    assert (spec.task, spec.solver, spec.model) == ("trees_demo", "rlm", MODEL)
    assert spec.task_version == 3
    assert spec.config.epochs == 2
    assert spec.config.token_limit == 9000
    assert spec.model_generate_config.temperature == 0.5
    assert spec.dataset.sample_ids == MANIFEST["tasks"]
    assert spec.metadata["hashes"] == MANIFEST["hashes"]
    # In the order of the experiment's seeds: 7 is the first epoch, 3 the second.
    assert {(s.id, s.epoch, s.metadata["seed"]) for s in logs["rlm"].samples} == {
        (task, epoch, seed) for task in MANIFEST["tasks"] for epoch, seed in ((1, 7), (2, 3))
    }


def test_an_arm_that_misses_trials_is_cancelled(logs: dict[str, Any]) -> None:
    assert (logs["direct"].status, logs["rlm"].status) == ("cancelled", "success")


def test_practice_has_a_log_of_its_own(tmp_path: Path) -> None:
    exported = export_inspect(learned_run.write(tmp_path / "run").path)
    assert [(log.arm, log.samples, log.complete) for log in exported.logs] == [
        ("learned", 24, True),
        ("none", 8, True),
        ("random", 8, True),
        ("learned (stream)", 12, True),
        ("none (stream)", 4, True),
    ]
    logs = {log.arm: inspect_log.read_eval_log(log.path) for log in exported.logs}
    held_out, stream = (logs[name].results.scores[0] for name in ("learned", "learned (stream)"))
    assert held_out.metrics["accuracy"].value == pytest.approx(20 / 24)
    assert stream.metrics["accuracy"].value == pytest.approx(7 / 12)
    assert {s.id for s in logs["learned (stream)"].samples} == set(learned_run.STREAM)


def test_question_gold_and_verdict(logs: dict[str, Any]) -> None:
    wrong = sample(logs["direct"], "t1", 2)
    assert (wrong.input, wrong.target) == ("Which trees? (t1)", GOLD)
    assert wrong.output.completion == QUERY
    strict = wrong.scores["strict"]
    assert (strict.value, strict.answer, strict.explanation) == ("I", QUERY, "rows differ")
    assert strict.metadata["evidence"]["missing"] == [["<http://e/oak>"]]
    assert wrong.scores["f1"].value == 0.5
    assert wrong.scores["lm:local"].value == "C"
    assert wrong.scores["lm:local"].metadata == {"confidence": 0.9}


def test_infrastructure_errors_are_errors_and_failures_are_scores(logs: dict[str, Any]) -> None:
    lost = sample(logs["rlm"], "t2", 2)
    assert lost.error.message == "the endpoint is gone"
    assert not lost.scores
    assert [e.event for e in lost.events].count("error") == 1
    refused = sample(logs["direct"], "t2", 2)
    assert refused.error is None
    assert (refused.scores["strict"].value, refused.scores["strict"].reason) == ("I", "no_query")


def test_what_has_no_verdict_has_no_value(logs: dict[str, Any]) -> None:
    broken = sample(logs["rlm"], "urn:trees/3", 1)
    assert all(broken.scores[name].value != broken.scores[name].value for name in ("strict", "f1"))
    silent = sample(logs["direct"], "urn:trees/3", 1)
    assert silent.scores["lm:local"].reason == "grader_failed"


def test_a_budget_that_ended_a_trial_is_its_limit(logs: dict[str, Any]) -> None:
    spent = sample(logs["rlm"], "t1", 1)
    assert (spent.limit.type, spent.limit.limit) == ("turn", 8)
    assert "LM calls" in spent.limit.reason
    assert [e.event for e in spent.events].count("sample_limit") == 1


def test_the_conversation_has_each_reply_once_with_its_calls(logs: dict[str, Any]) -> None:
    messages = sample(logs["rlm"], "t1", 2).messages
    assert [m.role for m in messages] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    _, question, reply, output, _, failed, submitted = messages
    assert question.text == "Which trees? (t1)"
    # Half a surrogate pair, as small models write it.
    assert reply.text == "I look. \\ud83d"
    assert [call.function for call in reply.tool_calls] == ["python"]
    assert output.tool_call_id == reply.tool_calls[0].id
    assert output.text == "{'count': 3}"
    assert failed.error.message == "ToolError: no r9"
    assert submitted.text == QUERY


def test_events_keep_their_times_and_their_tokens(logs: dict[str, Any]) -> None:
    found = sample(logs["rlm"], "t1", 2)
    began = datetime.fromisoformat(STARTED).astimezone(UTC)
    models = [e for e in found.events if e.event == "model"]
    first, cached = models
    assert first.timestamp == began + timedelta(seconds=1)
    assert first.completed == began + timedelta(seconds=3)
    assert (first.output.usage.input_tokens, first.output.usage.input_tokens_cache_read) == (40, 60)
    assert (first.output.usage.output_tokens, first.output.usage.total_tokens) == (20, 120)
    assert first.output.usage.total_cost == 0.25
    assert first.config.seed == 3
    assert (cached.cache, cached.output.usage) == ("read", None)
    tools = {e.function: e for e in found.events if e.event == "tool"}
    inner = tools["sparql_query"]
    assert inner.timestamp == began + timedelta(seconds=3.2)
    assert inner.completed == began + timedelta(seconds=3.7)
    assert inner.arguments == {"query": QUERY}
    assert tools["sparql_peek"].error.message == "ToolError: no r9"
    reported = {e.source: e.data for e in found.events if e.event == "info"}
    assert reported["memory_retrieved"]["items"][0]["id"] == "m1"
    assert reported["error"]["reply"] == "hm"
    scored = {e.scorer for e in found.events if e.event == "score"}
    assert scored == {"strict", "lenient", "f1", "lm:local"}


def test_what_is_said_often_is_stored_once(exported: InspectExport) -> None:
    log = inspect_log.read_eval_log(exported.logs[1].path, resolve_attachments=False)
    stored = sample(log, "t1", 2).model_dump_json()
    # Once in the messages, once among the attachments, though two prompts begin with it.
    assert stored.count(LONG) == 2


def test_usage_adds_up_to_what_the_records_say(logs: dict[str, Any]) -> None:
    for arm, log in logs.items():
        mine = [r for r in records() if r.key.arm == arm]
        used = log.stats.model_usage[MODEL]
        assert used.total_tokens == sum(r.usage.tokens for r in mine)
        assert log.stats.started_at.startswith("2026-01-02T03:04:05")


def test_inspect_finds_the_numbers_of_the_summary(exported: InspectExport, run: RunFolder) -> None:
    summary = {arm.arm: arm for arm in summarise(run.trials()).arms}
    evals = analysis.evals_df(str(exported.folder), quiet=True).set_index("solver")
    samples = analysis.samples_df(str(exported.folder), quiet=True)
    for name, arm in summary.items():
        assert evals.loc[name, "score_strict_accuracy"] == pytest.approx(arm.mean.rate)
        mine = samples[samples["metadata_arm"] == name]
        assert len(mine) == arm.trials
        judged = mine[mine["score_strict"].isin(["C", "I"])]
        assert len(judged) == arm.judged
        assert (judged["score_strict"] == "C").sum() == arm.strict
        assert judged["score_f1"].mean() == pytest.approx(arm.f1)
        assert (mine["error"] != "").sum() == arm.errors


def test_a_trial_of_a_learning_stream_says_its_place_and_its_memory(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.write_manifest(MANIFEST)
    run.write(trial("rlm", "t1", 7, step=4, memory="abc"))
    (log,) = export_inspect(run.path).logs
    (only,) = inspect_log.read_eval_log(log.path).samples
    assert (only.metadata["step"], only.metadata["memory"]) == (4, "abc")


def test_the_headline_is_the_pre_registered_metric(logs: dict[str, Any]) -> None:
    for log in logs.values():
        assert log.results.headline.scorer == "strict"
        metrics = next(s for s in log.results.scores if s.name == "strict").metrics
        assert set(metrics) == {"accuracy", "stderr"}
        assert {s.name for s in log.results.scores} == {"strict", "lenient", "f1", "lm:local"}


@pytest.mark.parametrize("name", ["uniprot_floor", "uniprot_tools"])
def test_committed_records_agree_with_their_summary(name: str, tmp_path: Path) -> None:
    run = RunFolder(REPOSITORY / "experiments" / "results" / name)
    exported = export_inspect(run.path, tmp_path)
    samples = analysis.samples_df(str(tmp_path), quiet=True)
    events = analysis.events_df(
        str(tmp_path), filter=lambda e: e.event == "tool", quiet=True,
        columns=analysis.EventInfo + analysis.EventTiming + analysis.ToolEventColumns,
    )  # fmt: skip
    messages = analysis.messages_df(str(tmp_path), quiet=True)
    assert messages["sample_id"].isin(samples["sample_id"]).all()
    called = 0
    for arm in summarise(run.trials()).arms:
        mine = samples[samples["metadata_arm"] == arm.arm]
        assert (mine["score_strict"] == "C").sum() == arm.strict
        assert mine["score_f1"].astype(float).mean() == pytest.approx(arm.f1)
    for record in run.trials():
        called += len(record.trajectory.of("tool_call", "code"))
    assert len(events) == called
    assert sum(log.samples for log in exported.logs) == len(samples)
    assert samples["total_tokens"].sum() == sum(r.usage.tokens for r in run.trials())


def test_inspects_own_command_lists_the_logs(exported: InspectExport) -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "inspect_ai", "log", "list", "--json", "--log-dir", "."],
        cwd=exported.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = {entry["task"]: entry["task_id"] for entry in json.loads(listed.stdout)}
    assert set(found) == {"trees-demo-direct", "trees-demo-rlm"}
    ids = {inspect_log.read_eval_log(log.path, header_only=True).eval.task_id
           for log in exported.logs}  # fmt: skip
    assert set(found.values()) == ids


def test_inspect_view_serves_the_logs(
    exported: InspectExport, tmp_path: Path, unused_port: int
) -> None:
    address = f"http://127.0.0.1:{unused_port}"
    arguments = ["view", "start", "--host", "127.0.0.1", "--port", str(unused_port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "inspect_ai", *arguments, "--log-dir", str(exported.folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
    )
    try:
        listed = fetched(f"{address}/api/logs", server)
        assert {entry["task"] for entry in listed["files"]} == {
            "trees-demo-direct",
            "trees-demo-rlm",
        }
        name = listed["files"][0]["name"]
        (header,) = fetched(f"{address}/api/log-headers?file={quote(name, safe='')}", server)
        assert header["eval"]["task_display_name"] in {"trees_demo · direct", "trees_demo · rlm"}
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def fetched(url: str, server: subprocess.Popen[bytes]) -> Any:
    for _ in range(300):
        assert server.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)
        except ConnectionError:
            pass
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
        time.sleep(0.2)
    raise AssertionError("the server does not answer")


def test_a_damaged_trial_is_reported_and_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    broken = run.path / records()[0].key.path
    broken.write_text('{"key": ')
    export = export_inspect(run.path)
    assert export.damaged == (broken,)
    assert [log.samples for log in export.logs] == [4, 6]


def test_a_folder_without_a_run_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        export_inspect(tmp_path)
    RunFolder(tmp_path).write_manifest(MANIFEST)
    with pytest.raises(UsageError, match="holds no trial yet"):
        export_inspect(tmp_path)


def test_a_missing_extra_is_reported_with_its_command(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r'pip install "reasoningbank\[inspect\]"'):
        export_inspect(run.path)


def test_a_full_disk_leaves_no_half_log(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(RecordError, match="No space left"):
        export_inspect(run.path, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_importing_the_room_does_not_import_inspect() -> None:
    code = "import sys, reasoningbank.analysis.inspect_log; print('inspect_ai' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
