"""The host's side of the bridge against a runner that has been taken over: nothing is trusted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dspy.primitives.code_interpreter import CodeExecutionError, FinalOutput

from reasoningbank.agents.sandbox import Sandbox, interpreter

#: Answers as DSPy's runner does; executing "evil" runs the code that a test puts in.
RUNNER = r"""
import json, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
def call(**params):
    say(json.dumps({"jsonrpc": "2.0", "method": "tool_call", "id": "t", "params": params}))
for line in sys.stdin:
    request = json.loads(line)
    known = request.get("id")
    code = request.get("params", {}).get("code", "")
    if code == "evil":
        EVIL
    said = "2\n" if code == "print(1+1)" else "fine"
    say(json.dumps({"jsonrpc": "2.0", "result": {"output": said}, "id": known}))
"""
GONE = "the sandbox was restarted and its variables are gone: do less in one turn"


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Sandbox]:
    """Return what makes a sandbox whose runner does the given thing when told to be evil."""

    def make(evil: str) -> Sandbox:
        script = tmp_path / "runner.py"
        script.write_text(RUNNER.replace("EVIL", evil), encoding="utf-8")
        command = (sys.executable, "-I", "-S", str(script))
        monkeypatch.setattr(interpreter, "deno_command", lambda: command)
        sandbox = Sandbox(timeout_s=1)
        sandbox.tools["long_answer"] = lambda: "x" * 100_000
        return sandbox

    return make


@pytest.mark.parametrize(
    ("evil", "reason"),
    [
        ('say(\'{"jsonrpc": "2.0", "result": {"final": {"q": "x"}}, "id": "0"}\')', "brought"),
        ('say(\'{"jsonrpc": "2.0", "result": 5, "id": "\' + known + \'"}\')', "brought"),
        ('say(\'{"jsonrpc": "2.0", "error": {"code": -32700}}\')', "brought"),
        ('say(\'{"method": "tool_call"}\')', "brought"),
        ('say(\'{"method": "tool_call", "id": 1, "params": [1]}\')', "brought"),
        ('say(\'{"a":\' + "[" * 200_000)', "brought"),
        ('[say("no frame") for _ in range(200)]', "brought"),
        ('[say("") for _ in range(200)]', "brought"),
        ('say("x" * 9_000_000)', "the code wrote more than 8,000,000 characters at once"),
        ("os._exit(0)", "brought"),
        ("os.close(1); time.sleep(60)", "brought"),
        ("time.sleep(60)", "the code was stopped after 1 s"),
        ("sys.stderr.write('e' * 1_000_000)", "the code was stopped after 1 s"),
        (
            "[call(name='long_answer', kwargs={}) for _ in range(50)]; time.sleep(60)",
            "the code was stopped after 1 s",
        ),
    ],
)
def test_whatever_comes_is_told_and_the_interpreter_replaced(
    taken: Callable[[str], Sandbox], evil: str, reason: str
) -> None:
    sandbox = taken(evil)
    assert sandbox.execute("good") == "fine"
    began = time.monotonic()
    with pytest.raises(CodeExecutionError, match=reason) as caught:
        sandbox.execute("evil")
    assert str(caught.value).endswith(GONE)
    assert time.monotonic() - began < 5
    assert sandbox.execute("good") == "fine"
    sandbox.shutdown()


def test_bytes_that_are_no_text_are_passed_over(taken: Callable[[str], Sandbox]) -> None:
    sandbox = taken(r"os.write(1, b'\xff\xfe\x00\n')")
    assert sandbox.execute("evil") == "fine"
    sandbox.shutdown()


@pytest.mark.parametrize(
    "call",
    [
        "call(name='nosuch', kwargs={})",
        "call(name=['long_answer'], kwargs={})",
        "call(name='long_answer', kwargs=[1])",
        "call(name='long_answer', kwargs={'x': 1})",
    ],
)
def test_a_forged_call_is_a_call_and_its_mistakes_are_the_callers(
    taken: Callable[[str], Sandbox], call: str
) -> None:
    sandbox = taken(f"{call}; answer = json.loads(sys.stdin.readline()); assert answer['error']")
    assert sandbox.execute("evil") == "fine"
    sandbox.shutdown()


def test_a_forged_end_that_is_no_submission_is_an_error(taken: Callable[[str], Sandbox]) -> None:
    # Code that learned the request's id can end its turn: that is what SUBMIT does, too.
    frame = '\'{"jsonrpc": "2.0", "result": {"final": %s}, "id": "\' + known + \'"}\''
    sandbox = taken(f"say({frame % '[1]'}); continue")
    with pytest.raises(CodeExecutionError, match="end with SUBMIT"):
        sandbox.execute("evil")
    assert sandbox.execute("good") == "fine"
    sandbox.shutdown()
    sandbox = taken("say({}); continue".format(frame % '{"sparql": "ASK {}"}'))
    assert isinstance(sandbox.execute("evil"), FinalOutput)
    sandbox.shutdown()


def test_the_end_does_not_wait_for_a_process_that_ignores_it(
    taken: Callable[[str], Sandbox],
) -> None:
    sandbox = taken("say(json.dumps({'result': {'output': ''}, 'id': known})); time.sleep(60)")
    sandbox.execute("evil")
    began = time.monotonic()
    sandbox.shutdown()
    sandbox.shutdown()
    assert time.monotonic() - began < 20
