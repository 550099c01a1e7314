"""The command line in this process, with an empty cache and no keys."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from dspy.utils import DummyLM

from reasoningbank.cli import main

EXPERIMENT = """
name = "small"
pack = "{pack}"
[[arms]]
name = "one"
agent = "{agent}"
lm = "{lm}"
"""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it wrote; `code` is that of its error."""

    status: int
    out: str
    err: str
    code: str = ""


@dataclass
class Scripted:
    """Stands where an open model does: all roles share its replies."""

    model: DummyLM
    secrets: tuple[str, ...] = ()
    workers: int = 1
    fingerprint: dict[str, str] = field(default_factory=lambda: {"model": "scripted"})

    def lm(self, **_: Any) -> DummyLM:
        return self.model


def scripting(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, *, anew: bool = False
) -> Callable[..., None]:
    """Return what has a module open a model that gives these replies, in their order.

    Whatever is opened goes on with the replies that are left, unless each is to begin anew.
    """

    def script(*written: dict[str, str], model: DummyLM | None = None) -> None:
        shared = model or DummyLM(list(written))

        @contextlib.contextmanager
        def opened(*_: Any, **__: Any) -> Iterator[Scripted]:
            yield Scripted(DummyLM(list(written)) if anew else shared)

        monkeypatch.setattr(module, "open_lm", opened)

    return script


@pytest.fixture(autouse=True)
def _empty_cache_and_no_keys(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path_factory.mktemp("cache")))
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """Return what runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["reasoningbank", *map(str, words)])
        capsys.readouterr()
        status, code = 0, ""
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
            code = getattr(ended.__cause__, "code", "")
        said = capsys.readouterr()
        return Said(status, said.out, said.err, code)

    return run


@pytest.fixture
def experiment_file(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes an experiment file of one arm."""

    def write(pack: Path | str, agent: str = "oracle", lm: str = "local", more: str = "") -> Path:
        path = tmp_path / "small.toml"
        text = EXPERIMENT.format(pack=pack, agent=agent, lm=lm)
        path.write_text(text + more, encoding="utf-8")
        return path

    return write
