"""`reasoningbank doctor`: what a machine lacks, and how to get it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from reasoningbank.agents.sandbox import Sandbox, deno_executable, pyodide_cached
from reasoningbank.cli.output import print_json, print_table
from reasoningbank.corpus import known_packs, load_pack, open_endpoint
from reasoningbank.errors import ReasoningBankError, SetupError
from reasoningbank.lm import list_weights
from reasoningbank.tools import SPARQLTools

__all__ = ["doctor"]


@dataclass(frozen=True)
class Check:
    """One thing looked at: whether it is there, what was found, how to get it."""

    part: str
    ok: bool
    found: str
    hint: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Fetch Pyodide for the sandbox if it is missing.")
    ] = False,
) -> None:
    """Say what is missing on this machine and how to get it; exit status 1 if anything is.

    Example: reasoningbank doctor
    """
    looks: list[tuple[str, Callable[[], Check]]] = [
        ("Python", _python),
        ("memory", _memory),
        ("Deno", _deno),
        ("Pyodide", lambda: _pyodide(fix)),
        ("model weights", _weights),
        ("packs", _packs),
        ("embedded endpoint", _endpoint),
    ]
    checks = []
    for part, look in looks:
        try:
            checks.append(look())
        except ReasoningBankError as error:
            checks.append(Check(part, False, error.what, error.hint))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        rows = [(c.part, "ok" if c.ok else "MISSING", c.found, c.hint) for c in checks]
        print_table(("part", "state", "found", "what to do"), rows)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _python() -> Check:
    ok = sys.version_info >= (3, 11)
    return Check("Python", ok, platform.python_version(), "" if ok else "install Python 3.11")


def _memory() -> Check:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    ok = pages > 3.5e9
    hint = "" if ok else "the local model needs about 3 GB; use local-small or a hosted model"
    return Check("memory", ok, f"{pages / 1e9:.1f} GB", hint)


def _deno() -> Check:
    return Check("Deno", True, deno_executable())


def _pyodide(fix: bool) -> Check:
    if fix and not pyodide_cached():
        sandbox = Sandbox()
        try:
            sandbox.start()
        finally:
            sandbox.shutdown()
    if pyodide_cached():
        return Check("Pyodide", True, "in Deno's cache")
    raise SetupError("not in Deno's cache", hint="run: reasoningbank doctor --fix")


def _weights() -> Check:
    local = next(stored for stored in list_weights() if stored.weights.name == "local")
    ok = local.state in {"verified", "unverified"}
    hint = "" if ok else "run: reasoningbank lm pull local (or use a hosted model with --lm)"
    return Check("model weights", ok, f"{local.weights.title}: {local.state}", hint)


def _packs() -> Check:
    names = sorted(known_packs())
    hint = "" if names else "run from the repository, or reinstall the package"
    return Check("packs", bool(names), ", ".join(names) or "none", hint)


def _endpoint() -> Check:
    with open_endpoint(load_pack("uniprot")) as config:
        tools = SPARQLTools(config)
        count = tools.sparql_count("SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } }")
    return Check("embedded endpoint", True, f"{config.name}: {count['count']:,} quads")
