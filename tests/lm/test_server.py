"""The local server, with a real engine and a real model of 100 kB."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import dspy
import pytest
from asked_models import make_lm
from failing import fails

from reasoningbank.errors import BudgetError, ModelError, SetupError, UsageError
from reasoningbank.lm import LocalModel, UsageCounter, lm_failure, open_lm
from reasoningbank.lm.server import slot_of

from .scripted import chat, scripted

PROMPT = "The static part of a prompt comes first, and stays the same. " * 4


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether the process ends within some seconds (a zombie has ended)."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_a_model_file_is_served_and_let_go(tiny: Path) -> None:
    with LocalModel(tiny, context=1024, threads=1) as server:
        pid = server.pid
        assert server.alive
        assert pid is not None
        assert server.address.startswith("http://127.0.0.1:")
    assert gone(pid)
    assert not server.alive
    with pytest.raises(ModelError, match="not running"):
        _ = server.address


def test_the_answers_and_what_they_took(tiny: Path) -> None:
    counter = UsageCounter()
    with open_lm(f"local:{tiny}", context=1024, threads=1) as model:
        lm = model.lm(max_tokens=6)
        with dspy.context(callbacks=[counter]):
            first, second = lm(PROMPT), lm(PROMPT)
    assert first == second, "temperature 0 repeats itself"
    assert counter.usage.completion_tokens <= 12
    assert counter.usage.cached_prompt_tokens == counter.usage.prompt_tokens // 2 - 1
    assert counter.usage.dollars is None


def test_no_role_evicts_the_prefix_of_another(tiny: Path) -> None:
    with open_lm(f"local:{tiny}", context=1024, threads=1, workers=2) as model:
        lms = [
            model.lm(worker=0, max_tokens=2),
            model.lm(worker=1, max_tokens=2),
            model.lm(role="judge", max_tokens=2),
            model.lm(role="distiller", max_tokens=2),
        ]
        for turn in range(2):
            for number, lm in enumerate(lms):
                lm(f"Prompt of caller {number}. {PROMPT}{turn}")
                usage = lm.history[-1]["usage"]
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                assert cached == 0 if turn == 0 else cached > usage["prompt_tokens"] * 0.9


def test_an_event_loop_can_ask_too(tiny: Path) -> None:
    with open_lm(f"local:{tiny}", context=1024, threads=1) as model:
        lm = model.lm(max_tokens=4)
        assert asyncio.run(lm.acall(PROMPT)) == lm(PROMPT)


def test_structured_answers_are_possible(tiny: Path) -> None:
    schema = {
        "type": "json_schema",
        "json_schema": {
            "name": "n",
            "schema": {"type": "object", "properties": {}, "additionalProperties": False},
        },
    }
    with open_lm(f"local:{tiny}", context=1024, threads=1) as model:
        (text,) = model.lm(max_tokens=16)("x", response_format=schema)
    assert text.startswith("{")


def test_a_prompt_beyond_the_context_is_the_agents_doing(tiny: Path) -> None:
    with (
        open_lm(f"local:{tiny}", context=256, threads=1) as model,
        pytest.raises(dspy.LMError) as caught,
    ):
        model.lm()("x" * 600)
    assert isinstance(lm_failure(caught.value, "local"), BudgetError)


def test_a_server_that_died_is_the_infrastructures_fault(tiny: Path) -> None:
    with LocalModel(tiny, context=256, threads=1) as server:
        lm = make_lm(f"local:{tiny}", api_base=server.address, num_retries=0)
        lm("x", max_tokens=1)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(dspy.LMError) as caught:
            lm("x", max_tokens=1)
    assert isinstance(lm_failure(caught.value), ModelError)


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGTERM])
def test_no_orphan_when_the_harness_is_killed(tiny: Path, deadly: signal.Signals) -> None:
    program = (
        "import sys, time\n"
        "from reasoningbank.lm.server import LocalModel\n"
        "with LocalModel(sys.argv[1], context=256, threads=1) as server:\n"
        "    print(server.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    harness = subprocess.Popen(
        [sys.executable, "-c", program, str(tiny)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert harness.stdout is not None
    pid = int(harness.stdout.readline())
    harness.send_signal(deadly)
    harness.wait()
    harness.stdout.close()
    assert gone(pid)


def test_a_running_server_can_be_shared(tiny: Path) -> None:
    with (
        open_lm(f"local:{tiny}", context=512, threads=1, workers=3) as first,
        open_lm(f"local:{tiny}", api_base=first.api_base) as second,
    ):
        assert (second.context, second.workers) == (512, 3)
        assert second.lm(max_tokens=2)("x") == first.lm(max_tokens=2)("x")


def test_a_server_named_in_the_environment_is_used(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_lm(f"local:{tiny}", context=512, threads=1) as first:
        assert first.api_base
        monkeypatch.setenv("REASONINGBANK_LM_SERVER", first.api_base)
        with open_lm(f"local:{tiny}") as second:
            assert second.api_base == first.api_base
            assert second.fingerprint["served_by"].startswith("llama.cpp b")
            assert second.fingerprint["sha256"] == first.fingerprint["sha256"]
        with fails(SetupError, "other-model"), open_lm("local"):
            pass


def test_a_server_of_ones_own_is_started_where_it_is_wanted(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONINGBANK_LM_SERVER", "http://127.0.0.1:9/v1")
    with open_lm(f"local:{tiny}", context=512, threads=1, own=True) as model:
        assert model.lm(max_tokens=2)("x")


@pytest.mark.parametrize(("slots", "asked"), [(1, {0}), (2, {0, 1}), (4, {0, 1, 2, 3})])
@pytest.mark.parametrize("end", ["", "/"])
def test_no_slot_is_asked_for_that_a_server_does_not_have(
    tiny: Path, slots: int, asked: set[int], end: str
) -> None:
    sha256 = hashlib.sha256(tiny.read_bytes()).hexdigest()
    props = {
        "model_alias": f"tiny@{sha256[:12]}",
        "default_generation_settings": {"n_ctx": 512},
        "total_slots": slots,
    }
    with (
        scripted(chat("x"), props=props) as served,
        open_lm(f"local:{tiny}", api_base=served.base + end) as model,
    ):
        for role in ("solver", "judge", "distiller", "extractor"):
            model.lm(role=role)("q")
    assert {one.body["id_slot"] for one in served.asked} == asked
    assert {one.path for one in served.asked} == {"/v1/chat/completions"}


def test_a_server_of_another_model_is_refused(tiny: Path) -> None:
    with (
        open_lm(f"local:{tiny}", context=512, threads=1) as model,
        fails(SetupError, "other-model"),
        open_lm("local", api_base=model.api_base),
    ):
        pass


def test_an_address_where_nothing_answers_is_reported() -> None:
    with (
        fails(SetupError, "no-model-server"),
        open_lm("local", api_base="http://127.0.0.1:9/v1"),
    ):
        pass


def test_a_handle_and_its_model_can_be_copied(tiny: Path) -> None:
    with open_lm(f"local:{tiny}", context=512, threads=1) as model:
        same = pickle.loads(pickle.dumps(model))
        assert copy.deepcopy(same.lm(max_tokens=2))("x") == model.lm(max_tokens=2)("x")


def test_a_local_model_without_a_server_says_how_to_start_one() -> None:
    with pytest.raises(UsageError, match="open_lm"):
        make_lm("local")


def test_missing_weights_are_reported_before_the_run() -> None:
    with pytest.raises(SetupError, match="lm pull local"), open_lm("local"):
        pass


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "no-weights"), (b"no model", "not-gguf"), (b"GGUF\x03\0\0\0", "cannot-serve")],
)
def test_a_file_that_is_not_a_model_is_reported(
    tmp_path: Path, content: bytes | None, code: str
) -> None:
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    with fails(SetupError, code), LocalModel(path, threads=1):
        pass


def test_each_role_has_a_slot_of_its_own() -> None:
    slots = [slot_of("solver", workers=2, worker=n) for n in range(2)]
    slots += [slot_of("judge", workers=2), slot_of("distiller", workers=2)]
    assert sorted(slots) == [0, 1, 2, 3]


def test_a_reply_ends_where_the_chat_format_ends(tiny: Path) -> None:
    with scripted(chat("[[ ## answer ## ]]\nParis")) as served:
        make_lm(f"local:{tiny}", api_base=served.base)("q")
    assert served.asked[0].body["stop"] == ["[[ ## completed ## ]]"]
