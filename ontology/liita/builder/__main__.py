"""`python -m ontology.liita.builder`: builds the pack's data from its tables."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from ontology.uniprot.builder.statistics import describe
from ontology.uniprot.builder.terms import Fact, write_gzip

from .complit import complit_facts
from .liita import liita_facts
from .names import DIALECTS
from .tables import TABLES, TableError
from .words import Words, read_words

PACK = TABLES.parent


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ontology.liita.builder",
        description="Builds the embedded LiITA sample from the tables beside the builder.",
        epilog="example: python -m ontology.liita.builder --out build/liita",
    )
    parser.add_argument("--tables", type=Path, default=TABLES, help="folder with the tables")
    parser.add_argument(
        "--out", type=Path, default=PACK, help="folder for data/ and statistics (default: the pack)"
    )
    options = parser.parse_args(arguments)
    try:
        words = read_words(options.tables, tuple(dialect.key for dialect in DIALECTS))
        liita, complit = liita_facts(words), complit_facts(words)
    except (OSError, TableError) as error:
        print(error, file=sys.stderr)
        return 1
    pack = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))
    (other,) = pack["federated"]
    prefixes = pack["prefixes"]
    _write(options.out, liita, {**pack, "url": pack["endpoint"], "name": pack["title"]}, prefixes)
    _write(options.out, complit, other, prefixes)
    for what, count in _tally(words):
        print(f"{count:>8,}  {what}")
    return 0


def _write(
    out: Path, facts: set[Fact], told: Mapping[str, Any], prefixes: Mapping[str, str]
) -> None:
    """Writes the files that `pack.toml` names for an endpoint, and says what they hold."""
    lines = sorted(map(str, facts), key=lambda line: (line[line.rindex("<") :], line))
    size = write_gzip(out / told["data"][0], lines)
    graph = NamedNode(told["void_graph"])
    labels = told["label_properties"]
    void = describe(facts, told["url"], told["name"], labels, graph, prefixes)
    (out / told["void"]).write_bytes(void)
    print(f"{len(lines):>8,}  quads in {told['data'][0]}, {size / 1e3:.0f} kB compressed")


def _tally(words: Words) -> list[tuple[str, int]]:
    kinds = Counter(relation.kind for relation in words.relations)
    return [
        ("lemmas", len(words.lemmas)),
        ("lemmas with emotions", sum(bool(each.emotions) for each in words.affects)),
        ("lemmas with polarity", sum(each.polarity is not None for each in words.affects)),
        *((f"translations into {name}", len(each)) for name, each in words.dialects.items()),
        ("senses", sum(map(len, words.senses.values()))),
        *((f"relations: {kind}", count) for kind, count in sorted(kinds.items())),
    ]


if __name__ == "__main__":
    sys.exit(main())
