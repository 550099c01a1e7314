"""Comments of flat-file entries (the CC lines), as annotations with facts or short texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .entry import Entry
from .evidence import Evidence, clean, read_evidence
from .terms import CORE, GO, OWL, RDFS, UNIPROT, boolean, integer, text
from .vocabularies import find_location

__all__ = ["Lookups", "add_comment", "first_sentence", "read_locations"]

_CLASS_OF_TOPIC = {
    "ACTIVITY REGULATION": "Activity_Regulation",
    "ALLERGEN": "Allergen",
    "BIOTECHNOLOGY": "Biotechnology",
    "DEVELOPMENTAL STAGE": "Developmental_Stage",
    "DISRUPTION PHENOTYPE": "Disruption_Phenotype",
    "DOMAIN": "Domain",
    "ENZYME REGULATION": "Activity_Regulation",
    "FUNCTION": "Function",
    "INDUCTION": "Induction",
    "PATHWAY": "Pathway",
    "PHARMACEUTICAL": "Pharmaceutical",
    "POLYMORPHISM": "Polymorphism",
    "PTM": "PTM",
    "SIMILARITY": "Similarity",
    "SUBUNIT": "Subunit",
    "TISSUE SPECIFICITY": "Tissue_Specificity",
    "TOXIC DOSE": "Toxic_Dose",
}
_MOST_TEXT = 200


@dataclass(frozen=True)
class Lookups:
    """What entries name and other sources number.

    Args:
        keywords: Keyword numbers by name.
        locations: Subcellular location numbers by lower-case name.
        diseases_by_mim: Disease accessions by MIM number.
        diseases_by_acronym: Disease accessions by acronym.
        location_names: Filled while reading: how entries write the names of locations.
    """

    keywords: Mapping[str, int]
    locations: Mapping[str, int]
    diseases_by_mim: Mapping[str, str]
    diseases_by_acronym: Mapping[str, str]
    location_names: dict[int, str] = field(default_factory=dict)


def first_sentence(value: str, most: int = _MOST_TEXT) -> str:
    """The first sentence, without its references, cut at a word if it is long.

    Examples:
        >>> first_sentence("Binds DNA (PubMed:1, PubMed:2). Also binds RNA.")
        'Binds DNA.'
    """
    plain = re.sub(r"\s*\((?:Ref\.\d+|PubMed:\d+)(?:, (?:Ref\.\d+|PubMed:\d+))*\)", "", value)
    sentence = re.split(r"(?<=[A-Za-z0-9)\]]{2}\.)\s+(?=[A-Z])", plain, maxsplit=1)[0].strip()
    if len(sentence) <= most:
        return sentence
    return sentence[:most].rsplit(" ", 1)[0].rstrip(",;") + "…"


def evidence_of(body: str) -> tuple[Evidence, ...]:
    """The evidence for the first sentence: what the comment ends with, else its own qualifier.

    Examples:
        >>> evidence_of("Binds JUN. Interacts with MAFB (By similarity).")
        ()
    """
    blocks = " ".join(re.findall(r"\{ECO:[^{}]*\}", body))
    own = first_sentence(re.sub(r"\s*\{ECO:[^{}]*\}", "", body), most=len(body))
    return read_evidence(blocks) or read_evidence(own)


def add_comment(entry: Entry, comment: str, lookups: Lookups, only_enzyme: str | None) -> None:
    """Writes one comment; topics that hold no facts for the sample are left out.

    Args:
        entry: The protein.
        comment: `TOPIC: text`, as Bio.SwissProt gives it.
        lookups: Numbers of locations and diseases.
        only_enzyme: The entry's EC number if it has exactly one: older catalytic activities do
            not repeat it.
    """
    topic, _, body = comment.partition(":")
    # Bio.SwissProt joins lines with a space, also where a word was divided after a hyphen.
    body = re.sub(r"(?<=[a-z0-9])- (?=[a-z])(?!and |or )", "-", body.strip())
    if topic in _CLASS_OF_TOPIC:
        sentence = first_sentence(clean(body))
        evidence = evidence_of(body)
        entry.annotation(_CLASS_OF_TOPIC[topic], comment=sentence, evidence=evidence)
    elif topic == "CATALYTIC ACTIVITY":
        _add_activity(entry, body, only_enzyme)
    elif topic == "COFACTOR":
        _add_cofactors(entry, body)
    elif topic == "SUBCELLULAR LOCATION":
        _add_locations(entry, body, lookups)
    elif topic == "DISEASE":
        _add_disease(entry, body, lookups)
    elif topic == "INTERACTION":
        _add_interactions(entry, body)
    elif topic == "ALTERNATIVE PRODUCTS":
        _add_isoforms(entry, body)
    else:
        entry.dataset.count(f"comments on {topic.lower()} left out")


def _add_activity(entry: Entry, body: str, only_enzyme: str | None) -> None:
    reaction = re.search(r"Reaction=(.*?);(?: |$)", body)
    label = clean(reaction[1] if reaction else body).rstrip(".")
    number = re.search(r"\bEC=([\d.n-]+\d);?", body)
    ec = number[1] if number else only_enzyme
    evidence = read_evidence(body.replace("Evidence=", ""))
    annotation = entry.annotation("Catalytic_Activity", key=label, evidence=evidence)
    activity = entry.node("activity-", label)
    entry.graph.add(annotation, CORE["catalyticActivity"], activity)
    entry.graph.type(activity, CORE["Catalytic_Activity"])
    entry.graph.add(activity, RDFS["label"], text(label))
    if ec:
        entry.graph.add(activity, CORE["enzymeClass"], UNIPROT[f"enzyme/{ec}"])
        entry.dataset.enzymes.add(ec)
    if rhea := re.search(r"Rhea:RHEA:(\d+)", body):
        reaction_iri = f"http://rdf.rhea-db.org/{rhea[1]}"
        entry.graph.add(activity, CORE["catalyzedReaction"], type(activity)(reaction_iri))


def _add_cofactors(entry: Entry, body: str) -> None:
    for item in re.split(r"(?=Name=)", body):
        name = re.match(r"Name=(.*?);", item)
        chebi = re.search(r"ChEBI:CHEBI:(\d+)", item)
        if name and chebi:
            evidence = read_evidence(item.replace("Evidence=", ""))
            node = entry.annotation("Cofactor", key=name[1], comment=name[1], evidence=evidence)
            entry.graph.add(node, CORE["cofactor"], GO[f"CHEBI_{chebi[1]}"])
    if "Name=" not in body:
        sentence = first_sentence(clean(body))
        entry.annotation("Cofactor", comment=sentence, evidence=read_evidence(body))


def read_locations(body: str) -> list[str]:
    """The locations that a comment names, each with its evidence and topology still attached.

    Examples:
        >>> read_locations("[Isoform 2]: Nucleus {ECO:0000305}. Membrane; Peripheral. Note=Moves.")
        ['Nucleus {ECO:0000305}', 'Membrane; Peripheral']
    """
    facts = body.split("Note=", 1)[0]
    facts = re.sub(r"(?:^|(?<=\. ))(?:\[[^\]]+\]|[A-Z][^.;:{]{1,60}): ", "", facts)
    return [part.strip() for part in re.split(r"\.(?:\s+|$)", facts) if part.strip()]


def _add_locations(entry: Entry, body: str, lookups: Lookups) -> None:
    for place in read_locations(body):
        name = clean(place.split(";", 1)[0])
        number = find_location(name, lookups.locations)
        if number is None:
            entry.dataset.count("subcellular locations without a known number dropped")
            continue
        evidence = read_evidence(place)
        node = entry.annotation("Subcellular_Location", key=name, evidence=evidence)
        where = entry.node("location-", name)
        entry.graph.add(node, CORE["locatedIn"], where)
        entry.graph.add(where, CORE["cellularComponent"], UNIPROT[f"locations/{number}"])
        entry.dataset.locations.add(number)
        lookups.location_names.setdefault(number, name)


def _add_disease(entry: Entry, body: str, lookups: Lookups) -> None:
    match = re.match(r"(.*?) \(([^()]+)\) \[MIM:(\d+)\]", body)
    found = None
    if match:
        found = lookups.diseases_by_mim.get(match[3]) or lookups.diseases_by_acronym.get(match[2])
    if not found:
        entry.dataset.count("disease comments without a known disease dropped")
        return
    add_disease(entry, found, read_evidence(body))


def add_disease(entry: Entry, disease: str, evidence: Sequence[Evidence] = ()) -> None:
    """Says that the protein is involved in a disease, by its accession as `DI-03832`."""
    node = entry.annotation("Disease", key=disease, evidence=evidence)
    entry.graph.add(node, CORE["disease"], UNIPROT[f"diseases/{int(disease[3:])}"])
    entry.dataset.diseases.add(disease)


def _add_interactions(entry: Entry, body: str) -> None:
    pattern = (
        r"(?:(?P<own>[A-Z0-9-]{6,12}); )?(?P<other>Self|[A-Z0-9-]{6,12})"
        r"(?:: ?(?P<label>[^;()]*?))?\s*(?P<xeno>\(xeno\)|; Xeno)?"
        r";(?: Xeno;)? NbExp=(?P<times>\d+); IntAct=(?P<a>EBI-\d+), (?P<b>EBI-\d+);"
    )
    for match in re.finditer(pattern, body):
        other = match["other"].split("-")[0]
        itself = other in ("Self", entry.accession)
        node = UNIPROT[f"intact/{match['a']}-{match['b']}"]
        kind = "Self_Interaction" if itself else "Non_Self_Interaction"
        entry.graph.add(entry.iri, CORE["interaction"], node)
        entry.graph.type(node, CORE[kind])
        entry.graph.add(node, CORE["experiments"], integer(int(match["times"])))
        entry.graph.add(node, CORE["xeno"], boolean("xeno" in match[0].lower()))
        partner = entry.iri if itself else UNIPROT[f"uniprot/{other}"]
        label = (match["label"] or "").strip()
        for key, protein, name in ((match["a"], entry.iri, ""), (match["b"], partner, label)):
            participant = UNIPROT[f"intact/{key}"]
            entry.graph.add(node, CORE["participant"], participant)
            entry.graph.type(participant, CORE["Participant"])
            entry.graph.add(participant, OWL["sameAs"], protein)
            if name and name != "-":
                entry.graph.add(participant, RDFS["label"], text(name))


def _add_isoforms(entry: Entry, body: str) -> None:
    for item in re.split(r"(?=\bName=)", body):
        key = re.search(r"IsoId=([A-Z0-9]+-\d+)", item)
        name = re.match(r"Name=(.*?);", item)
        what = re.search(r"Sequence=([^;]*);", item)
        if not key or not name or not key[1].startswith(f"{entry.accession}-"):
            continue
        isoform = UNIPROT[f"isoforms/{key[1]}"]
        entry.graph.add(entry.iri, CORE["sequence"], isoform)
        entry.graph.add(isoform, CORE["name"], text(clean(name[1])))
        if what and what[1].startswith("VSP_"):
            entry.graph.type(isoform, CORE["Modified_Sequence"])
            entry.graph.add(isoform, CORE["basedOn"], entry.sequence)
            for change in re.findall(r"VSP_\d+", what[1]):
                entry.graph.add(isoform, CORE["modification"], UNIPROT[f"annotation/{change}"])
        elif isoform != entry.sequence:
            entry.graph.type(isoform, CORE["External_Sequence"])
