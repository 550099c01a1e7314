"""What SPARQL may do here: an update sees one document, and nothing reaches another machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyoxigraph import DefaultGraph, Quad, Store, Triple

from reasoningbank.errors import QueryError
from reasoningbank.ldp.faults import Refused
from reasoningbank.sparql.tokens import check_nesting, tokenize

__all__ = ["expanded", "updated"]

MOST_CHARS = 4 * 1024 * 1024
#: What reaches beyond one graph, or beyond this machine.
_BEYOND = (
    *("GRAPH", "WITH", "USING", "SERVICE", "LOAD"),
    *("CREATE", "DROP", "CLEAR", "COPY", "MOVE", "ADD"),
)

#: An escaped backslash comes first: the ``u`` behind it begins no codepoint.
_CODEPOINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def expanded(text: str) -> str:
    r"""Return a SPARQL text with its codepoint escapes expanded, which comes before the grammar.

    An engine reads ``\u004COAD`` as LOAD, so words are looked for in the expanded text alone.

    Raises:
        Refused: An escape is no character, or what it yields is an escape again.

    Examples:
        >>> expanded(r"\u004COAD <http://e/>")
        'LOAD <http://e/>'
    """

    def character(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return match[0]
        code = int(match[1] or match[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise Refused(400, f"{match[0]} is no character")
        return chr(code)

    plain = _CODEPOINT.sub(character, text)
    if any(match[0] != "\\\\" for match in _CODEPOINT.finditer(plain)):
        raise Refused(400, "a codepoint escape yields another one")
    return plain


def updated(triples: Sequence[Triple], update: str, base: str) -> list[Triple]:
    """Return a document as an update leaves it; the document is the update's default graph.

    Args:
        triples: The document.
        update: INSERT DATA, DELETE DATA, DELETE WHERE, or DELETE/INSERT WHERE, one or several.
        base: The document's address, which relative IRIs are relative to.

    Raises:
        Refused: It does not parse (400), or reaches beyond the document (422).

    Examples:
        >>> len(updated([], "INSERT DATA { <#a> <http://e/p> 1 }", "http://e/d"))
        1
        >>> updated([], "LOAD <http://elsewhere/>", "http://e/d")
        Traceback (most recent call last):
        ...
        reasoningbank.ldp.faults.Refused: LOAD reaches beyond the document; ...
    """
    if len(update) > MOST_CHARS:
        raise Refused(413, f"the update has more than {MOST_CHARS:,} characters")
    update = expanded(update)
    tokens = tokenize(update)
    try:
        check_nesting(tokens)
    except QueryError as error:
        raise Refused(422, str(error)) from error
    beyond = next((token for token in tokens if token.is_word(*_BEYOND)), None)
    if beyond is not None:
        raise Refused(
            422,
            f"{beyond.text.upper()} reaches beyond the document; "
            "use INSERT DATA, DELETE DATA or DELETE/INSERT WHERE alone",
        )
    scratch = Store()
    scratch.extend(
        Quad(triple.subject, triple.predicate, triple.object, DefaultGraph()) for triple in triples
    )
    try:
        scratch.update(update, base_iri=base)
    except (SyntaxError, ValueError) as error:
        raise Refused(400, f"not a SPARQL update: {error}") from error
    except OSError as error:
        raise Refused(422, f"the update cannot be carried out: {error}") from error
    return [quad.triple for quad in scratch]
