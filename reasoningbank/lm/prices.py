"""What a model's tokens cost, by LiteLLM's own price table; nothing is asked of the web."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reasoningbank.lm.names import parse_name

__all__ = ["Price", "price_of"]

_SWITCH = "LITELLM_LOCAL_MODEL_COST_MAP"


@dataclass(frozen=True)
class Price:
    """Dollars a token, without the discounts of a provider's prefix cache or batches.

    Attributes:
        prompt: Dollars for one token sent.
        completion: Dollars for one token generated.
    """

    prompt: float
    completion: float


def price_of(name: str) -> Price | None:
    """Return what a model's tokens cost; None where the price table does not know it.

    The price is the lowest tier's: some models cost more for prompts above 128,000 or 200,000
    tokens. What the harness serves by itself costs nothing.

    Args:
        name: `local`, `local:/path.gguf`, or a LiteLLM name.

    Raises:
        UsageError: If the name looks like no model's.

    Examples:
        >>> price_of("local")
        Price(prompt=0.0, completion=0.0)
        >>> price_of("openai/gpt-4.1-mini")
        Price(prompt=4e-07, completion=1.6e-06)
        >>> price_of("openai/a-model-that-nobody-knows") is None
        True
    """
    if parse_name(name).is_local:
        return Price(0.0, 0.0)
    entry = _entry(name)
    prompt, completion = (entry.get(f"{k}_cost_per_token") for k in ("input", "output"))
    if prompt is None or completion is None:
        return None
    return Price(float(prompt), float(completion))


def _entry(name: str) -> Mapping[str, Any]:
    # `cost_per_token` asks an Ollama server, and prices a sum of prompts as one long prompt.
    with _offline():
        import litellm
    table: Mapping[str, Mapping[str, Any]] = litellm.model_cost
    provider, _, model = name.partition("/")
    if name in table:
        return table[name]
    # Providers have kinds there, as `bedrock_converse` and `vertex_ai-language-models`.
    entry = table.get(model) or {}
    return entry if str(entry.get("litellm_provider", "")).startswith(provider) else {}


@contextlib.contextmanager
def _offline() -> Iterator[None]:
    """Keep LiteLLM from fetching a newer price table when it is first imported."""
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "True"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before
