"""The tools in DSPy's own modules, as models read them there; a scripted model, a real endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest
from dspy.primitives.code_interpreter import CodeExecutionError
from dspy.utils import DummyLM

from reasoningbank import LocalToolInterpreter, Sandbox, text_tools
from reasoningbank.errors import UsageError
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools
from reasoningbank.tools.adapting import own_tool

TREES = "SELECT ?p WHERE { ?p a t:Tree }"
EMPTY = "SELECT ?p WHERE { ?p a t:Treee }"


@pytest.fixture
def tools(trees: EndpointConfig) -> Iterator[list[Callable[..., Any]]]:
    query_tools = SPARQLTools(trees)
    yield list(query_tools.as_dspy_tools().values())
    query_tools.close()


def observations(tools: list[Any], *calls: tuple[str, dict[str, Any]]) -> str:
    """Return what the model of a plain `dspy.ReAct` reads after these calls."""
    turns = [
        {"next_thought": "on", "next_tool_name": name, "next_tool_args": json.dumps(arguments)}
        for name, arguments in (*calls, ("finish", {}))
    ]
    model = DummyLM([*turns, {"reasoning": "so", "sparql": TREES}])
    with dspy.context(lm=model):
        said = dspy.ReAct("question -> sparql", tools=tools)(question="Which plants are trees?")
    assert said.sparql == TREES
    prompt = "\n".join(str(message["content"]) for message in model.history[-1]["messages"])
    return prompt[prompt.index("[[ ## thought_0") :]


def test_react_reads_handles_rows_and_notes(tools: list[Callable[..., Any]]) -> None:
    calls = ("sparql_query", {"query": TREES}), ("sparql_peek", {"ref": "results_0", "n": 1})
    read = observations(text_tools(tools), *calls)
    assert "Ref('results_0', 'results', 3 items from Trees)" in read
    assert "2 more rows: sparql_slice('results_0', 1, 51)" in read
    described = observations(text_tools(tools), ("sparql_describe", {"uri": "t:oak"}))
    assert "'source': 'Trees'" in described


def test_react_reads_why_a_result_is_empty(tools: list[Callable[..., Any]]) -> None:
    calls = ("sparql_query", {"query": EMPTY}), ("sparql_peek", {"ref": "results_0"})
    read = observations(text_tools(tools), *calls)
    assert "there is no class t:Treee" in read
    assert "N/A" not in read
    assert "N/A" in observations(tools, *calls), "without the adapter it does"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("sparql_query", {"query": "SELEC"}, "[Error] line 1, column 1"),
        ("sparql_query", {"sparql": TREES}, "[Error] Arg sparql is not in the tool's args."),
        ("sparql_query", {"query": TREES, "limit": "many"}, "[Error] Arg limit is invalid"),
        ("sparql_query", {}, "[Error] "),
        ("sparql_peek", {"ref": "results_9"}, "[Error] unknown handle 'results_9'"),
    ],
)
def test_react_reads_an_error_in_one_line(
    tools: list[Callable[..., Any]], name: str, arguments: dict[str, Any], said: str
) -> None:
    read = observations(text_tools(tools), (name, arguments))
    assert said in read
    assert "Traceback" not in read
    assert "Execution error" not in read


def test_what_a_tool_said_is_taken_for_its_handle(tools: list[Callable[..., Any]]) -> None:
    by_name = {tool.name: tool for tool in text_tools(tools)}
    asked = by_name["sparql_query"](EMPTY)
    assert "there is no class t:Treee" in by_name["sparql_peek"](asked, 1)
    assert "there is no class t:Treee" in by_name["sparql_peek"](ref=asked, n=1)


def test_any_error_of_a_users_tool_is_one_line() -> None:
    def broken(name: str) -> str:
        """Look a name up."""
        return {"oak": "a tree"}[name]

    (tool,) = text_tools([broken])
    assert (tool(name="oak"), tool(name="elm")) == (
        "Output (6 chars):\na tree",
        "[Error] KeyError: 'elm'",
    )


def test_react_v2_reads_the_same(tools: list[Callable[..., Any]]) -> None:
    call = {"name": "sparql_peek", "args": {"ref": "results_9"}}
    done = {"name": "submit", "args": {"sparql": TREES}}
    turns = [
        {"next_thought": "on", "tool_calls": json.dumps({"tool_calls": [one]})}
        for one in (call, done)
    ]
    model = DummyLM(turns)
    with dspy.context(lm=model):
        said = dspy.ReActV2("question -> sparql", tools=text_tools(tools))(question="Which?")
    assert said.sparql == TREES
    read = "\n".join(str(message["content"]) for message in model.history[-1]["messages"])
    assert '"value": "[Error] unknown handle \'results_9\'' in read


CODE = f"""
ref = sparql_query({TREES!r}, 2)
print(ref, ref.key, ref["rows"])
rows = sparql_peek(ref, n=1)
print(rows, rows.source, rows.truncated, len(rows[0]))
print(sparql_peek(sparql_query({EMPTY!r})))
try:
    sparql_peek("results_9")
except ToolError as error:
    print("failed:", error)
"""


@pytest.mark.parametrize("interpreter", [Sandbox, LocalToolInterpreter])
def test_plain_rlm_with_positional_calls_and_handles(
    tools: list[Callable[..., Any]], interpreter: type
) -> None:
    turns = [
        {"reasoning": "look", "code": f"```python\n{CODE}\n```"},
        {"reasoning": "done", "code": f"```python\nSUBMIT({TREES!r})\n```"},
    ]
    model = DummyLM(turns)
    rlm = dspy.RLM("question -> sparql", tools=tools, interpreter_factory=interpreter)
    with dspy.context(lm=model):
        assert rlm(question="Which plants are trees?").sparql == TREES
    read = str(model.history[-1]["messages"][-1]["content"])
    assert "Ref('results_0', 'results', 2 items from Trees) results_0 2" in read
    assert "1 more rows: sparql_slice('results_0', 1, 51)" in read
    assert ") Trees True 1" in read
    assert "there is no class t:Treee" in read
    assert "failed: unknown handle 'results_9'" in read


@pytest.mark.parametrize("interpreter", [Sandbox, LocalToolInterpreter])
def test_what_a_failing_turn_printed_is_shown(interpreter: Callable[[], Any]) -> None:
    inside = interpreter()
    with pytest.raises(CodeExecutionError, match=r"by zero\n  line 2: x = 1 / 0(.|\n)*\nhello"):
        inside.execute('print("hello")\nx = 1 / 0')
    with pytest.raises((CodeExecutionError, SyntaxError), match="line 2"):
        inside.execute("x = 1\nx = = 2")
    assert inside.execute('print("hello")\n1 + 1').strip() == "hello\n2"
    inside.shutdown()


def shout(tools: SPARQLTools, uri: str, times: int = 1) -> str:
    """Shout a name."""
    return tools.config.source + uri.upper() * times


def silent(uri: str) -> str:
    return uri


def untyped(tools: SPARQLTools, uri) -> str:  # type: ignore[no-untyped-def]
    """Return a name."""
    return str(uri)


def test_an_own_tool_is_given_the_tools_of_its_trial(trees: EndpointConfig) -> None:
    bound = own_tool(f"{__name__}:shout", SPARQLTools(trees))
    tool = dspy.Tool(bound)
    assert (tool.name, tool.desc, list(tool.args)) == ("shout", "Shout a name.", ["uri", "times"])
    assert tool(uri="oak", times=2) == "TreesOAKOAK"
    with pytest.raises(ValueError, match="times"):
        tool(uri="oak", times="two")
    for name in ("silent", "untyped", "TREES"):
        with pytest.raises(UsageError) as caught:
            own_tool(f"{__name__}:{name}", where="arm a")
        assert caught.value.code == "wrong-type"
