"""Where to begin (`demo`, `init`, `packs`), what is needed (`doctor`), and local models (`lm`)."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn
from typer import Argument, Exit, Option, Typer

from reasoningbank.agents.sandbox.interpreter import Sandbox, deno_executable, pyodide_cached
from reasoningbank.cache import write_bytes_atomically
from reasoningbank.cli import output
from reasoningbank.cli.options import AsJson, Lm
from reasoningbank.corpus import known_packs, load_pack, open_endpoint
from reasoningbank.corpus.new_pack import new_pack
from reasoningbank.errors import ReasoningBankError, UsageError, need_package
from reasoningbank.lm import PullProgress, list_weights, open_lm, parse_name
from reasoningbank.lm import pull as pull_weights
from reasoningbank.lm.models import SERVER_VARIABLE
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools

app = Typer(help="Download, list and serve local models.", no_args_is_help=True)


#: Whether a requirement is met, what was found, and what to do if it is not.
Look = tuple[bool, str, str]


def doctor(
    as_json: AsJson = False,
    fix: Annotated[bool, Option("--fix", help="Fetch Pyodide if it is missing.")] = False,
) -> None:
    """Check what this machine needs and how to get it; exit status 1 if anything is missing.

    Example: reasoningbank doctor
    """
    looks: dict[str, Callable[[], Look]] = {
        "Python": lambda: (True, platform.python_version(), ""),
        "memory": _memory,
        "Deno": lambda: (True, deno_executable(), ""),
        "Pyodide": lambda: _pyodide(fix),
        "model weights": _weights,
        "packs": _packs,
        "embedded endpoint": _endpoint,
    }
    checks = []
    for part, look in looks.items():
        try:
            ok, found, hint = look()
        except ReasoningBankError as error:
            ok, found, hint = False, error.what, error.hint
        checks.append({"part": part, "ok": ok, "found": found, "hint": "" if ok else hint})
    rows = [(c["part"], "ok" if c["ok"] else "MISSING", c["found"], c["hint"]) for c in checks]
    output.print_rows(("part", "state", "found", "what to do"), rows, as_json, checks)
    if not all(check["ok"] for check in checks):
        raise Exit(1)


@app.command()
def pull(
    name: Annotated[str, Argument(help="local or local-small.")] = "local",
) -> None:
    """Download a model's weights into the cache, once; a broken download resumes.

    Example: reasoningbank lm pull local
    """
    with output.progress_bar(BarColumn(), DownloadColumn(), TimeRemainingColumn()) as bar:
        row = bar.add_task("looking", total=None)
        step = ""

        def follow(now: PullProgress) -> None:
            nonlocal step
            if now.note:
                output.notice(now.note)
                return
            if now.step != step:
                step = now.step
                if not output.progress_console.is_terminal:
                    output.notice(f"{step} …")
            bar.update(row, description=now.step, completed=now.done, total=now.total or None)

        path = pull_weights(name, progress=follow)
    output.say(str(path))


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the models that can be downloaded, and what the cache holds.

    Example: reasoningbank lm list
    """
    headers = ("name", "model", "licence", "megabytes", "state", "path")
    rows = [
        (one.name, one.title, one.license, round(one.size / 1e6), stored.state, str(stored.path))
        for stored in list_weights()
        for one in (stored.weights,)
    ]
    output.print_rows(headers, rows, as_json)


@app.command()
def serve(
    name: Annotated[str, Argument(help="local, local-small or local:/path.gguf.")] = "local",
) -> None:
    """Serve a local model on loopback with an OpenAI-compatible API, until Ctrl-C.

    This starts a new server even if REASONINGBANK_LM_SERVER names another one.

    Example: reasoningbank lm serve local
    """
    if not parse_name(name).is_local:
        raise UsageError("not a local model", where=name, hint="serve local or local:/path.gguf")
    stop = output.stop_event()
    with open_lm(name, own=True) as model:
        output.say(model.api_base)
        if elsewhere := os.environ.get(SERVER_VARIABLE):
            output.notice(f"{SERVER_VARIABLE} names another server: {elsewhere}")
        output.serve_until(stop)


def _memory() -> Look:
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    hint = "the local model needs about 3 GB; use local-small or a hosted model"
    return size > 3.5e9, f"{size / 1e9:.1f} GB", hint


def _pyodide(fix: bool) -> Look:
    if fix and not pyodide_cached():
        sandbox = Sandbox()
        try:
            sandbox.start()
        finally:
            sandbox.shutdown()
    ok = pyodide_cached()
    found = "in Deno's cache" if ok else "not in Deno's cache"
    return ok, found, "run: reasoningbank doctor --fix"


def _weights() -> Look:
    need_package("xllamacpp", "local")
    local = next(stored for stored in list_weights() if stored.weights.name == "local")
    hint = "run: reasoningbank lm pull local (or use a hosted model with --lm)"
    ok = local.state in {"verified", "unverified"}
    return ok, f"{local.weights.title}: {local.state}", hint


def _packs() -> Look:
    names = ", ".join(sorted(known_packs()))
    hint = "run from the repository, or reinstall the package"
    return bool(names), names or "none", hint


def _endpoint() -> Look:
    with open_endpoint(load_pack("uniprot")) as config:
        tools = SPARQLTools(config)
        count = tools.sparql_count("SELECT (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } }")
    return True, f"{config.name}: {count['count']:,} quads", ""


# -- where to begin ------------------------------------------------------------------------------


def demo(lm: Lm = "local") -> None:
    """Ask ten questions without and with a memory: fetch the model, run, and write the report.

    The same command resumes it. Records and report are written to runs/.

    Example: reasoningbank demo
    """
    from reasoningbank.cli import runs  # slow to load

    model = parse_name(lm)
    for package in ("pandas", "matplotlib", *(("xllamacpp",) if model.is_local else ())):
        need_package(package, "demo")
    if model.text == "local":
        pull()
        doctor(fix=True)
    own = None if model.text == "local" else lm
    runs.run(Path("experiments/uniprot_demo.toml"), lm=own)
    runs.report(runs.default_folder("uniprot_demo", own))


def init(
    name: Annotated[str, Argument(help="The pack's name, e.g. my_pack.")],
    endpoint: Annotated[str, Option(help="Address of a SPARQL endpoint.", show_default=False)],
) -> None:
    """Begin a pack for an endpoint: prefixes, classes, up to five examples and an experiment.

    Writes ontology/NAME/ and experiments/NAME.toml in the current folder.

    Example: reasoningbank init my_pack --endpoint https://example.org/sparql
    """
    for path, text in new_pack(name, EndpointConfig(endpoint)).items():
        write_bytes_atomically(path, text.encode())
        output.say(str(path))
    output.notice(f"next: rewrite the examples; reasoningbank tasks validate {name} --run")


def packs(as_json: AsJson = False) -> None:
    """List the packs that can be named, and their sets of examples.

    Example: reasoningbank packs
    """
    headers = ("name", "sets", "endpoint", "data", "languages", "licence", "folder")
    rows = []
    for name in sorted(known_packs()):
        pack = load_pack(name)
        sets = [f"{name}-{one}" for one in ("test", "instances") if getattr(pack, one)]
        data = "embedded" if pack.data else "remote"
        languages = " ".join(pack.languages)
        licence, folder = pack.licence.partition(" ")[0], str(pack.root)
        rows.append((name, " ".join(sets), pack.endpoint, data, languages, licence, folder))
    output.print_rows(headers, rows, as_json)
