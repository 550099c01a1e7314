"""What a released package says of itself: one version, and a licence of everything in it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import measure_install
import pytest

from reasoningbank import __version__
from reasoningbank.corpus import known_packs, load_pack

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_stands_in_one_place() -> None:
    assert PROJECT["dynamic"] == ["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [__version__]
    assert f"\n## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(known_packs()))
def test_the_licence_of_a_packs_data_is_on_the_page(name: str) -> None:
    page = (ROOT / "LICENSE-DATA.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` \|(.*)$", page, re.MULTILINE)
    licence = load_pack(name).licence.split()[0]
    assert licence in row.replace("CC BY 4.0", "CC-BY-4.0")
    assert licence in PROJECT["license"].split(" AND ")


def test_the_licence_files_are_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def test_an_extra_is_measured_with_what_it_requires() -> None:
    base, _ = measure_install.closure(())
    demo, missing = measure_install.closure(("demo",))
    assert {"reasoningbank", "pyoxigraph", "dspy"} <= base
    assert {"pandas", "matplotlib"} <= (demo | missing) - base
    assert measure_install.megabytes(base) > measure_install.megabytes({"pyoxigraph"}) > 1
