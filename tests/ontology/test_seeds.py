"""What the pack's hand-written items say holds: names exist, and patterns find something."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from pyoxigraph import NamedNode, Store

from reasoningbank.corpus import load_pack
from reasoningbank.memory import MemoryItem
from reasoningbank.sparql.shape import query_hashes

PACK = load_pack("uniprot")
SEEDS = Path(__file__).resolve().parents[2] / "ontology" / "uniprot" / "hints" / "seeds.jsonl"
ITEMS = [MemoryItem.from_json(json.loads(line)) for line in SEEDS.read_text("utf-8").splitlines()]
NAME = re.compile(r"(?<![\w<:])(\w+):([A-Za-z][\w-]*)")
EC = "<http://purl.uniprot.org/enzyme/{}>"
#: What a slot may stand for: the first that finds something will do.
VALUES = {
    "protein": [
        f"uniprotkb:{accession}"
        for accession in ("P05067", "P68871", "Q9UNH5", "Q7Z739", "Q16254", "P26367", "P00722")
    ],
    "taxon": ["taxon:9606"],
    "species": ["taxon:562"],
    "group": ["taxon:10239", EC.format("2.-.-.-")],
    "ec": [EC.format("2.7.11.1")],
    "symbol": ["APP"],
    "name": ["Homo sapiens", "Nucleus", "nucleus", "kinase activity", "ABC transporter"],
    "metal": ["zinc"],
    "branch": ["Amino-acid biosynthesis"],
    "tissue": ["liver"],
    "word": ["homodimer", "cataract"],
    "motif": ["RGD.[ST]"],
    "dalton": ["300000"],
    "kind": ["up:Signal_Peptide_Annotation", "up:Repeat_Annotation"],
    "region": ["up:Zinc_Finger_Annotation"],
    "site": ["up:Modified_Residue_Annotation"],
    "lipid": ["palmitoyl"],
    "acronym": ["3KTD"],
    "database": ["database:Pfam"],
    "year": ["2010"],
    "property": ["up:classifiedWith"],
    "level": ["up:Evidence_at_Transcript_Level_Existence"],
    "old": ["uniprotkb:Q16011"],
    "day": ["1990-01-01"],
    "number": ["8"],
}


def test_there_are_many_and_each_teaches_something_else() -> None:
    assert len(ITEMS) >= 40
    assert len({item.id for item in ITEMS}) == len({item.title for item in ITEMS}) == len(ITEMS)
    for item in ITEMS:
        assert item.src == "seed"
        assert (item.scope.pack, item.scope.endpoint) == (PACK.key, PACK.endpoint)
        assert item.provenance.task == ""
        assert item.description


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.title)
def test_its_pattern_finds_something_in_the_data(item: MemoryItem, sample: Store) -> None:
    assert query_hashes(item.pattern, tuple(PACK.prefixes.items())), "it parses, with its slots"
    if "SERVICE" in item.pattern:
        return
    slots = dict.fromkeys(re.findall(r"<<(\w+)>>", item.pattern))
    for values in itertools.product(*(VALUES[slot] for slot in slots)):
        query = item.pattern
        for slot, value in zip(slots, values, strict=True):
            query = query.replace(f"<<{slot}>>", value)
        found = sample.query(query, prefixes=dict(PACK.prefixes), use_default_graph_as_union=True)
        if bool(found) if query.startswith("ASK") else any(True for _ in found):  # type: ignore[union-attr]
            return
    pytest.fail(f"no rows: {item.pattern}")


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.title)
def test_the_names_that_it_speaks_of_exist(item: MemoryItem, pack: Path, sample: Store) -> None:
    reported = (pack / "schema.ttl").read_text("utf-8")
    rhea = (pack / "rhea.void.ttl").read_text("utf-8")
    texts = f"{item.pattern}\n{item.content}\n{' '.join(item.tags)}"
    for prefix, local in NAME.findall(texts):
        if prefix in ("xsd", "http", "https", "doi") or prefix not in PACK.prefixes:
            assert prefix in ("xsd", "http", "https", "doi"), f"{prefix}:{local}"
            continue
        iri = NamedNode(PACK.prefixes[prefix] + local)
        declared = f"{prefix}:{local} a " in reported
        in_data = any(
            next(sample.quads_for_pattern(*place, None), None) is not None
            for place in ((iri, None, None), (None, iri, None), (None, None, iri))
        )
        in_rhea = f"void:property {prefix}:{local}" in rhea
        assert declared or in_data or in_rhea, f"{prefix}:{local}"
