"""Tokens are those of a parser that reads by context: nothing hides from the checks."""

from __future__ import annotations

import subprocess
import sys

import pyoxigraph
import pytest
from pyparsing import ParseException

from reasoningbank.algebra.queries import RowFilter
from reasoningbank.algebra.terms import ProgramError
from reasoningbank.corpus import load_pack
from reasoningbank.errors import QueryError
from reasoningbank.ldp.exchange import Refused, updated
from reasoningbank.nl2sparql import load_patterns, patterns_of_query
from reasoningbank.sparql import prepare
from reasoningbank.sparql.query import parse_update
from reasoningbank.sparql.tokens import check_update_size, tokenize

SERVICE = "SERVICE <http://evil.example/> { ?s ?p ?o }"
#: What the longest match takes for an IRI, a string or a comment, and an engine for code.
HIDDEN = {
    "a string behind a comment": f'?a<#>""")\n2) {SERVICE} #""")\n',
    "a string in single quotes": f"?a<'>' || 1=1) {SERVICE} #'\n",
    "a comment behind two signs": f"?a<<#>) {SERVICE}\n",
    "behind a space": f'?a <#>""")\n2) {SERVICE} #""")\n',
    "behind a bracket": f'(?a)<#>""")\n2) {SERVICE} #""")\n',
    "behind a number": f'1<#>""")\n2) {SERVICE} #""")\n',
    "behind EXISTS": f'EXISTS {{}}<#>""")\n2) {SERVICE} #""")\n',
    "in a function": f'BOUND(?a<#>""")\n2) {SERVICE} #""")\n',
    "in a bracket that an IRI opens": f"?a<(1>2)||?a<'>' ) {SERVICE} #'\n",
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=list(HIDDEN))
@pytest.mark.parametrize(
    "around",
    ["SELECT * {{ BIND(1 AS ?a) FILTER({} }}", "SELECT * {{ BIND(1 AS ?a) FILTER <f:f>({} }}",
     "SELECT * {{ ?s <p:p> (1 <l:l>) ; a (2 <l:l>) FILTER({} }}",
     "SELECT * {{ VALUES (?a ?b) {{ (<a:a> <b#b>) }} FILTER({} }}"],
)  # fmt: skip
def test_no_service_hides(around: str, hidden: str) -> None:
    query = around.format(hidden)
    seen = any(token.is_word("SERVICE") for token in tokenize(query))
    try:
        reached = "SERVICE" in query and not _refused(query)
    except QueryError:
        return
    assert seen or not reached


def _refused(query: str) -> bool:
    """Return whether every reader refuses a query, or reads no SERVICE in it."""
    prepared = prepare(query, services=())
    try:
        list(pyoxigraph.Store().query(prepared.text.replace("evil.example", "127.0.0.1:1")))  # type: ignore[arg-type]
    except SyntaxError:
        return True
    except (RuntimeError, OSError, ValueError):
        return False
    return True


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=list(HIDDEN))
def test_a_service_that_hides_is_refused(hidden: str) -> None:
    with pytest.raises(QueryError):
        prepare(f"SELECT * {{ BIND(1 AS ?a) FILTER({hidden} }}", services=())


def test_no_load_hides_in_an_update() -> None:
    load = 'LOAD <http://127.0.0.1:1/> #""") }\n'
    update = f'DELETE {{}} WHERE {{ BIND(1 AS ?a) FILTER(?a<#>""")\n2) }} ; {load}'
    with pytest.raises(Refused, match="LOAD reaches beyond the document"):
        updated([], update, "http://e/d")


def test_no_pattern_hides_in_a_condition() -> None:
    text = f'?a <#>"""\n2 && EXISTS {{ {SERVICE} }} #"""'
    with pytest.raises(ProgramError, match="is not a condition"):
        RowFilter(text)
    assert RowFilter("?a<1&&2>?b").names == ("a", "b")


@pytest.mark.parametrize("operand", ["1", "?a", "'x'@en"])
def test_no_nesting_hides_in_an_iri(operand: str) -> None:
    deep = f"{operand}<{'(' * 15_000}1{')' * 15_000}&&2>1"
    with pytest.raises(QueryError, match="nested too deeply"):
        prepare(f"SELECT * {{ FILTER({deep}) }}")
    signs = f"{operand}<{'-' * 15_000}1&&2>1"
    with pytest.raises(QueryError, match="nested too deeply"):
        prepare(f"SELECT * {{ FILTER({signs}) }}")


@pytest.mark.parametrize(
    ("query", "iris"),
    [
        ("SELECT * { VALUES (?a ?b) { (<a#x> <b#y>) (UNDEF <c#z>) } }", 3),
        ("SELECT * { ?s <p#p> (1 <b#c>) ; a (<d#e> <f#g>) . <s#s> <l#l> ((1 <x#x>) <y#y>) }", 8),
        ("SELECT * { ?s (<a#b>|^<c#d>)+/<e#f>* <o#o> , <q#q> }", 5),
        ("ASK { FILTER(?x IN (<a#b>, <c#d>) && ?x = <e#f> && <g#h>(?x, <i#j>)) }", 5),
        ("SELECT (<f#x>(?a) AS ?b) (COUNT(DISTINCT <g#x>(?a)) AS ?n) { GRAPH <g#g> {} }", 3),
        ("SELECT * { FILTER(EXISTS { ?s ?p <q#r> . ?t <x#y> (1 <z#z>) }) <s#s> <p#p> 1 }", 5),
        ("SELECT * { << <a:a> <b#b> (1 <c#c>) >> ?p ?o {| <p#q> <r#s> |} }", 5),
        ("SELECT * { BIND(<<( <a:a> <b#b> <c#c> )>> AS ?t) }", 3),
        ("SELECT * { FILTER(?a<5&&?b>3||?c<=?d&&?e>=2||?f<(1)||?g>1) }", 0),
    ],
)
def test_iris_stay_iris_where_they_can_stand(query: str, iris: int) -> None:
    assert sum(token.kind == "iri" for token in tokenize(query)) == iris


@pytest.mark.parametrize("mark", ["'", '"'])
def test_a_string_without_its_end_is_read_once(mark: str) -> None:
    tokens = tokenize(f"ASK {{ ?s ?p {mark}" + f"a\\{mark}" * 16_000 + "\n}")
    assert [token.kind for token in tokens[-2:]] == ["other", "punct"]
    assert len(tokens) == 6


def test_what_takes_rdflib_minutes_is_not_given_to_it() -> None:
    patterns = load_patterns(load_pack("liita"))
    for items in (",".join("1" * 2_000), f"( {'1 ' * 2_000})"):
        query = f"SELECT (COUNT(*) AS ?n) {{ ?s ?p {items} }}"
        assert patterns_of_query(query, patterns) == ()
    with pytest.raises(ParseException):
        parse_update(f"INSERT DATA {{ <s:s> <p:p> {','.join('1' * 20)}")
    # A long one is left to Oxigraph, which is not asked here.
    parse_update(f"INSERT DATA {{ <s:s> <p:p> {','.join('1' * 2_000)}")


def test_long_texts_cost_no_squares() -> None:
    # What a regular expression does cannot be counted; squares would take minutes of processor.
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))\n"
        "from reasoningbank.sparql.tokens import tokenize\n"
        "for unit in ('a-', 'a.', 'a', '-', \"'a\", '<a', '?a<'):\n"
        "    tokenize('SELECT ' + unit * (100_000 // len(unit)))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "update",
    [
        "DELETE {} WHERE " + "{" * 101 + "}" * 101,
        "INSERT DATA { <a:s> <a:p> " + "( " * 101 + ")" * 101 + " }",
        "DELETE {} WHERE { FILTER(" + "!" * 301 + "true) }",
        "DELETE {} WHERE { FILTER(" + "1-" * 301 + "1) }",
        "DELETE {} WHERE { FILTER(" + "IF(true,1,1)-" * 301 + "1) }",
        "DELETE {} WHERE { ?s <a:p>" + "/<a:p>" * 301 + " ?o }",
        "DELETE {} WHERE { {} " + "UNION { ?s ?p ?o . } " * 301 + "}",
    ],
)
def test_what_a_parser_would_end_on_is_refused(update: str) -> None:
    with pytest.raises(QueryError, match="the update is nested too deeply"):
        check_update_size(tokenize(update))


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { " + "<a:s> <a:p> -1 ; <a:q> -2 , -3 . " * 1000 + "}",
        "DELETE {} WHERE { ?s ?p ?o FILTER(?o > 1) } ; " * 1000,
        "DELETE {} WHERE " + "{" * 100 + "}" * 100,
    ],
)
def test_what_is_long_and_flat_is_taken(update: str) -> None:
    check_update_size(tokenize(update))
