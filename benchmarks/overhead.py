"""What a recorded, judged trial takes beside the bare loop of `dspy.RLM` with the same tools."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.bare import plain_interpreter, run_bare
from benchmarks.measure import Row
from benchmarks.model import serving
from benchmarks.trials import Key, Ran, model_at, run_trials
from benchmarks.turns import PACK, TURNS, some_tasks, turns_of
from reasoningbank.agents.sandbox.interpreter import SandboxPool
from reasoningbank.corpus import load_pack, open_endpoint

__all__ = ["overhead"]

WARM = "`dspy.RLM` with the same tools, its sandbox warm"
COLD = "`dspy.RLM` with the same tools, its sandbox started by itself"


def overhead(tasks: int, rounds: int, seconds: float, uncounted: int = 2) -> list[Row]:
    """Answer tasks with the harness and with the bare loop, in turns; the model takes `seconds`.

    The first trials of a run pay for what is built once: so many of them are not counted.
    """
    chosen = some_tasks(tasks + uncounted)
    few = chosen[: uncounted + max(1, tasks // 4)]
    ours: list[Ran] = []
    warm: list[Ran] = []
    cold: list[Ran] = []
    with serving(turns_of(chosen), seconds) as url, model_at(url):
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                ours.append(run_trials(Path(folder), chosen))
            with open_endpoint(load_pack(PACK)) as config, SandboxPool(spare=1) as pool:
                warm.append(run_bare(chosen, url, config, pool))
                pool.close()
                cold.append(run_bare(few, url, config, plain_interpreter))
    label = f"a trial of {TURNS} turns of {seconds * 1000:g} ms: "

    def median(ran: Sequence[Ran], of: Callable[[Ran], Mapping[Key, float]]) -> float:
        return statistics.median(s for one in ran for s in list(of(one).values())[uncounted:])

    took, judged = median(ours, _unjudged), median(ours, lambda one: one.trials)
    bare, from_nothing = (median(of, lambda one: one.trials) for of in (warm, cold))
    processor = median(ours, lambda one: one.processor_of)
    return [
        Row(label + "recorded, not judged", "s", took, bare, WARM),
        Row(label + "recorded, not judged", "s", took, from_nothing, COLD),
        Row(label + "recorded and judged", "s", judged, bare, WARM),
        Row(
            label + "processor time, judged",
            "ms",
            1000 * processor,
            1000 * median(warm, lambda one: one.processor_of),
            WARM,
        ),
    ]


def _unjudged(one: Ran) -> dict[Key, float]:
    return {key: seconds - one.judging[key] for key, seconds in one.trials.items()}
