"""`reasoningbank algebra`: programs from files and standard input, results as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from towns import write_towns
from typer.testing import CliRunner

from reasoningbank.cli.algebra import app
from reasoningbank.errors import ReasoningBankError
from reasoningbank.ldp import LDPServer

BASE = "http://localhost/denmark/"


def op(name: str, /, **args: Any) -> dict[str, Any]:
    return {"@op": name, "args": args}


def said(program: Any, *options: str, command: str = "run") -> Result:
    """Run a command with a program on standard input."""
    return CliRunner().invoke(app, [command, "-", *options], input=json.dumps(program))


def error(result: Result) -> str:
    """Return the line that the command line would end with."""
    assert result.exit_code == 1
    assert isinstance(result.exception, ReasoningBankError)
    assert result.stdout == ""
    return str(result.exception)


def code(result: Result) -> str:
    """Return the code of the error that ended a command."""
    assert isinstance(result.exception, ReasoningBankError)
    assert result.exit_code == 1
    return result.exception.code


@pytest.fixture
def documents() -> Iterator[LDPServer]:
    with LDPServer(BASE) as server:
        yield server


def put(name: str, **values: Any) -> dict[str, Any]:
    url = op("ResolveURI", base=BASE, relative=name)
    return op("PUT", url=url, data={"@id": "", "http://e/p": values.get("p", "x")})


def reached(server: LDPServer) -> tuple[str, str]:
    return "--address", f"{server.base}={server.address}"


def test_the_result_is_json() -> None:
    result = said(op("ForEach", select=["ø", "b"], operation=op("Str", input=op("Current"))))
    assert result.exit_code == 0
    assert json.loads(result.stdout) == ["ø", "b"]
    assert result.stderr == ""


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "program.json"
    file.write_text(json.dumps(op("Concat", inputs=["a", "b"])), encoding="utf-8")
    assert CliRunner().invoke(app, ["run", str(file)]).stdout == '"ab"\n'
    file.write_text("no program", encoding="utf-8")
    assert error(CliRunner().invoke(app, ["run", str(file)])).startswith(f"{file}: ")


def test_variables() -> None:
    program = [op("Value", name="$city"), op("Value", name="$rows")]
    rows = 'rows:=[{"n": {"type": "literal", "value": "1"}}]'
    result = said(program, "--var", "city=Aarhus = Århus", "--var", rows)
    assert json.loads(result.stdout) == [
        "Aarhus = Århus",
        [{"n": {"type": "literal", "value": "1"}}],
    ]
    assert "the variable $city is not set" in error(said(program))
    assert code(said(program, "--var", "city")) == "not-a-pair"
    assert code(said(program, "--var", "city:={")) == "not-json"


def test_a_mistake_is_one_line_with_its_path() -> None:
    program = op("PUT", url=BASE, data=op("URI", input=BASE))
    assert error(said(program)) == (
        "$.args.data: expected a graph (JSON-LD), but URI yields a URI; fetch it with GET"
    )


def test_what_a_pack_declares_need_not_be_declared(tmp_path: Path) -> None:
    pack = write_towns(tmp_path / "towns").root
    program = op("ASK", endpoint="https://towns.example/sparql", query="ASK { t:Ribe ?p ?o }")
    result = said(program, "--json", command="validate")
    assert [one["code"] for one in json.loads(result.stdout)] == ["unknown-prefix"]
    assert said(program, "--pack", str(pack), command="validate").exit_code == 0
    assert said(program, "--pack", str(pack)).stdout == '"true"\n'


def test_nothing_is_printed_of_a_run_that_fails() -> None:
    program = op("ForEach", select=["a", "", "b"], operation=op("URI", input=op("Current")))
    assert error(said(program)).startswith(
        "$.args.operation.args.input: 'a' is not an absolute URI"
    )


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("{", "-: line 1, column 2: not valid JSON"),
        ("", "-: line 1, column 1: not valid JSON"),
        ('{"@op": "A", "@op": "B"}', "$: the key '@op' occurs twice"),
    ],
)
def test_what_is_not_a_program(text: str, reported: str) -> None:
    result = CliRunner().invoke(app, ["run", "-"], input=text)
    assert error(result).startswith(reported)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(tmp_path / "none.json")])
    assert code(result) == "cannot-read"


def test_writing(documents: LDPServer) -> None:
    program = [put("a"), op("GET", url=f"{BASE}a")]
    assert f"{BASE}a: may not be written" in error(said(program, *reached(documents)))
    result = said(program, *reached(documents), "--allow-write", BASE)
    assert result.exit_code == 0, result.exception
    wrote, found = json.loads(result.stdout)
    assert wrote["results"]["bindings"][0]["status"]["value"] == "201"
    assert found == {"@id": f"{BASE}a", "http://e/p": "x"}


def test_a_dry_run_lists_the_writes(documents: LDPServer) -> None:
    result = said(
        [put("a"), put("b")], *reached(documents), "--dry-run", "--allow-write", f"{BASE}a"
    )
    assert result.exit_code == 0
    reported = json.loads(result.stdout)
    assert [(w["method"], w["url"], w["allowed"]) for w in reported["writes"]] == [
        ("PUT", f"{BASE}a", True),
        ("PUT", f"{BASE}b", False),
    ]
    assert f"<{BASE}a> <http://e/p>" in reported["writes"][0]["body"]
    missing = said(op("GET", url=f"{BASE}a"), *reached(documents))
    assert "HTTP 404" in error(missing)


def test_a_run_that_fails_tells_its_writes_and_goes_on(
    documents: LDPServer, tmp_path: Path
) -> None:
    program = [put("a"), put("b"), op("GET", url=f"{BASE}later"), put("c")]
    journal = str(tmp_path / "run.journal")
    options = (*reached(documents), "--allow-write", BASE, "--journal", journal)
    failed = said(program, *options)
    assert error(failed).startswith(f"$[2]: {BASE}later: HTTP 404")
    assert failed.stderr.splitlines() == [
        f"done: PUT {BASE}a (201)",
        f"done: PUT {BASE}b (201)",
    ]
    # Somebody changes what was written, and adds what was missing.
    assert said([put("a", p="changed"), put("later")], *options[:4]).exit_code == 0
    resumed = said(program, *options, "--resume")
    assert resumed.exit_code == 0, resumed.exception
    found = said([op("GET", url=f"{BASE}{name}") for name in "abc"], *reached(documents))
    assert [graph["http://e/p"] for graph in json.loads(found.stdout)] == ["changed", "x", "x"]


def test_limits() -> None:
    program = op("ForEach", select=["a", "b", "c"], operation=op("Current"))
    assert "used up its 2 rows" in error(said(program, "--rows", "2"))


def test_an_unknown_word_for_unanswered_writes() -> None:
    assert said(op("STRUUID"), "--unanswered", "maybe").exit_code == 2


def test_validate() -> None:
    good = said(op("ForEach", select=["a"], operation=op("Current")), command="validate")
    assert (good.exit_code, good.stdout) == (0, "valid: 2 operations, only reads\n")
    assert said(op("STRUUID"), command="validate").stdout == "valid: 1 operation, only reads\n"
    assert "writes" in said(put("a"), command="validate").stdout
    bad = said([op("GTE"), op("Str")], command="validate")
    assert bad.exit_code == 1
    assert bad.stdout == ""
    assert bad.stderr.splitlines() == [
        "$[0]: unknown operation 'GTE'; did you mean 'GET'",
        "$[1].args: Str lacks the argument input (a string)",
    ]
    reported = json.loads(said(op("GTE"), "--json", command="validate").stdout)
    assert reported == [
        {
            "path": "$",
            "code": "unknown-operation",
            "what": "unknown operation 'GTE'",
            "hint": "did you mean 'GET'",
        }
    ]
    assert json.loads(said(put("a"), "--json", command="validate").stdout) == []
    assert said(op("Value", name="$x"), "--var", "x=1", command="validate").exit_code == 0


def test_ops() -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["ops"]).stdout
    assert "EncodeForURI(input: str) → str\tPercent-encodes a string" in listed
    assert runner.invoke(app, ["ops", "Str"]).stdout.startswith(
        "### Str\n\n`Str(input: str) → str`"
    )
    assert (
        "Operations\nStr(input: str) → str" in runner.invoke(app, ["ops", "Str", "--prompt"]).stdout
    )
    reported = {one["op"]: one for one in json.loads(runner.invoke(app, ["ops", "--json"]).stdout)}
    assert reported["PUT"]["writes"]
    assert not reported["GET"]["writes"]
    for options in ([], ["--json"], ["--prompt"]):
        missing = runner.invoke(app, ["ops", "Gte", *options])
        assert error(missing) == "unknown operation 'Gte'; did you mean 'GET'"


def test_schema() -> None:
    reported = json.loads(CliRunner().invoke(app, ["schema"]).stdout)
    assert {"GET", "ForEach"} <= set(reported["$defs"])
    some = json.loads(CliRunner().invoke(app, ["schema", "--only", "GET"]).stdout)
    assert "ForEach" not in some["$defs"]
