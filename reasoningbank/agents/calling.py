"""Calling a model within an attempt: one adapter, the attempt's callbacks, our errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.budget import used_up
from reasoningbank.agents.protocol import Episode
from reasoningbank.errors import ModelError
from reasoningbank.lm import lm_failure
from reasoningbank.lm.calls import is_timeout
from reasoningbank.sparql import EndpointConfig


@contextlib.contextmanager
def asking(episode: Episode, *callbacks: Any) -> Iterator[None]:
    """Run DSPy modules with the episode's model; nothing outside the block is configured."""
    active = [*episode.callbacks, *callbacks]
    with dspy.context(lm=episode.lm, adapter=_adapter(), callbacks=active):
        try:
            with _our_errors():
                yield
        except ModelError as error:
            limit = episode.budget.seconds
            out_of_time = limit is not None and episode.meter.usage().seconds >= limit
            if limit is not None and out_of_time and is_timeout(error):
                # The model hangs: the time limit ends the trial, and what was done is judged.
                raise used_up("seconds", limit) from error
            raise


def ask_once(
    signature: Any,
    inputs: Mapping[str, Any],
    *,
    lm: dspy.BaseLM | None = None,
    adapter: dspy.Adapter | None = None,
    demos: Sequence[dspy.Example] = (),
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Make one prediction and return its outputs by name."""
    predict = dspy.Predict(signature, **(config or {}))
    predict.demos = list(demos)
    given = {"lm": lm} if lm is not None else {}
    with dspy.context(adapter=adapter or _adapter(), **given), _our_errors():
        try:
            said = predict(**inputs)
        except AdapterParseError:
            return {}
    return {name: said[name] for name in predict.signature.output_fields}


def prefix_names(endpoint: EndpointConfig) -> str:
    """Return the endpoint's own prefixes as a prompt lists them, always in the same order."""
    return ", ".join(f"{prefix}:" for prefix in sorted(endpoint.prefixes)) or "none"


def _adapter() -> dspy.Adapter:
    return dspy.ChatAdapter(use_json_adapter_fallback=False)


@contextlib.contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except AdapterParseError:
        raise
    except Exception as error:
        failure = lm_failure(error)
        if failure is None or failure is error:
            raise
        raise failure from error
