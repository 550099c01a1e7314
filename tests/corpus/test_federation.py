"""The registry: which endpoints and graphs examples reach, read from their queries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from work import calls

from reasoningbank.corpus import load_corpus, load_pack
from reasoningbank.corpus.registry import (
    QueryScope,
    Registry,
    identity_of,
    query_scopes,
    read_registry,
)
from reasoningbank.errors import QueryError

EXAMPLE = '''
ex:{name} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
    rdfs:comment "{question}"@en ;
    sh:select """{query}""" ;
    {more}
    schema:target <{target}> .
'''
TREES = "https://trees.example/sparql/"


def example(name: str, query: str, target: str = TREES, more: str = "", question: str = "") -> str:
    return EXAMPLE.format(
        name=name, query=query, target=target, more=more, question=question or f"Question {name}?"
    )


@pytest.fixture
def registry(folder: Callable[..., Path]) -> Callable[..., Registry]:
    """Return what reads the registry of the examples given by keyword, in a bare folder."""

    def read(hidden: tuple[str, ...] = (), toml: str = "", **files: str) -> Registry:
        root = folder(**files)
        if toml:
            (root / "pack.toml").write_text(f'examples = "."\n{toml}', encoding="utf-8")
        return read_registry(load_pack(root), hidden)

    return read


def services(query: str) -> list[str]:
    return [scope.endpoint for scope in query_scopes(query)][1:]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT * { ?s ?p ?o }", []),
        ("SELECT * { SERVICE <http://a/> { ?s ?p ?o } }", ["http://a/"]),
        ("SELECT * { service silent <http://a/> { ?s ?p ?o } }", ["http://a/"]),
        (
            "SELECT * { OPTIONAL { { SELECT ?s { SERVICE <http://a/> { ?s ?p ?o SERVICE "
            "<http://b/> { ?o ?p ?x } } } } } }",
            ["http://a/", "http://b/"],
        ),
        ("SELECT * { FILTER NOT EXISTS { SERVICE <http://a/> { ?s ?p ?o } } }", ["http://a/"]),
        ("PREFIX a: <http://a/> SELECT * { SERVICE a:sparql { ?s ?p ?o } }", ["http://a/sparql"]),
        ("CONSTRUCT { ?s ?p ?o } { SERVICE <http://a/> { ?s ?p ?o } }", ["http://a/"]),
        ("DESCRIBE ?s { SERVICE <http://a/> { ?s ?p ?o } }", ["http://a/"]),
        # A variable counts for the addresses the query gives it.
        (
            "SELECT * { VALUES ?e { <http://a/> <http://b/> } SERVICE ?e { ?s ?p ?o } }",
            ["http://a/", "http://b/"],
        ),
        (
            'SELECT * { VALUES (?n ?e) { ("x"^^<http://no/> <http://a/>) (UNDEF <http://b/>) } '
            "SERVICE ?e { ?s ?p ?o } }",
            ["http://a/", "http://b/"],
        ),
        ("SELECT * { BIND(<http://a/> AS ?e) SERVICE ?e { ?s ?p ?o } }", ["http://a/"]),
        ("SELECT * { ?d <http://void/e> ?e SERVICE ?e { ?s ?p ?o } }", []),
        # No endpoints: in strings and comments, an engine's own services, other schemes.
        ('SELECT * { ?s ?p "SERVICE <http://a/> {" } # SERVICE <http://b/> {', []),
        (
            "PREFIX wikibase: <http://wikiba.se/ontology#> "
            'SELECT * { ?s ?p ?o SERVICE wikibase:label { ?x ?y "en" } }',
            [],
        ),
        ("SELECT * { SERVICE <repository:other> { ?s ?p ?o } }", []),
    ],
)
def test_services_are_found_at_any_depth(query: str, found: list[str]) -> None:
    assert services(query) == found


def test_graphs_and_prefixes_belong_to_the_scope_they_stand_in() -> None:
    query = """
    PREFIX own: <http://own/> PREFIX far: <http://far/> PREFIX g: <http://g/> PREFIX no: <http://no/>
    SELECT ?s FROM <http://g/from> FROM NAMED g:named {
      ?s own:p ?o . GRAPH g:inside { ?s a own:C }
      SERVICE <http://a/> { GRAPH <http://g/far> { ?s far:q ?o }
        SERVICE ?unknown { GRAPH <http://g/nobody> { ?s no:body ?o } } ?s far:r ?o }
      VALUES ?g { g:value } GRAPH ?g { ?s ?p ?o } }"""
    own, far = query_scopes(query)
    assert own.endpoint == ""
    graphs = ["http://g/from", "http://g/named", "http://g/inside", "http://g/value"]
    assert list(own.graphs) == graphs
    assert own.prefixes.keys() == {"own", "g"}
    assert far == QueryScope("http://a/", {"http://g/far": None}, {"far": "http://far/"})


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s WHERE { ?s ?p",
        "SELECT ?s WHERE { ?s ?p ?o } }",
        "all proteins, please",
        "SELECT * { SERVICE { ?s ?p ?o } }",
        "SELECT * { SERVICE unknown:prefix { ?s ?p ?o } }",
        "SELECT * { SERVICE",
        "SELECT * { GRAPH",
        'SELECT * { ?s ?p "open }',
        "DELETE WHERE { ?s ?p ?o }",
    ],
)
def test_what_cannot_be_read_is_an_error_of_one_line(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        query_scopes(query)
    assert "\n" not in str(caught.value)


def test_endpoints_are_counted_by_task_and_by_way(registry: Callable[..., Registry]) -> None:
    twice = (
        "SELECT * { { SERVICE <http://far/> { ?s ?p ?o } } { SERVICE <http://far> { ?s a ?o } } }"
    )
    found = registry(
        a=example("a", twice),
        b=example("b", "SELECT * { ?s ?p ?o }", more="spex:federatesWith <http://far/> ;"),
        c=example("c", "SELECT * { ?s ?p ?o }", target="http://far/"),
        d=example("d", "SELECT * { ?s ?p ?o }"),
    )
    far = found.at("http://far/")
    assert far is not None
    assert (far.tasks, far.as_target, far.by_service, far.declared) == (3, 1, 1, 1)
    trees = found.at(TREES)
    assert trees is not None
    assert (trees.tasks, trees.as_target, trees.by_service, trees.declared) == (3, 3, 0, 0)
    assert (found.tasks, found.unread) == (4, 0)


def test_spellings_of_one_address_are_one_endpoint(registry: Callable[..., Registry]) -> None:
    spellings = [
        "https://Far.Example/sparql",
        "http://far.example/sparql/",
        "https://far.example:443/sparql",
        "https://far.example/sparql",
        "https://far.example/sparql",
    ]
    files = {
        f"t{i}": example(f"t{i}", f"SELECT * {{ SERVICE <{url}> {{ ?s ?p ?o }} }}")
        for i, url in enumerate(spellings)
    }
    found = registry(
        **files, other=example("other", "ASK {}", target="https://trees.example/sparql")
    )
    far = found.at("HTTPS://FAR.example/sparql/")
    assert far is not None
    assert far.url == "https://far.example/sparql"
    assert set(far.spellings) == set(spellings)
    assert far.by_service == 5
    trees = found.at(TREES)
    assert trees is not None
    # The targets are kept as they are written, though a task has one spelling.
    assert set(trees.spellings) == {TREES, "https://trees.example/sparql"}
    assert len(found.endpoints) == 2


def test_all_targets_of_an_example_count(registry: Callable[..., Registry]) -> None:
    more = "schema:target <https://other.example/sparql> ;"
    found = registry(a=example("a", "ASK {}", more=more))
    assert {e.url for e in found.endpoints} == {TREES, "https://other.example/sparql"}
    assert all(e.as_target == 1 for e in found.endpoints)


def test_queries_that_cannot_be_parsed_are_counted(registry: Callable[..., Registry]) -> None:
    found = registry(
        a=example("a", "SELECT ?s WHERE { SERVICE <http://far/> {", question="Broken?"),
        b=example("b", "SELECT ?s WHERE { ?s a ?c }"),
    )
    assert (found.tasks, found.unread) == (2, 1)
    assert [(e.url, e.as_target) for e in found.endpoints] == [(TREES, 2)]


def test_names_come_from_the_pack_then_the_table_then_the_host(
    registry: Callable[..., Registry],
) -> None:
    urls = [
        "https://trees.example/sparql",
        "http://said.example/sparql",
        "https://sparql.rhea-db.org/sparql/",
        "https://sparql.forest.co.uk/sparql",
        "https://www.forest.co.uk/repositories/bushes",
    ]
    query = "SELECT * { " + " ".join(f"SERVICE <{url}> {{}}" for url in urls) + " }"
    toml = f"""
    name = "Trees"
    endpoint = "{TREES}"
    authority = "The Forest"
    [[federated]]
    url = "https://said.example/sparql/"
    name = "Said"
    [[federated]]
    url = "https://unused.example/sparql"
    """
    found = registry(toml=toml, a=example("a", query))
    assert {e.url: (e.name, e.authority) for e in found.endpoints} == {
        TREES: ("Trees", "The Forest"),
        "https://said.example/sparql/": ("Said", "said.example"),
        "https://unused.example/sparql": ("Unused", "unused.example"),
        urls[2]: ("Rhea", "SIB Swiss Institute of Bioinformatics"),
        urls[3]: ("Forest", "forest.co.uk"),
        urls[4]: ("Forest bushes", "forest.co.uk"),
    }
    assert found.endpoints[0].url == TREES
    assert found.endpoints[-1].tasks == 0


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://sparql.uniprot.org/sparql", "UniProt"),
        ("http://rdf.geneontology.org/blazegraph/sparql", "Gene Ontology"),
        ("https://www.bgee.org/sparql/", "Bgee"),
        ("https://idsm.elixir-czech.cz/sparql/endpoint/idsm", "IDSM"),
        ("https://idsm.elixir-czech.cz/sparql/endpoint/chebi", "IDSM chebi"),
        ("https://www.ebi.ac.uk/rdf/services/sparql", "EBI"),
        ("https://qlever.dev/api/wikidata", "QLever wikidata"),
        ("https://sparql.kew.ac.jp/sparql", "Kew"),
        ("https://data.co/sparql", "Data"),
        ("https://sparql.org/sparql", "Sparql"),
        ("http://127.0.0.1:8890/sparql", "127.0.0.1"),
    ],
)
def test_names_of_public_endpoints(url: str, name: str) -> None:
    assert identity_of(url).name == name


def test_hidden_tasks_leave_no_trace(registry: Callable[..., Registry]) -> None:
    secret = (
        "PREFIX sec: <http://secret/> SELECT * FROM <http://g/secret> "
        "{ ?s sec:p ?o SERVICE <https://secret.example/sparql> { ?s ?p ?o } }"
    )
    files = {
        "secret": example("secret", secret, question="The secret question?"),
        "broken": example("broken", "SELECT {", question="Another secret?"),
        "reported": example("reported", "SELECT * { ?s ?p ?o }"),
    }
    open_ = registry(**files)
    hidden = registry(hidden=("secret", "broken"), **files)
    assert "secret" in json.dumps(asdict(open_))
    assert "secret" not in json.dumps(asdict(hidden)).lower()
    assert (hidden.tasks, hidden.unread, len(hidden.endpoints)) == (1, 0, 1)


def test_three_questions_and_no_query_are_kept(registry: Callable[..., Registry]) -> None:
    files = {f"t{i}": example(f"t{i}", "SELECT ?unlikely { ?unlikely ?p ?o }") for i in range(9)}
    found = registry(**files)
    assert found.endpoints[0].questions == ("Question t0?", "Question t3?", "Question t6?")
    assert "unlikely" not in json.dumps(asdict(found))


def test_a_folder_that_changed_is_read_anew(registry: Callable[..., Registry]) -> None:
    assert registry(a=example("a", "ASK {}")).tasks == 1
    assert registry(b=example("b", "ASK {}")).tasks == 2


def test_a_file_with_its_ending_in_capitals_that_is_gone_is_gone(
    folder: Callable[..., Path],
) -> None:
    root = folder(**{name: example(name, "ASK {}") for name in "ab"})
    (root / "b.ttl").rename(root / "b.TTL")
    assert read_registry(load_pack(root)).tasks == 2
    (root / "b.TTL").unlink()
    assert read_registry(load_pack(root)).tasks == 1


def test_the_work_grows_with_the_number_of_examples(registry: Callable[..., Registry]) -> None:
    query = "SELECT * { ?s ?p ?o . SERVICE <http://far/> { GRAPH <http://g/%d> { ?s ?q ?x } } }"
    files = {f"t{i:04}": example(f"t{i:04}", query % i) for i in range(400)}
    few = calls(lambda: registry(**dict(list(files.items())[:100])))
    assert calls(lambda: registry(**files)) < 6 * few
    far = registry(**files).at("http://far")
    assert far is not None
    assert (far.by_service, len(far.graphs)) == (400, 400)


def test_the_uniprot_packs_registry_agrees_with_its_tasks() -> None:
    pack = load_pack("uniprot")
    tasks = load_corpus(pack).tasks
    found = read_registry(pack)
    assert (found.source, found.tasks, found.unread) == ("ontology/uniprot", len(tasks), 0)
    own = found.endpoints[0]
    assert (own.name, own.url) == ("UniProt", pack.endpoint)
    assert own.tasks >= own.as_target > 100
    with_service = [t for t in tasks if "SERVICE" in t.expected_sparql]
    reached = sum(e.by_service for e in found.endpoints)
    assert reached >= len(with_service)
    for federated in pack.federated:
        assert found.at(federated.url) is not None
