"""Wrong input of agents: each gets one line that says how to go on."""

from __future__ import annotations

from dataclasses import replace

from sparql.faulty import Answer

from reasoningbank.sparql import EndpointConfig, OxigraphServer
from reasoningbank.tools import SPARQLTools

from .scene import Fault, Scene

TREES = "SELECT ?t { ?t a t:Tree }"
BREAKOUT = '") } } ; DROP ALL #'
IRI_BREAKOUT = "http://e/oak> ?p ?o } ; DROP ALL #"


def query(text: str) -> str:
    """Describe a query as the source of a fault."""
    return f"sparql_query({text!r})"


def looked(scene: Scene, text: str) -> str:
    ref = scene.real.sparql_query(text)
    return f"{ref!r}: {scene.real.sparql_peek(ref, 2)!r}"


def asks(name: str, text: str, said: str, **more: object) -> Fault:
    return Fault(name, query(text), lambda scene: looked(scene, text), said, **more)  # type: ignore[arg-type]


def closed(scene: Scene) -> object:
    tools = SPARQLTools(scene.trees)
    ref = tools.sparql_query(TREES)
    tools.close()
    return tools.sparql_peek(ref)


def unreached_graph(scene: Scene) -> str:
    elsewhere = scene.faulty(Answer(body=b"<http://e/x> <http://e/y> <http://e/z> ."))
    ref = scene.real.sparql_query(f"SELECT * FROM <{elsewhere.url}> {{ ?s ?p ?o }}")
    assert elsewhere.seen == []
    return f"{ref.rows} rows, and nobody asked at that address"


def service(scene: Scene, clause: str) -> object:
    elsewhere = scene.faulty(Answer())
    try:
        return looked(scene, clause.replace("ELSEWHERE", elsewhere.url))
    finally:
        assert elsewhere.seen == []


def dead_service(scene: Scene) -> object:
    server = scene.faulty(Answer())
    server.close()
    tools = scene.tools(replace(scene.trees, services=(server.url,)))
    return tools.sparql_query(f"SELECT * {{ SERVICE <{server.url}> {{ ?s ?p ?o }} }}")


def slow_product(scene: Scene) -> object:
    file = scene.file("numbers.ttl", " .\n".join(f"<http://e/n{n}> a 1" for n in range(14)) + " .")
    # A server of its own: whatever its limit, Oxigraph goes on with a product until it is ended.
    with OxigraphServer([file]) as server:
        tools = scene.tools(EndpointConfig(server.url, "Trees", timeout_s=1.0, retries=0))
        many = " . ".join(f"?a{n} ?b{n} ?c{n}" for n in range(12))
        return tools.sparql_query(f"SELECT (COUNT(*) AS ?n) {{ {many} }}")


QUERIES = [
    asks(
        "a query that ends too early",
        "SELECT ?x {",
        r"line 1, column 11.*add the '}'",
        kind="QueryError",
    ),
    asks(
        "a query with a misspelt keyword",
        "SELEC ?x { ?x ?y ?z }",
        r"line 1, column 1: .*SELEC",
        kind="QueryError",
    ),
    asks(
        "a fault in a later line",
        "SELECT ?x {\n ?x t:height ?h\n FILTER ?h > 3 }",
        r"line 3, column",
        kind="QueryError",
    ),
    asks(
        "an unknown prefix",
        "SELECT ?x { ?x a nosuch:Tree }",
        r"prefix 'nosuch:' is not declared",
        kind="QueryError",
    ),
    asks("no text at all", "", r"empty|no query", kind="QueryError"),
    Fault(
        "no query but a number",
        "sparql_query(5)",
        lambda s: s.real.sparql_query(5),
        r"5 is not a query; give its text",
        "QueryError",
    ),  # type: ignore[arg-type]
    asks("a NUL in the query", "SELECT ?x { ?x ?y '\0' }", r"0 items", kind="result"),
    asks(
        "half of a surrogate pair",
        "SELECT ?x { ?x ?y '\ud83d' }",
        r"half of a character",
        kind="QueryError",
    ),
    Fault(
        "a hundred nested blocks",
        "sparql_query('SELECT … { { { …')",
        lambda s: looked(s, "SELECT ?t " + "{" * 100 + "?t a t:Tree" + "}" * 100),
        r"3 items",
        kind="result",
    ),
    Fault(
        "ten thousand nested blocks",
        "sparql_query('SELECT … { { { …')",
        lambda s: looked(s, "SELECT ?t " + "{" * 10_000 + "?t a t:Tree" + "}" * 10_000),
        r"nested",
        kind="QueryError",
    ),
    Fault(
        "a megabyte of query",
        "sparql_query('SELECT … # xxxxx…')",
        lambda s: looked(s, "SELECT ?t { ?t a t:Tree } # " + "x" * 1_000_000),
        r"1,000,028 characters, more than 50,000",
        kind="QueryError",
    ),
    asks("no columns", "SELECT * {}", r"1 items", kind="result"),
    asks(
        "a column outside its group",
        "SELECT ?t (COUNT(*) AS ?n) { ?t a t:Tree }",
        r"neither grouped nor aggregated",
        kind="QueryError",
    ),
    asks(
        "an unknown function",
        "SELECT (t:nosuch(1) AS ?x) {}",
        r"rejects the query: .*nosuch",
        kind="QueryError",
    ),
    asks(
        "a class that is not in the data", "SELECT ?x { ?x a t:Treee }", r"t:Tree\b", kind="result"
    ),
    Fault(
        "a query that runs for ever",
        "sparql_query('… twelve unrelated patterns …')",
        slow_product,
        r"timed out.*more selective",
        kind="QueryTimeoutError",
    ),
]

UPDATES = [
    asks("an INSERT", "INSERT DATA { t:a t:b t:c }", r"update", kind="QueryError"),
    asks("a DELETE", "DELETE WHERE { ?s ?p ?o }", r"update", kind="QueryError"),
    asks("a LOAD", "LOAD <http://127.0.0.1/x.ttl>", r"update", kind="QueryError"),
    asks(
        "an update behind comments and prefixes",
        "# SELECT * { ?s ?p ?o }\nPREFIX t: <http://e/>\n# ASK {}\nDROP ALL",
        r"update",
        kind="QueryError",
    ),
    asks(
        "an update behind a query",
        "SELECT * { ?s ?p ?o } ; DROP ALL",
        r"line 1|update",
        kind="QueryError",
    ),
    asks(
        "an update inside SERVICE",
        "SELECT * { SERVICE <https://trees.example/sparql/> { DELETE WHERE { ?s ?p ?o } } }",
        r"line 1|update",
        kind="QueryError",
    ),
    Fault(
        "SERVICE to the update address",
        "sparql_query('… SERVICE <…/update> …')",
        lambda s: looked(
            s,
            "SELECT * { SERVICE <UPDATE> { ?s ?p ?o } }".replace(
                "UPDATE", f"{s.trees.address.removesuffix('query')}update"
            ),
        ),
        r"not among the allowed",
        kind="QueryError",
    ),
]

REACH = [
    asks(
        "SERVICE to an address that is not allowed",
        "SELECT * { SERVICE <https://example.org/sparql> { ?s ?p ?o } }",
        r"not among the allowed endpoints",
        kind="QueryError",
    ),
    Fault(
        "SERVICE to a private address",
        "sparql_query('… SERVICE <http://127.0.0.1:…> …')",
        lambda s: service(s, "SELECT * { SERVICE <ELSEWHERE> { ?s ?p ?o } }"),
        r"not among the allowed",
        kind="QueryError",
    ),
    Fault(
        "the same, SILENT and in a subquery",
        "sparql_query('… { SELECT * { SERVICE SILENT …')",
        lambda s: service(
            s, "SELECT * { { SELECT * { SERVICE SILENT <ELSEWHERE> { ?s ?p ?o } } } }"
        ),
        r"not among the allowed",
        kind="QueryError",
    ),
    Fault(
        "SERVICE with a variable",
        "sparql_query('… VALUES ?e { <…> } SERVICE ?e …')",
        lambda s: service(s, "SELECT * { VALUES ?e { <ELSEWHERE> } SERVICE ?e { ?s ?p ?o } }"),
        r"variable",
        kind="QueryError",
    ),
    Fault(
        "SERVICE to an address built from BASE",
        "sparql_query('BASE <…> … SERVICE <x> …')",
        lambda s: service(s, "BASE <ELSEWHERE> SELECT * { SERVICE <sparql> { ?s ?p ?o } }"),
        r"not among the allowed|relative",
        kind="QueryError",
    ),
    Fault(
        "FROM a private address",
        "sparql_query('… FROM <http://127.0.0.1:…> …')",
        unreached_graph,
        r"0 rows, and nobody asked",
        kind="result",
    ),
    Fault(
        "an allowed SERVICE that is down",
        "sparql_query('… SERVICE <…> …')",
        dead_service,
        r"SERVICE",
        kind="QueryError",
    ),
]

HANDLES = [
    Fault(
        "an unknown handle",
        "sparql_peek('nope')",
        lambda s: s.real.sparql_peek("nope"),
        r"unknown handle 'nope'",
    ),
    Fault(
        "no handle but rows", "sparql_peek([1, 2])", lambda s: s.real.sparql_peek([1, 2]), r"handle"
    ),  # type: ignore[arg-type]
    Fault(
        "a handle of another kind",
        "sparql_slice(ASK's handle, 5, 9)",
        lambda s: s.real.sparql_slice(s.real.sparql_query("ASK {}"), 5, 9),
        r"'boolean': True",
        kind="result",
    ),
    Fault("a handle of a trial that ended", "sparql_peek(ref)", closed, r"closed|unknown handle"),
    Fault(
        "a negative slice",
        "sparql_slice(ref, -5, 3)",
        lambda s: s.real.sparql_slice(s.real.sparql_query(TREES), -5, 3),
        r"0 <= start < end",
    ),
    Fault(
        "a slice beyond the end",
        "sparql_slice(ref, 500, 510)",
        lambda s: s.real.sparql_slice(s.real.sparql_query(TREES), 500, 510),
        r"has only 3 rows, and the slice starts at 500",
    ),
    Fault(
        "a slice by text",
        "sparql_slice(ref, 'a', 3)",
        lambda s: s.real.sparql_slice(s.real.sparql_query(TREES), "a", 3),
        r"cannot slice from 'a' to 3",
    ),  # type: ignore[arg-type]
    Fault(
        "a limit above the cap",
        "sparql_peek(ref, 1000)",
        lambda s: s.real.sparql_peek(s.real.sparql_query(TREES), 1000),
        r"n lowered from 1000 to 20",
        kind="result",
    ),
    Fault(
        "a limit above the endpoint's most",
        "sparql_query(…, 10**9)",
        lambda s: s.real.sparql_stats(s.real.sparql_query(TREES, 10**9)),
        r"lowered from 1000000000 to 10000",
        kind="result",
    ),
    Fault(
        "a limit of 0",
        "sparql_classes(0)",
        lambda s: s.real.sparql_classes(0),
        r"give a number from 1",
    ),
    Fault(
        "a limit as text",
        "sparql_query(…, 'ten')",
        lambda s: s.real.sparql_query(TREES, "ten"),
        r"'ten', not a positive whole number",
    ),  # type: ignore[arg-type]
]

NAMES = [
    Fault(
        "SPARQL in a search",
        f"sparql_find({BREAKOUT!r})",
        lambda s: s.real.sparql_find(BREAKOUT),
        r"no label contains this",
        kind="result",
    ),
    Fault(
        "SPARQL in a resource",
        f"sparql_describe({IRI_BREAKOUT!r})",
        lambda s: s.real.sparql_describe(IRI_BREAKOUT),
        r"not an IRI",
        "QueryError",
    ),
    Fault(
        "SPARQL in a class",
        f"sparql_sample({IRI_BREAKOUT!r})",
        lambda s: s.real.sparql_sample(IRI_BREAKOUT),
        r"not an IRI",
        "QueryError",
    ),
    Fault(
        "SPARQL in a class, of properties",
        f"sparql_properties(class_uri={IRI_BREAKOUT!r})",
        lambda s: s.real.sparql_properties(class_uri=IRI_BREAKOUT),
        r"not an IRI",
        "QueryError",
    ),
    Fault(
        "an empty search",
        "sparql_find(' ')",
        lambda s: s.real.sparql_find(" "),
        r"the pattern is empty",
    ),
    Fault(
        "a NUL in a search",
        r"sparql_find('\0')",
        lambda s: s.real.sparql_find("\0"),
        r"pattern|no label",
    ),
    Fault(
        "an emoji in a search",
        "sparql_find('🌳')",
        lambda s: s.real.sparql_find("🌳"),
        r"no label contains this",
        kind="result",
    ),
    Fault(
        "half of an emoji in a search",
        r"sparql_find('\ud83c')",
        lambda s: s.real.sparql_find("\ud83c"),
        r"pattern|no label",
    ),
    Fault(
        "a search as long as a book",
        "sparql_find('x' * 100_000)",
        lambda s: s.real.sparql_find("x" * 100_000),
        r"too long",
    ),
    Fault(
        "a resource that is a number",
        "sparql_describe(5)",
        lambda s: s.real.sparql_describe(5),
        r"5 is not an IRI",
    ),  # type: ignore[arg-type]
    Fault(
        "a resource that is not there",
        "sparql_describe('t:birch')",
        lambda s: s.real.sparql_describe("t:birch"),
        r"nothing is known of it",
        kind="result",
    ),
]
