"""The sandbox: its lifecycle, what crosses its boundary, its snapshot, the pool."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dspy.primitives
import psutil
import pytest
from dspy.primitives.code_interpreter import CodeExecutionError, FinalOutput

from reasoningbank.agents.sandbox import interpreter
from reasoningbank.agents.sandbox.interpreter import (
    Sandbox,
    SandboxPool,
    deno_command,
    memory_snapshot,
)
from reasoningbank.errors import ToolError
from reasoningbank.refs import Ref, RefLike
from reasoningbank.tools import Rows

pytestmark = pytest.mark.sandbox

REF = Ref("results_0", "results", 45, 2847, "UniProt")


def sparql_query(query: str, limit: int = 100) -> Ref:
    """Return a handle."""
    if "boom" in query:
        raise ToolError("the query is wrong", hint="try another")
    return REF


def sparql_peek(ref: RefLike, n: int = 5) -> Rows:
    """Return rows, and what was given as a handle."""
    key = ref["key"] if isinstance(ref, dict) else ref
    return Rows(
        [{"given": key, "n": n}], source="UniProt", total=45, truncated=True, note="44 more"
    )


def sparql_stats(ref: RefLike) -> dict[str, object]:
    """Return what is unknown."""
    return {"rows": None, "columns": [None, 1]}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = Sandbox(timeout_s=4)
    tools = {"sparql_query": sparql_query, "sparql_peek": sparql_peek}
    box.tools.update(tools | {"sparql_stats": sparql_stats})
    yield box
    box.shutdown()


def test_a_handle_prints_as_its_repr_and_answers_both_ways(sandbox: Sandbox) -> None:
    code = "r = sparql_query('x')\nprint(r)\nprint(r.key, r['key'], r.rows)"
    assert sandbox.execute(code) == f"{REF!r}\nresults_0 results_0 45\n"


@pytest.mark.parametrize(
    "call",
    [
        "sparql_peek(sparql_query('x'), 3)",
        "sparql_peek(sparql_query('x').key, n=3)",
        "sparql_peek(ref=sparql_query(query='x', limit=2), n=3)",
    ],
)
def test_handles_go_back_positionally_and_by_name(sandbox: Sandbox, call: str) -> None:
    assert sandbox.execute(f"print({call}[0])") == "{'given': 'results_0', 'n': 3}\n"


def test_rows_are_a_list_that_carries_its_source(sandbox: Sandbox) -> None:
    code = (
        "rows = sparql_peek(sparql_query('x'))\n"
        "print(isinstance(rows, list), rows.source, rows.total, rows.truncated)\nprint(rows)"
    )
    assert sandbox.execute(code) == (
        "True UniProt 45 True\n[{'given': 'results_0', 'n': 5}]\n(44 more)\n"
    )


def test_what_is_unbound_is_none(sandbox: Sandbox) -> None:
    code = "found = sparql_stats('results_0')\nprint(found, found['rows'] is None)"
    assert sandbox.execute(code) == "{'rows': None, 'columns': [None, 1]} True\n"


def test_a_tool_error_can_be_caught_by_its_name(sandbox: Sandbox) -> None:
    code = "try:\n    sparql_query('boom')\nexcept ToolError as error:\n    print('caught', error)"
    assert sandbox.execute(code) == "caught the query is wrong; try another\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print(", "SyntaxError: '(' was never closed\n  line 1: print("),
        ("x = 1\nfor i in range(3)\n  y", "SyntaxError: expected ':'\n  line 2: for i in range(3)"),
        ("x = 'a\nb'", "SyntaxError: unterminated string literal"),
        ("return 1", "SyntaxError: 'return' outside function\n  line 1: return 1"),
        ("(" * 300, "SyntaxError: too many nested parentheses\n  line 1: ((("),
        ("x = 1\nx = x/0", "ZeroDivisionError: division by zero\n  line 2: x = x/0"),
        ("{}['a']", "KeyError: 'a'\n  line 1: {}['a']"),
        ("\neval('1 +')", "SyntaxError: invalid syntax (<string>, line 1)\n  line 2: eval('1 +')"),
        (
            "def inner():\n    return [][1]\nx = inner()",
            "IndexError: list index out of range\n  line 2: ",
        ),
        ("kept_before()", "ZeroDivisionError: division by zero\n  line 1: kept_before()"),
        ("sparql_query('boom')", "ToolError: the query is wrong; try another\n  line 1: sparql_q"),
        ("raise ValueError('x' * 10**6)", "ValueError: xxx"),
        ("raise SystemExit(3)", "SystemExit: 3\n  line 1: raise SystemExit(3)"),
    ],
)
def test_an_error_is_text_with_its_line(sandbox: Sandbox, code: str, said: str) -> None:
    sandbox.execute("def kept_before():\n    x = 1\n    return x/0")
    with pytest.raises(CodeExecutionError) as caught:
        # A variable is sent as a line before the code, and is no line of it.
        sandbox.execute(code, {"question": "who?"})
    assert said in str(caught.value)
    assert len(str(caught.value)) < 6_000


@pytest.mark.parametrize("last", ["1/0", "eval('1 +')", "import sys; sys.exit()", "int('x')"])
def test_a_failing_turn_keeps_what_it_printed(sandbox: Sandbox, last: str) -> None:
    with pytest.raises(CodeExecutionError) as caught:
        sandbox.execute(f"print('first')\nprint('second')\n{last}")
    assert str(caught.value).endswith("\nPrinted before the error:\nfirst\nsecond\n")
    assert sandbox.execute("print('third')") == "third\n"


def test_a_turn_that_ends_with_a_value_keeps_what_it_printed(sandbox: Sandbox) -> None:
    assert sandbox.execute("print('first')\nsparql_query('x')") == f"first\n{REF!r}\n"


def test_code_cannot_make_more_of_an_error(sandbox: Sandbox) -> None:
    sandbox.execute("kept_why = _rb_why\n_rb_why = lambda *_: 1/0")
    with pytest.raises(CodeExecutionError):
        sandbox.execute("print(")
    sandbox.execute("_rb_why = kept_why")
    assert sandbox.execute("print('alive')") == "alive\n"


def test_state_persists_between_turns(sandbox: Sandbox) -> None:
    sandbox.execute("kept = 41")
    assert sandbox.execute("print(kept + 1)") == "42\n"


@pytest.mark.parametrize(
    "code",
    [
        "print(open('/etc/passwd').read())",
        "import os; print(os.environ['HOME_SECRET'])",
        "import js; print(js.Deno.readTextFileSync('/etc/passwd'))",
        "import js; print(js.Deno.env.get('PATH'))",
        "import js; js.Deno.writeTextFileSync('/tmp/escaped', 'x')",
        "import js\nawait js.fetch('http://127.0.0.1:9/')",
    ],
)
def test_files_environment_and_network_are_out_of_reach(sandbox: Sandbox, code: str) -> None:
    with pytest.raises(CodeExecutionError):
        sandbox.execute(code)
    assert sandbox.execute("print('alive')") == "alive\n"


def test_a_run_away_loop_is_stopped_and_reported(sandbox: Sandbox) -> None:
    with pytest.raises(
        CodeExecutionError, match=r"stopped after 4 s.*variables are gone"
    ) as reported:
        sandbox.execute("for n in range(2_000): print('line', n)\nwhile True: pass")
    printed = str(reported.value).partition("Printed before the error:\n")[2]
    assert printed.startswith("line 0\nline 1\n")
    assert 9_000 < len(printed) <= 10_000
    assert sandbox.execute("print(sparql_query('x').key)") == "results_0\n"


def test_submit_ends_with_the_value(sandbox: Sandbox) -> None:
    sandbox.output_fields = [{"name": "sparql", "type": "str"}]
    sandbox._tools_registered = False
    result = sandbox.execute("SUBMIT('ASK {}')")
    assert isinstance(result, FinalOutput)
    assert result.output == {"sparql": "ASK {}"}


def test_the_pool_hands_out_a_warm_sandbox() -> None:
    with SandboxPool(spare=1) as pool:
        while pool._spares[0]._inner is None:
            time.sleep(0.01)
        running = {child.pid for child in psutil.Process().children(recursive=True)}
        box = pool()
        assert box.execute("print(1)") == "1\n"
        assert box._inner.deno_process.pid in running
        box.shutdown()


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
    if "'evil'" in code:
        EVIL
    said = "2\n" if code == "print(1+1)" else "fine"
    say(json.dumps({"jsonrpc": "2.0", "result": {"output": said}, "id": known}))
"""
GONE = "the sandbox was restarted and its variables are gone: do less in one turn"


STOPPED = "the code was stopped after 4 s"


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Sandbox]:
    """Return what makes a sandbox whose runner does the given thing when evil is asked for."""

    def make(evil: str, limit_s: float = 120) -> Sandbox:
        script = tmp_path / "runner.py"
        script.write_text(RUNNER.replace("EVIL", evil), encoding="utf-8")
        command = (sys.executable, "-I", "-S", str(script))
        monkeypatch.setattr(interpreter, "deno_command", lambda: command)
        sandbox = Sandbox(timeout_s=limit_s)
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
        ("os.close(1); time.sleep(10**6)", "brought"),
        ("time.sleep(10**6)", STOPPED),
        ("sys.stderr.write('e' * 1_000_000)", STOPPED),
        (
            "[call(name='long_answer', kwargs={}) for _ in range(50)]; time.sleep(10**6)",
            STOPPED,
        ),
    ],
)
def test_whatever_comes_is_reported_and_the_interpreter_replaced(
    taken: Callable[[str], Sandbox], evil: str, reason: str
) -> None:
    sandbox = taken(evil, 4 if reason == STOPPED else 120)
    assert sandbox.execute("good") == "fine"
    with pytest.raises(CodeExecutionError, match=reason) as caught:
        sandbox.execute("evil")
    assert str(caught.value).endswith(GONE)
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


def test_a_forged_end_that_is_not_a_submission_is_an_error(taken: Callable[[str], Sandbox]) -> None:
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
    sandbox = taken("say(json.dumps({'result': {'output': ''}, 'id': known})); time.sleep(10**6)")
    sandbox.execute("evil")
    # It would sleep for days.
    sandbox.shutdown()
    sandbox.shutdown()


pytestmark = pytest.mark.sandbox

FOLDER = Path(interpreter.__file__).parent


@pytest.fixture
def boxes() -> Iterator[list[Sandbox]]:
    made = [Sandbox(), Sandbox()]
    yield made
    for box in made:
        box.shutdown()


def snapshot_named() -> Path:
    (named,) = (part for part in deno_command() if part.startswith("--snapshot="))
    return Path(named.removeprefix("--snapshot="))


def test_the_import_map_names_the_pyodide_that_dspys_runner_imports() -> None:
    runner = (Path(dspy.primitives.__file__).parent / "runner.js").read_text(encoding="utf-8")
    (name,) = re.findall(r'from "(npm:pyodide@[^"]+)"', runner)
    map_ = json.loads((FOLDER / "import_map.json").read_text(encoding="utf-8"))
    assert map_["imports"][name] == "./pyodide.js"
    for script, own in map_["scopes"].items():
        assert own == {name: name}
        assert name in (FOLDER / script).read_text(encoding="utf-8")


def test_the_snapshot_lies_beside_pyodide_and_is_made_once(tmp_path: Path) -> None:
    file = snapshot_named()
    assert file.stat().st_size > 10_000_000
    assert file.parent.name == "reasoningbank"
    # It cannot be made with a Deno that does nothing; then there is none, and no part of one.
    assert memory_snapshot(str(tmp_path), ("/bin/true",)) is None
    assert list(tmp_path.rglob("*")) == []


def test_no_two_sandboxes_draw_the_same_numbers(boxes: list[Sandbox]) -> None:
    drawn = {box.execute("import random\nprint(random.random())") for box in boxes}
    assert len(drawn) == 2


def test_a_snapshot_that_is_gone_costs_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxes: list[Sandbox]
) -> None:
    command = [part for part in deno_command() if not part.startswith("--snapshot=")]
    command.append(f"--snapshot={tmp_path / 'gone.snapshot'}")
    monkeypatch.setattr(interpreter, "deno_command", lambda: tuple(command))
    assert boxes[0].execute("print(6 * 7)") == "42\n"


MAKES = """
import sys
from pathlib import Path

sys.stdout.buffer.write(b"x" * 10_000_000)
Path(__file__).with_name("runs").open("a").write("1")
"""


def test_a_snapshot_is_made_once(tmp_path: Path) -> None:
    script = tmp_path / "makes.py"
    script.write_text(MAKES, encoding="utf-8")
    command = (sys.executable, str(script))
    file = memory_snapshot(str(tmp_path), command)
    assert file is not None
    assert memory_snapshot(str(tmp_path), command) == file
    assert file.stat().st_size == 10_000_000
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "1"


def test_a_sandbox_that_begins_learns_its_tools_meanwhile(boxes: list[Sandbox]) -> None:
    box = boxes[0]
    box.tools["look"] = lambda: "seen"
    box.begin()
    box.begin()
    assert box.execute("print(look())") == "seen\n"


def test_tools_that_come_after_the_start_are_registered_meanwhile(boxes: list[Sandbox]) -> None:
    box = boxes[0]
    box.begin()
    box._wait_until_begun()
    box.tools["look"] = lambda: "seen"
    box.begin()
    box._wait_until_begun()
    assert box._tools_registered
    assert box.execute("print(look())") == "seen\n"


def test_tools_that_come_during_the_start_wait_for_the_next(
    boxes: list[Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, given = interpreter._started, threading.Event()

    def slow_start() -> interpreter._Interpreter:
        given.wait()
        return start()

    monkeypatch.setattr(interpreter, "_started", slow_start)
    box = boxes[0]
    box.begin()
    box.tools["look"] = lambda: "seen"
    given.set()
    box._wait_until_begun()
    assert not box._tools_registered


def test_a_sandbox_that_does_not_start_is_tried_once_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[int] = []

    def fails() -> interpreter._Interpreter:
        tries.append(1)
        raise CodeExecutionError("no")

    monkeypatch.setattr(interpreter, "_started", fails)
    box = Sandbox()
    box.begin()
    box.tools["look"] = lambda: "seen"
    box.begin()
    box._wait_until_begun()
    assert len(tries) == 1


def test_a_sandbox_can_be_shut_down_while_it_begins(boxes: list[Sandbox]) -> None:
    box = boxes[0]
    box.begin()
    box.shutdown()
    assert box._inner is None
