"""Language models: names and prices, the embedded model's weights and server, calls and tokens."""

from reasoningbank.lm.calls import CallUsage, RateLimit, UsageCounter, lm_failure
from reasoningbank.lm.models import ModelHandle, PlainAdapter, make_lm, open_lm
from reasoningbank.lm.names import (
    CATALOGUE,
    STUCK_TEMPERATURE,
    ModelName,
    ModelWeights,
    Price,
    asked_as,
    parse_name,
    price_of,
    stuck_temperature,
    takes_temperature,
)
from reasoningbank.lm.server import LocalModel
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.lm.weights import PullProgress, Stored, list_weights, pull, require

__all__ = [
    "CATALOGUE",
    "STUCK_TEMPERATURE",
    "CallUsage",
    "LocalModel",
    "ModelHandle",
    "ModelName",
    "ModelWeights",
    "PlainAdapter",
    "Price",
    "PullProgress",
    "RateLimit",
    "Stored",
    "UsageCounter",
    "asked_as",
    "count_tokens",
    "list_weights",
    "lm_failure",
    "make_lm",
    "open_lm",
    "parse_name",
    "price_of",
    "pull",
    "require",
    "stuck_temperature",
    "takes_temperature",
]
