"""Queries are found in what models really write."""

from __future__ import annotations

import time

import pytest

from reasoningbank.lm.reply import query_in

QUERY = "PREFIX up: <http://purl.uniprot.org/core/>\nSELECT ?p WHERE { ?p a up:Protein }"


@pytest.mark.parametrize(
    "reply",
    [
        QUERY,
        f"```sparql\n{QUERY}\n```",
        f"```\n{QUERY}\n```",
        f"Sure:\n```sparql\n{QUERY}\n```\nIt lists proteins.",
        f"[[ ## sparql ## ]]\n{QUERY}",
        f"```sparql\n{QUERY}",
        f"{QUERY}[[ ## completed ## ]]",
        f"First ```python\nprint(1)\n``` and\n```sparql\n{QUERY}\n```",
        f"```sparql {QUERY} ```",
        f"```sparql\r\n{QUERY}\r\n```\r\nDone",
        f"The query is: {QUERY}",
        f"`{QUERY}`",
        f"Use `{QUERY}`, which lists proteins.",
        f"{QUERY}\n\nThis query selects all proteins.",
        f"{QUERY} It doesn't need a LIMIT. Where it's slow, add one.",
        f"Select the class first, then:\n{QUERY}\nOrder matters not.",
        f"{QUERY}\n```\nExplanation: it selects proteins.",
        f"```sparql\n{QUERY}\n```\nThat is:\n```\nSELECT picks columns.\n```",
        f"```sparql\n{QUERY}\n```\nNot `ASK {{ ?p a up:Protein }}`, which says yes or no.",
        f"```sparql\nSELECT ?p {{ ?p a up:Protein\n```\nBetter:\n```sparql\n{QUERY}\n```",
        f"```sparql\n{QUERY}\n```\nNot:\n```sparql\nSELECT ?p {{ ?p a up:Protein\n```",
        f"# SELECT all\n{QUERY}",
        f'{{"sparql": "{QUERY}"}}',
        f'query = """{QUERY}"""\nprint(query)',
    ],
)
def test_the_query_is_found(reply: str) -> None:
    assert query_in(reply) == QUERY


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "I cannot.",
        "Please select a protein first.",
        "Ask yourself what is needed. I cannot answer this.",
        "Describe the protein first.\nSelect nothing.",
        "```\nSELECT picks columns.\n```",
        "Ask for exactly the columns that the question names.",
        "Prefix the name, and select what you find from there, where it is.",
    ],
)
def test_no_query_is_none(reply: str | None) -> None:
    assert query_in(reply) is None


def test_the_last_of_several_queries_counts() -> None:
    assert query_in("```sparql\nASK {}\n```\nbetter:\n```sparql\nASK { ?s ?p 1 }\n```") == (
        "ASK { ?s ?p 1 }"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 2) ORDER BY DESC(?s) ?p LIMIT 3",
        "SELECT (EXISTS { ?s ?p 1 } AS ?x) { ?s ?p ?o } OFFSET 2 VALUES ?s { ex:a }",
        "select ?s { { SELECT ?s { ?s ?p '}' } limit 2 } } order by lcase(?s)",
        "CONSTRUCT { ?s a ex:T } WHERE { ?s a ex:U }",
        "DESCRIBE ex:a",
        "PREFIX e: <http://e/>\nDELETE { ?s e:p 1 } INSERT { ?s e:p 2 } WHERE { ?s e:p 1 }",
        "PREFIX e: <http://e/>\nINSERT DATA { e:a e:p 1 } ; INSERT DATA { e:b e:p 1 }",
    ],
)
def test_all_of_a_query_is_taken_and_nothing_else(query: str) -> None:
    assert query_in(f"The answer:\n{query}\n\nIt isn't long (as you see).") == query
    assert query_in(f"```sparql {query}```") == query


@pytest.mark.parametrize(
    "broken",
    [
        "SELECT ?s WHERE { ?s ?p ?o",
        "SELECT ?s WHERE { ?s ?p ?o } }",
        "SELECT ?s WHERE { ?s ?p ?o } FILTER(?o > 3)",
        "SELECT ?s WHERE { ?s ?p ?o } . ?s ?q ?r }",
        "SELECT ?s WHERE { ?s ?p ?o } LIMIT 3 ;",
        "SELECT ?s WHERE { ?s ?p ?o } ORDER BY 1",
        "SELECT COUNT(?s) WHERE { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT (COUNT(?s) AS ?n WHERE { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT ?s WHERE { ?s ?p . SELECT ?t { ?t ?p ?o } }",
        "SELECT ?s ?p ?s ?p ?s ?p ?s",
        "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o } }\n ?s ?q '}' .\n}",
        "SELECT ?s WHERE { ?s ?p ?o } ORDER BY ?s ASC, ?p ASC",
        "SELECT ?s WHERE { ?s ?p ?o } GROUP BY ?s HAVING count >= 3",
        "SELECT ?s WHERE { ?s ?p ?o } UNION SELECT ?s WHERE { ?s ?q ?o }",
        "PREFIX ex : <http://e/>\nSELECT ?s WHERE { ?s ex:p ?o }",
        "PREFIX ex <http://e/>\nSELECT ?s WHERE { ?s ex:p ?o }",
        "SELECT label, kind FROM words WHERE label = 'x'",
        "PREFIX a: <http://a/>\nPREFIX b: <http://b/>",
    ],
)
def test_a_query_with_a_mistake_keeps_it(broken: str) -> None:
    for reply in (broken, f"```sparql\n{broken}\n```", f"Sure:\n{broken}"):
        assert query_in(reply) == broken


def test_many_brackets_in_an_update_do_no_harm() -> None:
    update = f"PREFIX e: <http://e/> DELETE {{}} WHERE {{ {'{' * 20_000}"
    assert query_in(update) == update


@pytest.mark.parametrize(
    "part",
    [
        "SELECT ?s { ?s ?p ?o }\n",
        "SELECT ?s {} LIMIT 1 " + "LIMIT 2 " * 9,
        "select # ",
        "SELECT ?s ",
        "ASK { ",
        "PREFIX e: <u> ",
        "``` ",
    ],
)
def test_long_replies_take_time_by_their_length(part: str) -> None:
    took = []
    for times in (2_000, 8_000):
        started = time.perf_counter()
        query_in(part * times)
        took.append(time.perf_counter() - started)
    assert took[1] < 10 * took[0] + 1
