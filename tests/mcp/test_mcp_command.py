"""`reasoningbank mcp` as desktop clients start it: a process with its standard streams, or HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_calls import answer, line
from typer.testing import CliRunner

from reasoningbank.cli.servers import mcp
from reasoningbank.errors import ReasoningBankError, SetupError, UsageError
from reasoningbank.ldp import LDPServer
from reasoningbank.mcp import listening

CODE = "import typer; from reasoningbank.cli.servers import mcp; typer.run(mcp)"


def loop(base: str) -> dict[str, object]:
    """Return a program that writes a document a tree."""
    query = "SELECT ?tree { ?tree a <http://e/Tree> } ORDER BY ?tree"
    url = {
        "@op": "ResolveURI",
        "args": {
            "base": base,
            "relative": {
                "@op": "Replace",
                "args": {
                    "input": {
                        "@op": "Str",
                        "args": {"input": {"@op": "Value", "args": {"name": "tree"}}},
                    },
                    "pattern": "^http://e/",
                    "replacement": "",
                },
            },
        },
    }
    data = {"@id": {"@op": "Value", "args": {"name": "tree"}}, "http://e/seen": True}
    select = {"endpoint": "https://trees.example/sparql/", "query": query}
    return {
        "@op": "ForEach",
        "args": {
            "select": {"@op": "SELECT", "args": select},
            "operation": {"@op": "PUT", "args": {"url": url, "data": data}},
        },
    }


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_whole_session_over_standard_streams(
    mode: str, pack_folder: Path, bank_file: Path, documents: LDPServer, tmp_path: Path
) -> None:
    base = f"{documents.base}{mode}/"
    command = StdioServerParameters(
        command=sys.executable,
        args=[
            "-c", CODE, "--pack", str(pack_folder), "--bank", str(bank_file),
            "--allow-write", base,
        ],
        env={name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        cwd=tmp_path,
    )  # fmt: skip
    async with Client(command, mode=mode) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert len((await client.list_tools()).tools) == 26
        handle = await answer(client, "sparql_query", query="SELECT ?t { ?t a t:Tree }")
        # One process is one session, whatever the protocol's revision.
        assert handle["key"] == "results_0"
        assert (await answer(client, "sparql_peek", ref="results_0"))["total"] == 3
        assert "unknown handle" in await line(client, "sparql_peek", ref="results_1")
        assert (await answer(client, "memory_search", query="How tall?"))["count"] == 2
        found = await answer(client, "algebra_run", program=loop(base))
        assert [one["url"] for one in found["wrote"]] == [
            f"{base}{name}" for name in ("ash", "oak", "pine")
        ]
        reported = await line(client, "algebra_run", program=loop(documents.base))
        assert "may not be written" in reported
        (card,) = (await client.read_resource("reasoningbank://trees/sense-card")).contents
        assert "Trees" in card.text
    assert documents.documents.read(f"{base}oak") is not None


@pytest.mark.anyio
async def test_over_http_it_prints_its_address_and_ends_with_a_signal(pack_folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "--pack", str(pack_folder), "--http", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        async with Client(url) as client:
            found = await answer(client, "sparql_count", query="SELECT ?s { ?s a t:Tree }")
            assert found["count"] == 3
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in said


def test_a_signal_ends_it_while_it_waits_for_input(pack_folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "--pack", str(pack_folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    )
    process.stdin.flush()
    assert b'"serverInfo"' in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pack", "nosuchpack"], "nosuchpack"),
        (["--bank", "nosuch.sqlite"], "no such bank"),
        (["--http", "127.0.0.1"], "HOST:PORT"),
        (["--bank", __file__], "memory bank"),
        (["--http", "0.0.0.0:0"], "only on this machine"),
        # The protocol's library answers under three names only.
        (["--http", "127.0.0.2:0"], "only on this machine"),
        (["--http", "::1"], "only on this machine"),
        (["--http", "a[b]:80"], "only on this machine"),
        (["--lm", "nonsense"], "unknown model"),
        (["--agent", "rlm"], "needs a model"),
        (["--lm", "local", "--agent", "nonsense"], "unknown agent"),
        (["--lm", "local", "--agent", "oracle"], "tasks that have a gold"),
        (["--http", "example.org:80"], "only on this machine"),
        (["--allow-write", "documents"], "web address"),
        (["--address", "http://e/"], "--address"),
        (["--credentials", "nosuch.toml"], "nosuch.toml"),
    ],
)
def test_what_cannot_be_served_is_reported_in_a_line(
    pack_folder: Path, words: list[str], said: str
) -> None:
    app = typer.Typer()
    app.command()(mcp)
    pack = [] if "--pack" in words else ["--pack", str(pack_folder)]
    ended = CliRunner().invoke(app, [*pack, *words])
    assert isinstance(ended.exception, ReasoningBankError)
    assert said in str(ended.exception)
    assert "\n" not in str(ended.exception)


def test_a_missing_extra_is_reported_in_a_line(
    pack_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SetupError, match="not installed") as caught:
        mcp(pack=str(pack_folder))
    assert "reasoningbank[mcp]" in str(caught.value)


def test_a_port_that_is_taken_is_reported() -> None:
    with listening("127.0.0.1:0") as bound:
        port = bound.getsockname()[1]
        with pytest.raises(SetupError, match="in use"), listening(f"127.0.0.1:{port}"):
            pass
    with pytest.raises(UsageError), listening("127.0.0.1:99999"):
        pass
