"""Syntax errors: where the mistake is, what is wrong, and the likely fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tokens import Token, position, tokenize

__all__ = ["refuse_escaped_ascii", "refuse_unreadable", "syntax_error"]

#: Longer queries take seconds to parse; split long VALUES lists over several queries.
MOST_CHARS = 50_000

#: Also after a backslash: parsers differ in whether that is an escape.
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_PAIRS = {"(": ")", "{": "}", "[": "]"}
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
#: Built-in functions of SPARQL 1.1 (section 17.4), then those that SPARQL 1.2 adds.
_FUNCTIONS = """
ABS BNODE BOUND CEIL COALESCE CONCAT CONTAINS DATATYPE DAY ENCODE_FOR_URI FLOOR HOURS IF IRI
ISBLANK ISIRI ISLITERAL ISNUMERIC ISURI LANG LANGMATCHES LCASE MD5 MINUTES MONTH NOW RAND
REGEX REPLACE ROUND SAMETERM SECONDS SHA1 SHA256 SHA384 SHA512 STR STRAFTER STRBEFORE STRDT
STRENDS STRLANG STRLEN STRSTARTS STRUUID SUBSTR TIMEZONE TZ UCASE URI UUID YEAR
TRIPLE ISTRIPLE SUBJECT PREDICATE OBJECT LANGDIR HASLANG HASLANGDIR STRLANGDIR
"""
#: Words that parentheses follow without being functions.
_BEFORE_PARENTHESES = """
FILTER BIND SELECT DISTINCT REDUCED BY HAVING ASC DESC IN NOT VALUES AS WHERE EXISTS A SEPARATOR
"""
#: Words in the message of a parser, what they mean, and what to do.
_SAID = (
    (
        "unbound",
        "a selected variable is neither grouped nor aggregated",
        "add GROUP BY with every selected variable that is not inside an aggregate",
    ),
    (
        "overrides an existing variable",
        "SELECT gives a value to a variable that the pattern binds already",
        "select the variable as it is, without (... AS ?name), or use another name after AS",
    ),
)
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES")


def refuse_unreadable(query: str) -> None:
    """Refuse a text that is empty, too long, or hides characters.

    Raises:
        QueryError: If it is one of these.
    """
    if not isinstance(query, str):
        raise QueryError(f"{query!r:.60} is not a query", hint="give its text", code="no-query")
    if not query.strip():
        raise QueryError(
            "the query is empty",
            hint="write a SELECT, ASK, CONSTRUCT or DESCRIBE",
            code="empty-query",
        )
    if any("\ud800" <= character <= "\udfff" for character in query):
        raise QueryError(
            "the query contains half of a character",
            hint="write it as UTF-8 text",
            code="bad-character",
        )
    refuse_escaped_ascii(query)
    if len(query) > MOST_CHARS:
        raise QueryError(
            f"the query has {len(query):,} characters, more than {MOST_CHARS:,}",
            hint="split it, or put fewer VALUES into it",
            code="too-long",
            chars=len(query),
            most=MOST_CHARS,
        )


def refuse_escaped_ascii(text: str) -> None:
    r"""Refuse a query or update that writes visible ASCII or line ends as codepoint escapes.

    They are expanded before the grammar is applied (SPARQL 1.1, section 19.2): ``\u0022`` ends a
    string and ``\u000A`` a comment, and the text after it is a pattern, such as a SERVICE. A
    parser that expands them later, as this package's, sees a string. No such character needs one.

    Raises:
        QueryError: If there is one.

    Examples:
        >>> refuse_escaped_ascii(r'ASK { ?s ?p "caff\u00e8" }')
        >>> refuse_escaped_ascii(r'ASK { ?s ?p "x\u0022 } #" }')
        Traceback (most recent call last):
        ...
        reasoningbank.errors.QueryError: line 1, column 15: \u0022 hides the character '"'; ...
    """
    for found in _ESCAPE.finditer(text):
        character = chr(min(int(found[1] or found[2], 16), 0x80))
        # Other control characters mean nothing to the grammar, and are invisible unescaped.
        if character in "\n\r" or " " <= character < "\x7f":
            line, column = position(text, found.start())
            raise QueryError(
                f"line {line}, column {column}: {found[0]} hides the character {character!r}",
                hint='write the character itself; in a string \\" and \\n',
                code="escaped-ascii",
            )


def syntax_error(
    query: str,
    offset: int,
    what: str = "",
    *,
    said: str = "",
    hint: str = "",
    code: str = "syntax-error",
    **fields: object,
) -> QueryError:
    """Build the error for a position in a query.

    Args:
        query: The author's text.
        offset: Where parsing stopped, in characters.
        what: What is wrong; worked out from the text and `said` if empty.
        said: A parser's own message.
        hint: What to do; guessed from the text if empty.
        code: Code of the error; its fields get ``line`` and ``column``.
        **fields: Further fields of the error.
    """
    tokens = tokenize(query)
    # pyparsing's and Oxigraph's lists of what they expected, which help nobody.
    expected = bool(said) and ("xpected" in said or "(at char" in said)
    if expected and not what:
        # Parsers report the furthest position they reached, which is past the mistake.
        found = next((t for t in reversed(tokens) if t.start < offset), None)
    else:
        found = next((t for t in tokens if t.end > offset), None)
    at = min(offset, len(query)) if found is None else found.start
    line, column = position(query, at)
    if not what:
        about, advice = next((pair for sign, *pair in _SAID if sign in said), ("", ""))
        hint = hint or advice
        if about and expected:
            what = about
        elif said:
            what = f"the query cannot be parsed near {_near(tokens, at)}" if expected else said
        elif found is not None:
            what = f"unexpected {found.text[:60]!r}"
    return QueryError(
        what,
        where=f"line {line}, column {column}",
        hint=hint or _guess(query, tokens, at),
        code=code,
        **{"line": line, "column": column, **fields},
    )


def _near(tokens: Sequence[Token], offset: int) -> str:
    at = next((i for i, t in enumerate(tokens) if t.start >= offset), len(tokens))
    words = [t.text if len(t.text) <= 40 else t.text[:40] + "…" for t in tokens]
    return repr(" ".join(words[max(0, at - 4) : at + 2]))


def _guess(query: str, tokens: Sequence[Token], offset: int) -> str:
    guesses = (_fence, _marker, _quote, _start, _brackets)
    for guess in (*guesses, _aggregate, _foreign, _function, _order):
        hint = guess(query, tokens, offset)
        if hint:
            return hint
    return (
        "check the text just before it: triples end with ' .', "
        "FILTER and BIND take parentheses, blocks take { }"
    )


def _fence(query: str, tokens: Sequence[Token], offset: int) -> str:
    return "send the query alone, without ``` fences" if "```" in query else ""


def _marker(query: str, tokens: Sequence[Token], offset: int) -> str:
    # DSPy's field markers, which small models write after the query.
    found = re.search(r"\[\[ ## \w+ ## \]\]", query)
    return f"send the query alone: remove {found[0]} and the text after it" if found else ""


def _quote(query: str, tokens: Sequence[Token], offset: int) -> str:
    odd = next((t for t in tokens if t.kind == "other"), None)
    if odd is None:
        return ""
    line, column = position(query, odd.start)
    where = f"at line {line}, column {column}"
    if odd.text in "\"'":
        return f"close the string that opens {where}; write quotes inside it as \\{odd.text}"
    if odd.text in "“”‘’„":
        return f"use straight quotes instead of {odd.text} {where}"
    if odd.text == "\\":
        return f"remove the backslash {where}"
    return f"remove the character {odd.text!r} {where}"


def _start(query: str, tokens: Sequence[Token], offset: int) -> str:
    forms = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
    if not any(t.is_word(*forms) for t in tokens):
        return "begin the query with SELECT, ASK, CONSTRUCT or DESCRIBE"
    first = next(t for t in tokens if t.is_word(*forms))
    if tokens[0].is_word("PREFIX", "BASE", "VERSION", *forms):
        if any(t.is_word("PREFIX") and t.start > first.start for t in tokens):
            return "put all PREFIX lines before the query form"
        if tokens[0].is_word("PREFIX") and offset < first.start:
            return "write each prefix as PREFIX name: <namespace>, without a final period"
        return ""
    return f"send the query alone: remove the text before {first.text.upper()}"


def _brackets(query: str, tokens: Sequence[Token], offset: int) -> str:
    opened: list[Token] = []
    for token in tokens:
        if token.kind != "punct":
            continue
        if token.text in _PAIRS:
            opened.append(token)
        elif token.text in _PAIRS.values():
            if not opened or _PAIRS[opened[-1].text] != token.text:
                line, column = position(query, token.start)
                return f"the {token.text!r} at line {line}, column {column} closes nothing"
            opened.pop()
    if not opened:
        return ""
    line, column = position(query, opened[-1].start)
    close = _PAIRS[opened[-1].text]
    return f"add the {close!r} that closes the {opened[-1].text!r} at line {line}, column {column}"


def _aggregate(query: str, tokens: Sequence[Token], offset: int) -> str:
    depth = 0
    for at, token in enumerate(tokens):
        if token.is_word("SELECT"):
            for part in tokens[at + 1 :]:
                if part.text == "{" or part.is_word("WHERE", "FROM"):
                    break
                if depth == 0 and part.is_word(*_AGGREGATES):
                    name = part.text.upper()
                    return f"write ({name}(...) AS ?name) with the outer parentheses"
                depth += (part.text == "(") - (part.text == ")")
            depth = 0
    return ""


def _order(query: str, tokens: Sequence[Token], offset: int) -> str:
    depth = 0
    last = -1
    for token in tokens:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.is_word(*_MODIFIERS):
            rank = _MODIFIERS.index(token.text.upper())
            # LIMIT and OFFSET may come in either order.
            if rank < last and not (rank == 3 and last == 4):
                return "put the clauses in the order GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET"
            last = max(rank, last)
    return ""


def _foreign(query: str, tokens: Sequence[Token], offset: int) -> str:
    for before, token in pairwise(tokens):
        if before.is_word("FILTER") and (token.kind == "variable" or token.kind == "string"):
            return "put the condition of FILTER into parentheses: FILTER(...)"
        if before.is_word("BIND") and token.text != "(":
            return "write BIND(expression AS ?name)"
        if token.is_word("DESC", "ASC") and before.kind == "variable":
            return f"write ORDER BY {token.text.upper()}({before.text})"
        if token.is_word("DESC", "ASC") and before.kind in ("name", "iri"):
            order = f"ORDER BY {token.text.upper()}(?value)"
            return f"bind it to a variable in the pattern, {before.text} ?value, and write {order}"
        if token.is_word("LIKE"):
            return 'SPARQL has no LIKE: use FILTER(CONTAINS(LCASE(STR(?x)), "text"))'
        if token.is_word("AND", "OR") and token.text.isupper():
            return "write && for AND and || for OR inside FILTER"
        if token.is_word("JOIN", "ON", "TABLE"):
            return "this is SQL: in SPARQL, triple patterns that share a variable are joined"
    if re.search(r"[=!]=\s*=|[^!<>=]==[^=]", query):
        return "compare with a single ="
    return ""


def _function(query: str, tokens: Sequence[Token], offset: int) -> str:
    functions = _FUNCTIONS.split()
    known = (*functions, *_AGGREGATES, *_BEFORE_PARENTHESES.split())
    for token, after in pairwise(tokens):
        name = token.text.upper()
        if token.kind == "word" and after.text == "(" and name not in known:
            near = get_close_matches(name, functions, n=1, cutoff=0.8)
            meant = f"did you mean {near[0]}? " if near else ""
            return (
                f"{meant}SPARQL has no function {token.text}; for texts it has CONTAINS, "
                "STRSTARTS, STRENDS, REGEX, REPLACE, SUBSTR, STRLEN, LCASE, UCASE, CONCAT"
            )
    return ""
