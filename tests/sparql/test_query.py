"""Preparing queries: form, columns, LIMIT, prefixes, services, errors, and parsing alone."""

from __future__ import annotations

import subprocess
import sys
import threading

import pyparsing
import pytest

from reasoningbank.corpus import load_pack, load_shacl_tasks
from reasoningbank.errors import QueryError
from reasoningbank.sparql import prepare
from reasoningbank.sparql import query as preparing
from reasoningbank.sparql.query import complaint_of, parse_algebra
from reasoningbank.sparql.tree import outline

PREFIXES = {"up": "http://up/", "ec": "http://ec/", "rdfs": "http://rdfs/"}


@pytest.mark.parametrize(
    ("query", "form", "variables"),
    [
        ("SELECT ?b (1 AS ?x) ?a { ?a ?p ?b }", "SELECT", ("b", "x", "a")),
        ("SELECT * { ?z ?b ?a }", "SELECT", ("z", "b", "a")),
        ("select distinct $a where { $a ?b ?c }", "SELECT", ("a",)),
        ("SELECT (COUNT(DISTINCT ?a) AS ?n) { ?a ?b ?c }", "SELECT", ("n",)),
        ("SELECT * { { SELECT ?x { ?x ?y ?z } } }", "SELECT", ("x",)),
        ("BASE <http://e/> ASK { <a> ?p ?o }", "ASK", ()),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "CONSTRUCT", ()),
        ("DESCRIBE <http://e/a>", "DESCRIBE", ()),
        ("# SELECT in a comment\nASK {}", "ASK", ()),
    ],
)
def test_form_and_columns(query: str, form: str, variables: tuple[str, ...]) -> None:
    found = prepare(query)
    assert (found.form, found.variables) == (form, variables)
    assert found.text == query
    assert found.parsed is not None


@pytest.mark.parametrize(
    ("query", "text", "changed"),
    [
        ("SELECT * { ?s ?p ?o }", "SELECT * { ?s ?p ?o }\nLIMIT 10", True),
        ("SELECT * { ?s ?p ?o } LIMIT 99", "SELECT * { ?s ?p ?o } LIMIT 10", True),
        ("SELECT * { ?s ?p ?o } LIMIT 9", "SELECT * { ?s ?p ?o } LIMIT 9", False),
        (
            "SELECT * { ?s ?p ?o } LIMIT 99 OFFSET 5",
            "SELECT * { ?s ?p ?o } LIMIT 10 OFFSET 5",
            True,
        ),
        (
            "SELECT * { { SELECT * { ?s ?p ?o } LIMIT 99 } }",
            "SELECT * { { SELECT * { ?s ?p ?o } LIMIT 99 } }\nLIMIT 10",
            True,
        ),
        (
            'SELECT * { ?s ?p "LIMIT 5" } # LIMIT 3',
            'SELECT * { ?s ?p "LIMIT 5" }\nLIMIT 10 # LIMIT 3',
            True,
        ),
        (
            "SELECT ?limit { ?limit ?p ?o } ORDER BY ?limit VALUES ?limit { 5 }",
            "SELECT ?limit { ?limit ?p ?o } ORDER BY ?limit\nLIMIT 10 VALUES ?limit { 5 }",
            True,
        ),
        (
            "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (EXISTS { ?s ?p 1 })",
            "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (EXISTS { ?s ?p 1 })\nLIMIT 10",
            True,
        ),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "CONSTRUCT WHERE { ?s ?p ?o }", False),
        ("ASK { ?s ?p ?o }", "ASK { ?s ?p ?o }", False),
    ],
)
def test_limit_is_put_on_the_outermost_level_only(query: str, text: str, changed: bool) -> None:
    found = prepare(query, limit=10)
    assert found.text == text
    assert found.limit_changed is changed
    assert prepare(text).parsed is not None


def test_a_limit_can_be_lowered_again() -> None:
    found = prepare("SELECT * { ?s rdfs:label ?o }", prefixes=PREFIXES, limit=50).limited(5)
    assert found.text == "PREFIX rdfs: <http://rdfs/>\nSELECT * { ?s rdfs:label ?o }\nLIMIT 5"
    assert found.limit == 5
    assert found.limited(7) is not found
    assert found.limit_note == "LIMIT 5 added"


def test_missing_prefixes_are_added_and_declared_ones_kept() -> None:
    found = prepare(
        "PREFIX up: <http://mine/>\nSELECT * { ?s up:a 'ec:no' ; rdfs:label ?o }", prefixes=PREFIXES
    )
    assert found.text.startswith("PREFIX rdfs: <http://rdfs/>\nPREFIX up: <http://mine/>")
    assert found.text.count("PREFIX") == 2


def test_an_unknown_prefix_is_named_with_place_and_hint() -> None:
    with pytest.raises(QueryError) as caught:
        prepare("SELECT *\n{ ?s zz:a ?o }", prefixes=PREFIXES)
    assert caught.value.where == "line 2, column 6"
    assert "'zz:'" in caught.value.what
    assert "PREFIX zz: <...>" in caught.value.hint


@pytest.mark.parametrize("local", ["1.1.1.1", "1.1.-.-", "a.b:c.d", r"1.1.1\.1"])
def test_dotted_local_names_are_written_as_iris(local: str) -> None:
    found = prepare(f"SELECT * {{ ?s ?p ec:{local} . ?s up:a.b ?o }}", prefixes=PREFIXES)
    assert f"<http://ec/{local.replace(chr(92), '')}> . ?s up:a.b ?o" in found.text


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <a:a> <a:b> 1 }",
        "PREFIX up: <http://up/> DELETE WHERE { ?s ?p ?o }",
        "with <g:g> delete { ?s ?p ?o } where { ?s ?p ?o }",
        "LOAD <http://e/>",
        "DROP ALL",
        "# SELECT\nCLEAR ALL",
    ],
)
def test_updates_are_refused(update: str) -> None:
    with pytest.raises(QueryError, match="update"):
        prepare(update)


def test_a_second_statement_cannot_hide_behind_a_query() -> None:
    with pytest.raises(QueryError):
        prepare("SELECT * { ?s ?p ?o } ; DROP ALL")


@pytest.mark.parametrize(
    ("query", "fix"),
    [
        ("ASK { ?s ?p ?o }\n[[ ## completed ## ]]", "marker"),
        ("SELECT p.name FROM protein p JOIN taxon t ON p.t = t.id ORDER BY p", "sql"),
        ("SELECT * { ?s ?p ?o", "open-bracket"),
        ("SELECT * { ?s ?p ?o } }", "extra-bracket"),
        ('SELECT * { ?s ?p "open }', "open-string"),
        ("SELECT COUNT(?s) { ?s ?p ?o }", "aggregate-parentheses"),
        ("SELECT * { ?s ?p ?o } LIMIT 5 ORDER BY ?s", "clause-order"),
        ("```sparql\nSELECT * {}\n```", "fence"),
        ("Here it is: SELECT * {}", "text-before"),
        ("the largest tree", "no-form"),
        ("SELECT * { ?s ?p ?o FILTER(?o LIKE 'x') }", "like"),
        ("SELECT * { ?s ?p ?o } ORDER BY ?o DESC", "order-direction"),
        ("SELECT * { ?s ?p ?o } ORDER BY ?s rdfs:label DESC", "order-path"),
        ("SELECT * { ?s ?p ?o } ORDER BY ?s <http://e/p> DESC", "order-path"),
        ("SELECT * { ?s ?p ?o FILTER(ENDSWITH(?o, 'x')) }", "unknown-function"),
        ("SELECT * { ?s ?p ?o FILTER(STREND(?o, 'x')) }", "unknown-function"),
        ("SELECT * { ?s ?p ?o FILTER(?o > 1 AND ?o < 3) }", "and-or"),
        ("SELECT * { ?s ?p ?o FILTER ?o > 1 }", "filter-parentheses"),
        ("SELECT * { ?s ?p ?o FILTER(?o == 1) }", "equals"),
        ("SELECT * { ?s ?p ?o FILTER(?o > 1 or ?o < 3) }", "and-or"),
        ("SELECT * { ?s ?p ?o BIND ?o AS ?x }", "bind"),
        ("SELECT * { ?s ?p ?o FILTER(?o IS NOT NULL) }", "null"),
        ("SELECT * { ?s ?p ?o FILTER(?o <> 1) }", "not-equal"),
        ("SELECT * { ?s ?p ?o FILTER NOT (?o = 1) }", "not"),
        ("SELECT * { ?s ?p ?o FILTER(?o IN [1, 2]) }", "in-list"),
        ("SELECT * { ?s ?p ?o } ORDER BY DESC ?o", "order-direction"),
        ("SELECT TOP 5 ?s { ?s ?p ?o }", "top"),
        ("SELECT ?s, ?o { ?s ?p ?o }", "select-comma"),
        ("SELECT DISTINCT (?s) { ?s ?p ?o }", "select-parentheses"),
        ("SELECT ?s AS ?x { ?s ?p ?o }", "select-alias"),
        ("SELECT (COUNT(DISTINCT ?s)) { ?s ?p ?o }", "alias"),
        ("SELECT (COUNT(?s) ?n) { ?s ?p ?o }", "alias"),
        ("SELECT ?s-x { ?s-x ?p ?o }", "variable-name"),
        ("SELECT * { ?s ?p ?o } LIMIT -1", "limit"),
        ("SELECT * { ?s ?p ?o } LIMIT 5, 10", "limit-offset"),
        ('SELECT * { VALUES (?o) { "x" } ?s ?p ?o }', "values-row"),
        ("SELECT * { ?s ?p ?o UNION ?s ?q ?o }", "union-braces"),
        ("SELECT * { ?s ?p ?o . OPTIONAL ?s rdfs:label ?l }", "braces"),
        ("SELECT * WHERE ?s ?p ?o", "braces"),
        ("SELECT * { ?s ?p ?o };", "last-semicolon"),
        ("SELECT * { ?s a Protein }", "bare-word"),
        ('SELECT * { ?s ?p ?o FILTER REGEX(?o, "[0-9]\\d") }', "string-escape"),
        ("SELECT * { ?s ?p “x” }", "curly-quotes"),
        ("SELECT * {} PREFIX up: <http://up/>", "late-prefix"),
        ("", "empty-query"),
        ("   # nothing", "empty-query"),
    ],
)
def test_a_syntax_error_has_a_fix(query: str, fix: str) -> None:
    with pytest.raises(QueryError) as caught:
        prepare(query, prefixes=PREFIXES)
    assert fix in (caught.value.fields.get("fix"), caught.value.code)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pack", ["uniprot", "liita"])
def test_what_a_sound_query_has_is_not_a_sign_of_a_mistake(pack: str) -> None:
    prefixes = load_pack(pack).prefixes
    for task in load_shacl_tasks(pack):
        with pytest.raises(QueryError) as caught:
            prepare(f"{task.expected_sparql} x", prefixes=prefixes)
        assert caught.value.fields["fix"] == "bare-word", task.id


def test_an_iri_without_brackets_is_not_called_a_prefix_to_declare() -> None:
    with pytest.raises(QueryError) as caught:
        prepare("SELECT * { ?s http://e/p ?o }")
    assert "PREFIX" not in caught.value.hint


def test_a_syntax_error_is_placed_in_the_authors_own_lines() -> None:
    with pytest.raises(QueryError) as caught:
        prepare("SELECT *\n{ ?s rdfs:label ?o .\n  ?s ; ?o }", prefixes=PREFIXES)
    assert caught.value.where.startswith("line 3,")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?s ?p <<( ?a ?b ?c )>> }",
        "SELECT * { LATERAL { ?s ?p ?o } }",
        "ASK { ?s ?p <<( ?a ?b ?c )>> }",
    ],
)
def test_what_only_oxigraph_parses_is_sent_as_it_is_under_the_limit(query: str) -> None:
    found = prepare(query, limit=3)
    assert found.parsed is None
    assert found.text == query + ("\nLIMIT 3" if found.form == "SELECT" else "")


def test_service_targets_are_mapped_and_checked() -> None:
    real = "http://127.0.0.1:9/query"
    query = "PREFIX x: <http://x/> SELECT * { SERVICE SILENT x:sparql/ { ?s ?p ?o } }"
    query = query.replace("x:sparql/", "<http://x/sparql/>")
    found = prepare(query, aliases={"http://x/sparql": real}, services=[])
    assert found.services == (real,)
    assert f"SERVICE SILENT <{real}>" in found.text
    by_name = prepare("PREFIX x: <http://x/> SELECT * { SERVICE x:s { ?s ?p ?o } }")
    assert by_name.services == ("http://x/s",)
    assert prepare("SELECT * { SERVICE ?e { ?s ?p ?o } }").services == ("?e",)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://169.254.1.1/> { ?s ?p ?o } }",
        "SELECT * { service silent<http://169.254.1.1/>{ ?s ?p ?o } }",
        "SELECT * { # c\nSERVICE # d\n<http://169.254.1.1/> { ?s ?p ?o } }",
        "PREFIX x: <http://169.254.1.1/> SELECT * { SERVICE x: { ?s ?p ?o } }",
        "SELECT * { VALUES ?e { <http://x/> } SERVICE ?e { ?s ?p ?o } }",
        "SELECT * { SERVICE <http://ok\\u002F@169.254.1.1/> { ?s ?p ?o } }",
        "SELECT * { \\u0053ERVICE <http://169.254.1.1/> { ?s ?p ?o } }",
        'SELECT * { ?s ?p "x\\u0022 . \\u0053ERVICE <http://evil/> { ?a ?b ?c } # "\n}',
        "SELECT * { ?s ?p ?o # \\u000A SERVICE <http://evil/> { ?a ?b ?c }\n}",
        "SELECT * { ?s ?p 'x\\U00000027 . SERVICE <http://evil/> { ?a ?b ?c } #'\n}",
        "SELECT * { ?a ?b <<( ?c ?d ?e )>> SERVICE <http://169.254.1.1/> { ?s ?p ?o } }",
        "SELECT * { FILTER EXISTS { SERVICE <http://169.254.1.1/> { ?s ?p ?o } } }",
        "SELECT * { ?s ?p 'it\\'s' . SERVICE <http://169.254.1.1/> { ?s ?p '''x''' } }",
    ],
)
def test_no_spelling_reaches_an_address_that_is_not_allowed(query: str) -> None:
    with pytest.raises(QueryError):
        prepare(query, services=["http://ok/"])


def test_other_characters_may_be_escaped() -> None:
    query = prepare(r'SELECT * { ?s rdfs:label "caff\u00e8 \"qui\"\n" }')
    assert r"caff\u00e8" in query.text
    assert query.complaint() is None


def test_a_limit_that_is_not_a_number_gets_one_line() -> None:
    with pytest.raises(QueryError, match="at most 18 digits"):
        prepare("SELECT * { ?s ?p ?o } LIMIT " + "9" * 5000)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * " + "{" * 500 + "}" * 500,
        "SELECT * { FILTER(" + "(" * 500 + "1" + ")" * 500 + ") }",
        "SELECT * { FILTER(" + "!" * 500 + "1) }",
        "SELECT * { ?s " + "/".join(["<a:b>"] * 500) + " ?o }",
        "SELECT * { FILTER(" + "-".join(["1"] * 2000) + ") }",
        "SELECT * { " + "?s ?p ?o . " * 1000 + " }",
        "SELECT * { ?s ?p " + ",".join(["1"] * 2500) + " }",
        "SELECT * { ?s ?p (" + " 1" * 2000 + ") }",
        "SELECT * { ?s ?p [ ?q " + ",".join(["1"] * 2500) + " ] }",
        "SELECT * { " + " UNION ".join(["{ ?s ?p ?o }"] * 1000) + " }",
        "SELECT * { ?s ?p '" + "x" * 60_000 + "' }",
    ],
)
def test_queries_that_would_break_an_engine_are_refused(query: str) -> None:
    with pytest.raises(QueryError) as caught:
        prepare(query)
    assert caught.value.code in ("too-complex", "too-long")


def test_long_lists_of_values_and_arguments_are_no_patterns() -> None:
    numbers = ", ".join(["1"] * 400)
    assert prepare(f"SELECT * {{ ?s ?p ?o FILTER(?o IN ({numbers})) }}").parsed is not None
    rows = " (1 2)" * 400
    assert prepare(f"SELECT * {{ VALUES (?x ?y) {{{rows}}} ?s ?x ?y }}").parsed is not None
    path = "|".join(["<a:b>"] * 200)
    assert prepare(f"SELECT * {{ ?s ({path}) ?o }}").parsed is not None


def test_half_characters_are_refused() -> None:
    with pytest.raises(QueryError, match="half of a character"):
        prepare("SELECT * { ?s ?p '\ud800' }")


def test_preparing_is_safe_in_threads() -> None:
    query = "SELECT ?s (COUNT(?o) AS ?n) { ?s rdfs:label ?o } GROUP BY ?s"
    expected = prepare(query, prefixes=PREFIXES, limit=4)
    found = []

    def work() -> None:
        found.extend(prepare(query, prefixes=PREFIXES, limit=4) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20


def test_queries_are_prepared_in_threads_at_once() -> None:
    # In a process of its own: two threads in rdflib's parser when it is new would break it.
    code = (
        "import threading\n"
        "from reasoningbank.sparql import prepare\n"
        "found = []\n"
        "def work():\n"
        "    for i in range(6):\n"
        "        text = 'SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c LIMIT %d'\n"
        "        found.append(prepare(text % (i + 1)).parsed is not None)\n"
        "threads = [threading.Thread(target=work) for _ in range(6)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(len(found), all(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "36 True\n", done.stderr


def test_a_lowered_limit_is_given_back() -> None:
    query = prepare("SELECT * { ?s ?p ?o } LIMIT 11")
    assert query.limited(10).text.endswith("LIMIT 10")
    again = query.limited(10).limited(11)
    assert (again.text, again.limit, again.limit_changed) == (query.text, 11, False)
    assert not again.limit_note


QUERY = "SELECT ?s WHERE { ?s <urn:parsed:once> ?o }"


def test_preparing_a_query_again_parses_nothing() -> None:
    first = prepare(QUERY, limit=5)
    before = preparing.parse_once.cache_info().misses
    again = prepare(QUERY, limit=7)
    assert preparing.parse_once.cache_info().misses == before
    assert again.parsed is first.parsed is not None
    assert (first.limit, again.limit) == (5, 7)


def test_a_failure_is_reported_each_time() -> None:
    before = preparing.parse_once.cache_info().currsize
    for _ in range(2):
        with pytest.raises(Exception, match="Expected"):
            preparing.parse_once("SELECT ?s {")
    assert preparing.parse_once.cache_info().currsize == before


SOUND = (
    "SELECT ?s { ?s ?p ?o } # a comment at the end",
    "PREFIX e: <http://e/> SELECT (COUNT(*) AS ?n) FROM e:g FROM NAMED <http://e/h> "
    "{ ?s e:p ?o } GROUP BY ?s HAVING (?n > 1) ORDER BY ?n LIMIT 5 OFFSET 2 VALUES ?s { e:a }",
    "ASK { ?s ?p ?o }",
    "ASK FROM <http://e/g> WHERE { ?s ?p ?o }",
    "CONSTRUCT { ?s a _:b . _:b ?p 1 } WHERE { ?s ?p ?o } LIMIT 3",
    "CONSTRUCT { ?s a [] } FROM <http://e/g> { ?s ?p ?o }",
    "CONSTRUCT WHERE { ?s ?p ?o }",
    "CONSTRUCT {} {}",
    "DESCRIBE <http://e/a>",
    "DESCRIBE ?s <http://e/a> FROM <http://e/g> WHERE { ?s ?p ?o } LIMIT 1",
    "DESCRIBE * { ?s ?p ?o }",
    "SELECT * { ?s ?p <<( ?a ?b ?c )>> }",
)
BROKEN = (
    "ASK { ?s ?p ?o } GROUP BY ?s",
    "SELECT ?s { ?s ?p }",
    "SELECT ?s { ?s ?p ?o } GROUP BY",
    "ASK { ?s ?p ?o } LIMIT many",
    "CONSTRUCT { ?s ?p } WHERE { ?s ?p ?o }",
    "DESCRIBE ?s WHERE { ?s ?p }",
    'DESCRIBE "text"',
    "DESCRIBE WHERE { ?s ?p ?o }",
)


@pytest.mark.parametrize("query", SOUND)
def test_what_is_sound_parses(query: str) -> None:
    assert complaint_of(outline(query)) is None


@pytest.mark.parametrize("query", BROKEN)
def test_what_is_broken_does_not(query: str) -> None:
    assert complaint_of(outline(query)) is not None


def test_nothing_is_answered() -> None:
    many = " ".join(map(str, range(60)))
    values = " ".join(f"VALUES ?v{n} {{ {many} }}" for n in range(8))
    # Sixty to the eighth rows; the triple term makes rdflib give up, so that the engine is asked.
    query = f"SELECT (COUNT(*) AS ?n) {{ {values} BIND(<<( <a:a> <a:b> <a:c> )>> AS ?t) }}"
    # It would never end.
    assert prepare(query).form == "SELECT"


def test_a_mistake_is_reported_where_it_is() -> None:
    with pytest.raises(QueryError, match=r"^line 2, column \d+"):
        prepare("SELECT * {\n ?s ?p <<( ?a ?b )>> . }")


def test_memoization_of_other_grammars_does_not_slow_the_parser() -> None:
    before = pyparsing.ParserElement._parse
    pyparsing.ParserElement.enable_packrat(force=True)
    try:
        parse_algebra("SELECT * WHERE { ?a ?b 'memoized' . # and a comment\n ?b ?c ?d }")
        assert sum(pyparsing.ParserElement.packrat_cache_stats) < 10
    finally:
        pyparsing.ParserElement.disable_memoization()
        if before is pyparsing.ParserElement._parseCache:
            pyparsing.ParserElement.enable_packrat()
