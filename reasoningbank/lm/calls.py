"""Model calls: what they consumed, recorded as they happen, and what a failed one means."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import dspy
from dspy.utils import exceptions as dspy_errors
from dspy.utils.callback import BaseCallback
from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.errors import BudgetError, ModelError, ReasoningBankError, SetupError, causes
from reasoningbank.http import Gate, gate_for
from reasoningbank.lm.names import did_you_mean, near_models
from reasoningbank.trajectory import Recorder, Usage

#: Entries of a model's history that are searched for a call's own; more than one model answers
#: at the same time.
_RECENT = 256
#: LiteLLM puts its own names first: `litellm.APIError: OpenAIException - no`.
_WRAPPED = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception)\s*[:-]\s*|error - )+")
_WRONG_SETTING = (
    dspy_errors.LMUnsupportedModelError,
    dspy_errors.LMUnsupportedFeatureError,
    dspy_errors.LMConfigurationError,
)
#: What an event says of each call; the rest only if it is known.
_ALWAYS = ("prompt_tokens", "completion_tokens", "cached_prompt_tokens", "finish_reason")


class UsageCounter(BaseCallback):  # type: ignore[misc]
    """Counts the model calls of one trial, and writes each as an ``lm_call`` event.

    For ``dspy.context(callbacks=[counter])``. It reads the model's history, so DSPy's
    ``disable_history`` must stay off.
    """

    def __init__(self, recorder: Recorder | None = None, role: str = "solver") -> None:
        self._recorder = recorder
        self._role = role
        self._open: dict[str, tuple[float, Any, dict[str, Any]]] = {}
        self._total = Usage()
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """What was consumed so far; iterations, tool calls and seconds are the agent's to add."""
        with self._lock:
            return self._total

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        with self._lock:
            self._open[call_id] = (time.monotonic(), instance, dict(inputs))

    def on_lm_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        with self._lock:
            began, lm, inputs = self._open.pop(call_id)
        seconds = time.monotonic() - began
        entry = {} if exception else entry_of(lm, outputs)
        options = inputs.get("kwargs") or {}
        used = call_usage(entry, cache_on=bool(options.get("cache", getattr(lm, "cache", False))))
        if exception is None:
            with self._lock:
                self._total += _counted(used)
        if self._recorder is not None:
            event = {"role": self._role, **_event(lm, inputs, entry, outputs, used)}
            if exception is not None:
                event["error"] = f"{type(exception).__name__}: {exception}"
            self._recorder.add("lm_call", event, seconds=seconds)


def call_usage(entry: Mapping[str, Any], *, cache_on: bool) -> dict[str, Any]:
    """Return what a call consumed, from its entry in a `dspy.LM`'s history.

    None where the provider does not say. `cached_prompt_tokens` were in the provider's prefix
    cache; `from_cache` says that DSPy's response cache answered, at no cost; `prompt_s` and
    `generation_s` come from a local server.
    """
    usage, response = entry.get("usage") or {}, entry.get("response")
    details = usage.get("prompt_tokens_details") or {}
    data = getattr(response, "provider_data", None)
    timings = data.get("timings") if isinstance(data, Mapping) else _field(response, "timings")
    choices = getattr(response, "choices", None)
    finish = getattr(response, "finish_reason", None)
    if finish is None and choices:
        finish = _field(choices[0], "finish_reason")

    def seconds(name: str) -> float | None:
        milliseconds = timings.get(name) if isinstance(timings, Mapping) else None
        return round(milliseconds / 1000, 4) if isinstance(milliseconds, (int, float)) else None

    return {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_prompt_tokens": _field(details, "cached_tokens") or 0,
        "finish_reason": str(finish or ""),
        "dollars": entry.get("cost"),
        "from_cache": bool(getattr(response, "cache_hit", 0) or (cache_on and not usage)) or None,
        "prompt_s": seconds("prompt_ms"),
        "generation_s": seconds("predicted_ms"),
    }


def _counted(used: Mapping[str, Any]) -> Usage:
    if used["from_cache"]:
        return Usage(cached_calls=1)
    return Usage(
        lm_calls=1,
        prompt_tokens=used["prompt_tokens"] or 0,
        completion_tokens=used["completion_tokens"] or 0,
        cached_prompt_tokens=used["cached_prompt_tokens"],
        dollars=used["dollars"],
    )


def _event(
    lm: Any, inputs: dict[str, Any], entry: Mapping[str, Any], outputs: Any, used: dict[str, Any]
) -> dict[str, Any]:
    messages = entry.get("messages") or inputs.get("messages")
    if not messages:
        messages = [{"role": "user", "content": str(inputs.get("prompt") or "")}]
    first, *others = outputs if isinstance(outputs, list) and outputs else [outputs]
    model = str(getattr(lm, "model", ""))
    served = getattr(entry.get("response"), "model", None)
    event = {
        "model": model,
        "messages": list(messages),
        "response": _text_of(first),
        **used,
        "reasoning": _field(first, "reasoning_content") or None,
        "tool_calls": [
            {"tool": _field(function, "name"), "arguments": _field(function, "arguments")}
            for function in (_field(call, "function") for call in _field(first, "tool_calls") or ())
        ]
        or None,
        # Asked for with ``n``; tokens and dollars are those of all.
        "other_responses": [_text_of(one) for one in others] or None,
        # A local server names the file; the run's manifest has its hash.
        "served_as": None if model.startswith("local/") else served,
        "adaptations": [f"{a.field} {a.action}" for a in entry.get("adaptations", ())] or None,
    }
    return {name: fact for name, fact in event.items() if fact is not None or name in _ALWAYS}


def entry_of(lm: Any, outputs: Any) -> Mapping[str, Any]:
    # The entry holds the very object that the call returned: the only sure mark when several
    # threads call the same model.
    for entry in reversed(list(getattr(lm, "history", ())[-_RECENT:])):
        if entry.get("outputs") is outputs or entry.get("response") is outputs:
            return dict(entry)
    return {}


def _text_of(output: Any) -> str:
    return str((output if isinstance(output, str) else _field(output, "text")) or "")


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


# -- rate limits ----------------------------------------------------------------------------

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

    A call is expected to use what its answer may have at most, and is corrected once it is known.
    """

    def __init__(self, model: str, limit: RateLimit) -> None:
        self.model, self.limit = model, limit

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
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
        if used["prompt_tokens"] is not None:
            took = self.limit.interval(used["prompt_tokens"] + (used["completion_tokens"] or 0))
            model_gate(self.model).correct(took - expected)


# -- failures -------------------------------------------------------------------------------


def lm_failure(error: BaseException, model: str = "") -> ReasoningBankError | None:
    """Return what a failed model call means for a trial; None if the error is not a model's."""
    for cause in causes(error):
        if isinstance(cause, ReasoningBankError):
            return cause
        if isinstance(cause, dspy_errors.LMError):
            return _of_lm_error(cause, model or str(getattr(cause, "model", "") or "model"))
    return None


@contextlib.contextmanager
def model_errors() -> Iterator[None]:
    """Raise what a failed call means; a reply that cannot be parsed is left to the caller."""
    try:
        yield
    except dspy_errors.AdapterParseError:
        raise
    except Exception as error:
        # LiteLLM's errors name the model without its provider.
        failure = lm_failure(error, str(getattr(dspy.settings.lm, "model", "")))
        if failure is None or failure is error:
            raise
        raise failure from error


def is_timeout(error: BaseException) -> bool:
    """Return whether a model did not answer in time; one that refuses late has answered."""
    return any(isinstance(cause, dspy_errors.LMTimeoutError) for cause in causes(error))


def _retry_after(error: BaseException) -> float:
    """Return the seconds that a provider asks to wait; 0 if it does not say."""
    for cause in causes(error):
        # DSPy waits as asked, but does not see what LiteLLM was asked.
        headers = getattr(cause, "litellm_response_headers", None) or {}
        asked = getattr(cause, "retry_after", None) or headers.get("retry-after") or ""
        with contextlib.suppress(ValueError):
            return min(max(0.0, float(asked)), 3600.0)
    return 0.0


def _of_lm_error(error: dspy_errors.LMError, model: str) -> ReasoningBankError:
    lines = str(getattr(error, "message", "") or error).strip().splitlines()
    said = _WRAPPED.sub("", lines[0]).partition(", Received response - ")[0] if lines else ""
    said = said[:300] or type(error).__name__
    text = said.lower()
    overflow = "context" in text and ("exceeds the available" in text or "maximum context" in text)
    if overflow or isinstance(error, dspy_errors.ContextWindowExceededError):
        what = f"the prompt no longer fits the model's context window ({said})"
        hint = "give the agent fewer turns, shorter tool results or a larger context"
        return BudgetError(
            what, where=model, hint=hint, code="context-window", budget="context_window"
        )
    if isinstance(error, dspy_errors.LMAuthError):
        hint = "check the API key"
        return SetupError(f"the key was refused ({said})", where=model, hint=hint, code="bad-key")
    if isinstance(error, dspy_errors.LMBillingError):
        return SetupError(f"the account is exhausted ({said})", where=model, hint="check billing")
    # DSPy takes a 404 with an unknown code for a bad request; repeating it changes nothing.
    if isinstance(error, _WRONG_SETTING) or getattr(error, "status", None) == 404:
        hint = f"{did_you_mean(near_models(model))}check the model's name and settings"
        return SetupError(said, where=model, hint=hint)
    if isinstance(error, dspy_errors.LMRateLimitError):
        what = f"the rate limit outlasted the retries ({said})"
        hint = "run the same command later; finished trials are kept"
        after = _retry_after(error)
        return ModelError(what, where=model, hint=hint, code="rate-limit", retry_after=after)
    return ModelError(said, where=model, hint="check that the model is up, then run again")
