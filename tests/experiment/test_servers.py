"""What answers is part of what a run is: the address, and the model as the server names it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy
import pytest
from asked_models import make_lm
from lm.scripted import Reply, ScriptedServer, chat, failure, scripted

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.experiment import Experiment, RunFolder, rejudge_run, run_experiment
from reasoningbank.experiment.executors import Retrier
from reasoningbank.lm import lm_failure, open_lm
from reasoningbank.lm.names import weights_named

Make = Callable[..., Experiment]
ARM = {"name": "direct", "agent": "direct", "lm": "openai/x"}
QUERY = chat("[[ ## sparql ## ]]\nASK {}\n\n[[ ## completed ## ]]")
VERDICT = chat('{"success": true, "confidence": 0.9, "reason": "x", "checks": []}')


@pytest.fixture
def asked_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedServer], None]:
    monkeypatch.setenv("OPENAI_API_KEY", "replayed")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return lambda server: monkeypatch.setenv("OPENAI_API_BASE", server.base)


def test_another_address_is_another_run(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None],
) -> None:  # fmt: skip
    experiment, folder = experiment_on(make_pack(3), ARM), RunFolder(tmp_path / "run")
    with scripted(QUERY) as first, scripted(QUERY) as second:
        asked_at(first)
        run_experiment(experiment, folder, limit=1)
        asked_at(second)
        with pytest.raises(UsageError) as caught:
            run_experiment(experiment, folder)
        assert caught.value.code == "another-run"
        assert first.base in str(caught.value)
        assert second.base in str(caught.value)
        assert (len(list(folder.trials())), len(second.asked)) == (1, 0)
        asked_at(first)
        run_experiment(experiment, folder)
    assert len(list(folder.trials())) == 3


def test_a_reasoning_model_is_asked_without_the_settings_that_it_refuses(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None],
) -> None:  # fmt: skip
    arm, pack = ARM | {"lm": "openai/gpt-5-mini"}, make_pack(1)
    with scripted(QUERY) as server:
        asked_at(server)
        run_experiment(experiment_on(pack, arm), RunFolder(tmp_path / "run"))
        (asked,) = server.asked
        assert not {"temperature", "max_tokens", "max_completion_tokens"} & set(asked.body)
        for warm in ({"temperature": 0.7}, {"sampling": {"k": 2, "temperature": 0.7}}):
            with pytest.raises(UsageError) as caught:
                run_experiment(
                    experiment_on(pack, ARM, {**arm, "name": "warm", **warm}),
                    RunFolder(tmp_path / "warm"),
                )
            assert (caught.value.code, caught.value.where) == ("no-temperature", "arm warm")
        assert len(server.asked) == 1


def test_trials_at_the_same_time_share_the_limit_of_their_model(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None],
) -> None:  # fmt: skip
    executor = {"workers": 4, "limits": {"openai/paced": {"requests": 200}}}
    arm = ARM | {"lm": "openai/paced"}
    experiment = experiment_on(make_pack(4), arm, executor=executor)
    with scripted(QUERY) as server:
        asked_at(server)
        # The first call of a process imports its client after its turn.
        make_lm("openai/paced", api_base=server.base)("x")
        server.asked.clear()
        began = time.monotonic()
        folder = run_experiment(experiment, RunFolder(tmp_path / "run"))
    assert len(server.asked) == len(list(folder.trials())) == 4
    # From the beginning of the run, since a request on a busy machine may only arrive later.
    assert max(asked.at for asked in server.asked) - began >= 3 * 60 / 200


def test_another_model_at_the_same_address_ends_the_run(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None],
) -> None:  # fmt: skip
    experiment, folder = experiment_on(make_pack(3), ARM), RunFolder(tmp_path / "run")
    with scripted(QUERY) as server:
        asked_at(server)
        run_experiment(experiment, folder, limit=1)
        assert (folder.manifest or {})["served"] == {"openai/x": "x"}
        server.replies[:] = [replace(QUERY, body={**QUERY.body, "model": "y"})]
        with pytest.raises(UsageError) as caught:
            run_experiment(experiment, folder)
        assert (caught.value.code, caught.value.fields["served"]) == ("another-model", ["x", "y"])
        assert len(list(folder.trials())) == 1
        server.replies[:] = [QUERY]
        run_experiment(experiment, folder)
    assert len(list(folder.trials())) == 3


def test_a_judge_elsewhere_does_not_continue_its_judgements(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None],
) -> None:  # fmt: skip
    folder = RunFolder(tmp_path / "run")
    run_experiment(experiment_on(make_pack(2)), folder)
    with scripted(VERDICT) as first, scripted(VERDICT) as second:
        asked_at(first)
        assert rejudge_run(folder, "lm:openai/x", limit=1).judged == 1
        asked_at(second)
        with pytest.raises(UsageError) as caught:
            rejudge_run(folder, "lm:openai/x")
        assert caught.value.code == "another-judge"
        assert rejudge_run(folder, "lm:openai/x", again=True).judged == 2


def test_a_rate_limit_is_waited_out_and_no_failure(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    experiment = experiment_on(make_pack(1), ARM, retries={"infrastructure": 1, "backoff_s": 0})
    # Only the waits of DSPy: six calls outlast its retries.
    monkeypatch.setattr("dspy.clients.execution.time.sleep", lambda _: None)
    limited = failure(429, "slow down", retry_after="1")
    with scripted(*[limited] * 6, QUERY) as server:
        asked_at(server)
        folder = run_experiment(experiment, RunFolder(tmp_path / "run"))
        (trial,) = folder.trials()
        assert (trial.status, trial.tries, trial.usage.lm_calls) == ("submitted", 2, 1)
        assert len(server.asked) == 7
    paused: list[float] = []
    record = replace(trial, status="error", findings=(rate_limit(limited),))
    tries = iter([record, trial])
    again: Any = SimpleNamespace(run=lambda: next(tries))
    assert Retrier(experiment.retries, paused.append).run(again) is not None
    assert paused == [1.0]


def rate_limit(reply: Reply) -> dict[str, Any]:
    """Return the finding of a rate limit that outlasts the retries, asked for by LiteLLM."""
    with scripted(reply) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", server.base)
        with pytest.raises(dspy.LMError) as caught:
            make_lm("openai/x", num_retries=0)("q")
    found = lm_failure(caught.value)
    assert found is not None
    assert found.code == "rate-limit"
    return found.finding.to_json()


@pytest.mark.parametrize(
    ("status", "code"), [(401, "bad-key"), (404, "setup"), (402, "setup"), (403, "bad-key")]
)
def test_a_refusal_ends_the_run_at_once(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None], status: int, code: str,
) -> None:  # fmt: skip
    with scripted(failure(status, "no")) as server:
        asked_at(server)
        with pytest.raises(SetupError) as caught:
            run_experiment(experiment_on(make_pack(3), ARM), RunFolder(tmp_path / "run"))
        assert (caught.value.code, len(server.asked)) == (code, 1)
        assert caught.value.where.endswith("openai/x")
    assert "\n" not in str(caught.value)


def test_each_arm_may_have_a_model_of_its_own(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    asked_at: Callable[[ScriptedServer], None], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    names = {"first": "openai/gpt-4.1-mini", "second": "hosted_vllm/own"}
    arms = [{"name": arm, "agent": "direct", "lm": name} for arm, name in names.items()]
    with scripted(QUERY) as first, scripted(QUERY) as second:
        asked_at(first)
        monkeypatch.setenv("HOSTED_VLLM_API_BASE", second.base)
        folder = run_experiment(experiment_on(make_pack(2), *arms), RunFolder(tmp_path / "run"))
        addresses = {"first": first.base, "second": second.base}
    assert (len(first.asked), len(second.asked)) == (2, 2)
    for trial in folder.trials():
        arm = trial.key.arm
        assert (trial.model["model"], trial.model["api_base"]) == (names[arm], addresses[arm])
        (call,) = trial.trajectory.of("lm_call")
        assert call.data["model"] == names[arm]
        # The price of the one is known, that of the other is not.
        assert (trial.usage.dollars is None, trial.usage.unpriced) == (arm == "second",) * 2
    assert set((folder.manifest or {})["hashes"]["models"]) == set(names.values())


def test_the_address_is_known_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "replayed")
    for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.setenv(variable, "http://user:key@127.0.0.1:8/v1/")
        with open_lm("openai/x") as model:
            assert model.fingerprint["api_base"] == "http://127.0.0.1:8/v1"
            assert model.api_base is None
        monkeypatch.delenv(variable)
    with open_lm("openai/x") as model:
        assert model.fingerprint["api_base"] is None


def test_the_port_of_a_local_model_does_not_count() -> None:
    weights = weights_named("local")
    stem = weights.file.removesuffix(".gguf")
    props = {"model_alias": f"{stem}@{weights.sha256[:12]}", "total_slots": 4}
    props |= {"default_generation_settings": {"n_ctx": 8192}}
    seen = []
    for _ in range(2):
        with scripted(props=props) as server, open_lm("local", api_base=server.base) as model:
            seen.append((server.base, dict(model.fingerprint)))
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] == seen[1][1]
