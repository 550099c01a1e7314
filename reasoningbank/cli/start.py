"""Where to begin: `demo`, `init` and `packs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from reasoningbank.cli import runs, setup
from reasoningbank.cli.options import AsJson
from reasoningbank.cli.output import notice, print_rows, say
from reasoningbank.corpus import known_packs, load_pack
from reasoningbank.corpus.new_pack import new_pack
from reasoningbank.errors import RecordError, need_package
from reasoningbank.lm import parse_name
from reasoningbank.sparql import EndpointConfig

DEMO = Path("experiments/uniprot_demo.toml")


def demo(
    lm: Annotated[str, Option(help="A model: local, or a LiteLLM name.")] = "local",
) -> None:
    """Ask ten questions without and with a memory: fetch the model, run, and write the report.

    The same command resumes it. Records and report are written to runs/.

    Example: reasoningbank demo
    """
    model = parse_name(lm)
    for package in ("pandas", "matplotlib", *(("xllamacpp",) if model.is_local else ())):
        need_package(package, "demo")
    if model.text == "local":
        setup.pull()
        setup.doctor(fix=True)
    own = None if model.text == "local" else lm
    runs.run(DEMO, lm=own)
    runs.report(runs.default_folder("uniprot_demo", own))


def init(
    name: Annotated[str, Argument(help="The pack's name, e.g. my_pack.")],
    endpoint: Annotated[str, Option(help="Address of a SPARQL endpoint.", show_default=False)],
) -> None:
    """Begin a pack for an endpoint: prefixes, classes, five examples and an experiment.

    Writes ontology/NAME/ and experiments/NAME.toml in the current folder.

    Example: reasoningbank init my_pack --endpoint https://example.org/sparql
    """
    files = new_pack(name, EndpointConfig(endpoint))
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise RecordError(f"cannot be written ({error.strerror})", where=str(path)) from error
        say(str(path))
    notice(f"next: rewrite the examples; reasoningbank tasks validate {name} --run")


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
    print_rows(headers, rows, as_json)
