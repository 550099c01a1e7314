"""How deep an update may nest."""

from __future__ import annotations

import pytest

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tokens import check_nesting, tokenize


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
        check_nesting(tokenize(update))


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { " + "<a:s> <a:p> -1 ; <a:q> -2 , -3 . " * 1000 + "}",
        "DELETE {} WHERE { ?s ?p ?o FILTER(?o > 1) } ; " * 1000,
        "DELETE {} WHERE " + "{" * 100 + "}" * 100,
    ],
)
def test_what_is_long_and_flat_is_taken(update: str) -> None:
    check_nesting(tokenize(update))
