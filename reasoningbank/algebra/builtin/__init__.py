"""The operations; importing this package registers them with their examples."""

import json
from pathlib import Path

from reasoningbank.algebra.builtin import control, documents, endpoints, strings
from reasoningbank.algebra.operation import Example, operations

__all__ = ["control", "documents", "endpoints", "strings"]

_EXAMPLES = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))
for _name, _examples in _EXAMPLES.items():
    operations()[_name].examples = tuple(Example(**_one) for _one in _examples)
