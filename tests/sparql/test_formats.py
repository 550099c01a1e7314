"""Reading results and graphs: terms, truncation, messages of engines, odd data."""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from reasoningbank import spill
from reasoningbank.sparql import GraphResult, SPARQLClient, TableResult, Term, full, values
from reasoningbank.sparql.formats import Broken, Unfaithful, read_graph, read_table
from reasoningbank.sparql.results import columns, decode
from reasoningbank.sparql.terms import read_term
from reasoningbank.spill import Spool, is_on_disk

from .many_rows import parsed_tsv

XSD = "http://www.w3.org/2001/XMLSchema#"
A = NamedNode("http://e/a")
NASTY = [
    "",
    " ",
    "two\nlines",
    "tab\there",
    "return\rhere\r\n",
    'a "quoted" word',
    "back\\slash\\n",
    "'single'",
    "naïve Ünïcode 漢字 😀",
    "\u0001\u007f\u0085\u2028",
    "?x\t<http://e/>",
    "NULL",
    "null",
    "NA",
    "1",
    "true",
    "_:b0",
    "@en",
    '"',
]
TERMS: list[Term] = [
    *(Literal(text) for text in NASTY),
    *(Literal(text, language="de-ch") for text in NASTY),
    *(Literal(text, datatype=NamedNode("http://e/type")) for text in NASTY),
    *(Literal("7", datatype=NamedNode(XSD + name)) for name in ("integer", "float", "string")),
    Literal("1.5", datatype=NamedNode(XSD + "decimal")),
    Literal("1.5", datatype=NamedNode(XSD + "double")),
    Literal("INF", datatype=NamedNode(XSD + "double")),
    Literal("not a number", datatype=NamedNode(XSD + "integer")),
    Literal("true", datatype=NamedNode(XSD + "boolean")),
    Literal("2020-01-01", datatype=NamedNode(XSD + "date")),
    NamedNode("http://e/é%20(x)?q=1&r='2'#frag"),
    NamedNode("urn:x:y"),
]


def table_of(result: object) -> TableResult:
    assert isinstance(result, TableResult)
    return result


def test_every_term_survives_the_real_server(client: SPARQLClient) -> None:
    found = table_of(client.query(f"SELECT ?x {{ {values('x', TERMS)} }}"))
    assert [row[0] for row in found.rows()] == TERMS


def test_random_terms_survive_the_real_server(client: SPARQLClient) -> None:
    chance = random.Random(7)
    alphabet = [chr(c) for c in range(0x80)] + list("\"\\\t\n\r'<>é漢😀\u2028\ufeff")
    for _ in range(10):
        terms: list[Term] = []
        for _ in range(40):
            text = "".join(chance.choices(alphabet, k=chance.randint(0, 12)))
            terms.append(
                chance.choice(
                    [
                        Literal(text),
                        Literal(text, language=chance.choice(["en", "it-it", "zh-hans-cn"])),
                        Literal(text, datatype=NamedNode(XSD + "anyURI")),
                    ]
                )
            )
        found = table_of(client.query(f"SELECT ?x {{ {values('x', terms)} }}"))
        assert [row[0] for row in found.rows()] == terms


def test_triple_terms_and_directions_survive_the_real_server(client: SPARQLClient) -> None:
    term = Triple(A, A, Triple(A, A, Literal("x\ty\n")))
    query = f"SELECT ?x ?y {{ BIND({full(term)} AS ?x) BIND('ab'@he--rtl AS ?y) }}"
    (row,) = table_of(client.query(query)).rows()
    assert row[0] == term
    assert isinstance(row[1], Literal)
    assert (row[1].language, str(row[1].direction)) == ("he", "rtl")


def result_of(names: Sequence[str], rows: Sequence[Sequence[Term | None]]) -> TableResult:
    texts = [[None if term is None else full(term) for term in row] for row in rows]
    return TableResult(columns(names, texts), len(texts))


def test_terms_survive_in_process() -> None:
    rows = [(term, None, Triple(A, A, A), BlankNode("b1")) for term in TERMS]
    result = result_of(["a", "b", "c", "d"], rows)
    assert result.rows() == rows
    assert result.variables == ("a", "b", "c", "d")


def test_only_the_rows_that_are_looked_at_are_decoded() -> None:
    result = result_of(["n"], [[Literal(n)] for n in range(10)])
    assert [row[0] for row in result.rows(2, 4)] == [Literal(2), Literal(3)]
    assert [row[0] for row in result.rows(-1)] == [Literal(9)]
    assert result.rows(20) == []
    assert result.rows(4, 2) == []


def test_unbound_empty_and_no_columns_are_distinguished(client: SPARQLClient) -> None:
    one = table_of(client.query("SELECT ?x { VALUES ?x { UNDEF '' UNDEF } }"))
    assert one.rows() == [(None,), (Literal(""),), (None,)]
    assert one.table.column("x").null_count == 2
    nothing = table_of(client.query("SELECT * {}"))
    assert (nothing.variables, nothing.n_rows, nothing.rows()) == ((), 1, [()])
    empty = table_of(client.query("SELECT ?x ?y { FILTER(false) }"))
    assert (empty.variables, empty.n_rows, empty.rows()) == (("x", "y"), 0, [])


def test_a_graph_is_read_without_repetitions(client: SPARQLClient) -> None:
    found = client.query("CONSTRUCT { ?s a :T ; :says ?o } { ?s :in ?x OPTIONAL { ?s :says ?o } }")
    assert isinstance(found, GraphResult)
    said = Triple(NamedNode("http://e/pine"), NamedNode("http://e/near"), NamedNode("http://e/oak"))
    triples = found.triples()
    assert len(triples) == len(set(triples)) == found.n_rows == 3
    assert said in [t.object for t in triples]
    assert found.triples(1, 2) == triples[1:2]


def read(body: str, *, cut: bool = False, max_rows: int = 100) -> tuple[list[object], bool]:
    result = parsed_tsv(body.encode(), cut=cut, max_rows=max_rows)
    return [list(row) for row in result.rows()], result.truncated


def test_bare_numbers_and_booleans_are_decoded() -> None:
    rows, _ = read("?x\n1\n-2.5\n1.5e0\n+3\n.5\ntrue\n")
    types = ["integer", "decimal", "double", "integer", "decimal", "boolean"]
    assert [row[0].datatype.value for row in rows] == [XSD + name for name in types]  # type: ignore[attr-defined, index]


@pytest.mark.parametrize("body", ["?x\r\n1\r\n2\r\n", "?x\n1\n2", "\ufeff?x\n1\n2\n", "$x\n1\n2\n"])
def test_variants_of_tsv_are_read(body: str) -> None:
    assert read(body) == ([[Literal(1)], [Literal(2)]], False)


def test_rows_beyond_the_bound_are_cut() -> None:
    assert read("?x\n1\n2\n3\n", max_rows=2) == ([[Literal(1)], [Literal(2)]], True)
    assert read("?x\n1\n2\n33", cut=True) == ([[Literal(1)], [Literal(2)]], True)
    assert read("\n\n\n\n", max_rows=2) == ([[], []], True)


@pytest.mark.parametrize(
    "body",
    [
        "?x\nThe SPARQL operation has been cancelled",
        "?x\n1\nThe SPARQL operation has been cancelled",
        "?x\t?y\n1\t2\nThe SPARQL operation has been cancelled",
        "?x\t?y\n1\t2\nError 404 with payload:\n<html>\t2\n</html>\n",
        "\nThe SPARQL operation has been cancelled",
        "?x\n<http://e/a>The SPARQL operation has been cancelled",
    ],
)
def test_a_message_in_place_of_rows_is_not_a_row(body: str) -> None:
    with pytest.raises(Broken) as caught:
        read(body)
    assert "1\t2" not in str(caught.value)
    assert "cancelled" in str(caught.value) or "404" in str(caught.value)


@pytest.mark.parametrize("body", ['"x"\n1\n', "x,y\n1,2\n", "?x\n" + '"a\rb"\n'])
def test_unfaithful_tsv_is_not_guessed_at(body: str) -> None:
    with pytest.raises((Unfaithful, Broken)):
        read(body)


def test_json_of_older_engines_and_xml_are_read() -> None:
    old = b"""{"head":{"vars":["x","y"]},"results":{"bindings":[
      {"x":{"type":"typed-literal","value":"1","datatype":"http://www.w3.org/2001/XMLSchema#integer"},
       "y":{"type":"literal","value":"Baum","xml:lang":"de"}},{}]}}"""
    rows = read_table(old, "application/sparql-results+json", cut=False, max_rows=9).rows()
    assert rows == [(Literal(1), Literal("Baum", language="de")), (None, None)]
    xml = b"""<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#">
      <head><variable name="x"/></head><results><result><binding name="x"><uri>http://e/a</uri>
      </binding></result></results></sparql>"""
    result = read_table(xml, "application/sparql-results+xml", cut=False, max_rows=9)
    assert result.rows() == [(A,)]


def test_json_that_was_cut_keeps_its_whole_rows() -> None:
    body = b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"http://e/a"}},{"x"'
    result = read_table(body, "application/json", cut=True, max_rows=9)
    assert (result.rows(), result.truncated) == ([(A,)], True)
    with pytest.raises(Broken):
        read_table(body, "application/json", cut=False, max_rows=9)


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>'
    b'<r xmlns="http://www.w3.org/2005/sparql-results#">&b;</r>'
)


@pytest.mark.parametrize("word", [b"!DOCTYPE", b"!doctype", b"!DocType"])
def test_xml_whose_entities_unfold_is_refused_before_it_is_parsed(word: bytes) -> None:
    laughs = LAUGHS.replace(b"!DOCTYPE", word)
    with pytest.raises(Unfaithful, match="entities"):
        read_table(laughs, "application/sparql-results+xml", cut=False, max_rows=9)
    with pytest.raises(Unfaithful, match="entities"):
        read_graph(spool_of(laughs), "application/rdf+xml", cut=False, max_rows=9)


JSON = "application/sparql-results+json"
HEAD = b'{"head":{"vars":["x"]},"results":{"bindings":['


def broken_off() -> object:
    return read_table(HEAD + b'{"x":{"type":"uri","va', JSON, cut=False, max_rows=9)


def test_what_is_not_a_term_is_read_as_text() -> None:
    assert read_term('"x') == Literal("x")
    assert decode(columns(("x",), [['"1"'], ['"x']]), 2) == [(Literal("1"),), (Literal("x"),)]


def test_an_error_can_be_dropped_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(broken_off).exception()
    assert isinstance(found, Broken)
    del found
    gc.collect()
    assert not unraisable


LINE = '<http://e/s> <http://e/p> "{}" .\n'
BODIES = {
    "triples": b'<http://e/a> <http://e/b> _:x .\n_:x <http://e/b> "l\\n"@en-GB .\n',
    "repeated": (LINE.format(1) + LINE.format(2) + LINE.format(1)).encode(),
    "written otherwise": b'<http://e/a> <u:b> "\\u00E9" .\n<http://e/a>  <u:b> "\xc3\xa9".',
    "no last newline": LINE.format(1).encode().rstrip(),
    "nothing": b"",
    "message": LINE.format(1).encode() + b"The query was cancelled",
    "broken off": LINE.format(1).encode() + b"<http://e/a> <http://e/b> ",
    "not UTF-8": b'<http://e/a> <http://e/b> "\xff" .\n',
}


def spool_of(body: bytes, max_rows: int = 99) -> Spool:
    spool = Spool(max_rows, distinct=True)
    spool.feed(body)
    return spool


def graph_of(body: bytes, *, cut: bool = False, max_rows: int = 99) -> Any:
    """Return what is read from N-Triples, whatever that is."""
    kind = "application/n-triples"
    try:
        result = read_graph(spool_of(body, max_rows), kind, cut=cut, max_rows=max_rows)
    except (Broken, Unfaithful) as error:
        return type(error)
    assert result.chars == GraphResult(result.table, result.n_rows).chars
    return result.triples(), result.n_rows, result.truncated


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("max_rows", [1, 99])
def test_it_makes_no_difference_how_much_is_read_at_once(
    name: str, max_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = graph_of(BODIES[name], max_rows=max_rows)
    for block in (1, 60, 200):
        monkeypatch.setattr(spill, "BLOCK_BYTES", block)
        assert graph_of(BODIES[name], max_rows=max_rows) == whole


def test_what_each_of_these_graphs_is() -> None:
    seen = {name: graph_of(body) for name, body in BODIES.items()}
    assert {name: of if isinstance(of, type) else of[1:] for name, of in seen.items()} == {
        "triples": (2, False),
        "repeated": (2, False),
        "written otherwise": (1, False),
        "no last newline": (1, False),
        "nothing": (0, False),
        "message": Broken,
        "broken off": Unfaithful,
        "not UTF-8": Unfaithful,
    }
    assert graph_of(BODIES["repeated"], max_rows=1)[1:] == (1, True)


def test_a_graph_that_was_cut_keeps_its_whole_triples() -> None:
    body = (LINE.format(1) + LINE.format(2)).encode()
    assert graph_of(body[:-3], cut=True)[1:] == (1, True)


def test_no_more_is_wanted_once_there_are_triples_enough() -> None:
    spool = Spool(2, distinct=True)
    fed = [spool.feed(LINE.format(n % 3).encode()) for n in (0, 0, 1, 1, 2)]
    assert fed == [False, False, False, False, True]


def test_a_large_graph_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(spill, "MEMORY_BYTES", 5_000)
    body = b"".join(LINE.format(n % 500).encode() for n in range(1_500))
    spool = spool_of(body, 10_000)
    result = read_graph(spool, "application/n-triples", cut=False, max_rows=10_000)
    assert (is_on_disk(result.table), result.n_rows, result.truncated) == (True, 500, False)
    assert result.table["object"].to_pylist() == [f'"{n}"' for n in range(500)]
