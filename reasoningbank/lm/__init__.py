"""Language models: names, the embedded model's weights and server, tokens, usage and cost."""

from reasoningbank.lm.catalogue import CATALOGUE, Weights
from reasoningbank.lm.failures import lm_failure
from reasoningbank.lm.fetch import Progress
from reasoningbank.lm.models import ModelHandle, asked_as, make_lm, open_lm
from reasoningbank.lm.names import ModelName, parse_name, takes_temperature
from reasoningbank.lm.plain import PlainAdapter
from reasoningbank.lm.prices import Price, price_of
from reasoningbank.lm.server import LocalModel
from reasoningbank.lm.temperature import STUCK_TEMPERATURE, stuck_temperature
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.lm.usage import CallUsage, UsageCounter
from reasoningbank.lm.weights import Stored, list_weights, pull, require

__all__ = [
    "CATALOGUE",
    "STUCK_TEMPERATURE",
    "CallUsage",
    "LocalModel",
    "ModelHandle",
    "ModelName",
    "PlainAdapter",
    "Price",
    "Progress",
    "Stored",
    "UsageCounter",
    "Weights",
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
