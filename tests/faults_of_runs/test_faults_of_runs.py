"""Every fault ends in a clear line, and the same command afterwards ends with every trial once."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from reasoningbank.sparql import EndpointConfig

from .budgets import BUDGETS, Limit
from .disk import wordy
from .page import GROUPS, PAGE, lost, render
from .scene import Fault, third_trial
from .theatre import Theatre

FAULTS = [fault for faults in GROUPS.values() for fault in faults]
IDS = [f"{title}: {fault.name}" for title, faults in GROUPS.items() for fault in faults]


@pytest.fixture(scope="module")
def theatre(
    trees: EndpointConfig, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Theatre]:
    with Theatre(tmp_path_factory.mktemp("theatre"), trees) as theatre:
        # What the tests to come will ask for is begun now.
        for item in request.session.items:
            act = item.callspec.params.get("act") if hasattr(item, "callspec") else None
            if isinstance(act, (Fault, Limit)):
                theatre.announce(act)
        yield theatre


@pytest.mark.parametrize("act", FAULTS, ids=IDS)
def test_nothing_is_lost_and_nothing_is_done_twice(act: Fault, theatre: Theatre) -> None:
    came = theatre.seen(act)
    assert "Traceback" not in came.err, came.err
    assert came.status == act.status, came.err
    assert re.search(act.said, came.said), came.said
    assert act.said or not came.said, came.said
    assert came.kept == act.kept, came.err
    assert came.again == 0, came.err
    assert lost(came) == "nothing", came.err


@pytest.mark.parametrize("act", BUDGETS, ids=[limit.name for limit in BUDGETS])
def test_a_budget_ends_a_trial_and_it_is_judged(act: Limit, theatre: Theatre) -> None:
    came = theatre.ending(act)
    assert came.exit == 0
    assert came.statuses == (act.status,) * 2
    assert re.search(act.said, came.said), came.said
    assert (came.judged, came.strict) == (2, 2)
    bound = {"lm_calls": came.lm_calls, "tool_calls": came.tool_calls}
    assert bound.get(act.name, 0) <= act.value


def test_status_tells_a_running_run_from_a_dead_one(theatre: Theatre) -> None:
    stage = theatre.stage("status")
    command = third_trial(stage)
    running = stage.command("status", "run")
    assert re.search(r"running since .* 2 of 6 trials; in flight: direct · t002 · 0", running.out)
    command.send(signal.SIGKILL)
    command.wait()
    stage.model.release.set()
    dead = stage.command("status", "run")
    assert re.search(r"dead: .* 2 of 6 trials on disk and 1 in flight", dead.out)
    assert stage.run().status == 0
    assert re.search(r"finished at .*: 6 of 6 trials", stage.command("status", "run").out)
    stage.close()


def test_a_disk_that_is_really_full(theatre: Theatre) -> None:
    stage = theatre.stage("full")
    stage.path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", str(stage.path)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        stage.model.answer = wordy
        done = stage.run()
        assert done.status == 1
        assert "No space left on device" in done.said
        kept = stage.finished()
        assert sorted(kept) == ["t000", "t001"]
        subprocess.run(["mount", "-o", "remount,size=8m", str(stage.path)], check=True)
        assert stage.run().status == 0
        finished = stage.finished()
        assert len(finished) == 6
        assert {task: finished[task] for task in kept} == kept
    finally:
        subprocess.run(["umount", str(stage.path)], check=True)
        stage.close()


def test_no_two_faults_are_the_same() -> None:
    assert len(set(IDS)) == len(IDS) >= 45


def test_the_page_shows_what_was_seen(theatre: Theatre) -> None:
    assert PAGE.read_text(encoding="utf-8") == render(theatre.seen, theatre.ending), (
        "run: python scripts/generate.py robustness"
    )
