"""What code in the real sandbox tries, and what becomes of it: nothing gets out, nothing hangs."""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dspy.primitives.code_interpreter import CodeExecutionError, FinalOutput

from reasoningbank.agents import Episode, make_agent
from reasoningbank.agents.sandbox.interpreter import Sandbox, deno_command
from reasoningbank.corpus import Task
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.tools import SPARQLTools

pytestmark = pytest.mark.sandbox

JS = "import js\nfrom pyodide.code import run_js\n"
SECRET = "what-nobody-may-see"
GONE = "the sandbox was restarted and its variables are gone"


class Loopback:
    """A server that remembers whether anyone came."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    made = Loopback()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("host") / "secret.txt"
    file.write_text(SECRET, encoding="utf-8")
    return file


@contextlib.contextmanager
def opened(trees: EndpointConfig, timeout_s: float) -> Iterator[Sandbox]:
    os.environ["LAB_API_KEY"] = SECRET
    sandbox = Sandbox(timeout_s=timeout_s)
    tools = SPARQLTools(trees)
    sandbox.tools.update(tools.as_dspy_tools())
    sandbox.tools["long_answer"] = lambda: "x" * 100_000
    sandbox.output_fields = [{"name": "sparql", "type": "str"}]
    sandbox.execute("kept = 'still here'")
    yield sandbox
    sandbox.shutdown()
    tools.close()
    os.environ.pop("LAB_API_KEY", None)


@pytest.fixture(scope="module")
def box(trees: EndpointConfig) -> Iterator[Sandbox]:
    """A sandbox of a process that has a key in its environment, with the real tools."""
    with opened(trees, timeout_s=60) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def hasty(trees: EndpointConfig) -> Iterator[Sandbox]:
    """The same, where an execution may compute two seconds."""
    with opened(trees, timeout_s=2) as sandbox:
        yield sandbox


def result(box: Sandbox, code: str) -> str:
    """Return what the agent would be shown."""
    try:
        return str(box.execute(code))
    except CodeExecutionError as error:
        return f"{type(error).__name__}: {error}"


READS = {
    "open": "print(open('{path}').read())",
    "pathlib": "from pathlib import Path\nprint(Path('{path}').read_text())",
    "Deno": "from js import Deno\nprint(Deno.readTextFileSync('{path}'))",
    "Deno, asked nicely": JS
    + "await js.Deno.permissions.request(run_js('({{name: \"read\"}})'))\n"
    + "print(js.Deno.readTextFileSync('{path}'))",
    "node:fs": JS + "fs = await run_js(\"import('node:fs')\")\nprint(fs.readFileSync('{path}'))",
    "a mount": "import pyodide_js, os\n"
    "pyodide_js.mountNodeFS('/mnt', os.path.dirname('{path}'))\nprint(os.listdir('/mnt'))",
    "fetch": JS + "r = await js.fetch('file://{path}')\nprint(await r.text())",
    "import": JS + "print(await run_js(\"import('file://{path}')\"))",
    "a worker": JS
    + "w = await run_js(\"import('node:worker_threads')\")\n"
    + "print(js.Worker.new('file://{path}'))",
}


@pytest.mark.parametrize("code", READS.values(), ids=READS)
def test_no_file_of_the_host_can_be_read(box: Sandbox, secret: Path, code: str) -> None:
    said = result(box, code.format(path=secret))
    assert said.startswith("CodeExecutionError")
    assert SECRET not in said
    assert box.execute("print(kept)") == "still here\n"


def test_not_even_the_sandboxs_own_files(box: Sandbox) -> None:
    runner = next(part for part in deno_command() if part.endswith("runner.js"))
    for path in (runner, str(Path(deno_command()[3]).parent / "read_lines.ts")):
        said = result(box, f"from js import Deno\nprint(Deno.readTextFileSync('{path}'))")
        assert "NotCapable: Requires read access" in said


WRITES = {
    "Deno": JS + "js.Deno.writeTextFileSync('{path}', 'x')",
    "node:fs": JS + "fs = await run_js(\"import('node:fs')\")\nfs.writeFileSync('{path}', 'x')",
    "node:sqlite": JS
    + "m = await run_js(\"import('node:sqlite')\")\n"
    + "m.DatabaseSync.new('{path}').exec('CREATE TABLE t(x)')",
    "a mount": "import pyodide_js, os\npyodide_js.mountNodeFS('/m', os.path.dirname('{path}'))\n"
    "open('/m/' + os.path.basename('{path}'), 'w').write('x')",
    "delete": JS + "js.Deno.removeSync('{other}')",
}


@pytest.mark.parametrize("code", WRITES.values(), ids=WRITES)
def test_no_file_of_the_host_can_be_written(
    box: Sandbox, secret: Path, tmp_path: Path, code: str
) -> None:
    path = tmp_path / "escaped"
    assert result(box, code.format(path=path, other=secret)).startswith("CodeExecutionError")
    assert not path.exists()
    assert secret.read_text() == SECRET


def test_files_that_python_writes_stay_inside(box: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "inside.txt"
    code = f"import os\nos.makedirs('{tmp_path}')\nopen('{path}', 'w').write('x')"
    box.execute(f"{code}\nprint(open('{path}').read())")
    assert not path.exists()


@pytest.mark.parametrize("name", ["localStorage", "sessionStorage", "caches"])
def test_no_note_can_be_left_for_the_next_trial(box: Sandbox, name: str) -> None:
    # Deno gives these to code without any permission, and keeps them on the host's disk.
    assert f"AttributeError: {name}\n" in result(box, f"{JS}print(js.{name})")
    assert "undefined" in box.execute(f"{JS}print(run_js('typeof {name}'))")


ENVIRONMENT = {
    "os.environ": "import os\nprint(dict(os.environ))",
    "Deno": JS + "print(js.Deno.env.get('LAB_API_KEY'))",
    "Deno, all": JS + "print(js.Deno.env.toObject())",
    "process": JS + "print(js.process.env.LAB_API_KEY)",
    "proc": JS + "print(js.Deno.readTextFileSync('/proc/self/environ'))",
    "the host's": JS + "print(js.Deno.readTextFileSync(f'/proc/{js.Deno.ppid}/environ'))",
}


@pytest.mark.parametrize("code", ENVIRONMENT.values(), ids=ENVIRONMENT)
def test_the_environment_is_out_of_reach(box: Sandbox, code: str) -> None:
    assert SECRET not in result(box, code)
    assert box.execute("print(kept)") == "still here\n"


def test_the_process_has_no_environment_to_lose(box: Sandbox) -> None:
    assert box._inner is not None
    environ = Path(f"/proc/{box._inner.deno_process.pid}/environ")
    if not environ.exists():
        pytest.skip("no /proc on this system")
    assert SECRET.encode() not in environ.read_bytes()


NETWORK = {
    "pyodide.http": "import pyodide.http\nprint(await pyodide.http.pyfetch('{url}'))",
    "open_url": "import pyodide.http\nprint(pyodide.http.open_url('{url}'))",
    "urllib": "import urllib.request\nprint(urllib.request.urlopen('{url}'))",
    "http.client": "import http.client\n"
    "http.client.HTTPConnection('127.0.0.1', {port}).request('GET', '/')",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', {port})).send(b'GET / ')",
    "fetch": JS + "print(await js.fetch('{url}'))",
    "Deno.connect": JS + "print(await js.Deno.connect(run_js('({{port: {port}}})')))",
    "WebSocket": JS + "print(js.WebSocket.new('ws://127.0.0.1:{port}/'))",
    "a listener": JS + "print(js.Deno.listen(run_js('({{port: 0}})')))",
    "names": JS + "print(await js.Deno.resolveDns('example.org', 'A'))",
    "an http module": JS + "print(await run_js(\"import('{url}')\"))",
    "an npm module": JS + "print(await run_js(\"import('npm:is-odd')\"))",
    "a jsr module": JS + "print(await run_js(\"import('jsr:@std/path')\"))",
    "a package": "import pyodide_js\nprint(await pyodide_js.loadPackage('{url}x.whl'))\nimport x",
}


@pytest.mark.parametrize("code", NETWORK.values(), ids=NETWORK)
def test_no_connection_can_be_opened(box: Sandbox, loopback: Loopback, code: str) -> None:
    url = f"http://127.0.0.1:{loopback.port}/"
    assert result(box, code.format(url=url, port=loopback.port)).startswith("CodeExecutionError")
    assert loopback.seen == []


PROCESSES = {
    "subprocess": "import subprocess\nsubprocess.run(['/bin/true'])",
    "fork": "import os\nos.fork()",
    "Deno.Command": JS + "print(js.Deno.Command.new('/bin/true').outputSync().success)",
    "node:child_process": JS
    + "m = await run_js(\"import('node:child_process')\")\nprint(m.execFileSync('/bin/true'))",
    "a signal": JS + "js.Deno.kill(js.Deno.ppid, 'SIGTERM')",
    "a library": JS + "js.Deno.dlopen('libc.so.6', run_js('({})'))",
    "threads": "import threading\nthreading.Thread(target=print).start()",
}


@pytest.mark.parametrize("code", PROCESSES.values(), ids=PROCESSES)
def test_no_process_can_be_started_or_harmed(box: Sandbox, code: str) -> None:
    assert result(box, code).startswith("CodeExecutionError")
    assert box.execute("print(kept)") == "still here\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = [0] * (10 * 2**30 // 8)", "MemoryError"),
        ("x = []\nwhile True: x.append(bytes(1_000_000))", "MemoryError"),
        ("print('x' * 10**9)", "MemoryError|print less"),
        ("while True: print('no end ' * 20)", "a turn may print 1,000,000 characters: print less"),
        (JS + "run_js('globalThis.big = new Uint8Array(8e9).fill(1)')", "allocation failed"),
        ("def f(): return f()\nf()", "maximum recursion depth exceeded"),
    ],
)
def test_greed_ends_in_an_error_and_the_variables_are_kept(
    box: Sandbox, code: str, said: str
) -> None:
    with pytest.raises(CodeExecutionError, match=said):
        box.execute(code)
    assert box.execute("x = None\nprint(kept)") == "still here\n"


def test_memory_is_bounded_by_the_operating_system_too(box: Sandbox) -> None:
    assert box._inner is not None
    pid = box._inner.deno_process.pid
    limits = Path(f"/proc/{pid}/limits")
    if not limits.exists():
        pytest.skip("no /proc on this system")
    bounds = {line[:26].strip(): line[26:].split()[1] for line in limits.read_text().splitlines()}
    assert bounds["Max data size"] == str(3 << 30)
    assert bounds["Max file size"] == "0"
    assert int(bounds["Max cpu time"]) <= 1_800
    high = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    # After all the greed above, in KiB: a gibibyte of Python's, and what Deno itself takes.
    assert int(high.split()[1]) < 3 << 20


@pytest.mark.parametrize(
    "code",
    ["raise KeyError(object())", "raise ValueError(float('nan'))", JS + "run_js('throw 1')"],
    ids=["no JSON", "no number", "JavaScript's"],
)
def test_odd_exceptions_are_reported_and_the_variables_are_kept(box: Sandbox, code: str) -> None:
    assert GONE not in result(box, code)
    assert box.execute("print(kept)") == "still here\n"


def test_only_submit_submits(box: Sandbox) -> None:
    for forged in ("'SELECT'", "['SELECT']", "None"):
        assert "end with SUBMIT" in result(box, f"raise _DSPyFinalOutput({forged})")
    ended = box.execute("SUBMIT('ASK {}')")
    assert isinstance(ended, FinalOutput)
    assert ended.output == {"sparql": "ASK {}"}


def test_the_store_is_unchanged_by_updates_from_the_sandbox(
    box: Sandbox, trees: EndpointConfig
) -> None:
    with SPARQLClient(trees) as client:
        before = set(client.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }").triples())
        for update in (
            "DROP ALL",
            "DELETE WHERE { ?s ?p ?o }",
            "# SELECT\\nPREFIX t: <http://e/>\\nINSERT DATA { t:a t:b t:c }",
            "LOAD <file:///etc/hostname>",
        ):
            assert "ToolError" in result(box, f'sparql_query("{update}")')
        port = trees.address.rsplit(":", 1)[1].split("/")[0]
        result(box, f"{JS}await js.fetch('http://127.0.0.1:{port}/update', method='POST')")
        assert set(client.query("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }").triples()) == before


#: What ends the interpreter, and how it is reported.
RUINOUS = {
    "waiting for ever": ("import asyncio\nawait asyncio.sleep(10**6)", "stopped after 2 s"),
    "a loop that ignores signals, with answers that nobody reads": (
        JS + "import json\nrun_js(\"Deno.addSignalListener('SIGTERM', () => {})\")\n"
        "for _ in range(40):\n    _js_tool_call('long_answer', json.dumps({'kwargs': {}}))\n"
        "while True: pass",
        "stopped after 2 s",
    ),
}


@pytest.mark.parametrize(("code", "said"), RUINOUS.values(), ids=RUINOUS)
def test_what_ruins_the_interpreter_is_reported_and_it_is_replaced(
    hasty: Sandbox, code: str, said: str
) -> None:
    hasty.start()
    shown = result(hasty, code)
    assert said in shown
    assert GONE in shown
    assert hasty.execute("print(sparql_query('ASK {}').key[:8])") == "boolean_\n"


def test_a_loop_left_behind_cannot_hold_up_the_end() -> None:
    # Nobody would stop the loop.
    sandbox = Sandbox(timeout_s=10**6)
    # Begun at once, it may stop the very turn that leaves it behind.
    sandbox.execute(JS + "run_js('setTimeout(() => { while (true) {} }, 500)')\nprint('left')")
    time.sleep(1)
    sandbox.shutdown()


def test_the_loop_goes_on_with_a_fresh_interpreter(episode: Callable[..., Episode]) -> None:
    made: list[Sandbox] = []

    def sandbox() -> Sandbox:
        made.append(Sandbox(timeout_s=1))
        return made[-1]

    def turn(code: str) -> dict[str, str]:
        return {"reasoning": "next", "code": f"```python\n{code}\n```"}

    query = "SELECT ?p WHERE { ?p a t:Tree }"
    given = episode(turn("while True: pass"), turn(f"print('on')\nSUBMIT('{query}')"))
    given = replace(given, sandbox=sandbox)
    attempt = make_agent("rlm").solve(Task("t", "Which are trees?", "", "https://e/"), given)
    assert (attempt.sparql, attempt.status) == (query, "submitted")
    code = attempt.trajectory.of("code")[0]
    assert "stopped after 1 s" in attempt.trajectory.resolve(code.data)["output"]
    assert GONE in attempt.trajectory.resolve(code.data)["output"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_host_leaves_no_sandbox_behind() -> None:
    script = (
        "from reasoningbank.agents.sandbox.interpreter import Sandbox\n"
        "box = Sandbox()\nbox.start()\nprint(box._inner.deno_process.pid, flush=True)\ninput()"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    host.send_signal(signal.SIGKILL)
    host.wait()
    deadline = time.monotonic() + 120
    while Path(f"/proc/{pid}/cmdline").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{pid}/cmdline").read_bytes() == b"":
            break  # ended, and not yet reaped by the process that inherited it
        time.sleep(0.1)
    else:
        assert not Path(f"/proc/{pid}").exists()
