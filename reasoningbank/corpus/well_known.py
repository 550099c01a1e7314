"""Names and publishers of public endpoints: known ones by table, others from their address."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple
from urllib.parse import urlsplit

from reasoningbank.sparql import address_key

__all__ = ["Identity", "identity_of"]

_SIB = "SIB Swiss Institute of Bioinformatics"
_DBCLS = "Database Center for Life Science (DBCLS)"
_CIRCSE = "CIRCSE Research Centre, Università Cattolica del Sacro Cuore"


class Identity(NamedTuple):
    """An endpoint's name for people, and who runs it."""

    name: str
    authority: str


#: By host without ``www.``; a ``*`` in the name is replaced by the dataset in the path.
_BY_HOST: dict[str, Identity] = {
    "sparql.uniprot.org": Identity("UniProt", "UniProt Consortium"),
    "sparql.rhea-db.org": Identity("Rhea", _SIB),
    "bgee.org": Identity("Bgee", _SIB),
    "sparql.omabrowser.org": Identity("OMA", _SIB),
    "sparql.swisslipids.org": Identity("SwissLipids", _SIB),
    "beta.sparql.swisslipids.org": Identity("SwissLipids beta", _SIB),
    "hamap.expasy.org": Identity("HAMAP", _SIB),
    "rdf.metanetx.org": Identity("MetaNetX", _SIB),
    "sparql.nextprot.org": Identity("neXtProt", _SIB),
    "api.nextprot.org": Identity("neXtProt API", _SIB),
    "glyconnect.expasy.org": Identity("GlyConnect", _SIB),
    "sparql.cellosaurus.org": Identity("Cellosaurus", _SIB),
    "sparql.sibils.org": Identity("SIBiLS", _SIB),
    "sparql.orthodb.org": Identity("OrthoDB", _SIB),
    "rdf.geneontology.org": Identity("Gene Ontology", "Gene Ontology Consortium"),
    "ebi.ac.uk": Identity("EBI *", "EMBL-EBI"),
    "idsm.elixir-czech.cz": Identity("IDSM *", "IOCB Prague, ELIXIR Czech Republic"),
    "query.wikidata.org": Identity("Wikidata", "Wikimedia Foundation"),
    "query-scholarly.wikidata.org": Identity("Wikidata scholarly", "Wikimedia Foundation"),
    "query-main.wikidata.org": Identity("Wikidata main", "Wikimedia Foundation"),
    "dbpedia.org": Identity("DBpedia", "DBpedia Association"),
    "yago-knowledge.org": Identity("YAGO", "Télécom Paris, Max Planck Institute for Informatics"),
    "qlever.dev": Identity("QLever *", "University of Freiburg"),
    "qlever.cs.uni-freiburg.de": Identity("QLever *", "University of Freiburg"),
    "sparql.wikipathways.org": Identity("WikiPathways", "WikiPathways"),
    "aopwiki.rdf.bigcat-bioinformatics.org": Identity("AOP-Wiki", "BiGCaT, Maastricht University"),
    "rdf.disgenet.org": Identity("DisGeNET", "DisGeNET"),
    "sparql.proconsortium.org": Identity("Protein Ontology", "PRO Consortium"),
    "id.nlm.nih.gov": Identity("MeSH", "U.S. National Library of Medicine"),
    "ts.glytoucan.org": Identity("GlyTouCan", "GlyTouCan Project"),
    "ts.glycosmos.org": Identity("GlyCosmos", "GlyCosmos Project"),
    "data.allie.dbcls.jp": Identity("AllieDB", _DBCLS),
    "rdfportal.org": Identity("RDF Portal *", _DBCLS),
    "integbio.jp": Identity("RDF Portal integbio", _DBCLS),
    "lila-erc.eu": Identity("LiLa", _CIRCSE),
    "liita.it": Identity("LiITA", _CIRCSE),
    "sparql.dblp.org": Identity("dblp", "Schloss Dagstuhl"),
    "opencitations.net": Identity("OpenCitations", "OpenCitations"),
    "publications.europa.eu": Identity("Cellar", "Publications Office of the European Union"),
    "data.europa.eu": Identity("data.europa.eu", "Publications Office of the European Union"),
    "data.bnf.fr": Identity("BnF", "Bibliothèque nationale de France"),
}
#: Parts of hosts and paths that do not identify the data.
_GENERIC = frozenset(
    (
        "www", "sparql", "rdf", "data", "query", "api", "endpoint", "endpoints", "services",
        "service", "repositories", "repository", "blazegraph", "bigdata", "namespace", "virtuoso",
        "fuseki", "ds", "sib", "lod", "linked-data", "kb", "public", "store", "beta", "default",
    )
)  # fmt: skip
#: Second-level domains of registrars: the name comes before both levels.
_SECOND_LEVEL = frozenset(["ac", "co", "com", "edu", "go", "gov", "ne", "net", "or", "org"])


def identity_of(url: str) -> Identity:
    """Return name and publisher of an endpoint.

    Examples:
        >>> identity_of("http://sparql.rhea-db.org/sparql/").name
        'Rhea'
        >>> identity_of("https://www.ebi.ac.uk/rdf/services/chembl/sparql").name
        'EBI chembl'
        >>> identity_of("https://sparql.trees.co.uk:8890/sparql")
        Identity(name='Trees', authority='trees.co.uk')
    """
    parts = urlsplit(url if address_key(url) else "")
    host = (parts.hostname or "").removeprefix("www.").rstrip(".")
    known = _BY_HOST.get(host)
    if known is None:
        return _derived(host or url)
    dataset = dataset_of(url)
    if known.name.startswith(f"{dataset.upper()} ") or not dataset:
        return known._replace(name=known.name.removesuffix(" *"))
    return known._replace(name=known.name.replace("*", dataset))


def dataset_of(url: str) -> str:
    """Return the part of an address's path that identifies the data; ``''`` if there is none."""
    parts = [part for part in urlsplit(url).path.split("/") if part]
    telling = [part for part in parts if part.lower() not in _GENERIC]
    return telling[-1] if telling else ""


def _derived(host: str) -> Identity:
    try:
        return Identity(str(ipaddress.ip_address(host)), host)
    except ValueError:
        labels = host.split(".")
    suffix = 2 if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2 else 1
    rest = labels[:-suffix] or labels
    telling = [label for label in rest if label not in _GENERIC]
    name = (telling or rest)[-1]
    authority = ".".join(labels[-suffix - 1 :])
    return Identity(name if "-" in name else name.capitalize(), authority)
