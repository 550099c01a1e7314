"""What holds for whatever strings, terms, graphs and queries there may be."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import pyoxigraph
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rdflib import XSD, BNode, Graph, Literal, URIRef
from rdflib.compare import isomorphic

from reasoningbank.algebra import (
    Table,
    from_json,
    graph_from_jsonld,
    graph_from_quads,
    graph_to_jsonld,
    json_chunks,
)
from reasoningbank.algebra.builtin.strings import encode_for_uri, replace_all, resolve
from reasoningbank.algebra.jsonld import is_iri
from reasoningbank.algebra.queries import substitute, with_values
from reasoningbank.algebra.terms import (
    BlankNodes,
    from_oxigraph,
    literal,
    term_from_json,
    term_to_json,
    to_oxigraph,
    to_sparql,
)
from reasoningbank.sparql.tokens import tokenize

# rdflib tells of literals that are not of their datatype.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# This machine may be slow: no example is refused for its time.
settings.register_profile("algebra", deadline=None, suppress_health_check=[HealthCheck.too_slow])
quickly = settings(settings.get_profile("algebra"), max_examples=60)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.from_regex(r"[A-Za-z0-9._~:/?#@!$&'()*+,;=-]{0,12}", fullmatch=True)
IRIS = st.builds(
    lambda space, name: URIRef(space + name),
    st.sampled_from(
        ["http://e/", "http://schema.org/", "http://purl.org/dc/terms/", "urn:x:", "schema:"]
    ),
    NAMES,
).filter(lambda iri: is_iri(str(iri)))
TAGS = st.sampled_from(["en", "da", "zh-hant", "de-ch-1996"])
TYPES = st.sampled_from(
    [str(XSD.integer), str(XSD.decimal), str(XSD.date), str(XSD.boolean), "http://e/type"]
)
LITERALS = st.one_of(
    st.builds(literal, TEXT),
    st.builds(lambda words, tag: literal(words, lang=tag), TEXT, TAGS),
    st.builds(lambda words, name: literal(words, datatype=name), TEXT, TYPES),
    st.builds(lambda number: literal(f"{number:04d}", datatype=str(XSD.integer)), st.integers()),
)
BLANKS = st.builds(BNode, st.sampled_from(["a", "b", "c"]))
TERMS = st.one_of(IRIS, LITERALS, BLANKS)
GRAPHS = st.lists(st.tuples(st.one_of(IRIS, BLANKS), IRIS, TERMS), max_size=8)


@quickly
@given(TEXT)
def test_encode_for_uri_is_sparqls_and_can_be_undone(words: str) -> None:
    encoded = encode_for_uri(words)
    assert re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})*", encoded)
    assert unquote(encoded) == words
    query = f"SELECT (ENCODE_FOR_URI({to_sparql(Literal(words))}) AS ?encoded) {{}}"
    solutions = pyoxigraph.Store().query(query)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    (row,) = solutions
    assert row["encoded"] == pyoxigraph.Literal(encoded)


@quickly
@given(TEXT)
def test_an_encoded_name_is_one_segment_below_its_base(words: str) -> None:
    assume(words.strip("."))
    made = resolve("http://e/d/", f"{encode_for_uri(words)}/")
    assert made == f"http://e/d/{encode_for_uri(words)}/"


@quickly
@given(TERMS)
def test_terms_survive_json(term: URIRef | Literal | BNode) -> None:
    back = term_from_json(json.loads(json.dumps(term_to_json(term))))
    assert back == term
    assert type(back) is type(term)


@quickly
@given(TERMS)
def test_terms_survive_oxigraph(term: URIRef | Literal | BNode) -> None:
    back = from_oxigraph(to_oxigraph(term), BlankNodes())
    assert type(back) is type(term)
    assert back == term or isinstance(term, BNode)


@quickly
@given(st.one_of(IRIS, LITERALS))
def test_terms_survive_a_query(term: URIRef | Literal) -> None:
    (token, *_) = tokenize(to_sparql(term))
    assert token.kind in ("iri", "string")
    # Oxigraph's store keeps numbers by their value, so it is its parser that is asked.
    statement = f"<http://e/s> <http://e/p> {to_sparql(term)} ."
    (quad,) = pyoxigraph.parse(statement, pyoxigraph.RdfFormat.TURTLE)
    assert from_oxigraph(quad.object, BlankNodes()) == term
    assert substitute("ASK { ?s ?p ?v }", {"v": term}) == f"ASK {{ ?s ?p {to_sparql(term)} }}"


@quickly
@given(st.lists(st.dictionaries(st.sampled_from("abc"), TERMS), max_size=5))
def test_tables_survive_json(rows: list[dict[str, URIRef | Literal | BNode]]) -> None:
    table = Table(("a", "b", "c"), list(rows))
    assert from_json(json.loads("".join(json_chunks(table)))) == table


@quickly
@given(GRAPHS)
def test_graphs_survive_json_ld(
    triples: list[tuple[URIRef | BNode, URIRef, URIRef | Literal]],
) -> None:
    graph = Graph()
    for triple in triples:
        graph.add(triple)
    back = graph_from_jsonld(json.loads(json.dumps(graph_to_jsonld(graph))))
    assert isomorphic(back, graph)


@quickly
@given(TEXT.filter(bool), TEXT)
def test_replacing_plain_text(pattern: str, replacement: str) -> None:
    words = f"a{pattern}b{pattern}"
    assert replace_all(words, pattern, replacement, "q") == words.replace(pattern, replacement)


# Pieces of a query in which the variable ?v stands, or only seems to.
PIECES = st.lists(
    st.sampled_from(
        [
            ("?v <http://e/p> ?o .", True), ("$v ?p ?v .", True), ("?s ?p ?v .", True),
            ("FILTER(?o != ?v && BOUND(?v)) .", True), ("GRAPH ?g { ?v ?p 1 }", True),
            ("?vv ?v1 ?_v .", False), ("?s ?p '?v' .", False), ("?s ?p \"a\\\"?v\" .", False),
            ('?s ?p """?v " $v""" .', False), ("?s <http://e/?v> ?o . # ?v and $v\n", False),
            ("?s a/<http://e/p>? ?o .", False), ("OPTIONAL { ?s ?p 5 }", False),
        ]
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@quickly
@given(PIECES, IRIS)
def test_substitute_changes_the_variable_and_nothing_else(
    pieces: list[tuple[str, bool]], term: URIRef
) -> None:
    query = f"SELECT * {{ {' '.join(text for text, _ in pieces)} ?v ?p 0 }}"
    made = substitute(query, {"v": term})
    before, after = tokenize(query), tokenize(made)
    assert not any(token.kind == "variable" and token.text[1:] == "v" for token in after)
    kept = [t.text for t in before if t.kind == "string" or t.text[1:] in ("vv", "v1", "_v")]
    assert [t.text for t in after if t.kind == "string" or t.text[1:] in ("vv", "v1", "_v")] == kept
    comments = re.findall(r"# \?v and \$v\n", query)
    assert re.findall(r"# \?v and \$v\n", made) == comments


@quickly
@given(st.lists(st.tuples(IRIS, LITERALS), min_size=1, max_size=5, unique=True), st.data())
def test_a_substituted_query_finds_what_a_filter_finds(
    pairs: list[tuple[URIRef, Literal]], data: st.DataObject
) -> None:
    store = pyoxigraph.Store()
    name = pyoxigraph.NamedNode("http://e/p")
    for subject, words in pairs:
        store.add(pyoxigraph.Quad(to_oxigraph(subject), name, to_oxigraph(words)))  # type: ignore[arg-type]
    _, wanted = data.draw(st.sampled_from(pairs))

    def found(query: str) -> set[str]:
        solutions = store.query(query)
        assert isinstance(solutions, pyoxigraph.QuerySolutions)
        return {str(row["s"]) for row in solutions}

    same = {str(to_oxigraph(subject)) for subject, words in pairs if words == wanted}
    query = "SELECT ?s { ?s <http://e/p> ?v }"
    assert found(substitute(query, {"v": wanted})) == same
    assert found(with_values(query, ["v"], [{"v": wanted}])) == same


@quickly
@given(GRAPHS)
def test_documents_never_share_blank_nodes(
    triples: list[tuple[URIRef | BNode, URIRef, URIRef | Literal]],
) -> None:
    quads = [pyoxigraph.Triple(*map(to_oxigraph, triple)) for triple in triples]
    one, other = graph_from_quads(quads), graph_from_quads(quads)
    blanks = [{t for triple in g for t in triple if isinstance(t, BNode)} for g in (one, other)]
    assert not blanks[0] & blanks[1]
    assert isomorphic(one, other)
