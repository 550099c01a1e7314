"""How countries and cities of the algebra pack are picked and named."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest

from ontology.algebra.builder.facts import place_facts
from ontology.algebra.builder.places import COUNTRIES, LEAST_POPULATION, read_places


def city(number: int, name: str, country: str, population: int) -> dict[str, Any]:
    return {
        "geonameid": number,
        "name": name,
        "countrycode": country,
        "population": population,
        "latitude": 52.0,
        "longitude": -6.25,
    }


def country(code: str) -> dict[str, Any]:
    name, capital = {
        "NL": ("The Netherlands", "Hoofdstad"),
        "LU": ("Luxembourg", "Luxembourg"),
    }.get(code, (f"Land {code}", f"Stad {code}"))
    return {
        "name": name,
        "capital": capital,
        "population": 5,
        "areakm2": 6,
        "currencycode": "EUR",
        "neighbours": "DE,LU,NL" if code == "BE" else "",
    }


COUNTRY: Mapping[str, Mapping[str, Any]] = {code: country(code) for code in COUNTRIES}
CAPITALS = [
    city(n, str(COUNTRY[code]["capital"]), code, 90_000 + n) for n, code in enumerate(COUNTRIES)
]
TWINS = [
    city(101, "Emmen", "CH", 30_000),
    city(102, "Emmen", "NL", 57_000),
    city(103, "Nieuw Emmen", "NL", LEAST_POPULATION),
    city(104, "Komárno", "SK", 32_000),
    city(105, "Komárno", "SK", 32_000),
    city(106, "Berlin", "DE", 3_000_000),
]


def names(cities: list[dict[str, Any]]) -> dict[str, tuple[str, int]]:
    _, kept = read_places(COUNTRY, cities)
    own = {str(each["capital"]) for each in COUNTRY.values()} - {"Luxembourg"}
    return {each.local: (each.country, each.population) for each in kept if each.name not in own}


def test_of_equal_names_the_most_populous_is_alone_and_a_country_comes_first() -> None:
    assert names([*CAPITALS, *TWINS]) == {
        "Emmen": ("NL", 57_000),
        "Emmen,_Land_CH": ("CH", 30_000),
        "Komárno": ("SK", 32_000),
        "Luxembourg,_Luxembourg": ("LU", 90_000 + COUNTRIES.index("LU")),
    }


def test_names_do_not_depend_on_the_order_of_the_source() -> None:
    expected = names([*CAPITALS, *TWINS])
    for order in permutations(TWINS[:5]):
        assert names([*order, *CAPITALS]) == expected


def test_a_capital_is_found_without_its_accents() -> None:
    written = [{**each, "name": each["name"].replace("Hoofd", "Hoófd")} for each in CAPITALS]
    countries, _ = read_places(COUNTRY, written)
    (netherlands,) = (each for each in countries if each.code == "NL")
    assert (netherlands.local, netherlands.capital) == ("Netherlands", "Hoófdstad")


def test_a_capital_that_is_too_small_is_reported() -> None:
    with pytest.raises(ValueError, match="'Hoofdstad', the capital of NL, is not among its cities"):
        read_places(COUNTRY, [each for each in CAPITALS if each["countrycode"] != "NL"])


def test_neighbours_are_those_of_the_sample_and_numbers_are_canonical() -> None:
    countries, cities = read_places(COUNTRY, CAPITALS)
    (belgium,) = (each for each in countries if each.code == "BE")
    assert belgium.neighbours == ("LU", "NL")
    said = [str(fact) for fact in place_facts(countries, cities)]
    assert len(said) == len(set(said))
    for number in ('"52"^^', '"-6.25"^^'):
        assert sum(number in fact for fact in said) == len(cities)
