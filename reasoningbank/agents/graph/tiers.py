"""Two tiers of models: a fast one that analyses, plans and verifies, and one that writes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import dspy

from reasoningbank.errors import UsageError
from reasoningbank.lm import CATALOGUE, open_lm, parse_name
from reasoningbank.lm.names import providers, sampling_settings

__all__ = ["PROVIDERS", "Tiers", "open_tiers", "tiers_for"]

#: Default and fast model of the providers that are known by name.
PROVIDERS = {
    "local": ("local", "local"),
    "openai": ("openai/gpt-4.1", "openai/gpt-4.1-mini"),
    "anthropic": ("anthropic/claude-sonnet-4-5", "anthropic/claude-haiku-4-5"),
}

#: Providers of their own models alone, whose names begin with no other provider's.
_MAKERS = frozenset({"anthropic", "cohere", "deepseek", "gemini", "mistral", "openai", "xai"})


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

    A name that begins with a provider is whole (``anthropic/claude-haiku-4-5``), and so is that
    of a local model. Many providers serve models of others under names that look so: with
    ``openrouter``, ``groq`` and such, what does not begin with them is taken as a model of theirs.

    Args:
        provider: ``local``, or LiteLLM's name of a provider.
        model: A model of it, or a whole name as `open_lm` takes it.
        fast: Another model for the fast tier; likewise.

    Raises:
        UsageError: A provider of which no default is known, without a model.

    Examples:
        >>> tiers_for("openai")
        Tiers(default='openai/gpt-4.1', fast='openai/gpt-4.1-mini')
        >>> tiers_for("openai", "gpt-4.1").fast, tiers_for("local").default
        ('openai/gpt-4.1', 'local')
        >>> tiers_for("ollama_chat", "qwen3", fast="qwen3:0.6b").fast
        'ollama_chat/qwen3:0.6b'
        >>> tiers_for("openrouter", "anthropic/claude-haiku-4.5").default
        'openrouter/anthropic/claude-haiku-4.5'
    """
    if model is None and provider not in PROVIDERS:
        raise UsageError(
            f"no default model of {provider!r} is known",
            hint=f"name one with model, or choose {', '.join(PROVIDERS)}",
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
        api_key: The key of the hosted model, or of both where one provider serves them; the
            provider's environment variable by default.

    Returns:
        The default model, then the fast one.

    Raises:
        UsageError: An unknown name, or a key that is not one provider's.
        SetupError: A key is missing, or a local model cannot be served.
    """
    names = (tiers.default, tiers.fast)
    keyed = _of_the_key(names) if api_key else ()
    opened = {n: stack.enter_context(open_lm(n)) for n in dict.fromkeys(names) if n not in keyed}
    default, fast = (
        _keyed(name, api_key) if api_key and name in keyed else opened[name].lm(role=role)
        for name, role in zip(names, ("solver", "extractor"), strict=True)
    )
    return default, fast


def _named(provider: str, model: str) -> str:
    if provider == "local" or model in CATALOGUE or model.startswith(("local:", f"{provider}/")):
        return model
    first, slash, _ = model.partition("/")
    if slash and provider in _MAKERS and first in providers():
        return model
    return f"{provider}/{model}"


def _of_the_key(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models that a key is for: the hosted ones, where one provider serves them.

    Raises:
        UsageError: None is hosted, or several providers serve them: none may see another's key.
    """
    hosted = tuple(name for name in names if not parse_name(name).is_local)
    serving = sorted({name.partition("/")[0] for name in hosted})
    if not hosted:
        raise UsageError(
            "a key is of no use to a local model", where=names[0], hint="leave api_key out"
        )
    if len(serving) > 1:
        raise UsageError(
            f"one key cannot be for {' and '.join(serving)}",
            where=" and ".join(hosted),
            hint="leave api_key out and set the environment variable of each",
        )
    return hosted


def _keyed(name: str, api_key: str) -> dspy.BaseLM:
    sampling = sampling_settings(name, temperature=0.0, seed=None)
    return dspy.LM(name, api_key=api_key, cache=False, num_retries=5, **sampling)
