"""Single term texts, including those that real stores hold although RDF does not allow them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from pyoxigraph import (
    Literal,
    NamedNode,
    Quad,
    QueryResultsFormat,
    RdfFormat,
    parse,
    parse_query_results,
)

from reasoningbank.sparql.terms import Term

__all__ = ["LONG", "read_term", "term_text"]

_TAG = re.compile(r"\"@([A-Za-z0-9_-]+)$")
#: Characters from which on the parser's time grows with their square; it refuses 16 MiB.
LONG = 1024 * 1024
_LITERAL = re.compile(r"\"(.*)\"(?:@([A-Za-z0-9-]+)|\^\^<([^<>]*)>)?$", re.S)
_TAGGED = re.compile(r"\"(.*)\"@[A-Za-z0-9-]*", re.S)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def read_term(text: str) -> Term:
    """Read the text of one term, as strictly as it allows and as loosely as it needs.

    IRIs with forbidden characters stay as they are; blank node labels are made valid one to one;
    in language tags ``_`` becomes ``-``. What is no term even so is read as a plain literal: one
    odd cell must not hide all the others.

    Examples:
        >>> read_term("<http://e/a b>"), read_term('"x"@en_US').language
        (<NamedNode value=http://e/a b>, 'en-us')
        >>> str(read_term('"x"@12'))
        '"x"'
        >>> read_term("_:nodeID://b1")
        <BlankNode value=nodeIDx3ax2fx2fb1>
    """
    if len(text) > LONG and (found := _LITERAL.match(text)):
        value = _ESCAPE.sub(_unescaped, found[1])
        datatype = NamedNode(found[3]) if found[3] else None
        return Literal(value, language=found[2], datatype=datatype)
    try:
        # No name for the solutions: an error would keep it, and they may be dropped in this thread
        # alone.
        lines = f"?x\n{text}\n".encode()
        term: Term = next(iter(cast("Any", parse_query_results(lines, QueryResultsFormat.TSV))))[0]
        return term
    except SyntaxError:
        pass
    if text.startswith("_:"):
        text = "_:" + re.sub(r"[^A-Za-z0-9]", lambda m: f"x{ord(m[0]):x}", text[2:])
    text = _TAG.sub(lambda m: '"@' + m[1].replace("_", "-"), text)
    try:
        line = f"<r:b> <r:b> {text} .".encode()
        quad: Quad = next(iter(parse(line, RdfFormat.N_TRIPLES, lenient=True)))
        return quad.object
    except (SyntaxError, StopIteration):
        found = _TAGGED.fullmatch(text)
        return Literal(_ESCAPE.sub(_unescaped, found[1]) if found else text)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])


def term_text(term: Mapping[str, Any]) -> str:
    """Return the text of a term of SPARQL JSON results, whether RDF allows it or not.

    Raises:
        KeyError, TypeError, ValueError: It is no such term.

    Examples:
        >>> term_text({"type": "uri", "value": "http://e/a b"})
        '<http://e/a b>'
        >>> term_text({"type": "literal", "value": 1, "xml:lang": "en_US"})
        '"1"@en_US'
    """
    kind, value = term["type"], term["value"]
    if kind == "uri":
        return f"<{_escaped(value)}>"
    if kind == "bnode":
        return "_:" + re.sub(r"\s", "_", value)
    if kind == "triple":
        parts = (term_text(value[part]) for part in ("subject", "predicate", "object"))
        return f"<<( {' '.join(parts)} )>>"
    if kind not in ("literal", "typed-literal"):
        raise ValueError(kind)
    text = str(Literal(str(value)))
    if term.get("xml:lang"):
        direction = f"--{term['its:dir']}" if term.get("its:dir") else ""
        return f"{text}@{term['xml:lang']}{direction}"
    return f"{text}^^<{_escaped(term['datatype'])}>" if term.get("datatype") else text


def _escaped(value: str) -> str:
    # What would end the IRI or the cell; the rest is kept as the store has it.
    return re.sub(r"[<>\x00-\x1f\\]", lambda m: f"%{ord(m[0]):02X}", value)
