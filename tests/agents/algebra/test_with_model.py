"""The algebra agent with the embedded model; `reasoningbank lm pull local` brings its weights."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from towns import write_towns

from reasoningbank.agents import Episode, make_agent
from reasoningbank.algebra import mistakes
from reasoningbank.corpus import load_shacl_tasks, open_endpoint
from reasoningbank.lm import open_lm


@pytest.mark.model
@pytest.mark.skipif(
    os.environ.get("REASONINGBANK_NO_MODEL") == "1",
    reason="REASONINGBANK_NO_MODEL=1: the weights of the embedded model are not wanted here",
)
def test_the_embedded_model_is_held_to_the_schema_of_programs(
    episode: Callable[..., Episode], tmp_path: Path
) -> None:
    pack = write_towns(tmp_path / "towns")
    task = load_shacl_tasks(pack)[0]
    with open_lm("local") as model, open_endpoint(pack) as endpoint:
        lm = model.lm(max_tokens=200, temperature=0.0)
        given = episode(endpoint=endpoint, pack=pack, lm=lm)
        # Few operations make a short prompt.
        agent = make_agent("algebra", operations="SELECT,ASK,Value", max_repairs=0)
        attempt = agent.solve(task.blind(), given)
    steps = [attempt.trajectory.resolve(event.data) for event in attempt.trajectory.of("step")]
    assert steps[0]["step"] == "write"
    assert steps[0]["constrained"] is True
    program = json.loads(steps[0]["program"])
    assert program["@op"] in ("SELECT", "ASK", "Value")
    # Whatever it means, its form is right.
    assert not [one for one in mistakes(program) if "argument" in str(one)]
