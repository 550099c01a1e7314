"""`reasoningbank lm serve`, with a real engine and a real model of 100 kB."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from lm.tiny_gguf import write_tiny_gguf

from reasoningbank.lm import open_lm

ELSEWHERE = "http://127.0.0.1:9/v1"


def test_a_server_is_started_also_where_the_environment_names_another(tmp_path: Path) -> None:
    model = f"local:{write_tiny_gguf(tmp_path / 'tiny.gguf')}"
    served = subprocess.Popen(
        [sys.executable, "-m", "reasoningbank", "lm", "serve", model],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "REASONINGBANK_LM_SERVER": ELSEWHERE},
    )
    assert served.stdout is not None
    address = served.stdout.readline().strip()
    try:
        with open_lm(model, api_base=address) as opened:
            assert opened.lm(max_tokens=1)("x")
    finally:
        served.send_signal(signal.SIGTERM)
        _, said = served.communicate(timeout=30)
    assert served.returncode == 0
    assert said.splitlines() == [
        f"REASONINGBANK_LM_SERVER names another server: {ELSEWHERE}",
        "serving; press Ctrl-C to stop",
    ]
