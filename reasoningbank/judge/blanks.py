"""Rows that hold blank nodes, compared by what the blank nodes do and not by their labels.

The signature of a blank node is where it stands: in which columns, beside which cells, among
which other blank nodes, followed outward until nothing new is learned (colour refinement) or
for a hundred steps. Two graphs can agree in every signature and still differ, so graphs are
told apart exactly where that is affordable.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    NamedNode,
    Quad,
)

from reasoningbank.judge.encoding import Encoded, Ints, pair_ids

__all__ = ["isomorphic", "local_classes", "signature_classes"]

# Canonical labels of graphs with more indistinguishable blank nodes can take minutes.
_MAX_ALIKE = 200
# Steps that a signature follows outward; only chains of like nodes make it go that far.
_MAX_STEPS = 100


def local_classes(gold: Encoded, predicted: Encoded) -> tuple[Ints, Ints]:
    """Number the rows by their cells, and by which of them hold the same blank node.

    A row is looked at alone, so part of a result can be compared with the whole of it.

    Returns:
        The class of each gold row and of each predicted row; equal rows share a class.
    """
    values, blanks, _ = _stacked(gold, predicted)
    ids = np.zeros(gold.n_rows + predicted.n_rows, dtype=np.int64)
    for at, value in enumerate(values):
        ids = pair_ids(ids, value)
        # The column where this blank node stood first in its row.
        first = np.full(len(ids), at, dtype=np.int64)
        for earlier in range(at - 1, -1, -1):
            first[(blanks[earlier] == blanks[at]) & (blanks[at] >= 0)] = earlier
        ids = pair_ids(ids, first)
    return ids[: gold.n_rows], ids[gold.n_rows :]


def signature_classes(gold: Encoded, predicted: Encoded) -> tuple[Ints, Ints]:
    """Number the rows by their cells, blank nodes by their signature in the whole result.

    Args:
        gold: A result; its columns stand in the order of those of `predicted`.
        predicted: Another with as many columns.

    Returns:
        The class of each gold row and of each predicted row; equal rows share a class.
    """
    values, blanks, colours = _stacked(gold, predicted)
    rows, _ = _refined(values, blanks, colours)
    return rows[: gold.n_rows], rows[gold.n_rows :]


def isomorphic(gold: Encoded, predicted: Encoded) -> bool:
    """Whether two sets of triples are the same graph up to the labels of blank nodes.

    Exact, except that graphs with very many blank nodes of equal signature are equal when
    all signatures are.
    """
    if gold.n_rows != predicted.n_rows:
        return False
    values, blanks, colours = _stacked(gold, predicted)
    rows, colours = _refined(values, blanks, colours)
    ours, theirs = rows[: gold.n_rows], rows[gold.n_rows :]
    if not np.array_equal(np.sort(ours), np.sort(theirs)):
        return False
    split = int(max((c[: gold.n_rows].max(initial=-1) for c in blanks), default=-1)) + 1
    _, counts = np.unique(colours[:split], return_counts=True)
    alike = int(counts[counts > 1].sum())
    if alike == 0 or alike > _MAX_ALIKE:
        return True
    graphs = []
    for part in (slice(None, gold.n_rows), slice(gold.n_rows, None)):
        graph = Dataset(_quads([v[part] for v in values], [b[part] for b in blanks], colours))
        graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        graphs.append(graph)
    return graphs[0] == graphs[1]


def _stacked(gold: Encoded, predicted: Encoded) -> tuple[list[Ints], list[Ints], Ints]:
    """Put one result under the other; number blank nodes through; colour them by shape."""
    values = [np.concatenate(pair) for pair in zip(gold.values, predicted.values, strict=True)]
    ours = 1 + max((int(column.max(initial=-1)) for column in gold.blanks), default=-1)
    blanks = [
        np.concatenate([g, np.where(p >= 0, p + ours, p)])
        for g, p in zip(gold.blanks, predicted.blanks, strict=True)
    ]
    total = 1 + max((int(column.max(initial=-1)) for column in blanks), default=-1)
    colours = np.zeros(total, dtype=np.int64)
    for value, blank in zip(values, blanks, strict=True):
        colours[blank[blank >= 0]] = value[blank >= 0]
    return values, blanks, colours


def _refined(values: list[Ints], blanks: list[Ints], colours: Ints) -> tuple[Ints, Ints]:
    """Refine the colours until they are stable; return row classes and colours."""
    known = 0
    for _ in range(_MAX_STEPS):
        found = len(np.unique(colours))
        if found == known:
            break
        known = found
        colours = _recoloured(_classes(values, blanks, colours), blanks, colours)
    return _classes(values, blanks, colours), colours


def _classes(values: list[Ints], blanks: list[Ints], colours: Ints) -> Ints:
    """Number the rows by their cells, blank nodes by colour."""
    rows = np.zeros(len(values[0]) if values else 0, dtype=np.int64)
    for value, blank in zip(values, blanks, strict=True):
        cells = np.where(blank >= 0, colours[blank] if len(colours) else value, value)
        rows = pair_ids(pair_ids(rows, (blank >= 0).astype(np.int64)), cells)
    return rows


def _recoloured(rows: Ints, blanks: list[Ints], colours: Ints) -> Ints:
    """Colour each blank node by its colour and the multiset of (column, row class) around it."""
    nodes = np.concatenate([blank[blank >= 0] for blank in blanks])
    places = np.concatenate(
        [rows[blank >= 0] * len(blanks) + column for column, blank in enumerate(blanks)]
    )
    order = np.lexsort((places, nodes))
    nodes, places = nodes[order], places[order]
    bounds = np.searchsorted(nodes, np.arange(len(colours) + 1))
    seen: dict[tuple[int, bytes], int] = {}
    return np.array(
        [
            seen.setdefault((int(colours[node]), places[start:stop].tobytes()), len(seen))
            for node, (start, stop) in enumerate(pairwise(bounds))
        ],
        dtype=np.int64,
    )


def _quads(values: list[Ints], blanks: list[Ints], colours: Ints) -> list[Quad]:
    def term(at: int, row: int) -> NamedNode | BlankNode:
        node = int(blanks[at][row])
        return BlankNode(f"b{node}") if node >= 0 else NamedNode(f"v:{values[at][row]}")

    quads = []
    for row in range(len(values[0])):
        # A blank node cannot be a predicate; one cannot be queried for there either.
        predicate = NamedNode(f"p:{values[1][row]}")
        quads.append(Quad(term(0, row), predicate, term(2, row)))
    coloured = NamedNode("c:colour")
    nodes = {int(n) for blank in blanks for n in blank[blank >= 0]}
    quads += [Quad(BlankNode(f"b{n}"), coloured, NamedNode(f"c:{colours[n]}")) for n in nodes]
    return quads
