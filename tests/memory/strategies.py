"""Memory items of all kinds, for tests that hold for any of them."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from reasoningbank.memory import Counters, ItemSource, MemoryItem, Provenance, Scope, Turn

#: Any letters, half a surrogate pair included, as models write it.
TEXTS = st.one_of(
    st.text(max_size=20), st.sampled_from(["\ud800", "a\nb\u2028c\r\n", '"\\\0', "è 蛋白质 🧬"])
)
TITLES = TEXTS.filter(lambda text: text.strip() != "")
PROVENANCES = st.builds(
    Provenance,
    task=st.sampled_from(["", "t1", "t2", "t3"]),
    trial=TEXTS,
    time=st.sampled_from(["", "2026-01-01T00:00:00+00:00", "2026-02-01T00:00:00+00:00"]),
)
COUNTS = st.integers(0, 99)
COUNTERS = st.builds(Counters, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
ITEMS = st.builds(
    MemoryItem,
    title=TITLES,
    description=TEXTS,
    content=TITLES,
    src=st.sampled_from(get_args(ItemSource)),
    pattern=TEXTS,
    tags=st.lists(TEXTS, max_size=3).map(tuple),
    scope=st.builds(Scope, TEXTS, TEXTS),
    provenance=PROVENANCES,
    evidence=st.lists(PROVENANCES, max_size=3, unique=True).map(tuple),
    counters=COUNTERS,
    question=TEXTS,
    query=TEXTS,
    turns=st.lists(st.builds(Turn, TEXTS, TEXTS, TEXTS), max_size=2).map(tuple),
    status=st.sampled_from(["active", "superseded", "retired"]),
    superseded_by=st.sampled_from(["", "0123456789abcdef"]),
)
BANKS = st.lists(ITEMS, max_size=6, unique_by=lambda item: item.id)
