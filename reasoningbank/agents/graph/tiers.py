"""Two tiers of models: a fast one that analyses, plans and verifies, and one that writes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import dspy

from reasoningbank.errors import UsageError
from reasoningbank.lm import open_lm, parse_name
from reasoningbank.lm.names import sampling_settings

__all__ = ["PROVIDERS", "Tiers", "open_tiers", "tiers_for"]

#: Default and fast model of the providers that are known by name.
PROVIDERS = {
    "local": ("local", "local"),
    "openai": ("openai/gpt-4.1", "openai/gpt-4.1-mini"),
    "anthropic": ("anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"),
}


@dataclass(frozen=True)
class Tiers:
    """Names of the two models.

    Attributes:
        default: Writes queries.
        fast: Analyses, plans and verifies.
    """

    default: str
    fast: str


def tiers_for(provider: str = "local", model: str | None = None, fast: str | None = None) -> Tiers:
    """Return the models of a provider; a model that is named is used for all steps.

    Args:
        provider: ``local``, or LiteLLM's name of a provider.
        model: A model of it, or a whole name as `open_lm` takes it.
        fast: Another model for the fast tier.

    Raises:
        UsageError: A provider of which no default is known, without a model.

    Examples:
        >>> tiers_for("openai")
        Tiers(default='openai/gpt-4.1', fast='openai/gpt-4.1-mini')
        >>> tiers_for("openai", "gpt-4.1").fast, tiers_for("local").default
        ('openai/gpt-4.1', 'local')
        >>> tiers_for("ollama_chat", "qwen3", fast="qwen3:0.6b").fast
        'ollama_chat/qwen3:0.6b'
    """
    if model is None and provider not in PROVIDERS:
        raise UsageError(
            f"no default model of {provider!r} is known",
            mend=f"name one with model, or choose {', '.join(PROVIDERS)}",
        )
    default, quick = PROVIDERS.get(provider, ("", ""))
    if model is not None:
        default = quick = _named(provider, model)
    return Tiers(default, _named(provider, fast) if fast is not None else quick)


def open_tiers(
    tiers: Tiers, stack: contextlib.ExitStack, api_key: str | None = None
) -> tuple[dspy.BaseLM, dspy.BaseLM]:
    """Make both models ready, for as long as a stack is open.

    A local model is served once; each tier has a slot of its own there.

    Args:
        tiers: The models.
        stack: Ends what was started.
        api_key: The key of a hosted model; the provider's environment variable by default.

    Returns:
        The default model, then the fast one.

    Raises:
        UsageError: An unknown name.
        SetupError: A key is missing, or a local model cannot be served.
    """
    if api_key and not parse_name(tiers.default).is_local:
        return _keyed(tiers.default, api_key), _keyed(tiers.fast, api_key)
    opened = {name: stack.enter_context(open_lm(name)) for name in {tiers.default, tiers.fast}}
    default = opened[tiers.default].lm(role="solver")
    return default, opened[tiers.fast].lm(role="extractor")


def _named(provider: str, model: str) -> str:
    if provider == "local" or model.startswith(f"{provider}/"):
        return model
    return f"{provider}/{model}"


def _keyed(name: str, api_key: str) -> dspy.BaseLM:
    if parse_name(name).is_local:
        raise UsageError("a key is of no use to a local model", where=name)
    sampling = sampling_settings(name, temperature=0.0, seed=None)
    return dspy.LM(name, api_key=api_key, cache=False, num_retries=5, **sampling)
