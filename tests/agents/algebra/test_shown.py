"""Programs that a model is shown: they are right, and of no task."""

from __future__ import annotations

from pathlib import Path

import pytest
from towns import write_towns

from reasoningbank.agents.algebra import (
    lead_programs,
    load_shown_programs,
    open_stage,
    shown_programs,
)
from reasoningbank.algebra import mistakes, read_program, run_program
from reasoningbank.algebra.queries import as_query
from reasoningbank.algebra.source import with_prefixes
from reasoningbank.corpus import load_pack, load_shacl_tasks, open_endpoint
from reasoningbank.errors import UsageError


def test_the_packs_programs_run_in_their_order() -> None:
    pack = load_pack("algebra")
    shown = shown_programs(pack)
    assert len(shown) >= 3
    with (
        open_endpoint(pack) as endpoint,
        open_stage(pack, endpoint) as stage,
        stage.scene() as scene,
    ):
        for one in shown:
            before = scene.update()
            program = read_program(with_prefixes(one.program, endpoint.prefixes))
            result = as_query(run_program(program, scene.runtime))
            if program.writes:
                assert scene.update() != before
            else:
                assert result.count("\n") > 1


def test_no_task_is_shown() -> None:
    asked = {task.query for task in load_shacl_tasks("algebra")}
    golds = "\n".join(task.expected_sparql for task in load_shacl_tasks("algebra"))
    for one in shown_programs(load_pack("algebra")):
        assert one.instruction not in asked
        assert "localhost/shelf" not in golds
        assert "localhost/neighbours" not in golds


def test_a_pack_without_any_shows_the_specifications_own(tmp_path: Path) -> None:
    assert shown_programs(write_towns(tmp_path / "towns")) == lead_programs()
    assert shown_programs(None) == lead_programs()
    assert not mistakes(lead_programs()[0].program)


def test_what_is_no_list_of_them_is_told(tmp_path: Path) -> None:
    file = tmp_path / "programs.json"
    assert load_shown_programs(file) == ()
    file.write_text('[{"instruction": "x"}]')
    with pytest.raises(UsageError, match="Field required at 0/program"):
        load_shown_programs(file)
