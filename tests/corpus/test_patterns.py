"""Taking queries apart into triple patterns, and leaving one out."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from reasoningbank.corpus import triple_patterns, without_pattern
from reasoningbank.errors import QueryError

HARD = """PREFIX up: <http://u/> # ?no a up:pattern
SELECT ?p (COUNT(DISTINCT ?x) AS ?n) WHERE {
  VALUES (?k) { (1) (2) }
  ?p a up:Protein ; up:a/^up:b+ ?x , "x . y"@en ; up:c [ up:d ?d ; up:e 2.5 , -1 ] .
  { ?p up:f 1 } UNION { ?p up:g 'two'^^up:T . }
  OPTIONAL { ?p up:h ?h FILTER(?h > 3 && EXISTS { ?h up:i ?i }) }
  GRAPH <http://g> { ?p (up:j|!up:k)* ?j }
  SERVICE SILENT <http://e/> { ?p up:l ?l }
  { SELECT ?p WHERE { ?p up:m ?m } GROUP BY ?p HAVING (COUNT(?m) > 1) LIMIT 5 }
  FILTER NOT EXISTS { ?p up:n true }
  BIND(STR(?p) AS ?s)
  MINUS { ?p ?any up:o }
} GROUP BY ?p"""


def test_every_pattern_is_found_in_written_order() -> None:
    assert [str(p) for p in triple_patterns(HARD)] == [
        "?p a up:Protein",
        "?p up:a/^up:b+ ?x",
        '?p up:a/^up:b+ "x . y"@en',
        "?p up:c _:bracket1",
        "_:bracket1 up:d ?d",
        "_:bracket1 up:e 2.5",
        "_:bracket1 up:e -1",
        "?p up:f 1",
        "?p up:g 'two'^^up:T",
        "?p up:h ?h",
        "?h up:i ?i",
        "?p (up:j|!up:k)* ?j",
        "?p up:l ?l",
        "?p up:m ?m",
        "?p up:n true",
        "?p ?any up:o",
    ]


def test_each_deletion_is_valid_and_loses_exactly_that_pattern() -> None:
    patterns = triple_patterns(HARD)
    store = ox.Store()
    for index in range(len(patterns)):
        shorter = without_pattern(HARD, index)
        expected = [str(p) for i, p in enumerate(patterns) if i != index]
        found = [str(p) for p in triple_patterns(shorter)]
        # A bracket that was written out keeps its label, the next one starts at 1 again.
        assert found == expected
        store.query(shorter.replace("SERVICE SILENT <http://e/>", ""))


def test_a_construct_template_is_no_pattern() -> None:
    query = "CONSTRUCT { ?s <http://u/x> ?o . ?o <http://u/y> 1 } WHERE { ?s <http://u/a> ?o }"
    assert len(triple_patterns(query)) == 1
    assert without_pattern(query, 0).endswith("WHERE {  }")


def test_what_a_deletion_changes_shows_in_the_answer() -> None:
    store = ox.Store()
    store.load(
        b"<http://u/1> a <http://u/T> ; <http://u/a> 1 . <http://u/2> a <http://u/T> .",
        format=ox.RdfFormat.TURTLE,
    )
    query = "SELECT ?s WHERE { ?s a <http://u/T> ; <http://u/a> 1 }"

    def answers(shorter: str) -> int:
        found = store.query(shorter)
        assert isinstance(found, ox.QuerySolutions)
        return len(list(found))

    counts = [answers(without_pattern(query, i)) for i in range(2)]
    assert counts == [1, 2]


@pytest.mark.parametrize("query", ["ASK { ?s", "ASK { ?s ?p (1 2) }", "ASK { ?s 5 6 }"])
def test_what_is_no_query_is_one_error(query: str) -> None:
    with pytest.raises(QueryError):
        triple_patterns(query)


def test_an_index_without_a_pattern_is_an_error() -> None:
    for index in (-1, 1):
        with pytest.raises(QueryError, match="no triple pattern"):
            without_pattern("ASK { ?s ?p ?o }", index)
