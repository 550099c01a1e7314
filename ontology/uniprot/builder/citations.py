"""Literature of flat-file entries (the R lines): what was published where and when."""

from __future__ import annotations

import re
from typing import Any

from pyoxigraph import Literal

from .entry import Entry
from .terms import CORE, SKOS, UNIPROT, XSD, Namespace, digest, text

__all__ = ["add_citation"]

_DOI = Namespace("http://purl.org/dc/terms/")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def add_citation(entry: Entry, reference: Any) -> None:
    """Writes a citation, as Bio.SwissProt read it, and links the protein to it."""
    keys = {name: value.strip() for name, value in reference.references}
    place = reference.location.strip()
    journal = re.match(r"(.+?) ([^\s:]+):([^(]+)\((\d{4})\)\.?$", place)
    submitted = re.match(r"Submitted \(([A-Z]{3})-(\d{4})\) to (.+?)\.?$", place)
    if not journal and not submitted:
        entry.dataset.count("citations of books, theses and patents left out")
        return
    pubmed = keys.get("PubMed", "")
    node = UNIPROT[f"citations/{pubmed or 'SIP' + digest(reference.title, place)}"]
    graph = entry.dataset.graph("citations")
    entry.graph.add(entry.iri, CORE["citation"], node)
    if reference.title:
        graph.add(node, CORE["title"], text(reference.title.strip().strip('";').rstrip()))
    if pubmed:
        graph.add(node, SKOS["exactMatch"], UNIPROT[f"pubmed/{pubmed}"])
    if "DOI" in keys:
        graph.add(node, _DOI["identifier"], text(f"doi:{keys['DOI']}"))
    if journal:
        graph.type(node, CORE["Journal_Citation"])
        graph.add(node, CORE["name"], text(journal[1]))
        graph.add(node, CORE["volume"], text(journal[2]))
        graph.add(node, CORE["pages"], text(journal[3]))
        graph.add(node, CORE["date"], Literal(journal[4], datatype=XSD["gYear"]))
    elif submitted:
        month = f"{submitted[2]}-{_MONTHS.index(submitted[1]) + 1:02}"
        graph.type(node, CORE["Submission_Citation"])
        graph.add(node, CORE["submittedTo"], text(re.sub(r"^the | databases?$", "", submitted[3])))
        graph.add(node, CORE["date"], Literal(month, datatype=XSD["gYearMonth"]))
