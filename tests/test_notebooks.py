"""The notebooks run from a clean kernel in any folder, without the web, and leave nothing there."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

#: Imported by every Python that the kernel starts: addresses other than this machine's fail.
OFFLINE = """
import ipaddress, socket

connect = socket.socket.connect

def connect_here(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        if not ipaddress.ip_address(socket.gethostbyname(address[0])).is_loopback:
            raise OSError(f"a notebook asked {address[0]}")
    return connect(self, address)

socket.socket.connect = connect_here
"""


def all_named(notebooks: list[Path]) -> Any:
    return pytest.mark.parametrize("notebook", notebooks, ids=lambda path: path.stem)


def read(notebook: Path) -> Any:
    return nbformat.read(notebook, as_version=4)


def files_of_the_repository() -> set[Path]:
    """Return what a notebook could leave something beside.

    Not what tests beside this one may leave: bytecode, and caches of their tools.
    """
    folders = [ROOT / name for name in ("notebooks", "experiments", "ontology", "runs")]
    inside = {file for folder in folders for file in folder.rglob("*")}
    return {*ROOT.glob("[!.]*"), *(file for file in inside if "__pycache__" not in file.parts)}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncKernelManager:
    """A kernel of the running interpreter, known to nobody else, with everything of its own."""
    spec = tmp_path / "kernels" / "here" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "here", "language": "python"}))
    offline = tmp_path / "offline"
    offline.mkdir()
    (offline / "sitecustomize.py").write_text(OFFLINE)
    for name, value in {
        "JUPYTER_RUNTIME_DIR": tmp_path / "runtime",
        "IPYTHONDIR": tmp_path / "ipython",
        "MPLCONFIGDIR": tmp_path / "matplotlib",
        "REASONINGBANK_CACHE": tmp_path / "cache",
        "PYTHONPATH": f"{offline}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }.items():
        monkeypatch.setenv(name, str(value))
    specs = KernelSpecManager(kernel_dirs=[str(spec.parent.parent)])
    return AsyncKernelManager(kernel_name="here", kernel_spec_manager=specs)


def test_there_are_four() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["1_", "2_", "3_", "4_"]


@all_named(NOTEBOOKS)
def test_it_is_committed_as_it_ran(notebook: Path) -> None:
    content = read(notebook)
    nbformat.validate(content)
    assert content.nbformat == 4
    assert content.nbformat_minor >= 5, "cells have no ids"
    cells = [cell for cell in content.cells if cell.cell_type == "code"]
    run = [cell.id for cell in cells if cell.outputs or cell.execution_count]
    assert run == [cell.id for cell in cells]
    assert [cell.id for cell in content.cells if set(cell.metadata) - {"tags"}] == []
    # What an editor adds of its own would change with each person who saves it.
    assert set(content.metadata) <= {"kernelspec", "language_info"}


@all_named(NOTEBOOKS)
def test_it_runs(notebook: Path, kernel: AsyncKernelManager, tmp_path: Path) -> None:
    before = files_of_the_repository()
    work = tmp_path / "work"
    work.mkdir()
    copy = Path(shutil.copy(notebook, work))
    content = read(copy)
    client = NotebookClient(content, km=kernel, timeout=120, coalesce_streams=True)
    client.execute(cwd=str(work))
    assert not [o for c in content.cells for o in c.get("outputs", ()) if o.get("name") == "stderr"]
    committed = [cell.get("outputs") for cell in read(notebook).cells]
    assert committed == [cell.get("outputs") for cell in content.cells], (
        "run python scripts/generate.py notebooks"
    )
    assert [path for path in work.rglob("*") if path != copy] == []
    assert files_of_the_repository() - before == set()


def test_a_notebook_that_asks_the_web_fails(kernel: AsyncKernelManager, tmp_path: Path) -> None:
    ask = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(ask)])
    with pytest.raises(Exception, match=r"a notebook asked 192\.0\.2\.1"):
        NotebookClient(content, km=kernel, timeout=60).execute(cwd=str(tmp_path))
