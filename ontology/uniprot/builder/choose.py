"""Which proteins go into the sample."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from .fasta import FastaEntry
from .terms import digest
from .variants import Variant

__all__ = ["REQUIRED", "choose_humans", "choose_organisms"]

REQUIRED = ("P05067", "P00750", "P04637", "P10636", "Q6GZX4")

# Most variants and GO terms of a protein that is not required: a few would fill the sample.
_MOST_VARIANTS = 30
_MOST_TERMS = 36


def choose_humans(
    candidates: Iterable[str],
    variants: Mapping[str, Sequence[Variant]],
    terms: Mapping[str, int],
    enzymes: Collection[str],
    named: Collection[str],
    number: int | None,
) -> list[str]:
    """Human proteins, those of which the sources tell most first.

    Args:
        candidates: Accessions with a gene, a sequence, and no whole entry.
        variants: Variants by accession.
        terms: Numbers of GO terms by accession.
        enzymes: Accessions with an EC number.
        named: Accessions whose mnemonic a source tells.
        number: How many; all if None.
    """
    found = sorted(set(candidates))
    if number is None:
        return found

    def rank(accession: str) -> tuple[bool, int, str]:
        own = variants.get(accession, ())
        diseases = any(variant.diseases for variant in own)
        tells = 2 * diseases + 3 * (accession in named) + (accession in enzymes)
        return accession not in REQUIRED, -tells, digest(accession)

    few = [
        a
        for a in found
        if a in REQUIRED
        or (len(variants.get(a, ())) <= _MOST_VARIANTS and terms.get(a, 0) <= _MOST_TERMS)
    ]
    return sorted(few, key=rank)[:number]


def choose_organisms(
    entries: Mapping[str, FastaEntry],
    taxon_of: Mapping[str, int],
    wanted: Sequence[int],
    number: int | None,
    unreviewed: int | None,
) -> list[str]:
    """Entries in FASTA form: in turn one of each organism, the wanted organisms most often.

    Args:
        entries: Candidates by accession.
        taxon_of: Taxon by accession; an entry without one is left out.
        wanted: Taxa of which up to 25 entries are taken first.
        number: How many reviewed entries; all if None.
        unreviewed: How many unreviewed entries; all if None.
    """
    known = sorted(a for a in entries if a in taxon_of)
    if number is None or unreviewed is None:
        return known
    chosen: list[str] = [a for a in REQUIRED if a in taxon_of]
    for reviewed, most in ((True, number), (False, unreviewed)):
        queues: dict[int, list[str]] = {}
        for accession in sorted(known, key=digest):
            if entries[accession].reviewed is reviewed and accession not in chosen:
                queues.setdefault(taxon_of[accession], []).append(accession)
        taken: list[str] = []
        for taxon in wanted if reviewed else ():
            taken += queues.pop(taxon, [])[:25]
        turn = 0
        while len(taken) < most and any(len(queue) > turn for queue in queues.values()):
            for taxon in sorted(queues, key=lambda t: digest(t)):
                if len(queues[taxon]) > turn:
                    taken.append(queues[taxon][turn])
            turn += 1
        chosen += taken[:most]
    return chosen
