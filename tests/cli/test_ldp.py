"""The document server as a person starts it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from reasoningbank.cli.servers import app
from reasoningbank.errors import UsageError

TURTLE = {"Content-Type": "text/turtle"}


def start(*words: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server and return it with the address it prints."""
    code = "from reasoningbank.cli.servers import app; app()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process: subprocess.Popen[str], how: signal.Signals) -> int:
    process.send_signal(how)
    process.communicate(timeout=60)
    return process.returncode


def test_documents_are_served_until_it_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    process, base = start("--folder", str(folder))
    try:
        assert httpx.put(f"{base}a", content="<> a <#T> .", headers=TURTLE).status_code == 201
        assert httpx.get(f"{base}sparql", params={"query": "ASK { ?s a ?t }"}).json()["boolean"]
    finally:
        assert end(process, signal.SIGTERM) == 0
    assert (folder / "a.ttl").exists()


def test_another_base_is_reported_with_its_address(tmp_path: Path) -> None:
    process, base = start("--base", "http://data.example/x", "--store", str(tmp_path / "store"))
    end(process, signal.SIGTERM)
    assert base == "http://data.example/x/"


def test_what_cannot_be_served(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give one of"):
        CliRunner().invoke(
            app,
            ["serve", "--folder", str(tmp_path), "--store", str(tmp_path)],
            catch_exceptions=False,
        )
    assert "--port 4443" in CliRunner().invoke(app, ["serve", "--help"]).output
