"""A system of others as an arm: a process in an environment of its own, asked over its pipes.

One line of JSON is sent and one is read at a time. The first says what there is (`Setting`) and is
answered by ``{"ready": true}``. Each further one is ``{"question": …}``, answered by ``{"sparql":
…, "usage": {"lm_calls": …, "prompt_tokens": …, "completion_tokens": …}}``. ``"error"`` says why
there is no query; with ``"infrastructure": true`` the network or the model's server failed.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.peers.published import published
from reasoningbank.agents import Attempt, Episode
from reasoningbank.agents.protocol import conclude, used_up
from reasoningbank.cache import cache_dir
from reasoningbank.corpus import Task
from reasoningbank.errors import SetupError
from reasoningbank.findings import Finding
from reasoningbank.lm.reply import query_in
from reasoningbank.trajectory import Usage


@dataclass(frozen=True)
class Setting:
    """What a peer is told: the endpoint, the training examples and the model."""

    endpoint: str  #: Address that answers queries
    name: str  #: The endpoint's name
    prefixes: dict[str, str]
    examples: list[dict[str, str]]  #: Each with `question` and `query`
    void: str | None  #: File with statistics of the data, in Turtle
    model: str  #: ``provider/model``; ``openai/…`` at `api_base`
    api_base: str | None  #: Address of an OpenAI-compatible interface
    options: dict[str, Any] = field(default_factory=dict)  #: The peer's own, from the arm


class Peer:
    """Asks a peer's process, which is started with the first question and kept.

    Its calls of a model are not metered: no budget of tokens or calls binds it, and what it reports
    to have used is recorded. The budget of seconds does: the process is ended then.

    Args:
        peer: Name of the peer: `scripts/peers.py` makes its environment, and `PEER_peer.py`
            beside this file is what runs in it.
        per_template: Training examples of each template that it is given.
        command: What to start instead, with its arguments; paths are absolute, since it runs in a
            folder of its own.
        **options: Given to the peer.
    """

    uses_lm, sees_gold = True, False

    def __init__(self, peer: str, per_template: int = 1, command: str = "", **options: Any) -> None:
        self.name, self._per_template, self._options = peer, per_template, options
        self._command = tuple(shlex.split(command)) or _installed(peer)

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the peer's query, and with what it says that it used."""
        began = time.monotonic()
        episode.meter.turn()
        process = _started(self._command, json.dumps(asdict(self._setting(episode))))
        try:
            said = process.ask({"question": task.query}, episode.budget.seconds)
        except TimeoutError:
            late = used_up("seconds", episode.budget.seconds or 0)
            return conclude(episode, None, "exhausted", [late])
        if said.get("infrastructure"):
            raise OSError(f"{self.name}: {said['error']}")
        episode.recorder.add("step", {"step": self.name, **said})
        sparql = query_in(str(said.get("sparql") or ""))
        findings = [Finding("peer-error", str(said["error"]))] if said.get("error") else []
        attempt = conclude(episode, sparql, "submitted", findings)
        used = Usage(**said.get("usage", {}), iterations=1)
        return replace(attempt, usage=replace(used, seconds=round(time.monotonic() - began, 3)))

    def _setting(self, episode: Episode) -> Setting:
        endpoint, pack, lm = episode.endpoint, episode.required_pack(self.name), episode.lm
        settings = getattr(lm, "kwargs", {})
        # A local model is asked through an engine that knows where its server is.
        address = getattr(getattr(lm, "_engine_spec", None), "address", settings.get("api_base"))
        model = str(getattr(lm, "model", ""))
        shown = published(episode, self._per_template)
        return Setting(
            endpoint.address,
            endpoint.name or endpoint.url,
            dict(endpoint.prefixes),
            [{"question": task.query, "query": task.expected_sparql} for task in shown],
            str(pack.void.resolve()) if pack.void and pack.void.exists() else None,
            model.replace("local/", "openai/", 1) if model.startswith("local/") else model,
            address,
            self._options,
        )


class PeerProcess:
    """One process of a peer, with a folder of its own that is removed at its end."""

    def __init__(self, command: tuple[str, ...], setting: str) -> None:
        for file in command[:1] + command[-1:]:
            if Path(file).is_absolute() and not Path(file).exists():
                hint = "see docs/peers.md, and run `python scripts/peers.py`"
                raise SetupError("the peer is not there", where=file, hint=hint, code="no-peer")
        self.lock = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="reasoningbank-peer-"))
        self._log = self._folder / "peer.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Its Python is another one.
                env={name: one for name, one in os.environ.items() if name != "PYTHONPATH"},
            )
        atexit.register(self.stop)
        try:
            # It reads its examples then, and may embed them.
            self.ask(json.loads(setting), None)
        except BaseException:
            self.stop()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, message: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        """Send a message and return the answer; TimeoutError after so many seconds, then ended."""
        pipes = self._process
        assert pipes.stdin is not None
        assert pipes.stdout is not None
        with self.lock:
            try:
                pipes.stdin.write(json.dumps(message).encode() + b"\n")
                pipes.stdin.flush()
                ready, _, _ = select.select([pipes.stdout], [], [], seconds)
                if not ready:
                    self.stop()
                    raise TimeoutError
                return dict(json.loads(pipes.stdout.readline()))
            except (BrokenPipeError, json.JSONDecodeError) as error:
                said = self._log.read_text(errors="replace").strip() if self._log.exists() else ""
                self.stop()
                last = (said.splitlines() or ["nothing was said"])[-1][:300]
                raise OSError(f"the peer ended: {last}") from error

    def stop(self) -> None:
        """End the process and remove its folder."""
        atexit.unregister(self.stop)
        if self.alive:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        shutil.rmtree(self._folder, ignore_errors=True)


_processes: dict[tuple[tuple[str, ...], str], PeerProcess] = {}
_lock = threading.Lock()


def _started(command: tuple[str, ...], setting: str) -> PeerProcess:
    """Return the process that was told this, or a new one."""
    with _lock:
        found = _processes.get((command, setting))
        if found is None or not found.alive:
            found = _processes[command, setting] = PeerProcess(command, setting)
        return found


def _installed(peer: str) -> tuple[str, ...]:
    return (
        str(cache_dir() / "peers" / peer / "bin" / "python"),
        "-I",
        str(Path(__file__).parent / f"{peer.replace('-', '_')}_peer.py"),
    )
