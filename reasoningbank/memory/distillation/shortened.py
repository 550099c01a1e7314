"""A query as an agent at its endpoint would write it at best: no comments, no known prefixes."""

from __future__ import annotations

from collections.abc import Mapping

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import compact
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import Edit, Token, apply_edits, tokenize, without_comments
from reasoningbank.sparql.tree import outline

__all__ = ["shortened"]


def shortened(query: str, namespaces: Mapping[str, str]) -> str:
    r"""Return a query without comments and without the prefixes that need no declaration.

    Names are written with the endpoint's prefixes; a declaration stays where a name needs it.

    Args:
        query: SPARQL text.
        namespaces: Prefix → namespace of the endpoint.

    Raises:
        QueryError: It is no query, or has a BASE, by which names mean what nobody sees.

    Examples:
        >>> shortened("PREFIX u: <http://u/>\nASK { ?p a u:T ; <http://x/p> 1 } # yes",
        ...           {"up": "http://u/"})
        'ASK { ?p a up:T ; <http://x/p> 1 }'
    """
    text = without_comments(query)
    shape = outline(text)
    start = shape.body[0].start
    if any(token.is_word("BASE") for token in tokenize(text[:start])):
        raise QueryError("the query has a BASE", hint="write names with prefixes")
    declared = {**namespaces, **shape.declared}
    edits, foreign = [], {}
    for token in shape.body:
        written = _written(token, declared, namespaces)
        if written != token.text:
            edits.append(Edit(token.start, token.end, written))
        elif token.kind == "name":
            prefix = token.text.partition(":")[0]
            if namespaces.get(prefix) != declared.get(prefix):
                foreign[prefix] = declared[prefix]
    head = "".join(f"PREFIX {prefix}: <{space}>\n" for prefix, space in foreign.items())
    return head + apply_edits(text, [Edit(0, start, ""), *edits]).strip()


def _written(token: Token, declared: Mapping[str, str], namespaces: Mapping[str, str]) -> str:
    if token.kind not in ("iri", "name"):
        return token.text
    name = absolute(token.text, declared)
    if name is None:
        return token.text
    if token.kind == "name" and absolute(token.text, namespaces) == name:
        return token.text
    short = str(compact(NamedNode(name), namespaces))
    # A name of a prefix that is not the endpoint's own is kept with its declaration.
    return token.text if token.kind == "name" and short.startswith("<") else short
