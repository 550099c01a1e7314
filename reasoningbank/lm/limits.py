"""A provider's rate limit: calls of a model wait for their turn."""

from __future__ import annotations

from typing import Any

from dspy.utils.callback import BaseCallback
from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.http import Gate, gate_for
from reasoningbank.lm.calls import call_usage, entry_of

#: Seconds that an unfinished call pushed the next one away for its tokens, and how to correct it.
_open: dict[str, tuple[Any, float]] = {}


class RateLimit(BaseModel):
    """What a provider allows a minute for a model: requests; tokens of prompts and answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    requests: float | None = Field(default=None, gt=0)
    tokens: float | None = Field(default=None, gt=0)

    def interval(self, tokens: float) -> float:
        """Return the seconds from a call's start to the next one's."""
        by_requests = 60 / self.requests if self.requests else 0.0
        return max(by_requests, 60 * tokens / self.tokens if self.tokens else 0.0)


def model_gate(model: str) -> Gate:
    """Return the gate that all calls of a model by this process share."""
    return gate_for(f"model {model}")


class Pacing(BaseCallback):  # type: ignore[misc]
    """Spaces a model's calls, so that no minute exceeds its limit; for ``dspy.LM(callbacks=…)``.

    LiteLLM's router fails a call beyond its limits, and DSPy does not use it. A call is expected to
    use what its answer may have at most, and is corrected once it is known.
    """

    def __init__(self, model: str, limit: RateLimit) -> None:
        self.model, self.limit = model, limit

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Wait for the call's turn."""
        asked = inputs.get("messages") or inputs.get("prompt") or inputs.get("request") or ""
        settings = {**instance.kwargs, **(inputs.get("kwargs") or {})}
        most = settings.get("max_tokens") or settings.get("max_completion_tokens") or 0
        interval = self.limit.interval(len(str(asked)) / 4 + most)
        _open[call_id] = instance, interval
        model_gate(self.model).start(interval)

    def on_lm_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Correct what was expected by what the call used."""
        lm, expected = _open.pop(call_id)
        used = call_usage({} if exception else entry_of(lm, outputs), cache_on=False)
        if used.prompt_tokens is not None:
            took = self.limit.interval(used.prompt_tokens + (used.completion_tokens or 0))
            model_gate(self.model).correct(took - expected)
