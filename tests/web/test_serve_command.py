"""`reasoningbank serve` as a command, and `memory learn` from the verdicts that it keeps."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from reasoningbank.experiment.memory_sources import Feedback, write_feedback
from reasoningbank.memory import MemoryBank
from reasoningbank.memory.experience import Experience

from .conftest import QUERY, forest  # noqa: F401

COMMAND = [sys.executable, "-m", "reasoningbank"]


def failed(*words: str) -> str:
    """Run a command that must fail, and return its one line."""
    ended = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=200)
    assert ended.returncode == 1, ended.stderr
    lines = ended.stderr.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


def test_it_prints_its_address_and_ends_with_a_signal(tmp_path: Path) -> None:
    words = ["serve", "--port", "0", "--host", "0.0.0.0", "--feedback", str(tmp_path)]
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
        bare, _, token = address.partition("/?token=")
        assert len(token) > 20
        assert httpx.get(bare, timeout=60).status_code == 401
        opened = httpx.get(address, follow_redirects=True, timeout=60)
        assert "Ask a question" in opened.text
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pack", "nowhere"), "nowhere"),
        (("--agent", "oracle"), "oracle"),
        (("--lm", "no model"), "no model"),
        (("--lm", "opnai/gpt-4.1"), "did you mean openai/gpt-4.1?"),
        (("--url", "ftp://x"), "--url"),
        (("--bank", "missing.sqlite"), "missing.sqlite"),
    ],
)
def test_a_wrong_option_is_one_line(words: tuple[str, ...], said: str) -> None:
    assert said in failed("serve", *words)


def test_memory_learns_from_verdicts_once(tmp_path: Path, forest: Any) -> None:  # noqa: F811
    kept, bank = tmp_path / "feedback", tmp_path / "bank.sqlite"
    assert "no feedback" in failed("memory", "learn", str(bank), str(kept))
    facts = {"group": "of-kind", "corpus": "trees", "judge": "person", "ran": True}
    right = Experience("trees", question="Which plants are trees?", sparql=QUERY, success=True,
                       rows=3, trial="ask/a.0", **facts)  # fmt: skip
    write_feedback(kept, Feedback("a", str(forest.root), "", right))
    for said in ("1 added, 0 known", "0 added, 1 known"):
        words = [*COMMAND, "memory", "learn", str(bank), str(kept)]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=200)
        assert (ended.returncode, ended.stdout.strip()) == (0, said), ended.stderr
    with MemoryBank(bank, readonly=True) as opened:
        (item,) = opened.items()
        assert (item.src, item.provenance.judge, item.query) == ("success", "person", QUERY)
        assert item.provenance.task == "trees"
    (kept / "b.json").write_text("{}", encoding="utf-8")
    assert "b.json" in failed("memory", "learn", str(bank), str(kept))
