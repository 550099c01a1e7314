"""What the demonstrations print is what the tools really return on the pack's data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reasoningbank.agents import load_demonstrations
from reasoningbank.corpus import load_pack, load_shacl_tasks

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.sandbox
def test_recorded_outputs_are_real() -> None:
    script = ROOT / "scripts" / "record_demonstrations.py"
    done = subprocess.run(
        [sys.executable, str(script), "uniprot", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_demonstration_questions_belong_to_no_corpus() -> None:
    demonstrations = load_demonstrations(
        load_pack("uniprot").root / "hints" / "demonstrations.json"
    )
    assert len(demonstrations) >= 2
    tasks = load_shacl_tasks("uniprot")
    asked = {" ".join(task.query.lower().split()) for task in tasks}
    queries = "\n".join(task.expected_sparql for task in tasks)
    for demonstration in demonstrations:
        assert " ".join(demonstration.question.lower().split()) not in asked
        assert demonstration.turns[-1].code == "SUBMIT(query)"
    # The one class that each demonstration is about is in no gold.
    assert "Transit_Peptide_Annotation" not in queries
    assert "Submission_Citation" not in queries
