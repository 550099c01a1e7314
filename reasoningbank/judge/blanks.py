"""Rows with blank nodes, compared by the position of the blank nodes and not by their labels.

The signature of a blank node is its position: in which columns, beside which cells and other blank
nodes, followed outward until nothing changes (color refinement) or for a hundred steps. Two graphs
can agree in every signature and still differ, so graphs are compared exactly where affordable.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, NamedNode, Quad

from reasoningbank.judge.cells import Encoded, Ints, pair_ids

# Canonical labels take minutes for graphs with more indistinguishable blank nodes.
_MAX_ALIKE = 200
# Refinement steps; only long chains of similar nodes need that many.
_MAX_STEPS = 100


def local_classes(gold: Encoded, predicted: Encoded) -> tuple[Ints, Ints]:
    """Return the class of each gold row and each predicted row; equal rows share a class."""
    values, blanks, _ = _stacked(gold, predicted)
    ids = np.zeros(gold.n_rows + predicted.n_rows, dtype=np.int64)
    for at, value in enumerate(values):
        ids = pair_ids(ids, value)
        # The first column of the row with this blank node.
        first = np.full(len(ids), at, dtype=np.int64)
        for earlier in range(at - 1, -1, -1):
            first[(blanks[earlier] == blanks[at]) & (blanks[at] >= 0)] = earlier
        ids = pair_ids(ids, first)
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
    ours, theirs = rows[: gold.n_rows], rows[gold.n_rows :]
    if not np.array_equal(np.sort(ours), np.sort(theirs)):
        return False
    split = int(max((c[: gold.n_rows].max(initial=-1) for c in blanks), default=-1)) + 1
    _, counts = np.unique(colors[:split], return_counts=True)
    alike = int(counts[counts > 1].sum())
    if alike == 0 or alike > _MAX_ALIKE:
        return True
    graphs = []
    for part in (slice(None, gold.n_rows), slice(gold.n_rows, None)):
        graph = Dataset(_quads([v[part] for v in values], [b[part] for b in blanks], colors))
        graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
        graphs.append(graph)
    return graphs[0] == graphs[1]


def _stacked(gold: Encoded, predicted: Encoded) -> tuple[list[Ints], list[Ints], Ints]:
    """Concatenate the results, renumber blank nodes, and color them by shape."""
    values = [np.concatenate(pair) for pair in zip(gold.values, predicted.values, strict=True)]
    ours = 1 + max((int(column.max(initial=-1)) for column in gold.blanks), default=-1)
    blanks = [
        np.concatenate([g, np.where(p >= 0, p + ours, p)])
        for g, p in zip(gold.blanks, predicted.blanks, strict=True)
    ]
    total = 1 + max((int(column.max(initial=-1)) for column in blanks), default=-1)
    colors = np.zeros(total, dtype=np.int64)
    for value, blank in zip(values, blanks, strict=True):
        colors[blank[blank >= 0]] = value[blank >= 0]
    return values, blanks, colors


def _refined(values: list[Ints], blanks: list[Ints], colors: Ints) -> tuple[Ints, Ints]:
    """Refine the colors until they are stable; return row classes and colors."""
    known = 0
    for _ in range(_MAX_STEPS):
        found = len(np.unique(colors))
        if found == known:
            break
        known = found
        colors = _recolor(_classes(values, blanks, colors), blanks, colors)
    return _classes(values, blanks, colors), colors


def _classes(values: list[Ints], blanks: list[Ints], colors: Ints) -> Ints:
    """Number the rows by their cells, blank nodes by color."""
    rows = np.zeros(len(values[0]) if values else 0, dtype=np.int64)
    for value, blank in zip(values, blanks, strict=True):
        cells = np.where(blank >= 0, colors[blank] if len(colors) else value, value)
        rows = pair_ids(pair_ids(rows, (blank >= 0).astype(np.int64)), cells)
    return rows


def _recolor(rows: Ints, blanks: list[Ints], colors: Ints) -> Ints:
    """Color each blank node by its color and the multiset of (column, row class) around it."""
    nodes = np.concatenate([blank[blank >= 0] for blank in blanks])
    places = np.concatenate(
        [rows[blank >= 0] * len(blanks) + column for column, blank in enumerate(blanks)]
    )
    order = np.lexsort((places, nodes))
    nodes, places = nodes[order], places[order]
    bounds = np.searchsorted(nodes, np.arange(len(colors) + 1))
    seen: dict[tuple[int, bytes], int] = {}
    return np.array(
        [
            seen.setdefault((int(colors[node]), places[start:stop].tobytes()), len(seen))
            for node, (start, stop) in enumerate(pairwise(bounds))
        ],
        dtype=np.int64,
    )


def _quads(values: list[Ints], blanks: list[Ints], colors: Ints) -> list[Quad]:
    def term(at: int, row: int) -> NamedNode | BlankNode:
        node = int(blanks[at][row])
        return BlankNode(f"b{node}") if node >= 0 else NamedNode(f"v:{values[at][row]}")

    quads = [
        Quad(term(0, row), NamedNode(f"p:{values[1][row]}"), term(2, row))
        for row in range(len(values[0]))
    ]
    colored = NamedNode("c:color")
    nodes = {int(n) for blank in blanks for n in blank[blank >= 0]}
    quads += [Quad(BlankNode(f"b{n}"), colored, NamedNode(f"c:{colors[n]}")) for n in nodes]
    return quads
