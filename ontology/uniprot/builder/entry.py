"""One protein entry that is being written: names, links with evidence, annotations, ranges."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import Literal, NamedNode

from .evidence import Evidence, is_manual
from .terms import (
    CORE,
    FALDO,
    GO,
    RDF,
    RDFS,
    SKOS,
    UNIPROT,
    Dataset,
    boolean,
    digest,
    integer,
    text,
)

__all__ = ["Entry"]

_EXISTENCE = {
    1: CORE["Evidence_at_Protein_Level_Existence"],
    2: CORE["Evidence_at_Transcript_Level_Existence"],
    3: CORE["Inferred_from_Homology_Existence"],
    4: CORE["Predicted_Existence"],
    5: CORE["Uncertain_Existence"],
}


class Entry:
    """Writes the facts of one UniProtKB entry in UniProt's own shape.

    Args:
        dataset: Where the facts go.
        accession: Primary accession, as `P05067`.
    """

    def __init__(self, dataset: Dataset, accession: str) -> None:
        self.dataset = dataset
        self.accession = accession
        self.iri = UNIPROT[f"uniprot/{accession}"]
        self.sequence = UNIPROT[f"isoforms/{accession}-1"]
        self.graph = dataset.graph("uniprot")

    def node(self, kind: str, *parts: object) -> NamedNode:
        """A node inside the entry, named after what it says."""
        return UNIPROT[f"uniprot/{self.accession}#{kind}{digest(*parts)}"]

    def head(self, mnemonic: str, *, reviewed: bool, taxon: int, existence: int | None) -> None:
        """What every entry has: class, mnemonic, status, organism, evidence for existence."""
        self.graph.type(self.iri, CORE["Protein"])
        if mnemonic:
            self.graph.add(self.iri, CORE["mnemonic"], text(mnemonic))
        self.graph.add(self.iri, CORE["reviewed"], boolean(reviewed))
        self.graph.add(self.iri, CORE["organism"], UNIPROT[f"taxonomy/{taxon}"])
        self.dataset.taxa.add(taxon)
        if existence:
            self.graph.add(self.iri, CORE["existence"], _EXISTENCE[existence])

    def link(
        self, predicate: NamedNode, value: NamedNode | Literal, evidence: Sequence[Evidence] = ()
    ) -> None:
        """A triple about the protein; its evidence hangs on a reified statement."""
        self.graph.add(self.iri, predicate, value)
        self.attribute(self.iri, predicate, value, evidence)

    def attribute(
        self,
        subject: NamedNode,
        predicate: NamedNode,
        value: NamedNode | Literal,
        evidence: Sequence[Evidence],
    ) -> None:
        """Reifies a triple and attributes it to its evidence."""
        if not evidence:
            return
        statement = self.node("_", subject.value, predicate.value, str(value))
        self.graph.type(statement, RDF["Statement"])
        self.graph.add(statement, RDF["subject"], subject)
        self.graph.add(statement, RDF["predicate"], predicate)
        self.graph.add(statement, RDF["object"], value)
        for each in evidence:
            self.graph.add(statement, CORE["attribution"], self._attribution(each))

    def _attribution(self, evidence: Evidence) -> NamedNode:
        source = evidence.source.value if evidence.source else ""
        node = self.node("attribution-", evidence.code, source)
        self.graph.type(node, CORE["Attribution"])
        self.graph.add(node, CORE["evidence"], GO[evidence.code.replace(":", "_")])
        self.graph.add(node, CORE["manual"], boolean(is_manual(evidence.code)))
        if evidence.source:
            self.graph.add(node, CORE["source"], evidence.source)
        self.graph.add(self.iri, CORE["attribution"], node)
        return node

    def name(
        self,
        predicate: NamedNode,
        parts: Sequence[tuple[str, str, Sequence[Evidence]]],
        owner: NamedNode | None = None,
    ) -> None:
        """A structured name: `(fullName | shortName | ecName, value, evidence)` parts."""
        owner = owner or self.iri
        node = self.node("SIP", owner.value, predicate.value, *[part[:2] for part in parts])
        self.graph.type(node, CORE["Structured_Name"])
        self.graph.add(owner, predicate, node)
        for kind, value, evidence in parts:
            self.graph.add(node, CORE[kind], text(value))
            self.attribute(node, CORE[kind], text(value), evidence)

    def gene(
        self,
        name: str | None,
        alternatives: Sequence[str] = (),
        loci: Sequence[str] = (),
        frames: Sequence[str] = (),
    ) -> None:
        """The gene that encodes the protein, with the names it has."""
        names = [n for n in (name, *alternatives, *loci, *frames) if n]
        if not names:
            return
        node = self.node("gene-", names[0])
        self.graph.type(node, CORE["Gene"])
        self.graph.add(self.iri, CORE["encodedBy"], node)
        if name:
            self.graph.add(node, SKOS["prefLabel"], text(name))
        for predicate, values in (
            (SKOS["altLabel"], alternatives),
            (CORE["locusName"], loci),
            (CORE["orfName"], frames),
        ):
            for value in values:
                self.graph.add(node, predicate, text(value))

    def enzyme(self, number: str, evidence: Sequence[Evidence] = ()) -> None:
        """The EC number of what the protein catalyses."""
        self.link(CORE["enzyme"], UNIPROT[f"enzyme/{number}"], evidence)
        self.dataset.enzymes.add(number)

    def go(self, term: str, evidence: Sequence[Evidence] = ()) -> None:
        """A GO term, as `GO:0016301`."""
        self.link(CORE["classifiedWith"], GO[term.replace(":", "_")], evidence)
        self.dataset.go.add(term)

    def reference(
        self, database: str, iri: NamedNode, kind: NamedNode = CORE["Resource"], comment: str = ""
    ) -> None:
        """A link to an entry of another database."""
        self.graph.add(self.iri, RDFS["seeAlso"], iri)
        self.graph.type(iri, kind)
        self.graph.add(iri, CORE["database"], UNIPROT[f"database/{database}"])
        if comment:
            self.graph.add(iri, RDFS["comment"], text(comment))
        self.dataset.databases.add(database)

    def annotation(
        self,
        kind: str,
        *,
        key: object = "",
        iri: NamedNode | None = None,
        comment: str = "",
        evidence: Sequence[Evidence] = (),
        extent: tuple[int, int] | None = None,
    ) -> NamedNode:
        """An annotation of the class `up:<kind>_Annotation`, and its place if it has one."""
        node = iri or self.node("SIP", kind, key, comment, extent)
        self.graph.type(node, CORE[f"{kind}_Annotation"])
        self.link(CORE["annotation"], node, evidence)
        if comment:
            self.graph.add(node, RDFS["comment"], text(comment))
        if extent:
            self.graph.add(node, CORE["range"], self.range(*extent))
        return node

    def range(self, begin: int, end: int) -> NamedNode:
        """A FALDO region on the canonical sequence; positions count from 1, ends included."""
        region = UNIPROT[f"range/{self.accession}tt{begin}tt{end}"]
        self.graph.type(region, FALDO["Region"])
        for predicate, position in (("begin", begin), ("end", end)):
            node = UNIPROT[f"position/{self.accession}tt{position}"]
            self.graph.add(region, FALDO[predicate], node)
            self.graph.type(node, FALDO["ExactPosition"])
            self.graph.add(node, FALDO["position"], integer(position))
            self.graph.add(node, FALDO["reference"], self.sequence)
        return region
