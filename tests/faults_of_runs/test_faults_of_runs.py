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
from .fault_runner import FaultRunner
from .page import GROUPS, PAGE, lost, render
from .scenario import Fault, third_trial

FAULTS = [fault for faults in GROUPS.values() for fault in faults]
IDS = [f"{title}: {fault.name}" for title, faults in GROUPS.items() for fault in faults]


@pytest.fixture(scope="module")
def runner(
    trees: EndpointConfig, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[FaultRunner]:
    with FaultRunner(tmp_path_factory.mktemp("runner"), trees) as runner:
        # What the tests to come will ask for is begun now.
        for item in request.session.items:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            for case in params.values():
                if isinstance(case, (Fault, Limit)):
                    runner.announce(case)
        yield runner


@pytest.mark.parametrize("fault", FAULTS, ids=IDS)
def test_nothing_is_lost_and_nothing_is_done_twice(fault: Fault, runner: FaultRunner) -> None:
    seen = runner.seen(fault)
    assert "Traceback" not in seen.err, seen.err
    assert seen.status == fault.status, seen.err
    assert re.search(fault.said, seen.said), seen.said
    assert fault.said or not seen.said, seen.said
    assert seen.kept == fault.kept, seen.err
    assert seen.again == 0, seen.err
    assert lost(seen) == "nothing", seen.err


@pytest.mark.parametrize("limit", BUDGETS, ids=[one.name for one in BUDGETS])
def test_a_budget_ends_a_trial_and_it_is_judged(limit: Limit, runner: FaultRunner) -> None:
    seen = runner.ending(limit)
    assert seen.exit == 0
    assert seen.statuses == (limit.status,) * 2
    assert re.search(limit.said, seen.said), seen.said
    assert (seen.judged, seen.strict) == (2, 2)
    bound = {"lm_calls": seen.lm_calls, "tool_calls": seen.tool_calls}
    assert bound.get(limit.name, 0) <= limit.value


def test_status_tells_a_running_run_from_a_dead_one(runner: FaultRunner) -> None:
    scenario = runner.scenario("status")
    command = third_trial(scenario)
    running = scenario.command("status", "run")
    assert re.search(r"running since .* 2 of 6 trials; in flight: direct · t002 · 0", running.out)
    command.send(signal.SIGKILL)
    command.wait()
    scenario.model.release.set()
    dead = scenario.command("status", "run")
    assert re.search(r"dead: .* 2 of 6 trials on disk and 1 in flight", dead.out)
    assert scenario.run().status == 0
    assert re.search(r"finished at .*: 6 of 6 trials", scenario.command("status", "run").out)
    scenario.close()


def test_a_disk_that_is_really_full(runner: FaultRunner) -> None:
    scenario = runner.scenario("full")
    scenario.path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", str(scenario.path)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        scenario.model.answer = wordy
        done = scenario.run()
        assert done.status == 1
        assert "No space left on device" in done.said
        kept = scenario.finished()
        assert sorted(kept) == ["t000", "t001"]
        subprocess.run(["mount", "-o", "remount,size=8m", str(scenario.path)], check=True)
        assert scenario.run().status == 0
        finished = scenario.finished()
        assert len(finished) == 6
        assert {task: finished[task] for task in kept} == kept
    finally:
        subprocess.run(["umount", str(scenario.path)], check=True)
        scenario.close()


def test_no_two_faults_are_the_same() -> None:
    assert len(set(IDS)) == len(IDS) >= 45


def test_the_page_shows_what_was_seen(runner: FaultRunner) -> None:
    assert PAGE.read_text(encoding="utf-8") == render(runner.seen, runner.ending), (
        "run: python scripts/generate.py robustness"
    )
