"""How probable it is that a query is right: a score, and a table that says what it is worth.

The score only orders; it does not count rows. What a score is worth is measured: `fit_calibration`
takes the scores of judged trials and their verdicts. A pack keeps a table an agent, in
``hints/calibration.json`` (graph) and ``hints/calibration_rag.json``. What an agent thinks of its
own answer is a `Confidence` in its trajectory; `confidence_in` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from scipy.optimize import isotonic_regression

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.trajectory import Trajectory

__all__ = [
    "FILES",
    "Calibration",
    "Confidence",
    "confidence_in",
    "confidence_score",
    "fit_calibration",
    "load_calibration",
]

#: The file of each agent's table, below a pack's hints.
FILES = MappingProxyType({"graph": "calibration.json", "rag": "calibration_rag.json"})


@dataclass(frozen=True)
class Confidence:
    """What an agent thinks of its own answer.

    Attributes:
        score: What speaks for the query, from 0 to 1.
        confidence: How probable it is that it is right, from 0 to 1.
        calibrated: Whether that was measured on judged trials; else it is the score.
        explanation: How the query came about, and why it is trusted or not.
    """

    score: float
    confidence: float
    calibrated: bool
    explanation: str

    @classmethod
    def of(cls, score: float, table: Calibration | None, explanation: str) -> Confidence:
        """Return the confidence that a score has by a table; by none, the score itself."""
        rate = score if table is None else table.rate(score)
        return cls(score, rate, table is not None, explanation)


class Calibration(BaseModel):
    """What scores turned out to be worth.

    Attributes:
        scores: Scores in rising order.
        rates: The share of right queries at each.
        trials: Judged trials that it was measured on.
        model: Of which model, as `reasoningbank.lm.asked_as` names it; empty for any.

    Examples:
        >>> table = Calibration(scores=(0.2, 0.8), rates=(0.1, 0.5), trials=40)
        >>> round(table.rate(0.5), 2), table.rate(1.0)
        (0.3, 0.5)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scores: tuple[float, ...] = Field(min_length=1)
    rates: tuple[float, ...] = Field(min_length=1)
    trials: int = Field(ge=1)
    model: str = ""

    @model_validator(mode="after")
    def _is_a_table(self) -> Calibration:
        rising = all(a < b for a, b in zip(self.scores, self.scores[1:], strict=False))
        if len(self.scores) != len(self.rates) or not rising:
            raise ValueError("scores rise, and there is one rate for each")
        if not all(0 <= rate <= 1 for rate in self.rates):
            raise ValueError("a rate is from 0 to 1")
        return self

    def rate(self, score: float) -> float:
        """Return the share of right queries at a score; between two, in proportion."""
        return float(np.interp(score, self.scores, self.rates))


def confidence_score(*, valid: bool, likeness: float, attempts: int) -> float:
    """Return what speaks for a query, from 0 to 1.

    Args:
        valid: Whether nothing was found against it.
        likeness: Retrieval score of the nearest example, from 0 to 1.
        attempts: Queries that were written; a first one is more often right than a third.

    Examples:
        >>> confidence_score(valid=True, likeness=1.0, attempts=1)
        1.0
        >>> confidence_score(valid=False, likeness=0.5, attempts=3)
        0.2167
    """
    near = min(1.0, max(0.0, likeness))
    return round(0.5 * valid + 0.3 * near + 0.2 / max(1, attempts), 4)


def fit_calibration(judged: Iterable[tuple[float, bool]], model: str = "") -> Calibration:
    """Measure what scores are worth: isotonic regression (Zadrozny & Elkan, KDD 2002).

    Scores that it pools are a block of trials; its rate is the mean of Jeffreys' posterior, so that
    a few trials never say 0 or 1.

    Args:
        judged: Score of a trial, and whether its query was right.
        model: The model that was asked.

    Raises:
        UsageError: There is no trial.

    Examples:
        >>> table = fit_calibration([(0.2, False), (0.3, False), (0.9, True), (0.9, True)])
        >>> table.scores, [round(rate, 2) for rate in table.rates], table.trials
        ((0.2, 0.3, 0.9), [0.17, 0.17, 0.83], 4)
    """
    pairs = [(float(score), float(right)) for score, right in judged]
    if not pairs:
        raise UsageError("there is no judged trial to calibrate on", where="fit_calibration")
    scores = sorted({score for score, _ in pairs})
    groups = [[right for score, right in pairs if score == one] for one in scores]
    fitted = isotonic_regression(
        np.array([float(np.mean(group)) for group in groups]),
        weights=np.array([float(len(group)) for group in groups]),
    )
    rates: dict[float, float] = {}
    for first, end in pairwise(fitted.blocks):
        block = [right for group in groups[first:end] for right in group]
        rate = (sum(block) + 0.5) / (len(block) + 1)
        rates |= dict.fromkeys((scores[first], scores[end - 1]), rate)
    # A small block is drawn to the middle more than a large one beside it.
    rising = np.maximum.accumulate(list(rates.values()))
    return Calibration(
        scores=tuple(rates),
        rates=tuple(round(float(rate), 4) for rate in rising),
        trials=len(pairs),
        model=model,
    )


def confidence_in(trajectory: Trajectory) -> Confidence | None:
    """Return what an agent thought of its answer; None where it does not say.

    `rag` and `graph` say it with their last step, ``output``. An attempt that a budget ended
    before that has none.

    Examples:
        >>> from reasoningbank.trajectory import Recorder
        >>> recorder = Recorder()
        >>> confidence_in(recorder.trajectory()) is None
        True
        >>> said = {"score": 0.5, "confidence": 0.25, "calibrated": True, "explanation": "Near."}
        >>> _ = recorder.add("step", {"step": "output", **said})
        >>> confidence_in(recorder.trajectory()).confidence
        0.25
    """
    for event in reversed(trajectory.of("step")):
        said = trajectory.resolve(event.data)
        if said.get("step") == "output" and said.get("confidence") is not None:
            return Confidence(
                float(said.get("score") or 0.0),
                float(said["confidence"]),
                bool(said.get("calibrated")),
                str(said.get("explanation") or ""),
            )
    return None


def load_calibration(pack: Pack, agent: str = "graph", model: str = "") -> Calibration | None:
    """Return a pack's table of an agent; None where nothing was measured with the model.

    Args:
        pack: The pack.
        agent: ``graph`` or ``rag``: what a score is worth differs.
        model: Who is asked, as `reasoningbank.lm.asked_as` names it; empty to take any table.

    Raises:
        UsageError: The file cannot be read or is no table.
    """
    file = (pack.hints or Path()) / FILES[agent]
    if pack.hints is None or not file.is_file():
        return None
    try:
        table = Calibration.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from error
    except ValidationError as error:
        raise UsageError(error.errors()[0]["msg"], where=str(file)) from error
    return None if model and table.model and table.model != model else table
