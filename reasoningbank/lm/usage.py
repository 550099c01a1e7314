"""What the model calls of a trial consumed, counted and recorded as they happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dspy.utils.callback import BaseCallback

from reasoningbank.trajectory import Recorder, Usage

__all__ = ["CallUsage", "UsageCounter", "call_usage"]

#: Entries of a model's history that are looked at to find a call's own; more than the calls
#: that one model answers at the same time.
_RECENT = 256


@dataclass(frozen=True)
class CallUsage:
    """What one model call consumed.

    Attributes:
        prompt_tokens: Tokens sent; None if the provider did not say.
        completion_tokens: Tokens generated; None if the provider did not say.
        cached_prompt_tokens: Of the tokens sent, those in the provider's prefix cache.
        dollars: Price by the price table; None if it has none.
        from_cache: Whether DSPy's response cache answered, at no cost.
        finish_reason: Why the model stopped: ``stop``, ``length``, …; "" if not said.
        prompt_s: Seconds of reading the prompt, where a local server tells them.
        generation_s: Seconds of generating, where a local server tells them.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_prompt_tokens: int = 0
    dollars: float | None = None
    from_cache: bool = False
    finish_reason: str = ""
    prompt_s: float | None = None
    generation_s: float | None = None


def call_usage(entry: Mapping[str, Any], *, cache_on: bool = False) -> CallUsage:
    """Read what a call consumed from its entry in a `dspy.LM`'s history.

    Args:
        entry: One entry of ``lm.history``.
        cache_on: Whether the call might be answered by DSPy's cache, which reports no usage.

    Examples:
        >>> call_usage({"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "cost": 0.5})
        CallUsage(prompt_tokens=9, completion_tokens=2, cached_prompt_tokens=0, dollars=0.5, \
from_cache=False, finish_reason='', prompt_s=None, generation_s=None)
    """
    usage = entry.get("usage") or {}
    response = entry.get("response")
    details = usage.get("prompt_tokens_details") or {}
    timings = _timings(response)
    return CallUsage(
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        cached_prompt_tokens=_field(details, "cached_tokens") or 0,
        dollars=entry.get("cost"),
        from_cache=bool(getattr(response, "cache_hit", False)) or (cache_on and not usage),
        finish_reason=_finish_reason(response),
        prompt_s=_seconds(timings.get("prompt_ms")),
        generation_s=_seconds(timings.get("predicted_ms")),
    )


class UsageCounter(BaseCallback):  # type: ignore[misc]
    """Counts the model calls of one trial, and writes each as an ``lm_call`` event.

    Hand it over for the length of the trial with ``dspy.context(callbacks=[counter])``; calls
    from several threads are told apart. It reads the model's history, so DSPy's
    ``disable_history`` must stay off; without it calls are counted and their tokens are not.

    Args:
        recorder: Where the events go; None to count only.
        role: Who calls, noted in the events.
    """

    def __init__(self, recorder: Recorder | None = None, role: str = "solver") -> None:
        self._recorder = recorder
        self._role = role
        self._open: dict[str, tuple[float, Any, Mapping[str, Any]]] = {}
        self._total = Usage()
        self._priced = True
        self._failed = 0
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """What was consumed so far; iterations, tool calls and seconds are the agent's to add."""
        with self._lock:
            return self._total

    @property
    def failed_calls(self) -> int:
        """Calls that raised, after their retries."""
        with self._lock:
            return self._failed

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Note the beginning of a call."""
        with self._lock:
            self._open[call_id] = (time.monotonic(), instance, dict(inputs))

    def on_lm_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Count a call and record it."""
        with self._lock:
            began, lm, inputs = self._open.pop(call_id)
        seconds = time.monotonic() - began
        entry = {} if exception else _entry_of(lm, outputs)
        options = inputs.get("kwargs") or {}
        used = call_usage(entry, cache_on=bool(options.get("cache", getattr(lm, "cache", False))))
        self._count(used, failed=exception is not None)
        if self._recorder is not None:
            event = _event(self._role, lm, inputs, entry, outputs, used, exception)
            self._recorder.add("lm_call", event, seconds=seconds)

    def _count(self, used: CallUsage, *, failed: bool) -> None:
        with self._lock:
            total = self._total
            if failed:
                self._failed += 1
            elif used.from_cache:
                self._total = replace(total, cached_calls=total.cached_calls + 1)
            else:
                self._priced = self._priced and used.dollars is not None
                self._total = replace(
                    total,
                    lm_calls=total.lm_calls + 1,
                    prompt_tokens=total.prompt_tokens + (used.prompt_tokens or 0),
                    completion_tokens=total.completion_tokens + (used.completion_tokens or 0),
                    cached_prompt_tokens=total.cached_prompt_tokens + used.cached_prompt_tokens,
                    # A sum with an unknown part would pass for a price; better none.
                    dollars=(total.dollars or 0.0) + (used.dollars or 0.0)
                    if self._priced
                    else None,
                )


def _event(
    role: str,
    lm: Any,
    inputs: Mapping[str, Any],
    entry: Mapping[str, Any],
    outputs: Any,
    used: CallUsage,
    exception: BaseException | None,
) -> dict[str, Any]:
    messages = entry.get("messages") or inputs.get("messages")
    if not messages:
        messages = [{"role": "user", "content": str(inputs.get("prompt") or "")}]
    event: dict[str, Any] = {
        "role": role,
        "model": str(getattr(lm, "model", "")),
        "messages": list(messages),
        "response": _text(outputs),
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "cached_prompt_tokens": used.cached_prompt_tokens,
        "finish_reason": used.finish_reason,
    }
    extra = {
        "dollars": used.dollars,
        "from_cache": used.from_cache or None,
        "prompt_s": used.prompt_s,
        "generation_s": used.generation_s,
        "adaptations": [f"{a.field} {a.action}" for a in entry.get("adaptations", ())] or None,
        "error": f"{type(exception).__name__}: {exception}" if exception else None,
    }
    return event | {k: v for k, v in extra.items() if v is not None}


def _entry_of(lm: Any, outputs: Any) -> Mapping[str, Any]:
    # The very object that the call returned is in its entry: the one sure mark when several
    # threads call the same model.
    for entry in reversed(list(getattr(lm, "history", ())[-_RECENT:])):
        if entry.get("outputs") is outputs or entry.get("response") is outputs:
            return dict(entry)
    return {}


def _text(outputs: Any) -> str:
    first = outputs[0] if isinstance(outputs, list) and outputs else outputs
    if isinstance(first, Mapping):
        first = first.get("text")
    return "" if first is None else str(getattr(first, "text", first) or "")


def _finish_reason(response: Any) -> str:
    reason = getattr(response, "finish_reason", None)
    choices = getattr(response, "choices", None)
    if reason is None and choices:
        reason = _field(choices[0], "finish_reason")
    return str(reason or "")


def _timings(response: Any) -> Mapping[str, Any]:
    data = getattr(response, "provider_data", None)
    found = data.get("timings") if isinstance(data, Mapping) else _field(response, "timings")
    return found if isinstance(found, Mapping) else {}


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _seconds(milliseconds: Any) -> float | None:
    return round(milliseconds / 1000, 4) if isinstance(milliseconds, (int, float)) else None
