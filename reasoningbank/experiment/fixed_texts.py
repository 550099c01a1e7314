"""The texts that stand in a module's code, apart from what only its readers see."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

__all__ = ["fixed_texts", "texts_of"]

_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def texts_of(room: ModuleType) -> list[str]:
    """Return the texts of a module, or of all modules of a package, sorted.

    Args:
        room: A module or a package.
    """
    names = [module.name for module in pkgutil.iter_modules(getattr(room, "__path__", ()))]
    modules = [importlib.import_module(f"{room.__name__}.{name}") for name in names]
    sources = [inspect.getsource(module) for module in modules or [room]]
    return sorted({text for source in sources for text in fixed_texts(source)})


def fixed_texts(source: str) -> Iterator[str]:
    """Yield the strings in a module's code; comments, docstrings and ``__all__`` are none.

    The fixed parts of f-strings are among them.

    Examples:
        >>> list(fixed_texts('def head(n): \"\"\"Say.\"\"\"; return f"Hint {n}:"  # and no more'))
        ['Hint ', ':']
    """
    tree = ast.parse(source)
    apart: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node) is not None:
            apart.update(ast.walk(node.body[0]))
        elif isinstance(node, ast.Assign) and _names_what_is_public(node):
            apart.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in apart:
            yield node.value


def _names_what_is_public(node: ast.Assign) -> bool:
    return any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
