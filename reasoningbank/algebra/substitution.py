"""Putting terms into a query in place of its variables, by the query's grammar.

A variable is a token: what merely looks like one in a string, an IRI, a comment or a longer name
stays. Where the grammar takes no term, the query is put so that it says the same: a selected
variable becomes ``(term AS ?name)``, a grouped or sorted one ``(term)``, ``BOUND(?name)`` true.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rdflib import BNode

from reasoningbank.algebra.faults import ProgramError, one_of
from reasoningbank.algebra.terms import Term, to_sparql
from reasoningbank.algebra.texts import check_text
from reasoningbank.errors import QueryError
from reasoningbank.sparql.tokens import Edit, Token, apply_edits, closing, position, tokenize

__all__ = ["substitute"]

#: What a list of selected, grouped or sorted variables does not go over.
_ENDING = ("WHERE", "FROM", "LIMIT", "OFFSET", "HAVING", "VALUES", "GRAPH", "SERVICE", "AS")
_CLOSING = frozenset(")},;.]")


def substitute(query: str, terms: Mapping[str, Term]) -> str:
    """Return a query or update with terms in place of variables.

    Args:
        query: SPARQL 1.1 or 1.2, query or update.
        terms: Variable → term. At least one of the variables has to occur.

    Raises:
        ProgramError: No such variable occurs, a term is a blank node, a variable is assigned by
            ``AS`` or ``VALUES``, nothing is left that a MINUS shares with what stands before it, or
            what comes out is no query.

    Examples:
        >>> from rdflib import URIRef
        >>> city = {"city": URIRef("http://e/Aarhus")}
        >>> substitute('ASK { ?city <http://e/p> "?city", ?cityName } # ?city', city)
        'ASK { <http://e/Aarhus> <http://e/p> "?city", ?cityName } # ?city'
        >>> substitute("SELECT ?city ?p { ?city ?p $city }", city)
        'SELECT (<http://e/Aarhus> AS ?city) ?p { <http://e/Aarhus> ?p <http://e/Aarhus> }'
    """
    tokens = tokenize(query)
    there = list(dict.fromkeys(t.text[1:] for t in tokens if t.kind == "variable"))
    if not any(name in there for name in terms):
        wanted = " or ".join(f"?{name}" for name in terms) or "variable"
        known = one_of([f"?{name}" for name in there])
        raise ProgramError(f"no {wanted} occurs in the query", hint=f"it has {known}")
    _check_minus(query, tokens, terms)
    written = {name: _written(name, term) for name, term in terms.items() if name in there}
    edits = []
    for at, token in enumerate(tokens):
        if token.kind == "variable" and token.text[1:] in written:
            edits.append(_edit(query, tokens, at, written[token.text[1:]]))
    made = apply_edits(query, edits)
    try:
        check_text(made)
    except QueryError as error:
        told = f"{error.where}: {error.what}" if error.where else error.what
        what = f"no valid query is left: {told}"
        raise ProgramError(what, hint="substitute where the term may stand") from None
    return made


def _written(name: str, term: Term) -> str:
    if isinstance(term, BNode):
        hint = "no query can name it: ask for its parts in one query"
        raise ProgramError(f"?{name} would be a blank node", hint=hint)
    return to_sparql(term)


def _edit(query: str, tokens: Sequence[Token], at: int, term: str) -> Edit:
    token = tokens[at]
    before = tokens[at - 1] if at else token
    if before.is_word("AS"):
        raise _assigned(query, token, "AS")
    if _in_values_head(tokens, at):
        raise _assigned(query, token, "VALUES")
    text, start, end = term, token.start, token.end
    clause = _clause(tokens, at)
    if clause == "SELECT":
        text = f"({term} AS ?{_alias(tokens, at)})"
    elif clause in ("GROUP", "ORDER"):
        text = f"({term})"
    elif before.text == "(" and at > 1 and tokens[at - 2].is_word("BOUND"):
        # BOUND takes nothing but a variable, and a term is bound.
        text, start, end = "true", tokens[at - 2].start, tokens[at + 1].end
    # Signs beside it must not become part of the term, or the term of them.
    if start and not query[start - 1].isspace() and query[start - 1] not in "({[":
        text = " " + text
    if end < len(query) and not query[end].isspace() and query[end] not in _CLOSING:
        text += " "
    return Edit(start, end, text)


def _check_minus(query: str, tokens: Sequence[Token], terms: Collection[str]) -> None:
    """Refuse to take away all that a MINUS shares with what stands before it.

    MINUS removes nothing where the two have no variable in common (SPARQL 1.1, section 8.3.3).
    """
    for at, token in enumerate(tokens[:-1]):
        if not token.is_word("MINUS") or tokens[at + 1].text != "{":
            continue
        inside = _variables(tokens[at + 1 : closing(tokens, at + 1)])
        begin, depth = at, 0
        while begin > 0 and depth < 1:
            begin -= 1
            depth += (tokens[begin].text == "{") - (tokens[begin].text == "}")
        shared = inside & _variables(tokens[begin:at])
        if shared and shared <= set(terms):
            line, column = position(query, token.start)
            named = ", ".join(f"?{name}" for name in sorted(shared))
            what = f"without {named} the MINUS at line {line}, column {column} removes nothing"
            raise ProgramError(what, hint="write FILTER NOT EXISTS in place of MINUS")


def _variables(tokens: Sequence[Token]) -> set[str]:
    return {token.text[1:] for token in tokens if token.kind == "variable"}


def _assigned(query: str, token: Token, by: str) -> ProgramError:
    line, column = position(query, token.start)
    what = f"{token.text} is assigned by {by} at line {line}, column {column}"
    return ProgramError(what, hint="substitute another variable, or drop the assignment")


def _in_values_head(tokens: Sequence[Token], at: int) -> bool:
    """Say whether a variable is a column of VALUES."""
    back = at - 1
    while back >= 0 and (tokens[back].kind == "variable" or tokens[back].text == "("):
        back -= 1
    return back >= 0 and tokens[back].is_word("VALUES")


def _clause(tokens: Sequence[Token], at: int) -> str:
    """Return the clause that a variable stands in by itself: SELECT, GROUP, ORDER, or none."""
    back = at - 1
    while back > 0:
        token = tokens[back]
        if token.text == ")":
            back = _opening(tokens, back)
        elif token.is_word("BY") and tokens[back - 1].is_word("GROUP", "ORDER"):
            return tokens[back - 1].text.upper()
        elif token.is_word("SELECT"):
            return "SELECT"
        elif token.kind == "punct" or token.is_word(*_ENDING):
            return ""
        back -= 1
    return "SELECT" if tokens[0].is_word("SELECT") and at else ""


def _alias(tokens: Sequence[Token], at: int) -> str:
    """Return the name of a selected term: another one inside of a SELECT that selects it too.

    There it would be in scope already, and AS takes no such name (SPARQL 1.1, section 18.2.1).
    """
    name = tokens[at].text[1:]
    around = depth = outer = 0
    for back in range(at - 1, -1, -1):
        token = tokens[back]
        depth += (token.text == "}") - (token.text == "{")
        if depth >= outer:
            continue
        # Outside of all that was seen until now.
        if token.kind == "variable" and token.text[1:] == name:
            if _clause(tokens, back) == "SELECT":
                around, outer = around + 1, depth
        elif token.is_word("SELECT"):
            outer = depth
    taken = {token.text[1:] for token in tokens if token.kind == "variable"}
    alias = name
    while around and (alias in taken or not alias.endswith(f"_{around}")):
        alias = f"{alias}_{around}"
    return alias


def _opening(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for back in range(at, -1, -1):
        depth += (tokens[back].text == ")") - (tokens[back].text == "(")
        if depth == 0:
            return back
    return 0
