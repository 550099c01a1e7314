"""What MLflow is told of a run keeps the streams apart."""

from __future__ import annotations

import learned_run

from reasoningbank.experiment.tracing.tally import Tally


def test_streams_have_numbers_of_their_own() -> None:
    tally = Tally()
    for record in learned_run.records():
        tally.add(record)
        tally.add(record)
    found = tally.metrics()
    assert (found["learned/trials"], found["learned/strict"]) == (24, 20)
    assert (found["learned/stream/trials"], found["learned/stream/strict"]) == (12, 7)
    assert found["placebo/strict_rate"] == 0.25
    assert "placebo/stream/trials" not in found
