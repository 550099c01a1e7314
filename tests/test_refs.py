"""Handles and their store."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from reasoningbank.errors import ToolError
from reasoningbank.refs import Ref, RefStore


@dataclass(frozen=True)
class Tabular:
    """A value with a table, as query results are."""

    table: pa.Table


def table(rows: int) -> Tabular:
    return Tabular(pa.table({"a": [f"value {i}" for i in range(rows)]}))


def put(store: RefStore, value: object, dtype: str = "results") -> Ref:
    return store.put(value, dtype=dtype, rows=1, sz=1, source="UniProt")


def test_repr_is_the_contract() -> None:
    ref = Ref("results_0", "results", 10, 400, "UniProt")
    assert repr(ref) == "Ref('results_0', 'results', 10 items from UniProt)"


def test_a_handle_answers_attribute_and_item() -> None:
    ref = Ref("results_0", "results", 10, 400, "UniProt")
    assert ref.key == ref["key"] == "results_0"
    with pytest.raises(KeyError):
        ref["nothing"]


def test_keys_count_up_by_kind() -> None:
    with RefStore() as store:
        keys = [put(store, 1).key, put(store, 2).key, put(store, 3, "graph").key]
    assert keys == ["results_0", "results_1", "graph_0"]


@pytest.mark.parametrize("wrong", ["results_9", "", {"key": "nope"}, {}, 7, None])
def test_an_unknown_handle_names_those_at_hand(wrong: object) -> None:
    with RefStore() as store:
        put(store, 1)
        with pytest.raises(ToolError, match="handles at hand: results_0"):
            store.get(wrong)  # type: ignore[arg-type]


def test_the_wrong_kind_of_handle_is_told() -> None:
    with RefStore() as store:
        ref = put(store, 1, "registry")
        put(store, 2, "results")
        with pytest.raises(ToolError, match=r"handle of 'registry', not of 'results'.*results_0"):
            store.get(ref, "results")


def test_tables_over_the_bound_are_spilled_and_read_back() -> None:
    with RefStore(memory_bytes=50_000) as store:
        refs = [put(store, table(2_000)) for _ in range(5)]
        assert store.resident_bytes <= 50_000
        folder = store.folder
        assert folder is not None
        assert len(list(folder.glob("*.arrow"))) >= 3
        for ref in refs:
            assert store.get(ref).table["a"][1999].as_py() == "value 1999"
    assert not folder.exists()
    assert len(store) == 0


def test_small_tables_never_touch_the_disk() -> None:
    with RefStore() as store:
        put(store, table(10))
        assert store.folder is None
