"""The operations; importing this package registers them."""

from reasoningbank.algebra.builtin import control, documents, endpoints, strings

__all__ = ["control", "documents", "endpoints", "strings"]
