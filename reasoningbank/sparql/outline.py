"""The outline of a query, read from its tokens: prologue, form, columns, SERVICEs, outer LIMIT.

It holds for what rdflib cannot parse too, so limits and allowed addresses have no gap there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, cast

from reasoningbank.errors import QueryError
from reasoningbank.sparql.syntax import syntax_error
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["Limit", "Outline", "begins_update", "is_update", "outline"]

Form = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]

_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_UPDATES = (
    "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "COPY", "MOVE", "ADD", "WITH",
)  # fmt: skip
_OPEN, _CLOSE = frozenset("{([") | {"<<", "<<(", "{|"}, frozenset("})]") | {">>", ")>>", "|}"}
_LINKS = frozenset("/|+-*.;") | {"&&", "||"}
_BLOCKS = ("UNION", "OPTIONAL", "MINUS", "FILTER", "BIND")
#: Deeper nesting, or more patterns and operators, make parsers and engines overflow their stacks
#: (Oxigraph's whole server ends on `1-1-1…` of 2,000 terms) or plan for ever (300 joined patterns
#: take it 2 s, 1,000 minutes, its timeout notwithstanding).
MOST_DEPTH = 100
MOST_CHAIN = 300
#: Digits of a LIMIT.
MOST_DIGITS = 18


@dataclass(frozen=True)
class Limit:
    """The LIMIT of the outermost level: its number and place, or where one would be put."""

    start: int
    end: int
    value: int | None = None


@dataclass(frozen=True)
class Outline:
    """What the tokens of a query tell.

    Attributes:
        form: The query form.
        declared: Prefix → namespace of the prologue.
        prefix_at: Offset where further PREFIX lines go.
        body: The tokens after the prologue.
        projected: Columns that the outermost SELECT names.
        star: Whether that SELECT is ``*``.
        service_targets: The token after each SERVICE (SILENT).
        limit: The outermost LIMIT.
    """

    form: Form
    body: tuple[Token, ...]
    limit: Limit
    prefix_at: int = 0
    declared: dict[str, str] = field(default_factory=dict)
    projected: tuple[str, ...] = ()
    star: bool = False
    service_targets: tuple[Token, ...] = ()


@lru_cache(maxsize=256)
def outline(query: str) -> Outline:
    """Read the outline of a query.

    Raises:
        QueryError: It is no query (an update, prose, an open string), or nested too deeply.

    Examples:
        >>> shape = outline("PREFIX e: <http://e/> SELECT ?a { ?a e:b ?c } LIMIT 5 VALUES ?c {1}")
        >>> shape.form, shape.declared, shape.limit.value
        ('SELECT', {'e': 'http://e/'}, 5)
    """
    tokens = tokenize(query)
    declared, start = _prologue(tokens)
    body = tokens[start:]
    form = _form(query, body)
    outer = _outer(query, body)
    star, projected = _projection(body)
    return Outline(
        form=form,
        body=body,
        limit=_limit(query, outer),
        prefix_at=tokens[0].start,
        declared=declared,
        projected=projected if form == "SELECT" else (),
        star=star,
        service_targets=tuple(_targets(body)),
    )


def is_update(query: str) -> bool:
    """Tell whether a text begins as an update does, behind its prologue.

    Examples:
        >>> is_update("PREFIX e: <http://e/> INSERT DATA { e:a e:b 1 }"), is_update("ASK {}")
        (True, False)
    """
    return begins_update(tokenize(query)) is not None


def begins_update(tokens: Sequence[Token]) -> Token | None:
    """Return the word behind the prologue if it is an update's; None where it is not."""
    _, at = _prologue(tokens)
    return tokens[at] if at < len(tokens) and tokens[at].is_word(*_UPDATES) else None


def _prologue(tokens: Sequence[Token]) -> tuple[dict[str, str], int]:
    declared: dict[str, str] = {}
    at = 0
    while at < len(tokens):
        if tokens[at].is_word("PREFIX") and [t.kind for t in tokens[at + 1 : at + 3]] == [
            "name",
            "iri",
        ]:
            declared[tokens[at + 1].text.partition(":")[0]] = tokens[at + 2].text[1:-1]
            at += 3
        elif tokens[at].is_word("BASE", "VERSION") and at + 1 < len(tokens):
            at += 2
        else:
            break
    return declared, at


def _form(query: str, body: Sequence[Token]) -> Form:
    if not body:
        raise QueryError("the query is empty", hint="write a SELECT, ASK, CONSTRUCT or DESCRIBE")
    first = body[0]
    if first.is_word(*_UPDATES):
        raise syntax_error(
            query,
            first.start,
            f"{first.text.upper()} is an update, and only queries are allowed",
            hint="ask with SELECT, ASK, CONSTRUCT or DESCRIBE",
        )
    if not first.is_word(*_FORMS):
        raise syntax_error(query, first.start, "")
    return cast(Form, first.text.upper())


def _outer(query: str, body: Sequence[Token]) -> list[Token]:
    """Return the tokens outside of all brackets, the brackets themselves included."""
    outer: list[Token] = []
    depth = signs = chain = 0
    for token in body:
        if token.kind == "other":
            raise syntax_error(query, token.start, "")
        if token.kind == "punct" and token.text in _OPEN:
            outer += [token] if depth == 0 else []
            depth += 1
        elif token.kind == "punct" and token.text in _CLOSE:
            depth -= 1
            outer += [token] if depth == 0 else []
        elif depth == 0:
            outer.append(token)
        signs = signs + 1 if token.text in ("!", "-", "+", "^") else 0
        chain += token.text in _LINKS or token.is_word(*_BLOCKS)
        if depth > MOST_DEPTH or signs > MOST_DEPTH or chain > MOST_CHAIN:
            raise QueryError(
                "the query is nested too deeply, or has too many patterns and operators",
                hint="simplify it, or ask in several queries",
            )
    return outer


def _projection(body: Sequence[Token]) -> tuple[bool, tuple[str, ...]]:
    names: list[str] = []
    depth = 0
    previous: Token | None = None
    for token in body[1:]:
        if token.text == "{" or token.is_word("WHERE", "FROM"):
            break
        if token.text in ("(", ")"):
            depth += 1 if token.text == "(" else -1
        elif token.kind == "variable" and (
            depth == 0 or (depth == 1 and previous is not None and previous.is_word("AS"))
        ):
            names.append(token.text[1:])
        elif token.text == "*" and depth == 0:
            return True, ()
        previous = token
    return False, tuple(names)


def _targets(body: Sequence[Token]) -> list[Token]:
    targets = []
    for at, token in enumerate(body):
        if token.is_word("SERVICE"):
            following = [t for t in body[at + 1 : at + 3] if not t.is_word("SILENT")][:1]
            targets += [t for t in following if t.kind in ("iri", "name", "variable")]
    return targets


def _limit(query: str, outer: Sequence[Token]) -> Limit:
    closed = next((at for at, token in enumerate(outer) if token.text == "}"), len(outer) - 1)
    end = outer[-1].end
    for at in range(closed + 1, len(outer)):
        token = outer[at]
        if token.is_word("LIMIT") and at + 1 < len(outer) and outer[at + 1].kind == "number":
            number = outer[at + 1]
            if not number.text.isdigit() or len(number.text) > MOST_DIGITS:
                what = f"LIMIT takes a whole number of at most {MOST_DIGITS} digits"
                raise syntax_error(query, number.start, what)
            return Limit(number.start, number.end, int(number.text))
        if token.is_word("VALUES"):
            end = outer[at - 1].end
            break
    return Limit(end, end)
