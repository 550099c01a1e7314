"""The probability that a query is right: a score, and its calibration.

The score only ranks; it does not count rows. `fit_calibration` calibrates it on the scores and
verdicts of judged trials. A pack keeps one table an agent, in ``hints/calibration.json`` (graph)
and ``hints/calibration_rag.json``. An agent records the `Confidence` in its own answer in its
trajectory; `confidence_in` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from reasoningbank.agents.protocol import read_json
from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.trajectory import Trajectory

#: The file of each agent's table, below a pack's hints.
_FILES = {"graph": "calibration.json", "rag": "calibration_rag.json"}


@dataclass(frozen=True)
class Confidence:
    """An agent's confidence in its own answer."""

    score: float  #: The evidence for the query, from 0 to 1
    confidence: float  #: The probability that it is right, from 0 to 1
    calibrated: bool  #: Whether that was measured on judged trials; otherwise it is the score
    explanation: str  #: How the query was made, and what is wrong with it

    @classmethod
    def of(cls, score: float, table: Calibration | None, explanation: str) -> Confidence:
        """Return the confidence of a score by a table; without one, the score itself."""
        rate = score if table is None else table.rate(score)
        return cls(score, rate, table is not None, explanation)


class Calibration(BaseModel):
    """The measured share of right queries at each score.

    Examples:
        >>> table = Calibration(scores=(0.2, 0.8), rates=(0.1, 0.5), trials=40)
        >>> round(table.rate(0.5), 2), table.rate(1.0)
        (0.3, 0.5)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scores: tuple[float, ...] = Field(min_length=1)  #: Scores in ascending order
    #: The share of right queries at each
    rates: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(min_length=1)
    trials: int = Field(ge=1)  #: Number of judged trials
    model: str = ""  #: The model, as `reasoningbank.lm.asked_as` names it; empty for any

    @model_validator(mode="after")
    def _is_a_table(self) -> Calibration:
        rising = all(a < b for a, b in pairwise(self.scores))
        if len(self.scores) != len(self.rates) or not rising:
            raise ValueError("scores must ascend, with one rate for each")
        return self

    def rate(self, score: float) -> float:
        """Return the share of right queries at a score, interpolated linearly."""
        import numpy as np

        return float(np.interp(score, self.scores, self.rates))


def confidence_score(*, valid: bool, similarity: float, attempts: int) -> float:
    """Return the evidence for a query, from 0 to 1."""
    near = min(1.0, max(0.0, similarity))
    return round(0.5 * valid + 0.3 * near + 0.2 / max(1, attempts), 4)


def fit_calibration(judged: Iterable[tuple[float, bool]], model: str = "") -> Calibration:
    """Calibrate scores by isotonic regression (Zadrozny & Elkan, KDD 2002).

    The rate of each pooled block of trials is the mean of Jeffreys' posterior, so that a few trials
    never give 0 or 1.
    """
    import numpy as np
    import pandas as pd
    from scipy.optimize import isotonic_regression

    trials = pd.DataFrame(list(judged), columns=["score", "right"]).astype(float)
    if trials.empty:
        raise UsageError("no judged trial to calibrate on", where="fit_calibration")
    groups = trials.groupby("score")["right"].agg(["mean", "sum", "size"])
    fitted = isotonic_regression(groups["mean"], weights=groups["size"])
    rates: dict[float, float] = {}
    for first, end in pairwise(fitted.blocks):
        block = groups.iloc[first:end]
        rate = (block["sum"].sum() + 0.5) / (block["size"].sum() + 1)
        rates |= dict.fromkeys((float(block.index[0]), float(block.index[-1])), rate)
    # The posterior shrinks a small block more than a large one: keep the rates ascending.
    rising = np.maximum.accumulate(list(rates.values())).round(4).tolist()
    return Calibration(scores=tuple(rates), rates=rising, trials=len(trials), model=model)


def confidence_in(trajectory: Trajectory) -> Confidence | None:
    """Return what an agent recorded with its last step; None where a budget ended it before."""
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
    """Return a pack's calibration of an agent; None if there is none for the model."""
    table = read_json(pack.hints / _FILES[agent], Calibration) if pack.hints else None
    return None if table is None or (model and table.model not in ("", model)) else table
