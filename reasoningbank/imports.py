"""Objects that a user names by their import path, ``package.module:name``."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from reasoningbank.errors import UsageError

_PATH = re.compile(r"(?!local:)[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def is_import_path(name: str) -> bool:
    """Return whether a name is an import path, not the name of a model or of a built-in."""
    return _PATH.fullmatch(name) is not None


def imported(path: str, where: str = "") -> Any:
    """Return the object at an import path; modules of the current folder are found too.

    Raises:
        UsageError: If there is no such module or object, or the module fails.

    Examples:
        >>> imported("json:lods")
        Traceback (most recent call last):
        reasoningbank.errors.UsageError: json has no 'lods'; did you mean loads?
    """
    module, _, name = path.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        # A console script has its own folder there. Installed packages come first.
        sys.path.append(here)
    hint = ""
    try:
        found = importlib.import_module(module)
        if hasattr(found, name):
            return getattr(found, name)
        near = difflib.get_close_matches(name, dir(found), n=1)
        what, hint = f"{module} has no {name!r}", f"did you mean {near[0]}?" if near else ""
    except ModuleNotFoundError as error:
        missing = error.name or module
        needed = "" if f"{module}.".startswith(f"{missing}.") else f", which {module} imports"
        what = f"there is no module {missing!r}{needed}"
        hint = "it is looked for in the current folder and among installed packages"
    except (Exception, SystemExit) as error:  # a module can raise anything, and a script ends
        what = f"{module} fails: {one_line(error)}"
    raise UsageError(what, where=where, hint=hint, code="not-importable")


def function_of(path: str, arguments: int, what: str, where: str = "") -> Any:
    """Return the function at an import path, which `what` describes and takes so many arguments."""
    found = imported(path, where)
    try:
        inspect.signature(found).bind(*range(arguments))
    except (TypeError, ValueError) as error:
        raise wrong_type(path, what, where, str(error)) from None
    if inspect.iscoroutinefunction(found):
        raise wrong_type(path, what, where, "it is async")
    return found


def source_files(path: str) -> list[Path]:
    """Return the files of the module at an import path, and of the one that defines the object."""
    modules = {path.partition(":")[0], getattr(imported(path), "__module__", "")}
    files = (getattr(sys.modules.get(name), "__file__", None) or "" for name in modules)
    # A notebook has no file, and a module in a zip archive none of its own.
    return [Path(file) for file in files if Path(file).is_file()]


def wrong_type(path: str, what: str, where: str = "", hint: str = "") -> UsageError:
    """Return the error of an object that is not what its place needs."""
    return UsageError(f"{path} is not {what}", where=where, hint=hint, code="wrong-type")


def one_line(error: BaseException) -> str:
    """Return any exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
