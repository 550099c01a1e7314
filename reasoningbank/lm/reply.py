"""Queries in a model's reply or in other text, and repairs of the form of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from dspy.utils.exceptions import AdapterParseError

from reasoningbank.errors import QueryError
from reasoningbank.sparql.query import complaint_of, update_complaint
from reasoningbank.sparql.syntax import FIELD_MARKER
from reasoningbank.sparql.tokens import (
    AGGREGATES,
    FORMS,
    Edit,
    Token,
    apply_edits,
    begins_update,
    check_update_size,
    closing,
    iter_tokens,
    tokenize,
)
from reasoningbank.sparql.tree import outline

_FENCE = re.compile(r"```[ \t]*[A-Za-z]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
#: What a model thinks before its answer, where the server does not keep it apart; templates may
#: open it in the prompt, and a length limit may end it.
_THOUGHT = re.compile(r"\A(?:.*</think>|\s*<think>.*)", re.DOTALL)
#: Words that begin a query; `line` matches if only marks precede them on their line.
_START = re.compile(
    r"(?im)(?:(?P<line>^[ \t>*`\"']*)|(?<![\w?$:/#@.-]))"
    r"(?P<word>PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b"
)
#: Beginnings that are hardly ever prose.
_SURE = re.compile(
    r"(?i)PREFIX\s+[\w.-]*\s*:\s*<|BASE\s*<|(?-i:PREFIX|BASE)\s"
    r"|SELECT\s*(?:(?:DISTINCT|REDUCED)\b\s*)?(?:[?$*(]|[A-Z_]+\s*\()"
    r"|(?:ASK|CONSTRUCT)\s*(?:WHERE\s*)?\{|(?:ASK|CONSTRUCT)\s+FROM\s*[<N]"
    r"|(?-i:DESCRIBE)\s*(?:[*<?$]|[\w-]*:\w)"
)
#: Beginnings of a reply that was cut off before its first group.
_OPEN = re.compile(
    r"(?i)PREFIX\s+[\w.-]*\s*:\s*<|BASE\s*<|SELECT\s*(?:(?:DISTINCT|REDUCED)\b\s*)?[?$]"
    # SQL and the like.
    r"|(?-i:SELECT\b.*\b(?:FROM|WHERE)\b)"
)
_UPDATES = ("INSERT", "DELETE", "WITH")
#: Most beginnings that are tried, and characters of each.
_MOST, _MOST_CHARS = 20, 50_000

#: Words that continue a query after its first group; in capitals they are never prose.
_KEYWORDS = (
    "WHERE", "UNION", "OPTIONAL", "MINUS", "DATA", "INSERT", "DELETE", "FROM", "USING", "SERVICE",
    "GRAPH", "NAMED", "SILENT", "WITH", "HAVING", "FILTER", "BIND", "VALUES", "GROUP", "ORDER",
    "BY", "LIMIT", "OFFSET",
)  # fmt: skip
_OPERANDS = ("variable", "number", "name", "iri")
_OPERATORS = frozenset("<>=+-*/!,") | {"<=", ">=", "!=", "&&", "||"}


def query_in(text: str | None) -> str | None:
    """Return the SPARQL query in a reply, or None.

    Of several queries the last that parses is taken, one in a fence before any other; undeclared
    prefixes are allowed. If none parses, the text most like a query is returned.
    """
    # What parses is best, then what is in a fence, what begins like a query, and what comes last.
    found: list[tuple[bool, bool, bool, int, str]] = []
    # Fences open and close in turn; the last one may stay open.
    for number, part in enumerate(_answer_in(text or "").split("```")):
        for parses, sure, query in _candidates(part):
            found.append((parses, number % 2 == 1, sure, len(found), query))
    return max(found)[-1] if found else None


def json_in(text: str) -> str:
    """Return the JSON in a reply: its last fence with an object or a list, else the whole text."""
    text = _answer_in(text)
    blocks = [body for body in _FENCE.findall(text) if body.lstrip()[:1] in ("{", "[")]
    return (blocks[-1] if blocks else text).strip()


def unparsed(failure: AdapterParseError) -> str:
    """Return the reply that an adapter could not parse."""
    # Of a reply without text, DSPy gives a mapping, which holds what the model thought.
    said = str(failure.lm_response)
    return "" if said.startswith(("{'text': None,", "{'text': '',")) else said


def _answer_in(text: str) -> str:
    return FIELD_MARKER.sub("\n", _THOUGHT.sub("", text))


def _candidates(text: str) -> Iterator[tuple[bool, bool, str]]:
    """Yield what may be a query: whether it parses, whether it begins like one, and its text."""
    at = looked = 0
    open_ended = False
    while looked < _MOST and (start := _START.search(text, at)) is not None:
        begin, at = start.start("word"), start.end()
        sure = _SURE.match(text, begin) is not None
        if start["line"] is None and not sure:
            continue
        looked += 1
        whole = text[begin:].rstrip()
        if looked == 1 and is_query(whole):
            yield True, sure, whole
            return
        end = _end(whole)
        if end is not None:
            query = whole[:end]
            parses = is_query(query)
            yield parses, sure, query
            # A subquery is no candidate of its own; a query inside a sentence is.
            at = begin + end if parses or sure else at
            continue
        line = whole.partition("\n")[0].rstrip(" \t\r.`")
        if is_query(line):
            yield True, sure, line
        elif not open_ended and start["line"] is not None and _OPEN.match(whole):
            open_ended = True
            yield False, sure, whole


def is_query(query: str) -> bool:
    """Return whether a text is a query or an update, with any prefixes."""
    if len(query) > _MOST_CHARS:
        return False
    tokens = tokenize(query)
    names = (
        Edit(token.start, token.end, " <urn:name> ")
        for before, token in pairwise(tokens)
        if token.kind == "name" and not before.is_word("PREFIX")
    )
    plain = apply_edits(query, names)
    begin = begins_update(tokens)
    try:
        if begin is None:
            return complaint_of(outline(plain)) is None
        check_update_size(tokens)
    except QueryError:
        return False
    # Only the prologue, whose names are unchanged, precedes this word.
    return update_complaint(plain, begin.start) is None


def _end(query: str) -> int | None:
    """Return where a query ends that a text begins with; None where it has no group."""
    tokens = tokenize(query[:_MOST_CHARS])
    at = 0
    if tokens[0].is_word("PREFIX", "BASE"):
        at = next((n for n, token in enumerate(tokens) if token.is_word(*FORMS, *_UPDATES)), 0)
    group = _first_group(tokens, at + 1)
    if group is None:
        return None
    at = _continued(query, tokens, _closed_again(tokens, closing(tokens, group)))
    return tokens[at - 1].end if at < len(tokens) else len(query)


def _first_group(tokens: Sequence[Token], start: int) -> int | None:
    """Return where the first group opens; None where another query begins before it."""
    depth = 0
    within: int | None = None
    for at in range(start, len(tokens)):
        token = tokens[at]
        if token.text == "{" and depth <= 0:
            return at
        # A group in the columns belongs to EXISTS; after an unclosed bracket it will do.
        within = at if within is None and token.text == "{" else within
        if within is None and token.is_word("PREFIX", "BASE", *FORMS):
            return None
        depth += (token.text == "(") - (token.text == ")")
    return within


def _continued(query: str, tokens: Sequence[Token], at: int) -> int:
    """Return the index after whatever continues a query outside its groups: no prose."""
    end = at
    keyword: Token | None = None
    while at < len(tokens):
        token = tokens[at]
        called = token.kind == "word" and tokens[min(at + 1, len(tokens) - 1)].text == "("
        operand = called or token.kind in _OPERANDS or token.is_word("ASC", "DESC")
        operand = operand or token.text in _OPERATORS
        if token.text == ";" or token.is_word(*_KEYWORDS):
            keyword, at = token, at + 1
            end = at if token.text == ";" or token.text.isupper() else end
        elif token.text == "{" or (keyword and token.text == "("):
            at = end = closing(tokens, at)
        elif keyword and operand:
            at = end = at + 1
        elif keyword and keyword is tokens[at - 1] and keyword.text.isupper():
            # What a keyword in capitals is followed by belongs to it, up to the end of the line.
            line = query.find("\n", keyword.end)
            while at < len(tokens) and (line < 0 or tokens[at].start < line):
                at += 1
            return max(end, at)
        else:
            break
    return end


def _closed_again(tokens: Sequence[Token], at: int) -> int:
    """Return the index after the last surplus closing brace; `at` without any."""
    depth = lowest = 0
    found = at
    for place in range(at, len(tokens)):
        token = tokens[place]
        quoted = token.kind == "other" or (token.kind == "string" and place == at)
        if quoted or (token.is_word(*FORMS) and tokens[place - 1].text != "{"):
            break
        depth += (token.text == "{") - (token.text == "}")
        if depth < lowest:
            lowest, found = depth, place + 1
    return found


# -- queries in other text ---------------------------------------------------------------

#: Words that begin a query, also in prose; most tokens of its prologue and head, and characters.
_ANY_START = re.compile(r"\b(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)
_HEAD_TOKENS, _MOST_FOUND_CHARS = 400, 40_000
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
_OF_MODIFIERS = ("BY", "ASC", "DESC", "VALUES")


@lru_cache(maxsize=4096)
def queries_in(text: str) -> tuple[str, ...]:
    """Return what may be queries in a text: SPARQL alone, in prose, or in strings of code."""
    found: dict[str, None] = {}
    unescaped = text.replace("\\n", "\n").replace('\\"', '"') if "\\" in text else text
    for written in dict.fromkeys((text, unescaped)):
        done = 0
        for start in _ANY_START.finditer(written):
            if start.start() < done:
                continue
            query, length = _query_at(written[start.start() :])
            if query:
                done = start.start() + length
                found[query] = None
    return tuple(found)


def _query_at(text: str) -> tuple[str, int]:
    """Return the query at the beginning of a text, empty if there is none, and its length there."""
    at = _head(iter_tokens(text[:_MOST_FOUND_CHARS]))
    if at < 0:
        return "", 0
    tokens = tokenize(text[:_MOST_FOUND_CHARS])
    depth = 0
    end = tokens[at - 1].end
    while at < len(tokens):
        token = tokens[at]
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "}":
            end = token.end
        elif not depth and not token.is_word("WHERE"):
            break
        at += 1
    if depth > 0:
        # All that follows is inside it, comments too.
        return f"{text[: tokens[-1].end]} {'}' * depth}", min(len(text), _MOST_FOUND_CHARS)
    end = _modified(tokens, at, end)
    return text[:end], end


def _head(tokens: Iterable[Token]) -> int:
    """Return the index of the first group, or of the end of a DESCRIBE; -1 if it is no query."""
    described = False
    forms = at = 0
    before: Token | None = None
    for at, token in enumerate(tokens, 1):
        if token.is_word(*FORMS):
            forms += 1
            described = token.is_word("DESCRIBE")
            if forms > 1:
                return -1
        elif token.text == "{":
            return at - 1 if forms else -1
        elif described and token.kind not in ("iri", "name", "variable", "punct"):
            whole = before is not None and before.kind != "word"
            return at - 1 if whole or token.is_word("WHERE", "FROM") else -1
        else:
            stray = before is not None and before.is_word("PREFIX") and token.kind != "name"
            if stray or token.kind == "other" or token.text in ("}", ";") or at == _HEAD_TOKENS:
                return -1
        before = token
    return at if described else -1


def _modified(tokens: Sequence[Token], at: int, end: int) -> int:
    """Return the end offset of the solution modifiers that begin at a token."""
    while at < len(tokens) and tokens[at].is_word(*_MODIFIERS, *_OF_MODIFIERS):
        at += 1
        while at < len(tokens) and not tokens[at].is_word(*_MODIFIERS, *_OF_MODIFIERS):
            token = tokens[at]
            bracket = token.text in ("(", "{")
            if not bracket and token.kind not in ("variable", "number") and not token.is_word("BY"):
                return end
            at = closing(tokens, at) if bracket else at + 1
            end = tokens[at - 1].end
    return end


# -- repair -------------------------------------------------------------------------------

_GOES_ON = ("FILTER", "OPTIONAL", "BIND", "MINUS", "VALUES")


def repaired(query: str) -> str:
    """Return a query with the repairs that make it parse; as it is if it parses, or none do."""
    text = query
    repairs = (_name_aggregates, _one_group, _order_outside, _order_direction)
    for repair in () if is_query(query) else repairs:
        edits = list(repair(tokenize(text)))
        if edits:
            text = apply_edits(text, edits)
            if is_query(text):
                return text
    return query


def _name_aggregates(tokens: Sequence[Token]) -> Iterator[Edit]:
    """``SELECT COUNT(?x)`` and ``SELECT COUNT(?x) AS ?n`` become ``SELECT (COUNT(?x) AS ?n)``."""
    at = next((n + 1 for n, token in enumerate(tokens) if token.is_word("SELECT")), len(tokens))
    while at < len(tokens) and tokens[at].text != "{" and not tokens[at].is_word("WHERE", "FROM"):
        token, then = tokens[at], tokens[min(at + 1, len(tokens) - 1)]
        at += 1
        if token.text == "(":
            at = closing(tokens, at - 1)
        elif token.is_word(*AGGREGATES) and then.text == "(":
            at = closing(tokens, at)
            named = [t.is_word("AS") or t.kind == "variable" for t in tokens[at : at + 2]]
            yield Edit(token.start, token.start, "(")
            if named == [True, True]:
                at += 2
            name = "" if named == [True, True] else f" AS ?{token.text.lower()}"
            yield Edit(tokens[at - 1].end, tokens[at - 1].end, f"{name})")


def _order_outside(tokens: Sequence[Token]) -> Iterator[Edit]:
    """Solution modifiers before the last brace move behind it."""
    last = max((n for n, token in enumerate(tokens) if token.text == "}"), default=0)
    depth = 0
    for token in tokens[:last]:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 1 and token.is_word(*_MODIFIERS):
            yield Edit(token.start, token.start, "} ")
            yield Edit(tokens[last].start, tokens[last].end, "")
            return


def _order_direction(tokens: Sequence[Token]) -> Iterator[Edit]:
    """``ORDER BY ?x DESC`` becomes ``ORDER BY DESC(?x)``."""
    for before, token in pairwise(tokens):
        if token.is_word("ASC", "DESC") and before.kind == "variable":
            yield Edit(before.start, token.end, f"{token.text.upper()}({before.text})")


def _one_group(tokens: Sequence[Token]) -> Iterator[Edit]:
    """Patterns after a group that was closed too early belong to it."""
    last = max((n for n, token in enumerate(tokens) if token.text == "}"), default=0)
    depth = 0
    for at, token in enumerate(tokens[:last]):
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "}" and depth == 0:
            then = tokens[at + 1]
            if then.kind in ("variable", "name", "iri") or then.is_word(*_GOES_ON):
                yield Edit(token.start, token.end, ".")
                depth = 1
