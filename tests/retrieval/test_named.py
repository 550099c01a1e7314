"""Embedding models and indexes by name: loaded on demand, and named in the error where missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hashed_words import HashedWords
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.nl2sparql import HybridRetriever
from reasoningbank.retrieval import INDEXES, VectorTable, embedding, open_embedder, open_index
from reasoningbank.retrieval import index as index_module

MINILM = "sentence-transformers:paraphrase-multilingual-MiniLM-L12-v2"

needs_faiss = pytest.mark.skipif(
    importlib.util.find_spec("faiss") is None, reason="no FAISS here: pip install faiss-cpu"
)


@pytest.fixture(autouse=True)
def _own_cache_and_no_model_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedding, "_opened", embedding._opened.__wrapped__)


def one_line(error: pytest.ExceptionInfo[Any], *parts: str) -> None:
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_a_missing_package_is_reported_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # None stands in sys.modules for what cannot be imported.
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(SetupError) as reported:
        open_embedder(MINILM)
    assert reported.value.fields["package"] == "sentence_transformers"
    with pytest.raises(SetupError) as reported:
        open_index("faiss")
    assert (reported.value.code, reported.value.fields["package"]) == ("no-package", "faiss")
    assert isinstance(open_index(), VectorTable)


@pytest.mark.parametrize("name", ["annoy", "", "FAISS"])
def test_an_unknown_index_is_reported(name: str) -> None:
    with pytest.raises(UsageError) as reported:
        open_index(name)
    assert reported.value.code == "unknown-index"
    assert all(known in reported.value.hint for known in INDEXES)


def test_a_model_must_be_named() -> None:
    with pytest.raises(UsageError) as reported:
        open_embedder("sentence-transformers: ")
    assert reported.value.code == "unknown-embedder"


class StandIn:
    """Stands where `SentenceTransformer` does, whose package is too large to test with."""

    asked: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        if "nothing" in name:
            raise OSError(f"{name} is not a local folder\nand not at the Hub")

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        StandIn.asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts])


@pytest.mark.parametrize(
    ("name", "leads"),
    [(MINILM, ("", "")), (f"{MINILM[:22]}owner/e5-large", ("query: ", "passage: "))],
)
def test_a_model_embeds_in_its_own_forms(
    monkeypatch: pytest.MonkeyPatch, name: str, leads: tuple[str, str]
) -> None:
    package = SimpleNamespace(SentenceTransformer=StandIn, __spec__=object())
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    StandIn.asked.clear()
    model = open_embedder(name)
    rows = np.concatenate([model.queries(["cane"]), model.passages(["gatto"])])
    assert StandIn.asked == [f"{leads[0]}cane", f"{leads[1]}gatto"]
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert (model.name, model.dimensions) == (name, 2)
    with pytest.raises(SetupError) as reported:
        open_embedder("sentence-transformers:nothing")
    one_line(reported, "cannot be loaded", "is not a local folder")


@needs_faiss
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 9), max_size=4)), max_size=30))
def test_faiss_keeps_what_the_table_keeps(steps: list[tuple[bool, list[int]]]) -> None:
    indexes: tuple[VectorTable, ...] = (open_index("numpy"), open_index("faiss"))
    for number, (put, keys) in enumerate(steps):
        for index in indexes:
            if put:
                rows = [[number + place, 1.0] for place in range(len(keys))]
                index.put(keys, np.array(rows, dtype=np.float32).reshape(-1, 2))
            else:
                index.drop(keys)
        assert len(indexes[0]) == len(indexes[1])
    query = np.array([0.6, 0.8], dtype=np.float32)
    (ours, cosines), (others, found) = (index.cosines(query) for index in indexes)
    assert sorted(ours.tolist()) == sorted(others.tolist())
    assert np.allclose(cosines[np.argsort(ours)], found[np.argsort(others)], atol=1e-4)


def clustered(size: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return vectors in groups that lie close together, as a model's do."""
    draw = np.random.default_rng(3)
    groups = draw.standard_normal((200, 64))
    rows = 3 + 2 * groups[draw.integers(0, 200, size)] + draw.standard_normal((size, 64))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


@needs_faiss
@pytest.mark.parametrize("large", [1_000, 100_000])
def test_an_approximate_index_finds_nearly_all_that_an_exact_one_finds(
    monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(index_module, "LARGE", large)
    rows = clustered(9_100)
    plain, faiss = open_index("numpy"), open_index("faiss")
    for index in (plain, faiss):
        index.put(range(9_000), rows[:9_000])
        index.put(range(9_000, 9_050), rows[9_000:9_050])
        index.drop(range(100))
    shared = []
    for query in rows[9_050:]:
        keys, cosines = plain.cosines(query)
        best = set(keys[np.argsort(-cosines)][:20].tolist())
        near, scores = faiss.candidates(query, 20, (np.array([100, 9_049]), np.ones(2)))
        assert {100, 9_049} <= set(near.tolist())
        assert len(near) == len(set(near.tolist())) <= 23
        assert np.allclose(cosines[np.searchsorted(keys, near)], scores, atol=1e-3)
        shared.append(len(best & set(near[np.argsort(-scores)][:20].tolist())) / 20)
    assert np.mean(shared) > (0.9 if large == 1_000 else 0.999)


@needs_faiss
def test_examples_are_found_by_faiss_as_by_numpy() -> None:
    questions = ("Quali parole esprimono gioia?", 'Traduzioni siciliane di "cane"', "zzz")
    plain, faiss = (
        HybridRetriever("liita", embedder=HashedWords(), index=index)
        for index in ("numpy", "faiss")
    )
    for question in questions:
        one, other = (
            [(found.example.id, round(found.semantic, 4)) for found in index.retrieve(question, 20)]
            for index in (plain, faiss)
        )
        assert dict(one) == pytest.approx(dict(other), abs=1e-3)


def test_neither_package_is_loaded_unasked() -> None:
    code = (
        "import sys; from reasoningbank.retrieval import open_index; open_index(); "
        "sys.exit(bool({'faiss', 'sentence_transformers', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
