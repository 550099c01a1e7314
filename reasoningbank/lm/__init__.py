"""Language models: names and prices, the embedded model's weights and server, calls and tokens."""

from reasoningbank.lm.calls import RateLimit, UsageCounter, lm_failure
from reasoningbank.lm.models import ModelHandle, PlainAdapter, open_lm
from reasoningbank.lm.names import (
    CATALOGUE,
    STUCK_TEMPERATURE,
    Price,
    asked_as,
    parse_name,
    price_of,
    stuck_temperature,
    takes_temperature,
)
from reasoningbank.lm.server import LocalModel
from reasoningbank.lm.weights import PullProgress, list_weights, pull

__all__ = [
    "CATALOGUE",
    "STUCK_TEMPERATURE",
    "LocalModel",
    "ModelHandle",
    "PlainAdapter",
    "Price",
    "PullProgress",
    "RateLimit",
    "UsageCounter",
    "asked_as",
    "list_weights",
    "lm_failure",
    "open_lm",
    "parse_name",
    "price_of",
    "pull",
    "stuck_temperature",
    "takes_temperature",
]
