"""Agents that learn to answer questions over SPARQL knowledge graphs, and the proof of it.

The public API: everything a notebook needs is importable from here, and loads when it is used.
`docs/api.md` has a runnable example of each name.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from reasoningbank.version import __version__ as __version__

_STUB = Path(__file__).with_suffix(".pyi").read_text("utf-8")
#: Public name → its module.
_HOMES = {name: at for at, name in re.findall(r"from (\S+) import \(?\s*([A-Za-z]\w*)", _STUB)}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        from reasoningbank.errors import missing_package

        raise missing_package(error) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
