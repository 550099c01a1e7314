"""Sandboxes start from a snapshot of Pyodide's memory, and without one as ever."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import dspy.primitives
import pytest

from reasoningbank.agents.sandbox import Sandbox, deno_command, interpreter
from reasoningbank.agents.sandbox.deno import memory_snapshot

pytestmark = pytest.mark.sandbox

FOLDER = Path(interpreter.__file__).parent


@pytest.fixture
def boxes() -> Iterator[list[Sandbox]]:
    made = [Sandbox(), Sandbox()]
    yield made
    for box in made:
        box.shutdown()


def snapshot_named() -> Path:
    (named,) = (part for part in deno_command() if part.startswith("--snapshot="))
    return Path(named.removeprefix("--snapshot="))


def test_the_import_map_names_the_pyodide_that_dspys_runner_imports() -> None:
    runner = (Path(dspy.primitives.__file__).parent / "runner.js").read_text(encoding="utf-8")
    (name,) = re.findall(r'from "(npm:pyodide@[^"]+)"', runner)
    map_ = json.loads((FOLDER / "import_map.json").read_text(encoding="utf-8"))
    assert map_["imports"][name] == "./pyodide.js"
    for script, own in map_["scopes"].items():
        assert own == {name: name}
        assert name in (FOLDER / script).read_text(encoding="utf-8")


def test_the_snapshot_lies_beside_pyodide_and_is_made_once(tmp_path: Path) -> None:
    file = snapshot_named()
    assert file.stat().st_size > 10_000_000
    assert file.parent.name == "reasoningbank"
    # It cannot be made with a Deno that does nothing; then there is none, and no part of one.
    assert memory_snapshot(str(tmp_path), ("/bin/true",)) is None
    assert list(tmp_path.rglob("*")) == []


def test_no_two_sandboxes_draw_the_same_numbers(boxes: list[Sandbox]) -> None:
    drawn = {box.execute("import random\nprint(random.random())") for box in boxes}
    assert len(drawn) == 2


def test_a_snapshot_that_is_gone_costs_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boxes: list[Sandbox]
) -> None:
    command = [part for part in deno_command() if not part.startswith("--snapshot=")]
    command.append(f"--snapshot={tmp_path / 'gone.snapshot'}")
    monkeypatch.setattr(interpreter, "deno_command", lambda: tuple(command))
    assert boxes[0].execute("print(6 * 7)") == "42\n"


MAKES = """
import sys
from pathlib import Path

sys.stdout.buffer.write(b"x" * 10_000_000)
Path(__file__).with_name("runs").open("a").write("1")
"""


def test_a_damaged_one_is_made_again(tmp_path: Path) -> None:
    script = tmp_path / "makes.py"
    script.write_text(MAKES, encoding="utf-8")
    command = (sys.executable, str(script))
    file = memory_snapshot(str(tmp_path), command)
    assert file is not None
    assert memory_snapshot(str(tmp_path), command) == file
    file.write_bytes(file.read_bytes()[:-1])
    assert memory_snapshot(str(tmp_path), command) == file
    assert file.stat().st_size == 10_000_000
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "11"


def test_a_sandbox_that_begins_learns_its_tools_meanwhile(boxes: list[Sandbox]) -> None:
    box = boxes[0]
    box.tools["look"] = lambda: "seen"
    box.begin()
    box.begin()
    assert box.execute("print(look())") == "seen\n"


def test_a_sandbox_can_be_shut_down_while_it_begins(boxes: list[Sandbox]) -> None:
    box = boxes[0]
    box.begin()
    box.shutdown()
    assert box._inner is None
