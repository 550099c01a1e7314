"""L2: what earlier tasks taught, as the search gave it."""

from __future__ import annotations

from dataclasses import replace

from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layers.lines import Layer
from reasoningbank.memory.packing import over_budget
from reasoningbank.memory.search import Retrieval

__all__ = ["procedures"]

TITLE = "From earlier tasks:"


def procedures(retrieval: Retrieval | None, budget: int = 600) -> tuple[Layer, Retrieval | None]:
    """Return the items of a search as text, each of them whole, and the search as it is shown.

    What was found within a budget of the same size is shown completely: the title and the blank
    lines between the items come on top of the budget, a few tokens.

    Args:
        retrieval: What was found, the best first; the layer is empty where nothing was.
        budget: Tokens at most, of all items together.

    Returns:
        The layer, and the search with what the budget had no room for among `skipped`: its
        event says what was shown, and nothing else. Examples are in it, not in the layer.
    """
    if retrieval is None:
        return Layer("L2"), None
    shown, skipped, left = [], list(retrieval.skipped), budget
    for found in retrieval.found:
        if found.tokens <= left:
            shown.append(found)
            left -= found.tokens
        else:
            skipped.append((found.item.id, over_budget(found.tokens, budget, left)))
    if len(shown) < len(retrieval.found):
        tokens = sum(found.tokens for found in shown)
        retrieval = replace(retrieval, found=tuple(shown), skipped=tuple(skipped), tokens=tokens)
    if not shown:
        return Layer("L2", left_out=len(skipped)), retrieval
    # Examples are shown as turns, not as text.
    texts = [found.text.strip() for found in shown if found.example is None]
    text = "\n\n".join([TITLE, *texts]) if texts else ""
    return Layer("L2", text, count_tokens(text), len(skipped)), retrieval
