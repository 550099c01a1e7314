"""The LiITA pack's hints say what holds: guide, warnings, demonstrations."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from liita_sample import PACK, load, rows

from reasoningbank.agents import load_demonstrations
from reasoningbank.corpus import load_pack, load_shacl_tasks, split_tasks
from reasoningbank.memory.layer import guide, load_notes

ROOT = Path(__file__).resolve().parents[2]
HINTS = PACK / "hints"
NAME = re.compile(r"(?<![\w<:/])([A-Za-z]+):([A-Za-z]\w*)")


def names_in_use() -> set[str]:
    found: set[str] = set()
    for name in ("liita", "complit"):
        store = load(PACK / "data" / f"{name}.nq.gz")
        query = "SELECT DISTINCT ?x { { ?s a ?x } UNION { ?s ?x ?o } UNION { ?s ?p ?x } }"
        found.update(value for (value,) in rows(store, query))
    return found


def test_the_guide_fits_whole() -> None:
    layer = guide(load_pack("liita"))
    assert layer == guide(load_pack("liita"), budget=10_000)
    assert "lexinfo:partMeronym" in layer.text


def test_warnings_are_about_names_in_use_and_name_nothing_else() -> None:
    pack, used = load_pack("liita"), names_in_use()
    notes = load_notes(pack)
    assert len(notes) >= 10
    for note in notes:
        assert note.about <= used
        for prefix, local in NAME.findall(note.text):
            assert f"{pack.prefixes[prefix]}{local}" in used, note.text
    for prefix, local in NAME.findall((HINTS / "guide.md").read_text("utf-8")):
        assert f"{pack.prefixes[prefix]}{local}" in used


@pytest.mark.sandbox
def test_recorded_outputs_of_the_demonstrations_are_real() -> None:
    script = ROOT / "scripts" / "record_demonstrations.py"
    done = subprocess.run(
        [sys.executable, str(script), "liita", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_demonstration_questions_belong_to_no_corpus() -> None:
    demonstrations = load_demonstrations(HINTS / "demonstrations.json")
    assert len(demonstrations) >= 2
    tasks = [*load_shacl_tasks("liita")]
    asked = {" ".join(task.query.lower().split()) for task in tasks}
    for demonstration in demonstrations:
        assert " ".join(demonstration.question.lower().split()) not in asked
        assert demonstration.turns[-1].code == "SUBMIT(query)"
    # What each of them is about is in no gold that is evaluated.
    split = split_tasks(tasks)
    golds = "\n".join(task.expected_sparql for task in (*split.dev, *split.test))
    assert "lila:comparative" not in golds
    assert "lexinfo:antonym" not in golds
