"""What the sample says of countries and cities, in DBpedia's vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import Literal, NamedNode, Triple

from ontology.uniprot.builder.terms import RDF, RDFS, XSD, Namespace

from .places import City, Country

__all__ = ["DBO", "DBR", "GEO", "place_facts"]

DBO = Namespace("http://dbpedia.org/ontology/")
DBR = Namespace("http://dbpedia.org/resource/")
GEO = Namespace("http://www.w3.org/2003/01/geo/wgs84_pos#")


def place_facts(countries: Sequence[Country], cities: Sequence[City]) -> Iterator[Triple]:
    """Yields all that is said of them; nothing twice."""
    nodes = {country.code: DBR[country.local] for country in countries}
    yield from _named(DBR["Europe"], "Continent", "Europe")
    for country in countries:
        here = nodes[country.code]
        yield from _named(here, "Country", country.name)
        yield Triple(here, DBO["capital"], DBR[country.capital])
        yield Triple(here, DBO["continent"], DBR["Europe"])
        yield Triple(here, DBO["populationTotal"], _integer(country.population))
        yield Triple(here, DBO["areaTotal"], _integer(country.area))
        yield Triple(here, DBO["currencyCode"], Literal(country.currency))
        yield Triple(here, DBO["iso31661Code"], Literal(country.code))
        for code in country.neighbours:
            yield Triple(here, DBO["border"], nodes[code])
    for city in cities:
        here = DBR[city.local]
        yield from _named(here, "City", city.name)
        yield Triple(here, DBO["country"], nodes[city.country])
        yield Triple(here, DBO["populationTotal"], _integer(city.population))
        yield Triple(here, GEO["lat"], _decimal(city.latitude))
        yield Triple(here, GEO["long"], _decimal(city.longitude))


def _named(node: NamedNode, kind: str, name: str) -> Iterator[Triple]:
    yield Triple(node, RDF["type"], DBO[kind])
    yield Triple(node, RDFS["label"], Literal(name, language="en"))


def _integer(value: int) -> Literal:
    return Literal(str(value), datatype=XSD["integer"])


def _decimal(value: str) -> Literal:
    # The canonical form (XSD 1.1): a store that keeps values writes it back as it was.
    return Literal(value.removesuffix(".0"), datatype=XSD["decimal"])
