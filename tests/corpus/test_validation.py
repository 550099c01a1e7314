"""Checking a corpus: each oddity is reported with its place, and none hides another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyshacl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rdflib import RDF, Graph, URIRef
from rdflib.namespace import SH
from rdflib.plugins.sparql.parser import parseQuery

from reasoningbank.corpus import (
    load_corpus,
    load_pack,
    open_endpoint,
    validate,
)
from reasoningbank.corpus.shacl import RB
from reasoningbank.corpus.validation import SEVERITIES, severity_of, shapes
from reasoningbank.errors import UsageError
from reasoningbank.findings import Finding
from reasoningbank.sparql import EndpointConfig, SPARQLClient

from .conftest import GOOD, HEAD
from .oddities import DEFECTS, ODDITIES, write_oddities

Folder = Callable[..., Path]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finding, ...]:
    return validate(write_oddities(tmp_path_factory.mktemp("corpus") / "odd"))


def codes(findings: tuple[Finding, ...], file: str) -> set[str]:
    return {finding.code for finding in findings if finding.where == file}


@pytest.mark.parametrize("name", ODDITIES)
def test_an_oddity_is_reported_by_its_file(odd: tuple[Finding, ...], name: str) -> None:
    # Ids beside the expected codes: an example without a name of its own, or with two.
    extra = {"id-mismatch"} if name == "several_examples" else set()
    assert codes(odd, f"{name}.ttl") == ODDITIES[name].codes | extra


def test_files_that_are_odd_as_files(odd: tuple[Finding, ...]) -> None:
    assert codes(odd, "one/twice.ttl") == codes(odd, "two/twice.ttl") == {"duplicate-id"}
    assert codes(odd, "binary.ttl") == {"syntax-error"}
    assert codes(odd, "folder.ttl") == {"unreadable"}
    assert codes(odd, "empty.ttl") == codes(odd, "latin.ttl") == set()


def test_nothing_is_reported_twice_and_nothing_loaded_is_lost(
    odd: tuple[Finding, ...], tmp_path: Path
) -> None:
    assert len(set(odd)) == len(odd)
    corpus = load_corpus(write_oddities(tmp_path / "odd"))
    assert set(corpus.findings) <= set(odd)
    kept = {name for name, oddity in ODDITIES.items() if oddity.task}
    assert {task.source_file.removesuffix(".ttl") for task in corpus.tasks} == (
        kept | {"one/twice", "two/twice", "latin"}
    )


def test_every_finding_is_one_line_that_names_its_example(odd: tuple[Finding, ...]) -> None:
    for finding in odd:
        assert "\n" not in str(finding)
        assert len(str(finding)) < 500


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("unclosed.ttl", "closes the '{' at line 1, column 17"),
        ("only_rdflib.ttl", "a selected variable is neither grouped nor aggregated"),
        ("misspelt_comment.ttl", "http://www.w3.org/2000/01/rdf-schema#comment>; write the latter"),
        ("unknown_property.ttl", "<http://www.w3.org/ns/shacl#nonsense>, which its vocabulary"),
        ("target_http.ttl", "http://EXAMPLE.org/sparql/, read as https://example.org/sparql/"),
        ("constant_left_out.ttl", "does not mention '7', 'blue'"),
        ("service_unsaid.ttl", "queries <https://far.example/sparql>"),
        ("bag_as_text.ttl", "not one true or false: 'yes'"),
        ("unknown_annotation.ttl", "urn:reasoningbank:ontology#difficulty"),
    ],
)
def test_a_finding_says_where_and_what(odd: tuple[Finding, ...], file: str, said: str) -> None:
    assert any(said in str(finding) for finding in odd if finding.where == file)


def test_a_misspelt_property_of_a_closed_vocabulary_gets_its_nearest_name(folder: Folder) -> None:
    text = GOOD.replace("NAME", "a").replace("schema:target", "schema:abuot ex:b ; schema:target")
    (found,) = validate(folder(a=text))
    assert found.code == "unknown-property"
    assert found.fields["replacements"] == ["https://schema.org/about"]


def test_lines_are_those_of_the_author_and_not_of_added_prefixes(folder: Folder) -> None:
    declares = '_:p sh:declare [ sh:prefix "up" ; sh:namespace "http://u/" ] .'
    query = "SELECT ?s WHERE { ?s a <http://example.org/Thing> }"
    root = folder(prefixes=declares, a=GOOD.replace("NAME", "a").replace(query, "ASK {\n up:x }"))
    (found,) = [f for f in validate(root) if f.code == "query-syntax"]
    assert "line 2, " in str(found)


def test_names_under_a_colon_are_ids(folder: Folder) -> None:
    root = folder(a=GOOD.replace("ex:NAME", "<urn:example:things:a>"))
    assert validate(root) == ()
    assert [task.id for task in load_corpus(root).tasks] == ["a"]


def test_our_own_pack_has_no_finding() -> None:
    assert validate("uniprot") == ()


def test_each_gold_is_parsed_once(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(text: str) -> Any:
        parsed.append(text)
        return parseQuery(text)

    monkeypatch.setattr("reasoningbank.sparql.query.parseQuery", parse)
    names = [f"t{i:04}" for i in range(40)]
    query = "SELECT ?s WHERE"
    root = folder(
        **{n: GOOD.replace("NAME", n).replace(query, f"SELECT ?{n} WHERE") for n in names}
    )
    validate(root)
    assert len(parsed) == len(set(parsed)) == 40


# -- shapes --------------------------------------------------------------------------------


def test_the_shapes_are_shapes_and_their_severities_are_ours() -> None:
    graph = shapes("examples.ttl")
    conforms, _, reported = pyshacl.validate(Graph(), shacl_graph=graph, meta_shacl=True)
    assert conforms, reported
    names = {SH.Violation: "error", SH.Warning: "warning", SH.Info: "info"}
    found = set(graph.subjects(RDF.type, SH.PropertyShape))
    assert len(found) > 15
    for shape in found:
        code = str(graph.value(shape, URIRef(RB + "finding")))
        severity = graph.value(shape, SH.severity) or SH.Violation
        assert SEVERITIES[code] == names[severity], shape
        assert graph.value(shape, SH.message), shape


def test_every_defect_is_an_error() -> None:
    assert {SEVERITIES[code] for code in DEFECTS} == {"error"}


def test_the_shapes_stand_alone(folder: Folder) -> None:
    root = folder(a=GOOD.replace("NAME", "a"), b=GOOD.replace("NAME", "b"))
    graph = shapes("examples.ttl")
    data = Graph().parse(root / "a.ttl")
    assert pyshacl.validate(data, shacl_graph=graph)[0]
    data.parse(data=HEAD + 'ex:c a sh:SPARQLExecutable ; rb:bag "no" .', format="turtle")
    conforms, _, reported = pyshacl.validate(data, shacl_graph=graph)
    assert not conforms
    for said in ("has no query", "has no question", "names no endpoint", "rb:bag"):
        assert said in reported


# -- golds ---------------------------------------------------------------------------------


def _golds(folder: Folder, **queries: str) -> Path:
    inner = '"""SELECT ?s WHERE { ?s a <http://example.org/Thing> }"""'
    texts = {}
    for name, query in queries.items():
        text = GOOD.replace("NAME", name).replace(inner, f'"""{query}"""')
        if query.startswith("ASK"):
            text = text.replace("sh:select", "sh:ask").replace("SPARQLSelect", "SPARQLAsk")
        texts[name] = text
    return folder(**texts)


def test_golds_are_run(
    folder: Folder, trees: EndpointConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasoningbank.corpus.validation.MOST_ROWS", 5)
    root = _golds(
        folder,
        fine="SELECT ?s { ?s a <http://e/Tree> }",
        empty="SELECT ?s { ?s a <http://e/Stone> }",
        no="ASK { ?s a <http://e/Stone> }",
        cut="SELECT * { ?s ?p ?o }",
        fails="SELECT ?s { ?s a <http://e/Tree> SERVICE <https://far.example/> { ?s ?p ?o } }",
        broken="SELECT ?s {",
    )
    found = validate(root, SPARQLClient(trees))
    reported = {(f.where, f.code) for f in found if f.code != "federates-mismatch"}
    assert reported == {
        ("broken.ttl", "query-syntax"),
        ("cut.ttl", "cut-gold"),
        ("empty.ttl", "empty-gold"),
        ("fails.ttl", "gold-fails"),
    }


def test_a_slow_gold_is_reported(folder: Folder, trees: EndpointConfig) -> None:
    root = _golds(folder, a="SELECT ?s { ?s a <http://e/Tree> }")
    assert [f.code for f in validate(root, SPARQLClient(trees), slow_s=0)] == ["slow-gold"]


def test_an_endpoint_that_is_gone_is_not_asked_for_ever(folder: Folder) -> None:
    root = _golds(folder, **{f"t{i}": f"SELECT ?s{i} {{ ?s{i} ?p ?o }}" for i in range(6)})
    nobody = SPARQLClient(EndpointConfig("http://127.0.0.1:9/sparql", retries=0))
    found = validate(root, nobody)
    assert [f.code for f in found] == ["endpoint-fails"] + ["gold-fails"] * 3
    assert found[0].fields["not_run"] == 3


def test_what_the_data_call_a_constant_counts_as_mentioned(
    folder: Folder, trees: EndpointConfig
) -> None:
    def asks(question: str) -> Path:
        root = _golds(folder, a="SELECT ?h { <http://e/ash> <http://e/height> ?h }")
        file = root / "a.ttl"
        text = file.read_text(encoding="utf-8").replace("Which things are there?", question)
        file.write_text(text, encoding="utf-8")
        return root

    assert validate(asks("How high is a mountain ash tree?"), SPARQLClient(trees)) == ()
    (found,) = validate(asks("How high is the highest of them?"), SPARQLClient(trees))
    assert found.fields["constants"] == ["http://e/ash"]


def test_every_language_of_a_pack_is_checked_and_its_schema_names_values(
    folder: Folder, tmp_path: Path
) -> None:
    root = _golds(folder, a="SELECT ?h { <http://e/ash> <http://e/height> ?h }")
    file = root / "a.ttl"
    text = file.read_text(encoding="utf-8")
    both = '"How high is the ash?"@en , "Quanto è alto il frassino?"@it'
    assert '"Which things are there?"@en' in text
    file.write_text(text.replace('"Which things are there?"@en', both), encoding="utf-8")
    pack = replace(load_pack(root), languages=("it", "en"))
    (found,) = validate(pack)
    assert (found.fields["constants"], found.fields["language"]) == (["http://e/ash"], "it")
    schema = tmp_path / "schema.ttl"
    schema.write_text(
        "<http://e/ash> <http://www.w3.org/2004/02/skos/core#altLabel> 'frassino'@it ."
    )
    assert validate(replace(pack, schema=schema)) == ()
    schema.write_text("nothing of the kind")
    with pytest.raises(UsageError, match="the schema cannot be read"):
        validate(replace(pack, schema=schema))


def test_the_golds_of_a_pack_run_on_its_own_data(make_pack: Callable[..., Path]) -> None:
    pack = load_pack(make_pack(3))
    with open_endpoint(pack) as config:
        found = validate(pack, SPARQLClient(config))
    assert {f.code for f in found} <= {"id-mismatch", "no-keywords"}


# -- fuzz ----------------------------------------------------------------------------------

_FUZZ = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_FUZZ
@given(data=st.binary(max_size=400))
def test_arbitrary_bytes_are_never_a_crash(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.ttl").write_bytes(data)
    (tmp_path / "b.ttl").write_text(HEAD + GOOD.replace("NAME", "b"), encoding="utf-8")
    assert codes(validate(tmp_path), "b.ttl") == set()


@_FUZZ
@given(at=st.integers(0, len(GOOD) - 1), length=st.integers(0, 40), new=st.text(max_size=12))
def test_an_example_with_a_piece_replaced_is_never_a_crash(
    tmp_path: Path, at: int, length: int, new: str
) -> None:
    text = GOOD[:at] + new + GOOD[at + length :]
    (tmp_path / "a.ttl").write_bytes((HEAD + text).encode("utf-8", "surrogatepass"))
    (tmp_path / "b.ttl").write_text(HEAD + GOOD.replace("NAME", "b"), encoding="utf-8")
    for finding in validate(tmp_path):
        assert severity_of(finding) in ("error", "warning", "info")


_VALUES = st.sampled_from(
    ['""', '"x"', "true", "1", "ex:x", "[]", '"x"@en', '"x"@en-a-b', '"<"^^rdf:HTML', "()",
     '"x"^^ex:y', "<http://[>", "<urn:x>", '"SELECT"', '"\\u0000"', "'''\n'''",
     "<<( ex:a ex:b 1 )>>"]
)  # fmt: skip
_PREDICATES = st.sampled_from(
    ["a", "rdfs:comment", "rdfs:coment", "sh:select", "sh:ask", "sh:construct", "spex:describe",
     "schema:target", "schema:keywords", "spex:federatesWith", "rb:group", "rb:bag", "rb:ordered",
     "sh:prefixes", "sh:prefix", "sh:namespace", "sh:declare", "ex:other", "schema:nothing"]
)  # fmt: skip


@_FUZZ
@given(pairs=st.lists(st.tuples(_PREDICATES, _VALUES), min_size=1, max_size=8))
def test_any_values_are_never_a_crash(tmp_path: Path, pairs: list[tuple[str, str]]) -> None:
    body = " ; ".join(f"{predicate} {value}" for predicate, value in pairs)
    (tmp_path / "a.ttl").write_text(f"{HEAD}ex:a {body} .", encoding="utf-8")
    for finding in validate(tmp_path):
        assert "\n" not in str(finding)


_WORDS = st.sampled_from(
    ["SELECT", "ASK", "CONSTRUCT", "WHERE", "{", "}", "(", ")", "?s", "?p", "?o", "*", ".", ";",
     "a", "ex:x", "<http://e/x>", "<x>", "'a'", "'a'@en", "1", "FILTER", "OPTIONAL", "UNION",
     "SERVICE", "GRAPH", "LIMIT", "GROUP BY", "COUNT(*)", "AS", "VALUES", "BIND", "<<", ">>",
     "PREFIX ex: <http://e/>", "BASE", "#", "/", "^", "|", "!", "\\u0041", "é"]
)  # fmt: skip


@_FUZZ
@given(words=st.lists(_WORDS, max_size=25))
def test_any_query_is_never_a_crash(tmp_path: Path, words: list[str]) -> None:
    query = " ".join(words).replace("\\", "\\\\")
    text = GOOD.replace("NAME", "a").replace(
        "SELECT ?s WHERE { ?s a <http://example.org/Thing> }", query
    )
    (tmp_path / "a.ttl").write_text(HEAD + text, encoding="utf-8")
    (tmp_path / "b.ttl").write_text(HEAD + GOOD.replace("NAME", "b"), encoding="utf-8")
    assert codes(validate(tmp_path), "b.ttl") == set()


def test_updates_with_prefixes_are_no_syntax_errors() -> None:
    corpus = load_corpus(load_pack("algebra"))
    updates = [task for task in corpus.tasks if task.form == "UPDATE"]
    assert len(updates) > 20
    assert all("PREFIX" in task.expected_sparql for task in updates[:5])
    codes = {finding.code for finding in validate(load_pack("algebra"))}
    assert "query-syntax" not in codes
