"""Pitfalls of queries that do not parse: what was written, and what to write instead.

They hold for any question, so each says the same whoever runs into it: equal items are one item
with several experiences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reasoningbank.errors import QueryError
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.skeleton import slot_names
from reasoningbank.schema import local_name, namespace_of, nearest_names
from reasoningbank.schema.names import nearest_prefixes
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["Pitfall", "needless_prefixes", "syntax_pitfalls"]

_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
#: So many declarations without a query behind them, and so many equal patterns, are a runaway.
_MANY_PREFIXES, _MANY_PATTERNS = 5, 4
_PLACE = re.compile(r",? (?:that (?:opens|closes) |at |the '.' )*at line \d+, column \d+")
_UNDECLARED = re.compile(r"the prefix '([^']*):' is not declared")
#: What is said where nothing more is known.
_VAGUE = "check what stands just before"
_ANY = "Any question"


class Pitfall(NamedTuple):
    """What went wrong and how it shows.

    Attributes:
        title: What to do, in a few words.
        description: When it applies.
        content: What to do, and the sign of doing it wrong.
        denied: Names that the text says do not exist.
        constants: Resources and texts that the text may speak of.
        tags: Terms to find it by.
    """

    title: str
    description: str
    content: str
    denied: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()


def syntax_pitfalls(query: str, error: QueryError, facts: Facts) -> Iterator[Pitfall]:
    """Yield the pitfalls of a query that does not parse, the most telling first.

    Args:
        query: The query.
        error: What was said of it.
        facts: What is known of the endpoint's names.
    """
    tokens = tokenize(query)
    undeclared = _UNDECLARED.search(error.what)
    if slot_names(query):
        yield _UNFILLED
        return
    if _is_prologue(tokens) or error.what.startswith("unexpected 'PREFIX'"):
        yield needless_prefixes(facts)
        return
    if _runs_away(tokens):
        yield _RUNAWAY
    elif undeclared is not None:
        yield from _prefix(undeclared[1], tokens, facts)
    else:
        found = _shape(tokens) or _mended(error)
        if found is not None:
            yield found


def _is_prologue(tokens: Sequence[Token]) -> bool:
    declared = sum(token.is_word("PREFIX") for token in tokens)
    return declared >= _MANY_PREFIXES and not any(token.is_word(*_FORMS) for token in tokens)


def _own_prefixes(facts: Facts) -> list[str]:
    """Return the endpoint's prefixes with their colon, the vocabulary's first."""
    counts = Counter(
        namespace_of(name) for name in (*facts.vocabulary.classes, *facts.vocabulary.properties)
    )
    own = facts.endpoint.prefixes
    return [f"{prefix}:" for prefix in sorted(own, key=lambda p: (-counts[own[p]], p))]


def needless_prefixes(facts: Facts) -> Pitfall:
    """Return the pitfall of PREFIX lines: needless at best, wrong or without an end else."""
    own = ", ".join(_own_prefixes(facts)[:5])
    declared = f" ({own}, …)" if own else ""
    return Pitfall(
        "Begin with SELECT, ASK, CONSTRUCT or DESCRIBE; leave PREFIX lines out",
        f"{_ANY}: the prefixes of this endpoint need no declaration",
        f"The endpoint's prefixes{declared} are declared already: write no PREFIX line, begin "
        "the query at once.\nSign: one PREFIX line after the other, and the reply is cut before "
        "the query begins; or a PREFIX line that does not parse, or has another namespace.",
        tags=("prefix", "syntax"),
    )


_RUNAWAY = Pitfall(
    "Write each triple pattern once, then close the braces",
    f"{_ANY}: most need two to six triple patterns",
    "Write a pattern for each condition of the question and for each column, none twice, then "
    "'}' and stop.\nSign: the same pattern over and over with other names or numbers, and the "
    "reply is cut before its last '}'.",
    tags=("syntax", "repetition"),
)


_UNFILLED = Pitfall(
    "Put a value in place of each slot of a pattern",
    f"{_ANY} for which a pattern with slots is at hand",
    "A pattern's slots in double angle brackets stand for values of its own question: replace "
    "each by the value that this question names, or drop the part that it does not need.\n"
    "Sign: the query does not parse where a slot was copied.",
    tags=("slots", "syntax"),
)


def _runs_away(tokens: Sequence[Token]) -> bool:
    """Say whether the patterns repeat themselves, other names and numbers apart."""
    opened = next((at for at, token in enumerate(tokens) if token.text == "{"), None)
    if opened is None:
        return False
    shapes: Counter[str] = Counter()
    statement: list[str] = []
    for token in tokens[opened + 1 :]:
        if token.text in (".", ";", "{", "}"):
            if len(statement) > 1:
                shapes[" ".join(statement)] += 1
            statement = []
        elif token.kind == "name":
            prefix, _, local = token.text.partition(":")
            statement.append(f"{prefix}:{re.sub(r'[0-9.]+', '0', local)}")
        else:
            statement.append("0" if token.kind == "number" else token.text)
    depth = sum((t.text == "{") - (t.text == "}") for t in tokens)
    return depth > 0 and max(shapes.values(), default=0) >= _MANY_PATTERNS


def _prefix(prefix: str, tokens: Sequence[Token], facts: Facts) -> Iterator[Pitfall]:
    written = [t.text for t in tokens if t.kind == "name" and t.text.startswith(f"{prefix}:")]
    meant: dict[str, str] = {}
    for text in dict.fromkeys(written):
        local = text.partition(":")[2]
        for term in nearest_names(f"urn:/{local}", facts.vocabulary) if local else ():
            if local_name(term.iri).lower() == local.lower():
                meant.setdefault(text, facts.show(term.iri))
    near = nearest_prefixes(prefix, facts.endpoint.prefixes)
    if not meant and not near:
        return
    instead = "; ".join(f"write {right}, not {wrong}" for wrong, right in list(meant.items())[:3])
    instead = instead or f"write {' or '.join(f'{name}:' for name in near)}"
    own = ", ".join(_own_prefixes(facts)[:12])
    yield Pitfall(
        f"The prefix {prefix}: is not known: {instead}"[:118],
        f"{_ANY} where a name with {prefix}: seems to fit",
        f"{instead[0].upper()}{instead[1:]}. There is no prefix {prefix}: here; known are {own}.\n"
        f"Sign: \"the prefix '{prefix}:' is not declared\".",
        denied=frozenset(meant),
        tags=("prefix", "syntax"),
    )


def _shape(tokens: Sequence[Token]) -> Pitfall | None:
    """Return the pitfall of a query that is built as SQL is."""
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        if token.is_word("WHERE") and following is not None and following.text != "{":
            return Pitfall(
                "Put the patterns of WHERE into braces, each ended by ' .'",
                f"{_ANY}: SELECT ?x WHERE {{ … }}",
                "Write WHERE { ?s a_property ?o . } with braces, and a ' .' after each pattern; "
                "conditions go into FILTER( ) inside the braces.\n"
                "Sign: the query cannot be parsed near WHERE.",
                tags=("syntax",),
            )
        if token.is_word("SELECT") and _selects_a_name(tokens[at + 1 :]):
            return Pitfall(
                "SELECT takes variables, not names of properties",
                f"{_ANY}: each column is a variable that a pattern binds",
                "Write SELECT ?value WHERE { ?thing a_property ?value . }: the property stands in "
                "the pattern, the variable in SELECT.\n"
                "Sign: the query cannot be parsed near SELECT and a name with a colon.",
                tags=("syntax",),
            )
    return None


def _selects_a_name(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        if token.text in ("{", "}") or token.is_word("WHERE", "FROM", *_FORMS):
            return False
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind in ("name", "iri"):
            return True
    return False


def _mended(error: QueryError) -> Pitfall | None:
    """Return what is said to mend an error; None where nobody knows more than that there is one."""
    if not error.hint or error.hint.startswith(_VAGUE):
        return None
    hint = _PLACE.sub("", error.hint)
    title = f"{hint[0].upper()}{hint[1:]}"
    return Pitfall(
        title if len(title) <= 110 else f"{title[:109]}…",
        f"{_ANY}: the endpoint refuses what does not parse",
        f"{title}.\nSign: {_without_text(error.what)}.",
        tags=("syntax",),
    )


def _without_text(what: str) -> str:
    """Return a complaint without what it quotes of one query."""
    return re.sub(r" near '.*$| near \".*$", "", what)
