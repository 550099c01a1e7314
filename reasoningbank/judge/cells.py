"""Cells of two results as integers, so that cells with equal values are equal numbers.

Results are held as the text that SPARQL TSV writes for each term; most cells differ by that text
alone and are never parsed. Value spaces: XML Schema Part 2, Datatypes.

Blank nodes are compared by position and not by label. The signature of a blank node is its
position: in which columns, beside which cells and other blank nodes, followed outward until nothing
changes (color refinement) or for a hundred steps. Two graphs can agree in every signature and still
differ, so graphs are compared exactly where affordable.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)

from reasoningbank.judge.answer import Answer
from reasoningbank.sparql.terms import INTEGERS, XSD, Term

Ints = npt.NDArray[np.int64]

#: The value of an unbound cell. No other cell has it, the empty string included.
UNBOUND = ""
#: Two numbers are the same when they differ by no more than this share of the larger one.
TOLERANCE = 1e-6


class Blank(NamedTuple):
    """A cell that holds a blank node, or a triple term that contains one."""

    label: str
    shape: str


#: Integers compare exactly, floats within a tolerance, blank nodes by their position.
Value = str | int | float | Blank

_CALENDAR = frozenset(("date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"))
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE_TIME = re.compile(
    r"(-?[0-9]{4,}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)
# Python refuses to read longer integers from text.
_MAX_DIGITS = 4000
# Beyond this an integer has no float, so no decimal can be compared with it.
_FLOAT_RANGE = 10**300
# Canonical labels take minutes for graphs with more indistinguishable blank nodes.
_MAX_ALIKE = 200
# Refinement steps; only long chains of similar nodes need that many.
_MAX_STEPS = 100


def canonical(text: str | None) -> Value:
    """Return the value of a cell; equal values mean equal cells."""
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
    # The rarer spellings (escapes, other quotes, triple terms); TSV writes terms as Turtle does.
    try:
        quads = list(parse(f"<s:> <p:> {text} .", RdfFormat.TURTLE))
    except (SyntaxError, ValueError):
        quads = []
    # Text that no parser reads equals only itself.
    return _of_term(quads[0].object) if len(quads) == 1 else f"?{text}"


def _of_term(term: Term) -> Value:
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
        value = _by_value(lexical.strip(" \t\r\n"), datatype.removeprefix(XSD))
        if value is not None:
            return value
    return f'^{datatype}"{lexical}'


def _by_value(lexical: str, name: str) -> Value | None:
    if XSD + name in INTEGERS:
        fits = _INTEGER.fullmatch(lexical) and len(lexical) <= _MAX_DIGITS
        return int(lexical) if fits else None
    if name in ("double", "float") and lexical in ("INF", "+INF", "-INF", "NaN"):
        return "#" + lexical.lstrip("+")
    if name in ("decimal", "double", "float"):
        shape = _DECIMAL if name == "decimal" else _DOUBLE
        if not shape.fullmatch(lexical):
            return None
        value = float(lexical)
        return value if math.isfinite(value) else f"#{'-' if value < 0 else ''}INF"
    if name == "boolean":
        return {"1": "#true", "true": "#true", "0": "#false", "false": "#false"}.get(lexical)
    if name in ("dateTime", "dateTimeStamp"):
        return _instant(lexical)
    if name in _CALENDAR:
        return f'^{XSD}{name}"{re.sub(r"[+-]00:00$", "Z", lexical)}'
    return None


def _instant(lexical: str) -> str | None:
    """Return a dateTime in UTC; one without a timezone is a value of its own."""
    parts = _DATE_TIME.fullmatch(lexical)
    if parts is None:
        return None
    day, clock, fraction, zone = parts.groups()
    try:
        # 24:00:00 is the first instant of the next day.
        late = clock == "24:00:00"
        at = datetime.fromisoformat(f"{day}T{'00:00:00' if late else clock}{zone or ''}")
        at += timedelta(days=late)
        at = at.astimezone(UTC) if zone else at
    except (ValueError, OverflowError):
        return None
    digits = (fraction or "").rstrip("0")
    return f"#{at.replace(tzinfo=None).isoformat()}.{digits}{'Z' if zone else ''}"


def number_classes(integers: Iterable[int], others: Iterable[float]) -> dict[int | float, str]:
    """Name the class of each number; numbers of one class count as the same."""
    anchors = sorted(set(integers))
    names: dict[int | float, str] = {anchor: f"#{anchor}" for anchor in anchors}
    near = [anchor for anchor in anchors if abs(anchor) < _FLOAT_RANGE]
    rest: list[float] = []
    for value in sorted(set(others)):
        at = bisect_left(near, value)
        around = near[max(0, at - 1) : at + 1]
        anchor = min(around, key=lambda one: abs(one - value), default=None)
        # 10000005.0 is another number than 10000001.
        same = float.__eq__ if value.is_integer() else _close
        if anchor is not None and same(float(anchor), value):
            names[value] = names[anchor]
        else:
            rest.append(value)
    for index, group in enumerate(_groups(np.array(rest, dtype=np.float64))):
        names.update(dict.fromkeys(group, f"#~{index}"))
    return names


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def _groups(values: npt.NDArray[np.float64]) -> Iterable[list[float]]:
    """Cut sorted distinct numbers into runs no wider than the tolerance, widest gap first."""
    if not len(values):
        return
    with np.errstate(over="ignore"):
        gaps = np.diff(values)
        widths = np.maximum(np.abs(values[:-1]), np.abs(values[1:]))
        starts = [0, *(np.flatnonzero(gaps > TOLERANCE * widths) + 1).tolist(), len(values)]
    pending = list(pairwise(starts))
    while pending:
        start, stop = pending.pop()
        if _close(values[start], values[stop - 1]):
            yield values[start:stop].tolist()
        else:
            cut = start + 1 + int(np.argmax(gaps[start : stop - 1]))
            pending += [(start, cut), (cut, stop)]


@dataclass(frozen=True)
class Encoded:
    """A result as integers; cells of both results with the same value share an id."""

    variables: tuple[str, ...]
    values: Ints  #: By column and row
    blanks: Ints  #: The blank node of each cell; -1 where there is none
    places: Ints  #: The row of the answer that each row is

    @property
    def n_rows(self) -> int:
        return len(self.places)

    @property
    def has_blanks(self) -> bool:
        return bool((self.blanks >= 0).any())

    def select(self, columns: tuple[int, ...]) -> Encoded:
        names, chosen = tuple(self.variables[c] for c in columns), list(columns)
        return Encoded(names, self.values[chosen], self.blanks[chosen], self.places)

    def distinct(self) -> Encoded:
        """Return the result without repeated rows; the first of each stays, in place."""
        ids = row_ids(self.n_rows, *self.values, *self.blanks)
        rows = np.sort(np.unique(ids, return_index=True)[1])
        return Encoded(
            self.variables, self.values[:, rows], self.blanks[:, rows], self.places[rows]
        )


def row_ids(n_rows: int, *columns: Ints) -> Ints:
    """Number the distinct rows that columns form."""
    return reduce(pair_ids, columns, np.zeros(n_rows, dtype=np.int64))


def pair_ids(first: Ints, second: Ints) -> Ints:
    """Number the distinct pairs that two arrays of equal length form."""
    return np.unique(pair_keys(first, second), return_inverse=True)[1].astype(np.int64)


def pair_keys(first: Ints, second: Ints) -> Ints:
    """Return pairs of ids as numbers in the same order; ids are far below 2^31, and -1 or more."""
    return (first << 31) + second + 1


def counted(values: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values and how often each occurs."""
    return np.unique(values, return_counts=True)


def in_common(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> int:
    """Count the members that two `counted` multisets share."""
    _, left, right = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    return int(np.minimum(one[1][left], other[1][right]).sum())


def encode(gold: Answer, predicted: Answer) -> tuple[Encoded, Encoded]:
    """Return both answers as integers, with a shared numbering of values."""
    answers = (gold, predicted)
    chunks = [chunk for one in answers for column in one.table.columns for chunk in column.chunks]
    # One dictionary for all cells: each distinct text is read once.
    cells = pa.chunked_array(chunks, pa.string()).dictionary_encode("encode").combine_chunks()
    values = [canonical(text) for text in cells.dictionary.to_pylist()]
    names = number_classes(
        (v for v in values if isinstance(v, int)), (v for v in values if isinstance(v, float))
    )
    ids: dict[str, int] = {}
    labels: dict[str, int] = {}
    numbers, nodes = np.full((2, len(values)), -1, dtype=np.int64)
    for at, value in enumerate(values):
        if isinstance(value, Blank):
            nodes[at] = labels.setdefault(value.label, len(labels))
            value = value.shape
        key = value if isinstance(value, str) else names[value]
        numbers[at] = ids.setdefault(key, len(ids))
    sides = np.split(cells.indices.to_numpy(), [gold.table.num_columns * gold.n_rows])
    encoded = []
    for one, part in zip(answers, sides, strict=True):
        shape = (one.table.num_columns, one.n_rows)
        blanks = nodes[part]
        if labels:
            # Numbered for each answer on its own.
            blanks = np.unique(np.append(-1, blanks), return_inverse=True)[1][1:] - 1
        places = np.arange(one.n_rows, dtype=np.int64)
        found = numbers[part].reshape(shape)
        encoded.append(Encoded(one.variables, found, blanks.reshape(shape), places))
    return encoded[0], encoded[1]


def local_classes(gold: Encoded, predicted: Encoded) -> tuple[Ints, Ints]:
    """Return the class of each gold row and each predicted row; equal rows share a class."""
    values, blanks, _ = _stacked(gold, predicted)
    # For each cell, the first column of its row with the same blank node, or its own.
    first = np.repeat(np.arange(len(values))[:, None], values.shape[1], axis=1)
    for at in reversed(range(len(values))):
        first[at:][(blanks[at:] == blanks[at]) & (blanks[at:] >= 0)] = at
    ids = row_ids(values.shape[1], *values, *first)
    return ids[: gold.n_rows], ids[gold.n_rows :]


def signature_classes(gold: Encoded, predicted: Encoded) -> tuple[Ints, Ints]:
    """Return row classes as `local_classes` does, blank nodes by signature in the whole result."""
    values, blanks, colors = _stacked(gold, predicted)
    rows, _ = _refined(values, blanks, colors)
    return rows[: gold.n_rows], rows[gold.n_rows :]


def isomorphic(gold: Encoded, predicted: Encoded) -> bool:
    """Whether two sets of triples are the same graph up to the labels of blank nodes."""
    if gold.n_rows != predicted.n_rows:
        return False
    values, blanks, colors = _stacked(gold, predicted)
    rows, colors = _refined(values, blanks, colors)
    ours, theirs = slice(gold.n_rows), slice(gold.n_rows, None)
    if not np.array_equal(np.sort(rows[ours]), np.sort(rows[theirs])):
        return False
    _, counts = np.unique(colors[: 1 + gold.blanks.max(initial=-1)], return_counts=True)
    alike = int(counts[counts > 1].sum())
    if alike == 0 or alike > _MAX_ALIKE:
        return True
    graphs = []
    for part in (ours, theirs):
        graph = Dataset(_quads(values[:, part], blanks[:, part], colors))
        graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        graphs.append(graph)
    return graphs[0] == graphs[1]


def _stacked(gold: Encoded, predicted: Encoded) -> tuple[Ints, Ints, Ints]:
    """Concatenate the results, renumber blank nodes, and color them by shape."""
    values = np.hstack([gold.values, predicted.values])
    others = predicted.blanks + 1 + gold.blanks.max(initial=-1)
    blanks = np.hstack([gold.blanks, np.where(predicted.blanks >= 0, others, -1)])
    colors = np.zeros(1 + blanks.max(initial=-1), dtype=np.int64)
    colors[blanks[blanks >= 0]] = values[blanks >= 0]
    return values, blanks, colors


def _refined(values: Ints, blanks: Ints, colors: Ints) -> tuple[Ints, Ints]:
    """Refine the colors until they are stable; return row classes and colors."""
    known = 0
    for _ in range(_MAX_STEPS):
        found = len(np.unique(colors))
        if found == known:
            break
        known = found
        colors = _recolor(_classes(values, blanks, colors), blanks, colors)
    return _classes(values, blanks, colors), colors


def _classes(values: Ints, blanks: Ints, colors: Ints) -> Ints:
    """Number the rows by their cells, blank nodes by color."""
    is_blank = blanks >= 0
    cells = values.copy()
    cells[is_blank] = colors[blanks[is_blank]]
    return row_ids(values.shape[1], *cells, *is_blank.astype(np.int64))


def _recolor(rows: Ints, blanks: Ints, colors: Ints) -> Ints:
    """Color each blank node by its color and the multiset of (column, row class) around it."""
    column, row = np.nonzero(blanks >= 0)
    nodes, places = blanks[column, row], rows[row] * len(blanks) + column
    order = np.lexsort((places, nodes))
    places = places[order]
    bounds = np.searchsorted(nodes[order], np.arange(len(colors) + 1))
    around = (places[start:stop].tobytes() for start, stop in pairwise(bounds))
    seen: dict[tuple[int, bytes], int] = {}
    found = [seen.setdefault(one, len(seen)) for one in zip(colors.tolist(), around, strict=True)]
    return np.array(found, dtype=np.int64)


def _quads(values: Ints, blanks: Ints, colors: Ints) -> Iterator[Quad]:
    def term(value: int, node: int) -> NamedNode | BlankNode:
        return BlankNode(f"b{node}") if node >= 0 else NamedNode(f"v:{value}")

    for cells, nodes in zip(values.T.tolist(), blanks.T.tolist(), strict=True):
        subject, object_ = term(cells[0], nodes[0]), term(cells[2], nodes[2])
        yield Quad(subject, NamedNode(f"p:{cells[1]}"), object_)
    for node in np.unique(blanks[blanks >= 0]).tolist():
        yield Quad(BlankNode(f"b{node}"), NamedNode("c:color"), NamedNode(f"c:{colors[node]}"))
