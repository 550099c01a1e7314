"""Tokens of a SPARQL text, edits at tokens, and limits on nesting.

The terminals are those of SPARQL 1.1 (section 19.8) with the additions of SPARQL 1.2. Codepoint
escapes outside strings and IRIs are not expanded; they come out as ``other``.

By the longest match of the specification ``?a<1&&?b>2`` contains an IRI; engines that read by
context see two comparisons. Patterns could hide in such a difference, so `<` after an operand of an
expression is an operator here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from reasoningbank.errors import QueryError

TokenKind = Literal[
    "iri", "string", "name", "variable", "blank", "number", "word", "tag", "punct", "other"
]

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_START = _BASE + "_"
_WORD = _START + "0-9\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = _WORD + "-"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = (
    rf"(?:[{_START}:0-9]|{_PLX})"
    rf"(?:(?:[{_CHARS}:]|{_PLX})|\.+(?=[{_CHARS}:%\\]))*"
)
#: Bounded in length: without a colon, the search runs again at each word of the text.
_PREFIX = rf"[{_BASE}](?:[{_CHARS}]|\.+(?=[{_CHARS}])){{0,250}}"

_PATTERN = re.compile(
    "|".join(
        (
            r"(?P<space>[ \t\r\n]+|\#[^\r\n]*)",
            r"(?P<iri><(?:[^<>\"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>)",
            r'(?P<string>"""(?:"{0,2}(?:[^"\\]|\\.))*"""'
            r"|'''(?:'{0,2}(?:[^'\\]|\\.))*'''"
            r'|"(?:[^"\\\n\r]|\\.)*"'
            r"|'(?:[^'\\\n\r]|\\.)*')",
            rf"(?P<variable>[?$][{_START}0-9][{_WORD}]*)",
            rf"(?P<blank>_:[{_START}0-9](?:[{_CHARS}]|\.+(?=[{_CHARS}]))*)",
            rf"(?P<name>(?:{_PREFIX})?:(?:{_LOCAL})?)",
            r"(?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)?)",
            r"(?P<number>(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d+\.\d+|\.\d+|\d+)",
            rf"(?P<word>[{_BASE}][{_START}0-9]*)",
            r"(?P<punct><<\(|\)>>|<<|>>|\{\||\|\}|\^\^|&&|\|\||!=|<=|>=|[-+*/^|!=<>(){}\[\].,;~?])",
            # A string without its end whole: else the search runs again at each quotation mark.
            r"""(?P<other>"(?:[^"\\\n\r]|\\.)*|'(?:[^'\\\n\r]|\\.)*|.)""",
        )
    ),
    re.DOTALL,
)

FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
#: Brackets of triple terms and of statements about triples.
_QUOTED = {"<<(": ")>>", "<<": ">>"}
_CLOSED_BY = {"{": "}", "[": "]", "(": ")", **_QUOTED}
_PATH = frozenset("/|^!")
#: Aggregates of SPARQL 1.1 (section 11).
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
#: Kinds of tokens that are a whole operand.
_OPERANDS = frozenset({"variable", "number", "string", "tag", "iri", "name", "blank"})


class Token(NamedTuple):
    """One token: its kind, its text, and its start and end offsets in characters."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Return whether the token is one of the keywords, given in capitals."""
        return self.kind == "word" and self.text.upper() in words


def tokens_within(tokens: Iterable[Token], words: Sequence[str], brackets: str) -> Iterator[Token]:
    """Yield the tokens after each of these keywords, up to the end of its brackets."""
    depth = 0
    for token in tokens:
        if not depth:
            depth = int(token.is_word(*words))
        elif token.text == brackets[0]:
            depth += 1
        elif token.text == brackets[1]:
            depth = depth - 1 if depth > 2 else 0
        else:
            yield token


def tokenize(text: str) -> tuple[Token, ...]:
    """Split a query into tokens, without white space and comments."""
    return tuple(iter_tokens(text))


def iter_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text, each when it is asked for."""
    at = 0
    context = _Context()
    while at < len(text):
        match = _PATTERN.match(text, at)
        assert match is not None, "any character is a token"
        kind = match.lastgroup
        at = match.end()
        if kind == "space":
            continue
        token = Token(kind, match[0], match.start(), at)  # type: ignore[arg-type]
        if (kind == "iri" or token.text in _QUOTED) and context.after_operand:
            at = token.start + (2 if token.text.startswith("<=") else 1)
            token = Token("punct", text[token.start : at], token.start, at)
        context.take(token)
        yield token


class _Context:
    """Tracks the open brackets: whether each holds an expression, a collection or neither."""

    def __init__(self) -> None:
        #: The closing text of each open bracket, and whether an expression is in it; the query.
        self._open = [("", True)]
        nothing = Token("other", "", 0, 0)
        self._last = (nothing, nothing)
        #: Number of brackets around the data of VALUES, from where it was named.
        self._values: int | None = None

    @property
    def after_operand(self) -> bool:
        """Whether the last token ends an operand of an expression."""
        last = self._last[1]
        ends = last.kind in _OPERANDS or last.text in (")", "}") or last.is_word("TRUE", "FALSE")
        return ends and self._open[-1][1] and len(self._open) > 1

    def is_item(self, token: Token) -> bool:
        """Return whether the next token is an item of a collection in a pattern."""
        inner = self._open[-1] == (")", False) and self._values is None and len(self._open) > 2
        return inner and token.kind in _OPERANDS and self._last[1].text not in _PATH

    @property
    def in_arguments(self) -> bool:
        return self._open[-1][0] == ")"

    def take(self, token: Token) -> None:
        if token.is_word("VALUES"):
            self._values = len(self._open)
        if token.text in _CLOSED_BY:
            expression = token.text == "(" and self._begins_expression()
            self._open.append((_CLOSED_BY[token.text], expression))
        elif self._open[-1][0] == token.text:
            self._open.pop()
            if token.text == "}" and len(self._open) == self._values:
                self._values = None
        self._last = (self._last[1], token)

    def _begins_expression(self) -> bool:
        """Return whether a bracket opens an expression, not VALUES, a collection or a path."""
        before, last = self._last
        if self._values is not None or self._open[-1][1]:
            return self._values is None
        if last.kind == "word":
            return last.text != "a"
        return last.kind in ("name", "iri") and before.is_word("FILTER", "HAVING", "BY")


def closing(tokens: Sequence[Token], at: int) -> int:
    """Return the index after the bracket that closes the one at `at`; the end if none does."""
    opens = tokens[at].text
    closes = _CLOSED_BY[opens]
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text == opens) - (tokens[place].text == closes)
        if not depth:
            return place + 1
    return len(tokens)


def split_at(tokens: Sequence[Token], sign: str, *, nested: bool = False) -> list[Sequence[Token]]:
    """Split tokens at a sign: outside of parentheses, or with `nested` anywhere."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += not nested and (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return list(parts)


def position(text: str, offset: int) -> tuple[int, int]:
    r"""Return line and column, both from 1, of an offset."""
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


def variables_in(text: str) -> list[str]:
    found = (token.text[1:] for token in tokenize(text) if token.kind == "variable")
    return list(dict.fromkeys(found))


#: Words that begin an operation of an update.
UPDATE_WORDS = (
    "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "COPY", "MOVE", "ADD", "WITH",
)  # fmt: skip


def prologue(tokens: Sequence[Token]) -> tuple[dict[str, str], int]:
    """Return the declared prefixes, and the index of the first token after the prologue."""
    declared: dict[str, str] = {}
    at = 0
    while at < len(tokens):
        kinds = [token.kind for token in tokens[at + 1 : at + 3]]
        if tokens[at].is_word("PREFIX") and kinds == ["name", "iri"]:
            declared[tokens[at + 1].text.partition(":")[0]] = tokens[at + 2].text[1:-1]
            at += 3
        elif tokens[at].is_word("BASE", "VERSION") and at + 1 < len(tokens):
            at += 2
        else:
            break
    return declared, at


def begins_update(tokens: Sequence[Token]) -> Token | None:
    """Return the word after the prologue if it begins an update, otherwise None."""
    _, at = prologue(tokens)
    return tokens[at] if at < len(tokens) and tokens[at].is_word(*UPDATE_WORDS) else None


def is_update(query: str) -> bool:
    """Return whether a text begins as an update does, after its prologue."""
    return begins_update(tokenize(query)) is not None


_COMMENT = re.compile(r"#[^\r\n]*")
_BLANK_LINES = re.compile(r"[ \t\r]*\n(?:[ \t\r]*\n)*")


def without_comments(query: str) -> str:
    parts = []
    end = 0
    for token in tokenize(query):
        gap = query[end : token.start]
        parts += [_BLANK_LINES.sub("\n", _COMMENT.sub("", gap)), token.text]
        end = token.end
    return "".join(parts).strip()


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the characters `start` to `end` of a text; `start == end` inserts."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits made; edits must not overlap."""
    parts: list[str] = []
    done = 0
    for edit in sorted(edits):
        parts += text[done : edit.start], edit.text
        done = edit.end
    return "".join(parts) + text[done:]


def origin(edits: Iterable[Edit], offset: int) -> int:
    """Return the offset in the original text of a character of the edited one."""
    shift = 0
    for edit in sorted(edits):
        start = edit.start + shift
        if offset < start:
            break
        if offset < start + len(edit.text):
            return edit.start
        shift += len(edit.text) - (edit.end - edit.start)
    return offset - shift


#: Beyond these, parsers and engines overflow their stacks (Oxigraph's whole server ends on
#: `1-1-1…` of 2,000 terms) or plan for minutes (300 joined patterns take it 2 s, 1,000 minutes,
#: regardless of its timeout), and rdflib's time grows with the square of the patterns.
MOST_DEPTH = 100
MOST_CHAIN = 300

_OPEN, _CLOSE = frozenset("{(["), frozenset("})]")
_OPEN_ANY, _CLOSE_ANY = _OPEN | {"<<", "<<(", "{|"}, _CLOSE | {">>", ")>>", "|}"}
_LINKS = frozenset("/|+-*.;") | {"&&", "||"}
_SIGNS = frozenset("!-+^")
_BLOCKS = ("UNION", "OPTIONAL", "MINUS", "FILTER", "BIND", "VALUES", "GRAPH", "SERVICE", "SELECT")


def check_query_size(tokens: Iterable[Token], form: str = "query") -> list[Token]:
    """Return the tokens outside all brackets; refuse a query that is too deep or too large."""
    outer: list[Token] = []
    context = _Context()
    depth = signs = chain = 0
    described = grouped = False
    for token in tokens:
        if depth == 0:
            described = described or token.is_word("DESCRIBE")
            grouped = grouped or token.is_word("HAVING", "BY")
            # The conditions and keys after the group, and the resources of DESCRIBE.
            chain += grouped and token.text == "("
            chain += described and token.kind != "word"
        depth -= token.text in _CLOSE_ANY
        if depth == 0:
            outer.append(token)
        depth += token.text in _OPEN_ANY
        signs = signs + 1 if token.text in _SIGNS else 0
        chain += token.text in _LINKS or token.is_word(*_BLOCKS)
        chain += token.text == "," and not context.in_arguments
        chain += context.is_item(token)
        if depth > MOST_DEPTH or signs > MOST_DEPTH or chain > MOST_CHAIN:
            instead = "ask in several queries" if form == "query" else "send several updates"
            what = f"the {form} is nested too deeply, or has too many patterns and operators"
            hint = f"simplify it, or {instead}"
            raise QueryError(
                what, hint=hint, code="too-complex", depth=MOST_DEPTH, chain=MOST_CHAIN
            )
        context.take(token)
    return outer


def check_update_size(tokens: Iterable[Token]) -> None:
    """Refuse an update of which an operation is too complex; of DATA, only the depth counts."""
    operation: list[Token] = []
    depth = 0
    data = False
    for token in tokens:
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        data = data or (depth == 0 and token.is_word("DATA"))
        if depth <= 0 and token.text == ";":
            data = False
            check_query_size(operation, "update")
            operation = []
        elif not data or token.text in _OPEN or token.text in _CLOSE:
            operation.append(token)
    check_query_size(operation, "update")
