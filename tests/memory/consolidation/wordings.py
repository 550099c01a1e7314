"""Labelled wordings: a lesson, the same lesson in other words, another lesson of the same names.

The threshold of nearness was set on these. All are about the schema alone, none about a task.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["WORDINGS", "Wording"]


class Wording(NamedTuple):
    """Three texts that use the same names: title, description and content each."""

    lesson: tuple[str, str, str]
    reworded: tuple[str, str, str]
    other: tuple[str, str, str]


WORDINGS = (
    Wording(
        (
            "Mass is on the sequence",
            "Questions about the mass of a protein",
            "Go from the protein by up:sequence to the sequence, and read up:mass there.",
        ),
        (
            "up:mass belongs to sequences",
            "The mass of proteins is asked for",
            "Follow up:sequence from the protein first; up:mass is read from the sequence.",
        ),
        (
            "Masses are plain numbers",
            "Questions that compare the mass of a protein",
            "Compare up:mass of up:sequence in a FILTER without quotes: it is an integer.",
        ),
    ),
    Wording(
        (
            "Diseases by annotation",
            "Which diseases is a protein involved in",
            "Use up:annotation of class up:Disease_Annotation, then up:disease.",
        ),
        (
            "Take diseases from annotations",
            "A protein's involvement in diseases",
            "From the protein to its up:annotation, which is a up:Disease_Annotation; its "
            "up:disease is the disease.",
        ),
        (
            "Not every disease annotation names a disease",
            "Counting proteins with disease annotations",
            "Put up:disease of a up:Disease_Annotation into OPTIONAL: some up:annotation have a "
            "comment only.",
        ),
    ),
    Wording(
        (
            "Names have two steps",
            "The name of a protein is wanted",
            "Read up:recommendedName, then up:fullName; rdfs:label is not there.",
        ),
        (
            "A protein's name takes two steps",
            "Questions for the names of proteins",
            "There is no rdfs:label: take up:recommendedName and from it up:fullName.",
        ),
        (
            "Search names without regard to case",
            "Find proteins by part of a name",
            "FILTER(CONTAINS(LCASE(?n), …)) on up:fullName of up:recommendedName, since "
            "rdfs:label is not indexed.",
        ),
    ),
    Wording(
        (
            "Organism is a resource",
            "Proteins of an organism",
            "up:organism leads to the taxon itself; compare it with the taxon's IRI.",
        ),
        (
            "up:organism points to a taxon",
            "Find the proteins of one organism",
            "The value of up:organism is a taxon's IRI and has to be compared as such.",
        ),
        (
            "Taxa below an organism count too",
            "Proteins of a whole lineage",
            "Add rdfs:subClassOf after up:organism, or strains are left out.",
        ),
    ),
    Wording(
        (
            "Reviewed is a boolean",
            "Only reviewed entries are asked for",
            "Write up:reviewed true, without quotes.\nSign: no rows with quotes.",
        ),
        (
            "up:reviewed takes true",
            "Questions for reviewed entries alone",
            'Write true behind up:reviewed and not "true".\nSign: with quotes nothing is found.',
        ),
        (
            "Leave reviewed out where it is not asked",
            "Questions that do not say which entries",
            "Do not add up:reviewed true: it takes away most of the rows.\nSign: too few rows.",
        ),
    ),
    Wording(
        (
            "Genes have labels",
            "The gene name of a protein",
            "up:encodedBy leads to the gene, skos:prefLabel is its name.",
        ),
        (
            "Gene names by skos:prefLabel",
            "A protein's gene is to be named",
            "Take the gene by up:encodedBy, and its name by skos:prefLabel.",
        ),
        (
            "Several genes for a protein",
            "How many genes encode a protein",
            "Count DISTINCT values of up:encodedBy, not of skos:prefLabel, which may be equal.",
        ),
    ),
    Wording(
        (
            "EC numbers are resources",
            "Proteins with an enzyme class",
            "Compare up:enzyme with the class's IRI in ec:, not with a string.",
        ),
        (
            "up:enzyme takes an IRI",
            "Find proteins by their EC number",
            "The EC number behind up:enzyme is an IRI of ec:, never a text.",
        ),
        (
            "Enzymes stand on domains too",
            "All EC numbers of a protein",
            "up:enzyme of ec: is also at up:domain and up:component: take the union.",
        ),
    ),
    Wording(
        (
            "Keywords are classes",
            "Proteins with a keyword",
            "up:classifiedWith leads to keywords and to GO terms; restrict by a up:Concept.",
        ),
        (
            "Restrict up:classifiedWith to up:Concept",
            "Keywords of proteins",
            "Behind up:classifiedWith stand GO terms besides keywords, so ask for up:Concept.",
        ),
        (
            "Keywords below a keyword",
            "Proteins with a keyword or a narrower one",
            "After up:classifiedWith go up by rdfs:subClassOf* to the up:Concept.",
        ),
    ),
    Wording(
        (
            "Count each protein once",
            "How many proteins have something",
            "Write COUNT(DISTINCT ?protein): up:annotation gives a row for each annotation.",
        ),
        (
            "DISTINCT when proteins are counted",
            "Questions of how many proteins there are",
            "Since up:annotation repeats a protein, count it with DISTINCT.",
        ),
        (
            "Count annotations of a protein",
            "How many annotations does each protein have",
            "Write COUNT(?annotation) of up:annotation with GROUP BY ?protein.",
        ),
    ),
    Wording(
        (
            "Positions are on the range",
            "Where a feature begins and ends",
            "up:range, then faldo:begin and faldo:end, then faldo:position.",
        ),
        (
            "Begin and end by faldo",
            "The positions of features in a sequence",
            "From up:range take faldo:begin and faldo:end; the number is faldo:position.",
        ),
        (
            "Length of a feature",
            "How long features are",
            "Subtract faldo:position of faldo:begin from that of faldo:end of up:range, plus 1.",
        ),
    ),
    Wording(
        (
            "Cross-references by rdfs:seeAlso",
            "Links of a protein to another database",
            "rdfs:seeAlso leads to the entry, whose up:database is the database.",
        ),
        (
            "Find links with rdfs:seeAlso",
            "A protein's entries in other databases",
            "Take rdfs:seeAlso and restrict the entry by up:database.",
        ),
        (
            "Databases are not texts",
            "Which databases a protein is linked to",
            "up:database of rdfs:seeAlso is an IRI; take its last part for the name.",
        ),
    ),
    Wording(
        (
            "Ranks are individuals",
            "Taxa of a rank",
            "Write up:rank up:Species, without quotes and with the prefix.",
        ),
        (
            "up:rank takes up:Species",
            "All taxa with a certain rank",
            "The rank behind up:rank is a name such as up:Species, not a text.",
        ),
        (
            "Some taxa have no rank",
            "Taxa and their ranks",
            "Put up:rank into OPTIONAL; a strain below a up:Species has none.",
        ),
    ),
    Wording(
        (
            "Locations in two steps",
            "Where in the cell a protein is",
            "up:locatedIn of the annotation, then up:cellularComponent.",
        ),
        (
            "up:cellularComponent behind up:locatedIn",
            "The place of proteins in the cell",
            "From the annotation by up:locatedIn, and from there by up:cellularComponent.",
        ),
        (
            "Topology is not location",
            "How a protein lies in a membrane",
            "up:locatedIn also has up:topology; do not take it for up:cellularComponent.",
        ),
    ),
    Wording(
        (
            "Dates compare as dates",
            "Entries created after a day",
            'Compare up:created with "…"^^xsd:date.',
        ),
        (
            "Write days as xsd:date",
            "Which entries were created since a date",
            'up:created takes "…"^^xsd:date in comparisons.',
        ),
        (
            "The newest first",
            "The entries that were created last",
            "ORDER BY DESC(up:created), an xsd:date, then LIMIT.",
        ),
    ),
)
