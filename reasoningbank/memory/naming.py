"""Words of what has names of its own choosing and parts in no order: written alike if alike.

Names are told apart by what they stand beside (colour refinement, Weisfeiler and Leman 1968).
Of names that still look alike one is singled out, the one that leads to the smallest form, until
none do (McKay 1981, without his search of all ways: that could take for ever).
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Bag", "Name", "Node", "Row", "words_of"]


@dataclass(frozen=True)
class Name:
    """What may be called otherwise: a variable, a blank node, a slot.

    Attributes:
        text: What it is called.
        mark: What kind of name it is; its number is written behind this.
    """

    text: str
    mark: str = "?"


@dataclass(frozen=True)
class Row:
    """Parts whose order counts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Bag:
    """Parts whose order does not count."""

    parts: tuple[Node, ...]


#: A word stays as it is.
Node: TypeAlias = str | Name | Row | Bag

#: Parts that are looked at before only the first of several names is tried, and before names that
#: still look alike keep the order in which they come; most queries take some hundreds.
_MOST_TRIED = 50_000
_MOST_SEEN = 150_000


def words_of(root: Node) -> tuple[str, ...]:
    """Return the words of a tree, its names numbered by their first use.

    Two names never get one number. Trees that differ in what names are called and in the order of
    the parts of bags have the same words, unless hundreds of names look alike.

    Examples:
        >>> def links(*pairs):
        ...     return Bag(tuple(Row((Name(a), "->", Name(b))) for a, b in pairs))
        >>> words_of(links("ab", "bc")) == words_of(links("yz", "xy"))
        True
        >>> words_of(links("ab", "bc")) == words_of(links("ab", "ac"))
        False
    """
    return tuple(_Tree(root).words())


class _Tree:
    """A tree as a list of nodes, parts before what they are parts of."""

    def __init__(self, root: Node) -> None:
        self._nodes: list[Node] = []
        self._parts: list[tuple[int, ...]] = []
        self._fixed: list[bytes | None] = []
        self._names: dict[Name, None] = {}
        self._seen = 0
        self._root = self._add(root)
        self._open = [at for at, fixed in enumerate(self._fixed) if fixed is None]

    def words(self) -> Iterator[str]:
        """Yield the words of the whole tree."""
        looks = self._looks(self._colours())
        numbers: dict[Name, str] = {}
        waiting = [self._root]
        while waiting:
            at = waiting.pop()
            node = self._nodes[at]
            if isinstance(node, str):
                yield node
            elif isinstance(node, Name):
                yield numbers.setdefault(node, f"{node.mark}{len(numbers)}")
            else:
                waiting += reversed(self._in_order(at, looks))

    def _add(self, node: Node) -> int:
        parts = () if isinstance(node, (str, Name)) else tuple(self._add(p) for p in node.parts)
        if isinstance(node, Name):
            self._names[node] = None
        fixed = [self._fixed[part] for part in parts]
        self._nodes.append(node)
        self._parts.append(parts)
        named = isinstance(node, Name) or None in fixed
        self._fixed.append(None if named else _look(node, [one for one in fixed if one]))
        return len(self._nodes) - 1

    def _in_order(self, at: int, looks: list[bytes]) -> list[int]:
        parts = list(self._parts[at])
        return sorted(parts, key=looks.__getitem__) if isinstance(self._nodes[at], Bag) else parts

    def _looks(self, colours: Mapping[Name, bytes]) -> list[bytes]:
        """Return what each node looks like where a name looks like its colour."""
        looks = [fixed or b"" for fixed in self._fixed]
        for at in self._open:
            node = self._nodes[at]
            if isinstance(node, Name):
                looks[at] = colours[node]
            else:
                looks[at] = _look(node, [looks[part] for part in self._parts[at]])
        return looks

    def _refined(self, colours: dict[Name, bytes]) -> tuple[bytes, dict[Name, bytes]]:
        """Return what the tree looks like once places tell no more names apart, and the names."""
        while True:
            self._seen += len(self._open)
            looks = self._looks(colours)
            places = {self._root: b""}
            stands: dict[Name, list[bytes]] = defaultdict(list)
            for at in reversed(self._open):
                node, place = self._nodes[at], places[at]
                if isinstance(node, Name):
                    stands[node].append(place)
                    continue
                for number, part in enumerate(self._parts[at]):
                    if self._fixed[part] is None:
                        beside = (
                            (b"in", looks[part])
                            if isinstance(node, Bag)
                            else (str(number).encode(), looks[at])
                        )
                        places[part] = _digest(place, *beside)
            finer = {name: _digest(colours[name], *sorted(stands[name])) for name in colours}
            told = len(set(finer.values()))
            if told in (len(set(colours.values())), len(finer)) or self._seen > _MOST_SEEN:
                return self._looks(finer)[self._root], finer
            colours = finer

    def _colours(self) -> dict[Name, bytes]:
        """Return a colour for each name, no two alike."""
        _, colours = self._refined({name: name.mark.encode() for name in self._names})
        while self._seen <= _MOST_SEEN:
            sizes = Counter(colours.values())
            alike = min(((n, colour) for colour, n in sizes.items() if n > 1), default=None)
            if alike is None:
                break
            names = [name for name in self._names if colours[name] == alike[1]]
            # A try goes over the tree twice at least.
            cost = 2 * len(names) * len(self._open)
            tried = names if self._seen + cost <= _MOST_TRIED else names[:1]
            ways = (self._refined(colours | {one: _digest(b"one", alike[1])}) for one in tried)
            colours = min(ways, key=lambda way: way[0])[1]
        sizes = Counter(colours.values())
        # Where there were too many to tell apart, they keep the order in which they came.
        return {
            name: colours[name] + (str(at).encode() if sizes[colours[name]] > 1 else b"")
            for at, name in enumerate(self._names)
        }


def _look(node: Node, parts: list[bytes]) -> bytes:
    if isinstance(node, str):
        return _digest(b"word", node.encode("utf-8", "replace"))
    return _digest(b"bag", *sorted(parts)) if isinstance(node, Bag) else _digest(b"row", *parts)


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=12).digest()
