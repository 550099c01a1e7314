"""Handles and their store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest

from reasoningbank.errors import ToolError
from reasoningbank.refs import Ref, RefStore
from reasoningbank.spill import to_disk


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
        with pytest.raises(ToolError, match="unknown handle"):
            store.get(wrong)  # type: ignore[arg-type]


def test_the_wrong_kind_of_handle_is_reported() -> None:
    with RefStore() as store:
        ref = put(store, 1, "registry")
        put(store, 2, "results")
        with pytest.raises(ToolError, match=r"handle of 'registry', not of 'results'.*results_0"):
            store.get(ref, "results")


def test_tables_over_the_bound_are_spilled_and_read_back() -> None:
    with RefStore(memory_bytes=50_000) as store:
        refs = [put(store, table(2_000)) for _ in range(5)]
        one = table(2_000).table.get_total_buffer_size()
        assert store.resident_bytes == 50_000 // one * one
        assert store.resident_bytes + store.spilled_bytes == 5 * one
        for ref in refs:
            assert store.get(ref).table["a"][1999].as_py() == "value 1999"
    assert len(store) == store.resident_bytes == store.spilled_bytes == 0


def test_small_tables_never_touch_the_disk() -> None:
    with RefStore() as store:
        put(store, table(10))
        assert store.resident_bytes > 0 == store.spilled_bytes


def test_a_table_that_comes_from_disk_stays_there_and_takes_no_memory() -> None:
    with RefStore(memory_bytes=0) as store:
        there = Tabular(to_disk(table(1_000).table))
        ref = put(store, there)
        assert store.get(ref) is there
        assert store.resident_bytes == 0 < store.spilled_bytes


def test_what_was_taken_out_outlives_the_store() -> None:
    with RefStore(memory_bytes=0) as store:
        taken = store.get(put(store, table(1_000))).table
    assert taken["a"][999].as_py() == "value 999"


def test_a_shortened_key_is_answered_with_what_a_key_is() -> None:
    with RefStore(mark="-a1") as store, pytest.raises(ToolError, match="whole key"):
        store.get("results_0")


def test_a_closed_store_says_that_its_handles_were_released() -> None:
    store = RefStore()
    ref = put(store, 7)
    with pytest.raises(ToolError, match="no handles exist yet"):
        RefStore().get(ref)
    store.close()
    store.close()
    with pytest.raises(ToolError, match="released") as caught:
        store.get(ref)
    assert caught.value.code == "unknown-handle"


def test_threads_get_and_put_while_tables_are_spilled() -> None:
    with RefStore(memory_bytes=100_000) as store:

        def work(number: int) -> None:
            mine = [put(store, table(500 + number)) for _ in range(30)]
            for _ in range(3):
                for ref in mine:
                    found = store.get(ref).table["a"]
                    assert found[499 + number].as_py() == f"value {499 + number}"
                with pytest.raises(ToolError, match="handles at hand"):
                    store.get("nothing")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert len(store) == 240
        assert store.resident_bytes <= 100_000
        assert len({ref.key for ref in map(store.ref, [f"results_{n}" for n in range(240)])}) == 240


def test_others_are_served_while_a_large_table_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writing, go_on = threading.Event(), threading.Event()

    def slow(given: pa.Table) -> pa.Table:
        writing.set()
        assert go_on.wait(120)
        return to_disk(given)

    monkeypatch.setattr("reasoningbank.refs.to_disk", slow)
    with RefStore(memory_bytes=1_000) as store, ThreadPoolExecutor(1) as pool:
        other = put(store, 7)
        large = pool.submit(put, store, table(5_000))
        assert writing.wait(120)
        assert (store.get(other), store.get("results_1").table.num_rows) == (7, 5_000)
        assert store.resident_bytes > 1_000
        go_on.set()
        assert store.get(large.result(120)).table.num_rows == 5_000
        assert store.resident_bytes == 0


def test_a_store_closed_during_a_spill_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = RefStore(memory_bytes=0)

    def closing(given: pa.Table) -> pa.Table:
        store.close()
        return to_disk(given)

    monkeypatch.setattr("reasoningbank.refs.to_disk", closing)
    put(store, table(100))
    assert len(store) == store.resident_bytes == store.spilled_bytes == 0
