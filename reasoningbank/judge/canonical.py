"""What a cell of a result means: the value that two equal cells share.

A cell is read as the text that SPARQL TSV writes for a term, since that is how results are
held; most cells are told apart by their text alone and are never parsed. Numbers are left as
numbers here, because whether two of them are equal depends on their neighbours (`numeric`).
Value spaces: XML Schema Part 2, Datatypes.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import NamedTuple

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    RdfFormat,
    Triple,
    parse,
)

__all__ = ["UNBOUND", "Blank", "Value", "canonical"]

XSD = "http://www.w3.org/2001/XMLSchema#"
#: The value of an unbound cell. No other cell has it, the empty string included.
UNBOUND = ""


class Blank(NamedTuple):
    """A cell that holds a blank node, or a triple term with one inside.

    Attributes:
        label: Tells it from the other blank nodes of its own result, and from nothing else.
        shape: What can be said of it without its label.
    """

    label: str
    shape: str


#: Integers compare exactly, floats within a tolerance, blank nodes by where they stand.
Value = str | int | float | Blank

_INTEGERS = frozenset(
    XSD + name
    for name in (
        "integer", "long", "int", "short", "byte",
        "nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger",
        "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
    )
)  # fmt: skip
_CALENDAR = frozenset(
    XSD + name
    for name in ("date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay")
)  # fmt: skip
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE_TIME = re.compile(
    r"(-?[0-9]{4,})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
# Python refuses to read longer integers from text, and nobody counts that far.
_MAX_DIGITS = 4000


def canonical(text: str | None) -> Value:
    """Return the value of a cell; equal values mean equal cells.

    Args:
        text: The term as SPARQL TSV writes it, or None where the cell is unbound.

    Returns:
        An ``int`` for a literal of an integer type, a ``float`` for a finite decimal, float
        or double, a `Blank` for a blank node, and a ``str`` for everything else. A literal
        whose text does not fit its datatype is compared as it is written.

    Examples:
        >>> canonical('"1"^^<http://www.w3.org/2001/XMLSchema#int>'), canonical("1.50")
        (1, 1.5)
        >>> canonical('"Ab"@EN') == canonical('"Ab"@en')
        True
        >>> canonical('"1"') == canonical("1")
        False
        >>> canonical(None) == canonical('""')
        False
    """
    if text is None:
        return UNBOUND
    first = text[:1]
    if "\\" not in text:
        if first == "<" and text[1:2] != "<":
            return text
        if first == '"' and not text.startswith('"""'):
            end = text.rfind('"')
            suffix = text[end + 1 :]
            if not suffix:
                return text[:end]
            if suffix[0] == "@":
                return f'@{suffix[1:].lower()}"{text[1:end]}'
            if suffix.startswith("^^<") and suffix.endswith(">"):
                return _typed(text[1:end], suffix[3:-1])
        if first == "_" and text[1:2] == ":":
            return Blank(text, "_:")
        if _INTEGER.fullmatch(text):
            return _typed(text, XSD + "integer")
        if _DOUBLE.fullmatch(text):
            return _typed(text, XSD + "double")
        if text in ("true", "false"):
            return _typed(text, XSD + "boolean")
    return _parsed(text)


def _parsed(text: str) -> Value:
    """Read the rarer spellings (escapes, other quotes, triple terms) with a real parser."""
    try:
        # TSV writes terms as Turtle does, and one triple at most is made of one term.
        quads = list(parse(f"<s:> <p:> {text} .", RdfFormat.TURTLE))
    except (SyntaxError, ValueError):
        quads = []
    term = quads[0].object if len(quads) == 1 else None
    # What no parser understands equals only itself.
    return f"?{text}" if term is None else _of_term(term)


def _of_term(term: NamedNode | BlankNode | Literal | Triple) -> Value:
    if isinstance(term, NamedNode):
        return f"<{term.value}>"
    if isinstance(term, BlankNode):
        return Blank(f"_:{term.value}", "_:")
    if isinstance(term, Triple):
        parts = [_of_term(part) for part in (term.subject, term.predicate, term.object)]
        shape = " ".join(p.shape if isinstance(p, Blank) else repr(p) for p in parts)
        shape = f"<<{shape}>>"
        return Blank(str(term), shape) if any(isinstance(p, Blank) for p in parts) else shape
    if term.language:
        direction = f"--{str(term.direction).lower()}" if term.direction else ""
        return f'@{term.language.lower()}{direction}"{term.value}'
    return _typed(term.value, term.datatype.value)


def _typed(lexical: str, datatype: str) -> Value:
    if datatype == XSD + "string":
        return f'"{lexical}'
    if datatype.startswith(XSD):
        # White space around these is not part of their value.
        value = _by_value(lexical.strip(" \t\r\n"), datatype)
        if value is not None:
            return value
    return f'^{datatype}"{lexical}'


def _by_value(lexical: str, datatype: str) -> Value | None:
    name = datatype[len(XSD) :]
    if datatype in _INTEGERS:
        fits = _INTEGER.fullmatch(lexical) and len(lexical) <= _MAX_DIGITS
        return int(lexical) if fits else None
    if name == "decimal":
        return _finite(lexical) if _DECIMAL.fullmatch(lexical) else None
    if name in ("double", "float"):
        if lexical in ("INF", "+INF", "-INF", "NaN"):
            return "#" + lexical.lstrip("+")
        return _finite(lexical) if _DOUBLE.fullmatch(lexical) else None
    if name == "boolean":
        return {"1": "#true", "true": "#true", "0": "#false", "false": "#false"}.get(lexical)
    if name in ("dateTime", "dateTimeStamp"):
        return _instant(lexical)
    if datatype in _CALENDAR:
        return f'^{datatype}"{re.sub(r"[+-]00:00$", "Z", lexical)}'
    return None


def _finite(lexical: str) -> Value:
    value = float(lexical)
    return value if math.isfinite(value) else f"#{'-' if value < 0 else ''}INF"


def _instant(lexical: str) -> str | None:
    """Return a dateTime in UTC; one without a timezone is a value of its own."""
    parts = _DATE_TIME.fullmatch(lexical)
    if parts is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = parts.groups()
    try:
        # 24:00:00 is the first instant of the next day.
        at = datetime(int(year), int(month), int(day)) + timedelta(
            hours=int(hour), minutes=int(minute), seconds=int(second)
        )
        if zone and zone != "Z":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            at = at - offset if zone[0] == "+" else at + offset
    except (ValueError, OverflowError):
        return None
    digits = (fraction or "").rstrip("0")
    return f"#{at.isoformat()}.{digits}{'Z' if zone else ''}"
