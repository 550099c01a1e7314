"""Calling a model within an attempt: one adapter, the attempt's callbacks, our errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.protocol import Episode
from reasoningbank.errors import BudgetError, ModelError
from reasoningbank.lm import lm_failure
from reasoningbank.lm.failures import is_timeout

__all__ = ["asking"]


@contextlib.contextmanager
def asking(
    episode: Episode, *callbacks: Any, adapter: dspy.Adapter | None = None
) -> Iterator[None]:
    """Run DSPy modules with the episode's model; nothing outside the block is configured.

    A reply that cannot be parsed is not asked for a second time in another format, so that a
    prediction is one call.

    Args:
        episode: Whose model and callbacks to use.
        *callbacks: Further DSPy callbacks.
        adapter: How calls are written; `dspy.ChatAdapter` by default.

    Raises:
        BudgetError: If the prompt outgrew the model's context window, or the model had not
            answered when the attempt's seconds were used up.
        ModelError: If the model cannot be reached.
        AdapterParseError: If a reply cannot be parsed.
    """
    adapter = adapter or dspy.ChatAdapter(use_json_adapter_fallback=False)
    active = [*episode.callbacks, *callbacks]
    with dspy.context(lm=episode.lm, adapter=adapter, callbacks=active):
        try:
            yield
        except AdapterParseError:
            raise
        except Exception as error:
            failure = lm_failure(error)
            limit = episode.budget.seconds
            late = limit is not None and episode.meter.usage().seconds >= limit
            if late and isinstance(failure, ModelError) and is_timeout(error):
                # A model that hangs: the guard ends the trial, and what was done is judged.
                raise BudgetError(f"the budget of {limit:g} seconds is used up") from error
            if failure is None or failure is error:
                raise
            raise failure from error
