"""Which failures of a model call are the agent's, and which the infrastructure's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dspy.utils import exceptions as dspy_errors

from reasoningbank.errors import BudgetError, ModelError, ReasoningBankError, SetupError

__all__ = ["is_timeout", "lm_failure"]

#: LiteLLM puts its own names before what was said: `litellm.APIError: OpenAIException - no`.
_WRAPPED = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception)\s*[:-]\s*|error - )+")


def lm_failure(error: BaseException, model: str = "") -> ReasoningBankError | None:
    """Tell what a failed model call means for a trial.

    Args:
        error: What a call of a `dspy.LM`, or a module around it, raised.
        model: The model's name, for the message.

    Returns:
        A `BudgetError` when the agent's own prompt outgrew the context window (the trial is
        exhausted, what it did is kept); a `SetupError` when the run was set up wrongly (key,
        model name, unsupported setting); a `ModelError` when the model could not be reached
        or did not answer properly; None when the error is not a model's at all.

    Examples:
        >>> e = dspy_errors.ContextWindowExceededError(model="local", message="9030 tokens")
        >>> type(lm_failure(e, "local")).__name__
        'BudgetError'
        >>> lm_failure(ValueError("x")) is None
        True
    """
    for cause in _causes(error):
        if isinstance(cause, ReasoningBankError):
            return cause
        if isinstance(cause, dspy_errors.LMError):
            return _of_lm_error(cause, model or str(getattr(cause, "model", "") or "model"))
    return None


def is_timeout(error: BaseException) -> bool:
    """Say whether a model did not answer in time; one that refuses late has answered."""
    return any(isinstance(cause, dspy_errors.LMTimeoutError) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it.

    Causes alone are followed (``raise … from``), as DSPy names them wherever it wraps a failure.
    What was merely being handled when an error came is not: a fault of the harness would pass
    for a query's or a model's.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def _of_lm_error(error: dspy_errors.LMError, model: str) -> ReasoningBankError:
    said = _first_line(error)
    if isinstance(error, dspy_errors.ContextWindowExceededError) or _is_overflow(said):
        return BudgetError(
            f"the prompt no longer fits the model's context window ({said})",
            where=model,
            hint="give the agent fewer turns, shorter tool results or a larger context",
            code="context-window",
            budget="context_window",
        )
    if isinstance(error, dspy_errors.LMAuthError):
        return SetupError(f"the key was refused ({said})", where=model, hint="check the API key")
    if isinstance(error, dspy_errors.LMBillingError):
        return SetupError(f"the account is exhausted ({said})", where=model, hint="check billing")
    misset = (
        dspy_errors.LMUnsupportedModelError,
        dspy_errors.LMUnsupportedFeatureError,
        dspy_errors.LMConfigurationError,
    )
    if isinstance(error, misset):
        return SetupError(said, where=model, hint="check the model's name and settings")
    if isinstance(error, dspy_errors.LMRateLimitError):
        return ModelError(
            f"the rate limit outlasted the retries ({said})",
            where=model,
            hint="run the same command later; finished trials are kept",
        )
    return ModelError(said, where=model, hint="check that the model is up, then run again")


def _is_overflow(said: str) -> bool:
    text = said.lower()
    return "context" in text and ("exceeds the available" in text or "maximum context" in text)


def _first_line(error: BaseException) -> str:
    lines = str(getattr(error, "message", "") or error).strip().splitlines()
    said = _WRAPPED.sub("", lines[0]).partition(", Received response - ")[0] if lines else ""
    return said[:300] or type(error).__name__
