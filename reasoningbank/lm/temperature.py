"""The temperature of a model that repeats itself."""

from __future__ import annotations

from typing import Any

import dspy

from reasoningbank.lm.names import takes_temperature

__all__ = ["STUCK_TEMPERATURE", "stuck_temperature"]

#: Temperature of a call after one that repeated itself; at 0 the same would come for ever.
STUCK_TEMPERATURE = 0.7


def stuck_temperature(lm: Any = None) -> float | None:
    """Return the temperature to ask a model at that repeated itself.

    Args:
        lm: The model; that of the `dspy.context` by default.

    Returns:
        `STUCK_TEMPERATURE`, or None for a model that takes none: it samples in any case.

    Examples:
        >>> stuck_temperature(dspy.LM("openai/gpt-4.1")), stuck_temperature(dspy.LM("openai/o3"))
        (0.7, None)
    """
    name = str(getattr(lm or dspy.settings.lm, "model", ""))
    return STUCK_TEMPERATURE if takes_temperature(name) else None
