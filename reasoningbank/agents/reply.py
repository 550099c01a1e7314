"""Taking a query out of what a model wrote; the reading itself is the model room's."""

from reasoningbank.lm.reply import query_in

__all__ = ["query_in"]
