"""The public endpoints that the tool table is run against.

`REASONINGBANK_LIVE_ENDPOINTS` names others: a JSON list of objects with the fields of
`PublicEndpoint`. So the tests themselves can be tried where there is no web.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from reasoningbank.cache import cache_dir
from reasoningbank.sparql import EndpointConfig

VARIABLE = "REASONINGBANK_LIVE_ENDPOINTS"


@dataclass(frozen=True)
class PublicEndpoint:
    """An endpoint and something that is known to be in it.

    Attributes:
        name: Short name.
        url: Its address.
        prefixes: Namespaces for what is shown.
        label_properties: Properties that name things.
        class_uri: A class that has instances.
        resource: A resource.
        label: A whole label of something, to be found.
    """

    name: str
    url: str
    class_uri: str
    resource: str
    label: str
    prefixes: dict[str, str] = field(default_factory=dict)
    label_properties: tuple[str, ...] = ()

    def config(self) -> EndpointConfig:
        """Return how to ask it politely: one request a second, answers kept on disk."""
        labels = {"label_properties": tuple(self.label_properties)} if self.label_properties else {}
        return EndpointConfig(
            self.url,
            self.name,
            prefixes=self.prefixes,
            timeout_s=40,
            min_interval_s=1.0,
            max_connections=1,
            retries=1,
            cache=Path(cache_dir(), "live.sqlite"),
            cache_age_s=86_400,
            user_agent=os.environ.get("REASONINGBANK_USER_AGENT", EndpointConfig.user_agent),
            **labels,
        )

    def unreachable(self) -> str:
        """Say why it cannot be reached from here; empty where it can."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((parts.hostname or "", port), timeout=5).close()
        except OSError as error:
            return f"no route to {parts.hostname}: {error}"
        return ""


PUBLIC = (
    PublicEndpoint(
        "UniProt",
        "https://sparql.uniprot.org/sparql/",
        "http://purl.uniprot.org/core/Taxon",
        "http://purl.uniprot.org/taxonomy/9606",
        "Homo sapiens",
        {"up": "http://purl.uniprot.org/core/", "taxon": "http://purl.uniprot.org/taxonomy/"},
        (
            "http://www.w3.org/2004/02/skos/core#prefLabel",
            "http://purl.uniprot.org/core/scientificName",
            "http://www.w3.org/2000/01/rdf-schema#label",
        ),
    ),
    PublicEndpoint(
        "Rhea",
        "https://sparql.rhea-db.org/sparql",
        "http://rdf.rhea-db.org/Reaction",
        "http://rdf.rhea-db.org/10000",
        "H2O + pentanamide = NH4(+) + pentanoate",
        {"rh": "http://rdf.rhea-db.org/"},
    ),
    PublicEndpoint(
        "Wikidata",
        "https://query.wikidata.org/sparql",
        "http://wikiba.se/ontology#Property",
        "http://www.wikidata.org/entity/Q42",
        "Douglas Adams",
        {"wd": "http://www.wikidata.org/entity/", "wdt": "http://www.wikidata.org/prop/direct/"},
        ("http://www.w3.org/2000/01/rdf-schema#label",),
    ),
    PublicEndpoint(
        "DBpedia",
        "https://dbpedia.org/sparql",
        "http://dbpedia.org/ontology/Species",
        "http://dbpedia.org/resource/Berlin",
        "Berlin",
        {"dbo": "http://dbpedia.org/ontology/", "dbr": "http://dbpedia.org/resource/"},
        ("http://www.w3.org/2000/01/rdf-schema#label",),
    ),
)


def endpoints() -> tuple[PublicEndpoint, ...]:
    """Return the endpoints to be asked."""
    given = os.environ.get(VARIABLE)
    if not given:
        return PUBLIC
    return tuple(PublicEndpoint(**one) for one in json.loads(given))
