"""SPARQL texts in programs: what form they have, and whether they are queries at all."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from reasoningbank.errors import QueryError
from reasoningbank.sparql import prepare
from reasoningbank.sparql.parsers import FAILS, NOWHERE, complaint_of, parsed_alone, reaching_nobody
from reasoningbank.sparql.syntax import refuse_escaped_ascii, syntax_error
from reasoningbank.sparql.tokens import (
    Edit,
    Token,
    apply_edits,
    begins_update,
    check_nesting,
    is_update,
    origin,
    position,
    tokenize,
)
from reasoningbank.sparql.tree import QueryTree, outline

__all__ = ["check_query", "check_text", "check_update", "is_update", "query_outline"]

#: Stands for prefixes that only the endpoint knows.
_UNKNOWN = "http://prefix.invalid/"
_POSITION = re.compile(r"at (\d+):(\d+): ")
#: What Oxigraph's parser says in words.
_RULE = re.compile(r"(?:Variables|Blank nodes)[a-z ]* are not allowed in [A-Z ]+[A-Z]")
#: Stands for the document that relative IRIs are relative to.
_BASE = "http://document.invalid/"


def query_outline(text: str, *forms: str) -> QueryTree:
    """Return the outline of a query of one of the forms.

    Raises:
        QueryError: It is no query, or one of another form.

    Examples:
        >>> query_outline("SELECT ?x { ?x ?p ?o }", "SELECT").projected
        ('x',)
        >>> query_outline("ASK {}", "SELECT")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.QueryError: expected a SELECT query, got ASK; use the operation ASK
    """
    shape = outline(text)
    if forms and shape.form not in forms:
        wanted = " or ".join(forms)
        hint = f"use the operation {shape.form}"
        raise QueryError(f"expected a {wanted} query, got {shape.form}", hint=hint)
    return shape


@functools.lru_cache(maxsize=512)
def check_query(text: str, *forms: str) -> QueryTree:
    """Check that a text is a query of one of the forms, and return its outline.

    Prefixes that it does not declare are taken to be known to the endpoint.

    Raises:
        QueryError: It is none; line and column are named.
    """
    shape = query_outline(text, *forms)
    known = _foreign(shape.body, shape.declared)
    head = "".join(f"PREFIX {name}: <{_UNKNOWN}{name}#> " for name in known)
    edits = [Edit(shape.prefix_at, shape.prefix_at, head)] if head else []
    edits += reaching_nobody(shape)
    if complaint_of(text, shape, edits, base=_BASE) is not None:
        # The slower parser has the last word, and says where the mistake is.
        prepare(text, prefixes={name: f"{_UNKNOWN}{name}#" for name in known})
    return shape


def check_update(text: str) -> None:
    """Check that a text is a SPARQL Update.

    Raises:
        QueryError: It is none, it nests too deeply, hides characters behind escapes, or would make
            the server load other documents.

    Examples:
        >>> check_update("INSERT DATA { <http://e/a> <http://e/p> 1 }")
        >>> check_update("LOAD <http://e/>")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.QueryError: line 1, column 1: LOAD is not allowed; GET it, and PUT it
    """
    refuse_escaped_ascii(text)
    tokens = tokenize(text)
    begin = begins_update(tokens)
    if begin is None:
        hint = "begin with INSERT, DELETE or WITH"
        raise QueryError("expected a SPARQL Update", hint=hint)
    check_nesting(tokens)
    edits = []
    for at, token in enumerate(tokens):
        if token.is_word("LOAD"):
            raise syntax_error(text, token.start, "LOAD is not allowed", hint="GET it, and PUT it")
        if token.is_word("SERVICE"):
            target = next(t for t in [*tokens[at + 1 :], token] if not t.is_word("SILENT"))
            edits.append(Edit(target.start, target.end, NOWHERE))
    declared, moved = _declared(tokens, begin.start)
    edits += moved
    foreign = [f"{name}: <{_UNKNOWN}{name}#>" for name in _foreign(tokens, declared)]
    later = [declared[name] for name in declared if declared[name]]
    head = "".join(f"PREFIX {one} " for one in (*foreign, *later))
    # All of it is parsed, and then its first part fails: nothing of the update is carried out.
    edits.append(Edit(begin.start, begin.start, f"{head}{FAILS}"))
    made = apply_edits(text, edits)
    told = parsed_alone(made, _BASE)
    if told is not None:
        raise _update_error(text, made, edits, told)


def _declared(tokens: Sequence[Token], body: int) -> tuple[dict[str, str], list[Edit]]:
    """Return the prefixes of an update, and edits that take out those declared behind a ``;``.

    Oxigraph does not read declarations there; they are returned with their text, to stand first.
    """
    declared: dict[str, str] = {}
    moved: list[Edit] = []
    for word, name, space in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word.is_word("PREFIX") and name.kind == "name" and space.kind == "iri":
            inside = word.start >= body
            text = f"{name.text} {space.text}" if inside else ""
            declared.setdefault(name.text.partition(":")[0], text)
            moved += [Edit(word.start, space.end, "")] if inside else []
    return declared, moved


def _update_error(text: str, made: str, edits: Sequence[Edit], told: str) -> QueryError:
    found = _POSITION.search(told)
    if found is None:
        return QueryError(f"the update cannot be parsed: {told}")
    lines = made.split("\n")[: int(found[1]) - 1]
    offset = origin(edits, sum(len(line) + 1 for line in lines) + int(found[2]) - 1)
    rule = _RULE.search(told)
    if rule is None:
        unclosed = any(token.kind == "other" for token in tokenize(text))
        hint = "" if unclosed else "check what stands just before it"
        return syntax_error(text, offset, said="(at char", hint=hint)
    line, column = position(text, offset)
    return QueryError(rule[0], where=f"line {line}, column {column}")


def check_text(text: str) -> None:
    """Check that a text is a query or an update.

    Raises:
        QueryError: It is neither.
    """
    if is_update(text):
        check_update(text)
    else:
        check_query(text)


def _foreign(tokens: Sequence[Token], declared: object) -> list[str]:
    names = (t.text.partition(":")[0] for t in tokens if t.kind == "name")
    return list(dict.fromkeys(n for n in names if n not in declared))  # type: ignore[operator]
