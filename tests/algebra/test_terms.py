"""Terms, values and JSON-LD."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyoxigraph
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from rdflib import RDF, XSD, BNode, Graph, Literal, URIRef
from rdflib.compare import isomorphic

from reasoningbank.algebra import (
    ProgramError,
    Row,
    Stream,
    Table,
    from_json,
    graph_from_jsonld,
    graph_from_quads,
    graph_to_jsonld,
    json_chunks,
    mistakes,
    to_json,
)
from reasoningbank.algebra.builtin.strings import encode_for_uri, replace_all, resolve
from reasoningbank.algebra.queries import substitute, with_values
from reasoningbank.algebra.terms import (
    BlankNodes,
    from_oxigraph,
    is_iri,
    literal,
    term_from_json,
    term_to_json,
    to_oxigraph,
    to_sparql,
)
from reasoningbank.sparql.tokens import tokenize

from .faults import raises, said
from .in_memory import Memory, op, outcome, text, uri, value

TERMS: list[tuple[dict[str, str], Any]] = [
    (uri("http://e/ø"), URIRef("http://e/ø")),
    ({"type": "bnode", "value": "b0"}, BNode("b0")),
    (text("x"), Literal("x")),
    (text(""), Literal("")),
    (text("x", "da"), Literal("x", lang="da")),
    (text("x", "zh-Hant-TW"), Literal("x", lang="zh-Hant-TW")),
    (text("01", "", str(XSD.integer)), Literal("01", datatype=XSD.integer, normalize=False)),
    (text("one", "", str(XSD.integer)), Literal("one", datatype=XSD.integer, normalize=False)),
    (text("1.50", "", str(XSD.decimal)), Literal("1.50", datatype=XSD.decimal, normalize=False)),
    (text(" 1", "", str(XSD.boolean)), Literal(" 1", datatype=XSD.boolean, normalize=False)),
    (text("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")), Literal("😀")),
]


@pytest.mark.parametrize(("written", "term"), TERMS)
def test_terms(written: dict[str, str], term: Any) -> None:
    assert term_from_json(written) == term
    assert term_to_json(term_from_json(written)) == written


def test_older_and_plain_forms_of_literals() -> None:
    integer = {"type": "typed-literal", "value": "1", "datatype": str(XSD.integer)}
    assert term_to_json(term_from_json(integer)) == text("1", "", str(XSD.integer))
    assert term_to_json(term_from_json(text("x", "", str(XSD.string)))) == text("x")


def test_scalars_are_literals() -> None:
    for plain, datatype in ((5, XSD.integer), (1.5, XSD.double), (True, XSD.boolean)):
        term = from_json(plain)
        assert isinstance(term, Literal)
        assert term.datatype == datatype
    assert from_json("5") == Literal("5")
    assert str(from_json(float("-inf"))) == "-INF"
    long = "1" + "0" * 5_000  # more digits than Python turns into a number
    assert str(literal(long, datatype=str(XSD.integer))) == long


@pytest.mark.parametrize("number", [2**53, 10**20 + 1, -(10**21), 10**400])
def test_integers_of_json_are_exact(number: int) -> None:
    typed = {"p": {"@id": "http://e/p", "@type": str(XSD.decimal)}}
    for written, datatype in (
        ({"http://e/p": number}, XSD.integer),
        ({"http://e/p": [{"@value": number}]}, XSD.integer),
        ({"http://e/p": {"@value": number, "@type": str(XSD.decimal)}}, XSD.decimal),
        ({"@context": typed, "p": number}, XSD.decimal),
        ({"@context": {"p": {"@id": "http://e/p", "@type": "@id"}}, "p": number}, XSD.integer),
    ):
        (term,) = graph_from_jsonld({"@id": "http://e/a", **written}).objects()
        assert isinstance(term, Literal)
        assert (str(term), term.datatype) == (str(number), datatype)
    assert outcome(op("Str", input=number)) == str(number)


def test_a_lone_term_is_its_lexical_value() -> None:
    assert to_json(Literal("x", lang="en")) == "x"
    assert to_json(Literal(5)) == "5"
    assert to_json(URIRef("http://e/")) == "http://e/"
    assert to_json([Literal(True), None, [URIRef("http://e/")]]) == ["true", None, ["http://e/"]]


def test_a_table_keeps_its_columns_and_their_order() -> None:
    rows: list[Row] = [{"b": Literal("x")}, {}]
    table = Table(("a", "b"), rows)
    written = {
        "head": {"vars": ["a", "b"]},
        "results": {"bindings": [{"b": text("x")}, {}]},
    }
    assert to_json(table) == written
    assert from_json(written) == table


def test_a_table_without_head_has_the_columns_that_are_bound() -> None:
    bare = {"results": {"bindings": [{"a": text("x")}, {"b": text("y")}]}}
    found = from_json(bare)
    assert isinstance(found, Table)
    assert found.vars == ("a", "b")


def test_forms_are_distinguished() -> None:
    assert isinstance(from_json({"@id": "http://e/a", "http://e/p": "x"}), Graph)
    assert isinstance(from_json({"type": "uri", "value": "http://e/"}), URIRef)
    assert from_json({"x": uri("http://e/")}) == {"x": URIRef("http://e/")}
    assert from_json([{"x": text("y")}, "z", None]) == [{"x": Literal("y")}, Literal("z"), None]
    assert from_json({}) == {}


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        ({"type": "uri", "value": "http://e/ x"}, "$ bad-iri"),
        ({"x": {"type": "literal", "value": 1}}, "$.x.value bad-term"),
        ({"results": {"bindings": [{"x": "y"}]}}, "$.results.bindings[0].x bad-term"),
        ({"head": {"vars": "x"}, "results": {"bindings": []}}, "$.head.vars bad-results"),
        ({"name": "x"}, "$.name unmapped-key"),
    ],
)
def test_what_is_not_a_value(data: Any, reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        from_json(data)
    assert said(failed.value) == reported


def test_a_table_is_written_while_it_is_read() -> None:
    served: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(5):
            served.append(number)
            yield {"n": Literal(number)}

    chunks = json_chunks(Stream(iter([Table(("n",), rows())])))
    for _ in range(6):
        next(chunks)
    assert len(served) < 5
    assert len(list(chunks)) > 0
    assert len(served) == 5


@pytest.mark.parametrize("name", ["x", "http://e/a b", "http://e/<"])
def test_what_is_not_an_iri_does_not_get_into_a_query(name: str) -> None:
    for term in (URIRef(name), Literal("x", datatype=URIRef(name))):
        with raises(ProgramError, "relative-iri"):
            to_sparql(term)
    with raises(ProgramError, "bad-term"):
        to_oxigraph(URIRef("x"))


def test_terms_of_rdf_1_2_are_reported() -> None:
    directed = pyoxigraph.Literal("x", language="he", direction=pyoxigraph.BaseDirection.RTL)
    node = pyoxigraph.NamedNode("http://e/")
    for term in (directed, pyoxigraph.Triple(node, node, node)):
        with raises(ProgramError, "unsupported-term"):
            from_oxigraph(term, BlankNodes(BNode))


# rdflib warns of literals that are not of their datatype.
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
PROPERTIES_TERMS = st.one_of(IRIS, LITERALS, BLANKS)
GRAPHS = st.lists(st.tuples(st.one_of(IRIS, BLANKS), IRIS, PROPERTIES_TERMS), max_size=8)


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
@given(PROPERTIES_TERMS)
def test_terms_survive_json(term: URIRef | Literal | BNode) -> None:
    back = term_from_json(json.loads(json.dumps(term_to_json(term))))
    assert back == term
    assert type(back) is type(term)


@quickly
@given(PROPERTIES_TERMS)
def test_terms_survive_oxigraph(term: URIRef | Literal | BNode) -> None:
    back = from_oxigraph(to_oxigraph(term), BlankNodes(BNode))
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
    assert from_oxigraph(quad.object, BlankNodes(BNode)) == term
    assert substitute("ASK { ?s ?p ?v }", {"v": term}) == f"ASK {{ ?s ?p {to_sparql(term)} }}"


#: A program's IRIs are no prefixed names (`prefixed-name`).
WRITTEN_TERMS = PROPERTIES_TERMS.filter(
    lambda term: not (isinstance(term, URIRef) and term.startswith("schema:"))
)


@quickly
@given(st.lists(st.dictionaries(st.sampled_from("abc"), WRITTEN_TERMS), max_size=5))
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


E = "http://e/"
A, P = URIRef(f"{E}a"), URIRef(f"{E}p")
ROW = {
    "iri": uri(f"{E}x"),
    "label": text("København", "da"),
    "count": text("007", "", str(XSD.integer)),
    "plain": text('say "hi"'),
    "blank": {"type": "bnode", "value": "nodeID://b0"},
}
TABLE = {"head": {"vars": [*ROW, "unbound"]}, "results": {"bindings": [ROW]}}


def put(data: Any, url: str = f"{E}docs/a/") -> Graph:
    """Return what a PUT of JSON-LD writes, in a row of `TABLE`."""
    web = Memory()
    outcome(op("ForEach", select=TABLE, operation=op("PUT", url=url, data=data)), web)
    return web.written[url]


def objects(data: Any) -> set[Any]:
    """Return the values of `p` of the resource `a`."""
    return set(put({"@id": str(A), **data}).objects(A, P))


EMBEDDED: list[tuple[str, Any, set[Any]]] = [
    ("a URI stays a URI", {str(P): value("iri")}, {URIRef(f"{E}x")}),
    ("a language is kept", {str(P): value("label")}, {Literal("København", lang="da")}),
    (
        "a datatype and the lexical form are kept",
        {str(P): value("count")},
        {Literal("007", datatype=XSD.integer, normalize=False)},
    ),
    ("a plain string is one", {str(P): value("plain")}, {Literal('say "hi"')}),
    ("an unbound variable is no value", {str(P): value("unbound")}, set()),
    (
        "several operations in a list",
        {str(P): [value("iri"), value("unbound"), value("plain"), "x"]},
        {URIRef(f"{E}x"), Literal('say "hi"'), Literal("x")},
    ),
    (
        "a list that an operation yields is several values",
        {str(P): op("ForEach", select=["x", uri(f"{E}y")], operation=op("Current"))},
        {Literal("x"), URIRef(f"{E}y")},
    ),
    ("Str makes a string of a URI", {str(P): op("Str", input=value("iri"))}, {Literal(f"{E}x")}),
    ("URI makes a URI of a string", {str(P): op("URI", input=f"{E}y")}, {URIRef(f"{E}y")}),
    ("as @id", {str(P): {"@id": value("iri")}}, {URIRef(f"{E}x")}),
    ("a string as @id is resolved", {str(P): {"@id": op("Str", input="y")}}, {
        URIRef(f"{E}docs/a/y")}),
    ("as @value alone, the term is kept", {str(P): {"@value": value("label")}}, {
        Literal("København", lang="da")}),
    (
        "as @value with a language, its text",
        {str(P): {"@value": value("label"), "@language": "en"}},
        {Literal("København", lang="en")},
    ),
    (
        "as @value with a datatype, its text",
        {str(P): {"@value": value("count"), "@type": str(XSD.string)}},
        {Literal("007")},
    ),
    (
        "an unbound @value is no value",
        {str(P): {"@value": value("unbound"), "@language": "en"}},
        set(),
    ),
    (
        "a language from an operation",
        {str(P): {"@value": "x", "@language": op("Str", input="fr")}},
        {Literal("x", lang="fr")},
    ),
    (
        "the context's default language does not touch what has none",
        {"@context": {"@language": "da"}, str(P): [value("plain"), "hej"]},
        {Literal('say "hi"'), Literal("hej", lang="da")},
    ),
    (
        "the context's type coercion does not touch literals",
        {"@context": {"p": {"@id": str(P), "@type": "@id"}}, "p": [value("label"), "x"]},
        {Literal("København", lang="da"), URIRef(f"{E}docs/a/x")},
    ),
    (
        "in a language map, its text",
        {
            "@context": {"p": {"@id": str(P), "@container": "@language"}},
            "p": {"de": value("label")},
        },
        {Literal("København", lang="de")},
    ),
    (
        "a context from an operation",
        {"@context": {"p": op("Concat", inputs=[E, "p"])}, "p": "x"},
        {Literal("x")},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "values"), [c[1:] for c in EMBEDDED], ids=[c[0] for c in EMBEDDED]
)
def test_operations_inside(data: Any, values: set[Any]) -> None:
    found = objects(data)
    assert found == values
    # rdflib compares numbers of equal value as different terms, but languages without case.
    assert {term.n3() for term in found} == {term.n3() for term in values}


def test_types_and_reverse_properties_from_operations() -> None:
    data = {"@id": str(A), "@type": [value("iri"), f"{E}T"], "@reverse": {str(P): value("iri")}}
    assert set(put(data)) == {
        (A, RDF.type, URIRef(f"{E}x")),
        (A, RDF.type, URIRef(f"{E}T")),
        (URIRef(f"{E}x"), P, A),
    }


def test_a_blank_node_is_the_same_in_all_of_a_document() -> None:
    graph = put({"@id": str(A), str(P): [value("blank"), {"@id": value("blank"), str(P): "x"}]})
    (blank,) = graph.objects(A, P)
    assert isinstance(blank, BNode)
    assert set(graph.objects(blank, P)) == {Literal("x")}


def test_a_list_keeps_its_order() -> None:
    graph = put({"@id": str(A), str(P): {"@list": [value("label"), value("iri"), 1]}})
    (head,) = graph.objects(A, P)
    assert [item.n3() for item in graph.items(head)] == [
        '"København"@da', f"<{E}x>", f'"1"^^<{XSD.integer}>'
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        {"@graph": [{"@id": str(A), str(P): "x"}, op("GET", url=f"{E}b")]},
        [{"@id": str(A), str(P): "x"}, op("GET", url=f"{E}b")],
        {"@id": str(A), str(P): "x", "@included": op("GET", url=f"{E}b")},
        {"@context": {"@vocab": E, "@language": "da", "@base": "http://other/"},
         "@graph": [{"@id": str(A), "p": {"@value": "x"}}, op("GET", url=f"{E}b")]},
    ],
)  # fmt: skip
def test_a_graph_may_stand_among_nodes(data: Any) -> None:
    web = Memory(documents={f"{E}b": f"<{E}b> <{E}p> 'y', [ <{E}p> <c> ] ."})
    outcome(op("PUT", url=f"{E}doc", data=data), web)
    expected = Graph().parse(
        data=f"<{E}a> <{E}p> 'x' . <{E}b> <{E}p> 'y', [ <{E}p> <{E}c> ] .", format="turtle"
    )
    assert isomorphic(web.written[f"{E}doc"], expected)


BASES: list[tuple[str, str, str]] = [
    ("", f"{E}docs/a/", "the document itself"),
    ("#it", f"{E}docs/a/#it", "a fragment"),
    ("b", f"{E}docs/a/b", "below"),
    ("../b", f"{E}docs/b", "beside"),
    ("/b", f"{E}b", "from the root"),
    ("//f/b", "http://f/b", "another host"),
    ("?q", f"{E}docs/a/?q", "a query"),
    ("http://f/", "http://f/", "in full"),
]


@pytest.mark.parametrize(("relative", "full"), [b[:2] for b in BASES], ids=[b[2] for b in BASES])
def test_relative_iris_resolve_against_the_document(relative: str, full: str) -> None:
    assert set(put({"@id": relative, str(P): "x"}).subjects()) == {URIRef(full)}


def test_the_document_may_be_computed_for_each_row() -> None:
    web = Memory()
    url = op("ResolveURI", base=E, relative=op("Current"))
    each = op("PUT", url=url, data=op("Merge", graphs=[{"@id": "#it", str(P): op("Current")}]))
    outcome(op("ForEach", select=["1", "2"], operation=each), web)
    assert set(web.written[f"{E}2"]) == {(URIRef(f"{E}2#it"), P, Literal("2"))}


def test_the_context_of_a_document_may_set_another_base() -> None:
    graph = put({"@context": {"@base": "http://f/"}, "@id": "b", str(P): "x"})
    assert set(graph.subjects()) == {URIRef("http://f/b")}


REFUSED: list[tuple[str, Any, str]] = [
    (
        "a remote context",
        {"@context": "https://schema.org/", "name": "x"},
        "$.args.data.@context remote-context",
    ),
    (
        "a remote context among others",
        {"@context": [{"p": str(P)}, "https://schema.org/"], "p": "x"},
        "$.args.data.@context[1] remote-context",
    ),
    (
        "a remote context inside",
        {str(P): {"@context": "https://schema.org/", "name": "x"}},
        "$.args.data[\"http://e/p\"].@context remote-context",
    ),
    (
        "a key that means nothing",
        {"@id": str(A), "name": "x"},
        "$.args.data.name unmapped-key",
    ),
    ("a subject alone", {"@context": {"n": str(P)}, "@id": str(A)}, "$.args.data no-statements"),
    ("an @id with a space", {"@id": "http://e/a b", str(P): "x"}, "$.args.data.@id bad-iri"),
    ("an @id with two fragments", {"@id": "http://e/a#b#c", str(P): 1}, "$.args.data.@id bad-iri"),
    ("a key with a space", {f"{E}a b": "x"}, "$.args.data[\"http://e/a b\"] bad-iri"),
    ("a blank node as key", {"_:b": "x"}, "$.args.data[\"_:b\"] blank-property"),
    ("a prefix that is not declared", {"schema:name": "x"},
     "$.args.data[\"schema:name\"] undeclared-prefix"),
    ("in a type", {"@type": ["foaf:Person"]}, "$.args.data.@type undeclared-prefix"),
    ("in an @id", {str(P): {"@id": "dbr:X"}}, "$.args.data[\"http://e/p\"].@id undeclared-prefix"),
    ("a reference with a space", {"@context": {"p": {"@id": str(P), "@type": "@id"}},
     "p": "http://e/a b"}, "$.args.data.p bad-iri"),
    ("a reference with a prefix", {"@context": {"p": {"@id": str(P), "@type": "@id"}},
     "p": ["dbr:X"]}, "$.args.data.p undeclared-prefix"),
    ("a key beside a language map", {"@context": {"l": {"@id": str(P), "@container": "@language"}},
     "l": {"da": "x"}, "nmae": "y"}, "$.args.data.nmae unmapped-key"),
    ("no JSON-LD", {"@id": 5, str(P): "x"}, "$.args.data bad-jsonld"),
    ("a value with a bad type", {str(P): {"@value": "x", "@type": 5}}, "$.args.data bad-jsonld"),
    ("a URI instead of a graph", uri(E), "$.args.data wrong-type"),
    ("an address instead of a graph", E, "$.args.data wrong-type"),
    ("a string instead of a graph", "x", "$.args.data wrong-type"),
    ("a table in a value", {str(P): op("Bindings", table=[]), "@id": op("PUT", url=E, data=[])},
     "$.args.data.@id wrong-type"),
    ("a graph as a value", {str(P): op("GET", url=E)}, "$.args.data[\"http://e/p\"] wrong-type"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "reported"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_what_is_refused_before_the_run(data: Any, reported: str) -> None:
    wrong = mistakes(op("PUT", url=f"{E}a", data=data))
    assert len(wrong) == 1
    assert said(wrong[0]) == reported


def test_documents_in_a_list_are_looked_at_as_others() -> None:
    kept = op("Variable", name="a", value=[{"@id": "dbr:X", "schema:name": "x"}])
    assert mistakes([kept])[0].code == "undeclared-prefix"
    assert mistakes([op("Variable", name="a", value=[{"x": text("y")}, ["z"]])]) == ()


@pytest.mark.parametrize(
    "data",
    [
        {
            "@context": {"l": {"@id": str(P), "@container": "@language"}},
            "l": {"da": "x", "en": "y"},
        },
        {"@context": {"i": {"@id": str(P), "@container": "@index"}}, "i": {"first": "x", "2": "y"}},
        {"@context": {"s": {"@id": str(P), "@container": "@set"}}, "s": ["x", "y"]},
        {"@context": {"j": {"@id": str(P), "@type": "@json"}}, "j": {"any": {"key": 1}}},
        {"@context": {"g": {"@id": str(P), "@container": "@id"}}, "g": {"http://e/x": {str(P): 1}}},
    ],
)
def test_keys_of_maps_are_no_properties(data: Any) -> None:
    assert mistakes(op("PUT", url=f"{E}a", data=data)) == ()


def test_a_relative_iri_needs_something_to_be_relative_to() -> None:
    wrong = mistakes(op("Merge", graphs=[{"@id": "a", str(P): "x"}]))
    assert [said(one) for one in wrong] == ["$.args.graphs[0].@id relative-iri"]


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        ({"@id": value("unbound"), str(P): "x"}, "$.args.operation.args.data.@id wrong-type"),
        (
            {"@id": str(A), str(P): op("Current")},
            '$.args.operation.args.data["http://e/p"] wrong-type',
        ),
        ({"@id": op("Current"), str(P): "x"}, "$.args.operation.args.data.@id wrong-type"),
        (
            {
                "@context": {"geo": "http://e/geo#"},
                "@id": op("URI", input="geo:55.67,12.56"),
                str(P): "x",
            },
            "$.args.operation.args.data.@id prefix-clash",
        ),
        (
            {
                "@context": {"http": "http://e/geo#", "j": {"@id": str(P), "@type": "@json"}},
                "@id": value("iri"),
                "j": value("label"),
            },
            "$.args.operation.args.data.j wrong-type",
        ),
        (value("iri"), "$.args.operation.args.data wrong-type"),
        (value("label"), "$.args.operation.args.data wrong-type"),
    ],
)
def test_what_is_refused_in_the_run(data: Any, reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        put(data)
    assert str(failed.value).startswith("$.args.operation.args.data")
    assert said(failed.value) == reported


def test_blank_nodes_of_different_documents_stay_apart() -> None:
    web = Memory(
        documents={f"{E}1": f"_:b <{E}p> 'x' .", f"{E}2": f"_:b <{E}p> 'x' ."},
        data=f"[ <{E}p> 'x' ] <{E}q> 1 .",
    )
    one = {"@id": "_:b", str(P): "x"}
    query = f"CONSTRUCT {{ ?s <{E}p> 'x' }} WHERE {{ ?s <{E}p> 'x' }}"
    construct = op("CONSTRUCT", endpoint=E, query=query)
    graphs = [one, one, op("GET", url=f"{E}1"), op("GET", url=f"{E}2"), construct, construct]
    merged = graph_from_jsonld(outcome(op("Merge", graphs=graphs), web))
    assert len(merged) == len(set(merged.subjects())) == 6


def test_blank_nodes_of_one_document_stay_together() -> None:
    document = {"@id": "_:b", str(P): {"@id": "_:c", str(P): {"@id": "_:b"}}}
    twice = [
        op("Variable", name="g", value=document),
        op("Merge", graphs=[value("$g"), value("$g")]),
    ]
    assert len(graph_from_jsonld(outcome(twice)[1])) == 2


def test_named_graphs_of_a_document_are_taken_together() -> None:
    data = {"@id": "http://e/g", str(P): "x", "@graph": [{"@id": str(A), str(P): "y"}]}
    assert len(put(data)) == 2


def test_graphs_of_a_loop_are_merged() -> None:
    web = Memory(documents={f"{E}{n}": f"<> <{E}p> {n} ." for n in (1, 2)})
    each = op("ForEach", select=[f"{E}1", f"{E}2"], operation=op("GET", url=op("Current")))
    nested = op("ForEach", select=[f"{E}1", f"{E}2"], operation=[op("GET", url=op("Current"))])
    for loop in (each, nested):
        merged = graph_from_jsonld(outcome(op("Merge", graphs=loop), web))
        assert {str(s) for s in merged.subjects()} == {f"{E}1", f"{E}2"}
    mixed = op("Merge", graphs=[each, {"@id": str(A), str(P): "x"}])
    assert len(graph_from_jsonld(outcome(mixed, web))) == 3


WRITTEN: list[tuple[str, Any]] = [
    ("an empty graph", []),
    ("an odd type", [(A, RDF.type, Literal("x")), (A, RDF.type, BNode("b"))]),
    ("a scheme like a prefix", [(A, P, URIRef("schema:x")), (A, P, URIRef("http://schema.org/x"))]),
    ("a list with a shared tail", [
        (A, P, BNode("l")), (A, P, BNode("m")), (BNode("l"), RDF.first, Literal(1)),
        (BNode("l"), RDF.rest, BNode("m")), (BNode("m"), RDF.first, Literal(2)),
        (BNode("m"), RDF.rest, RDF.nil),
    ]),
    ("a loop of blank nodes", [(BNode("l"), P, BNode("m")), (BNode("m"), P, BNode("l"))]),
    ("JSON with blanks", [(A, P, Literal('{ "a": 1 }', datatype=RDF.JSON))]),
    ("an ill-typed number", [(A, P, Literal("x", datatype=XSD.integer))]),
    ("a name that is no local name", [(A, P, URIRef("http://schema.org/a(b)"))]),
    ("a name with nothing behind", [(A, P, URIRef("http://schema.org/"))]),
    ("two slashes", [(A, P, URIRef("http://schema.org//x"))]),
    ("a urn", [(URIRef("urn:a:b"), URIRef("urn:p"), URIRef("mailto:x@y"))]),
]  # fmt: skip


@pytest.mark.parametrize("triples", [c[1] for c in WRITTEN], ids=[c[0] for c in WRITTEN])
def test_what_is_written_reads_back(triples: Any) -> None:
    graph = Graph()
    for triple in triples:
        graph.add(triple)
    assert isomorphic(graph_from_jsonld(graph_to_jsonld(graph)), graph)


S = "http://schema.org/"
LANGUAGES = {"l": {"@id": "http://l", "@container": "@language"}}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (
            {
                "@context": {"@language": "en_US", "schema": S},
                "@id": "http://a",
                "schema:name": "x",
            },
            "bad-language-tag",
        ),
        (
            {"@id": "http://a", "http://p": {"@value": "x", "@language": "en_US"}},
            "bad-language-tag",
        ),
        ({"@context": LANGUAGES, "@id": "http://a", "l": {"en_US": "x"}}, "bad-language-tag"),
        (
            [
                {"@context": {"schema": S}, "@id": "http://a", "schema:name": "x"},
                {"@id": "http://b", "schema:name": "y"},
            ],
            "undeclared-prefix",
        ),
        (
            [
                {"@context": {"n": f"{S}name"}, "@id": "http://a", "n": "x"},
                {"@id": "http://b", "n": 1},
            ],
            "unmapped-key",
        ),
        ({"@context": {"GO": f"{S}GO_"}, "@id": "GO:1", "http://p": "x"}, "no-prefix"),
    ],
)
def test_what_a_processor_would_drop_or_misread(document: Any, code: str) -> None:
    with pytest.raises(ProgramError) as failed:
        graph_from_jsonld(document, prefixes={"schema": S})
    assert failed.value.code == code


def test_a_namespace_that_ends_in_a_letter_is_a_prefix_where_it_says_so() -> None:
    context = {"GO": {"@id": f"{S}GO_", "@prefix": True}, "@language": "en-US"}
    found = graph_from_jsonld({"@context": context, "@id": "GO:1", "http://p": "x"})
    assert list(found) == [(URIRef(f"{S}GO_1"), URIRef("http://p"), Literal("x", lang="en-us"))]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (None, "wrong-type"),
        ({"@op": "GET", "args": {"url": "http://a"}}, "misplaced-operation"),
        ({"@id": "http://a", "http://p": [{"@op": "Str"}]}, "misplaced-operation"),
        ({"@id": "http://a", "rdfs:label": "x"}, "undeclared-prefix"),
    ],
)
def test_a_given_value_is_read_as_strictly_as_a_program(given: Any, code: str) -> None:
    with pytest.raises(ProgramError) as failed:
        from_json(given)
    assert failed.value.code == code
