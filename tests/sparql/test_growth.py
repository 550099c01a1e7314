"""Each step from a text to a request costs about as much as the text is long, or is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from work import calls

from reasoningbank.errors import QueryError
from reasoningbank.lm.reply import queries_in
from reasoningbank.schema import Schema, explain_error, lint
from reasoningbank.sparql import STANDARD_PREFIXES, prepare
from reasoningbank.sparql.syntax import MOST_CHARS

#: A query, with the place of a part, the part, and what separates its repetitions.
GROWING = {
    "objects": ("ASK { ?s ?p %s }", "1", ","),
    "conditions in a list": ("ASK { ?s ?p ?o FILTER(?o IN (%s)) }", "'ab'", ", "),
    "negative numbers in a list": ("ASK { ?s ?p ?o FILTER(?o NOT IN (%s)) }", "-1", ","),
    "arguments": ("ASK { BIND(CONCAT(%s) AS ?x) }", "?y", ","),
    "values": ("ASK { VALUES ?x { %s } ?x ?p ?o }", "rdf:a", " "),
    "rows of values": ("ASK { VALUES (?x ?y) { %s } ?x ?p ?y }", "(1 UNDEF)", " "),
    "dotted names": ("ASK { VALUES ?x { %s } ?x ?p ?o }", "rdf:1.2.3", " "),
    "clauses of values": ("ASK { %s }", "VALUES ?x { 1 }", " "),
    "a template": ("CONSTRUCT { %s } WHERE { ?s ?p ?o }", "?s ?p ?o", " . "),
    "objects of a template": ("CONSTRUCT { ?s ?p %s } WHERE { ?s ?p ?o }", "?o", ","),
    "a collection": ("ASK { ?s ?p (%s) }", "1", " "),
    "a collection of a template": ("CONSTRUCT { ?s ?p (%s) } WHERE { ?s ?p ?o }", "1", " "),
    "groups side by side": ("ASK { %s }", "{}", " "),
    "subqueries": ("ASK { %s }", "{ SELECT * {} }", " "),
    "columns": ("SELECT %s { ?v ?p ?o }", "?v", " "),
    "conditions of groups": ("SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING %s", "(?s = 1)", " "),
    "expressions": ("SELECT * { ?s ?p ?o } ORDER BY %s", "DESC(?s)", " "),
    "graphs": ("SELECT * %s { ?s ?p ?o }", "FROM <a:b>", " "),
    "resources": ("DESCRIBE %s", "<a:b>", " "),
    "a string": ("ASK { ?s ?p '%s' }", "x\\n", ""),
    "a long string": ("ASK { ?s ?p '''%s''' }", "''x", ""),
    "strings that never end": ("ASK { ?s ?p %s", "'a\n", ""),
    "one comment": ("ASK { ?s ?p ?o #%s\n}", "x", ""),
    "comments": ("ASK { %s ?s ?p ?o }", "#x\n", ""),
    "space": ("ASK { %s ?s ?p ?o }", " \n", ""),
    "one name": ("ASK { ?s rdf:%s ?o }", "a.b", ""),
    "IRIs that never end": ("ASK { ?s %s", "<a ", ""),
    "closing brackets": ("ASK { ?s ?p ?o %s", "}", ""),
}
#: Characters at which a query's cost is counted; each is twice the one before.
SIZES = (400, 800, 1_600)


def written(about: tuple[str, str, str], chars: int) -> str:
    text, part, between = about
    return text % between.join([part] * (chars // len(part + between)))


@pytest.mark.parametrize("about", GROWING.values(), ids=GROWING)
def test_the_work_grows_with_the_length(about: tuple[str, str, str]) -> None:
    schema = Schema.of_terms(["http://e/Tree"], ["http://e/height", "http://e/near"])

    def work(chars: int) -> Callable[[], object]:
        query = written(about, chars)

        def checked() -> None:
            try:
                lint(prepare(query), schema, namespaces=STANDARD_PREFIXES)
            except QueryError as error:
                explain_error(query, error, schema, STANDARD_PREFIXES)

        return checked

    work(SIZES[0])()  # fills what is computed once
    one, two, four = (calls(work(chars)) for chars in SIZES)
    # Twice as much is added by twice as many characters; four times as much if it were squares.
    assert four - two < 3 * max(two - one, 500)


@pytest.mark.parametrize("form", ["DESCRIBE ", "SELECT ", "PREFIX ", "ASK ?a ", "# SELECT {\n"])
def test_words_that_may_begin_a_query_cost_little_each(form: str) -> None:
    one, two = (calls(lambda n=n: queries_in(form * n)) for n in (100, 200))  # type: ignore[misc]
    assert two < 3 * one


@pytest.mark.parametrize("name", ["objects", "a collection", "resources", "conditions of groups"])
def test_what_is_long_and_complex_is_refused(name: str) -> None:
    with pytest.raises(QueryError) as caught:
        prepare(written(GROWING[name], MOST_CHARS - 100))
    assert caught.value.code == "too-complex"


@pytest.mark.parametrize("name", ["values", "arguments", "rows of values", "groups side by side"])
def test_rdflib_does_not_parse_what_is_long(name: str) -> None:
    query = written(GROWING[name], MOST_CHARS - 100)
    assert calls(lambda: prepare(query)) < 40 * MOST_CHARS
    assert prepare(query).parsed is None
    with pytest.raises(QueryError) as caught:
        prepare(f"{query} nonsense")
    assert caught.value.fields["line"] == 1


def test_rdflib_does_not_parse_many_services() -> None:
    # It takes the square of their number.
    query = written(("SELECT * { %s }", "SERVICE <http://e/> { ?s ?p ?o }", " "), 5_000)
    assert calls(lambda: prepare(query)) < 40 * len(query)
    assert prepare(query).parsed is None


@pytest.mark.parametrize("head", ["SELECT * WHERE", "CONSTRUCT WHERE"])
def test_many_triples_are_no_deep_nesting(head: str) -> None:
    # rdflib recurses at each of them.
    triples = " ".join(f"?s{n} <http://e/p> ?o{n} ." for n in range(250))
    assert prepare(f"{head} {{ {triples} }}").form == head.split()[0]
