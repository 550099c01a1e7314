"""The real Deno/Pyodide sandbox: handles behave, nothing gets out, nothing hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from dspy.primitives.code_interpreter import CodeExecutionError, FinalOutput

from reasoningbank.agents.sandbox import Sandbox, SandboxPool
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


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = Sandbox(timeout_s=4)
    box.tools.update({"sparql_query": sparql_query, "sparql_peek": sparql_peek})
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


def test_a_tool_error_can_be_caught_by_its_name(sandbox: Sandbox) -> None:
    code = "try:\n    sparql_query('boom')\nexcept ToolError as error:\n    print('caught', error)"
    assert sandbox.execute(code) == "caught the query is wrong; try another\n"


def test_an_uncaught_tool_error_is_one_line_for_the_agent(sandbox: Sandbox) -> None:
    with pytest.raises(CodeExecutionError, match="the query is wrong; try another"):
        sandbox.execute("sparql_query('boom')")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("print(", "line 1: '(' was never closed: print("),
        ("x = 1\nfor i in range(3)\n    pass", "line 2: expected ':': for i in range(3)"),
        ('q = """SELECT', "line 1: unterminated triple-quoted string literal"),
        ("x = 'a\nb'", "line 1: unterminated string literal"),
        ("import json as\n", "line 1: "),
        ("return 1", "line 1: 'return' outside function: return 1"),
        ("eval('1 +')", "invalid syntax"),
        ("(" * 300, "too many nested parentheses"),
    ],
)
def test_what_is_no_python_is_told_by_line(sandbox: Sandbox, code: str, why: str) -> None:
    with pytest.raises(SyntaxError) as caught:
        sandbox.execute(code)
    assert str(caught.value).startswith("SyntaxError: ")
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_code_cannot_make_more_of_being_no_python(sandbox: Sandbox) -> None:
    sandbox.execute("kept_why = _rb_why\n_rb_why = lambda code: 'x' * 100_000 + '\\n'")
    with pytest.raises(SyntaxError) as caught:
        sandbox.execute("print(")
    assert len(str(caught.value)) < 400
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


def test_a_run_away_loop_is_stopped_and_told(sandbox: Sandbox) -> None:
    began = time.monotonic()
    with pytest.raises(CodeExecutionError, match=r"stopped after 4 s.*variables are gone"):
        sandbox.execute("while True: pass")
    assert time.monotonic() - began < 20
    assert sandbox.execute("print(sparql_query('x').key)") == "results_0\n"


def test_submit_ends_with_the_value(sandbox: Sandbox) -> None:
    sandbox.output_fields = [{"name": "sparql", "type": "str"}]
    sandbox._tools_registered = False
    result = sandbox.execute("SUBMIT('ASK {}')")
    assert isinstance(result, FinalOutput)
    assert result.output == {"sparql": "ASK {}"}


def test_the_pool_hands_out_a_warm_sandbox() -> None:
    began = time.monotonic()
    with SandboxPool(spare=1) as pool:
        while not pool.ready and time.monotonic() < began + 60:
            time.sleep(0.01)
        ready = time.monotonic()
        box = pool()
        assert box.execute("print(1)") == "1\n"
        assert time.monotonic() - ready < (ready - began) / 2
        box.shutdown()
