"""An agent's context: up to four layers, those that never change first.

L0: what the endpoint holds. L3: a guide written by people. L1: the classes and properties near
the question. L2: what earlier tasks taught.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import Layer, guide, hints_files
from reasoningbank.memory.packing import over_budget
from reasoningbank.memory.schema_card import SchemaCard
from reasoningbank.memory.search import Retrieval
from reasoningbank.memory.sense_card import sense_card
from reasoningbank.retrieval import Embedder
from reasoningbank.schema import Schema
from reasoningbank.sparql import Discovery, EndpointConfig, SPARQLClient, discover

#: The layers in the order of the context: those that are the same for every question first.
LAYERS = ("L0", "L3", "L1", "L2")
_STATIC = ("L0", "L3")
_TITLE = "From earlier tasks:"


@dataclass(frozen=True)
class Budgets:
    """Maximum tokens of each layer; the title of L2 is extra."""

    L0: int = 150
    L1: int = 400
    L2: int = 600
    L3: int = 200


@dataclass(frozen=True)
class Context:
    """What an agent is given before a question."""

    text: str = ""
    static: str = ""
    tokens: int = 0
    by_layer: Mapping[str, int] = field(default_factory=dict)
    retrieval: Retrieval | None = None


class ContextBuilder:
    """Builds the contexts of one endpoint; several threads may use it.

    Everything static is made once, when the builder is made: the endpoint is asked then, and never
    again. Two builders with the same arguments build the same contexts.

    Args:
        layers: The enabled layers, of ``L0``, ``L1``, ``L2`` and ``L3``.
        endpoint: The endpoint.
        vocabulary: Its classes and properties.
        pack: Its pack; without one there is no guide and there are no warnings.
        discovery: The endpoint's service description; if None, requested if a layer needs it.
        embedder: Finds the names near a question; by default the bundled one.
        schema_card: Writes the schema cards, if several builders share one.
        budgets: Maximum tokens of each layer.
        hidden: Ids of the tasks of which nothing may be shown.
        tools: Whether the agent can call the tools for exploring.

    Raises:
        UsageError: If a layer is unknown, or a file of the pack's hints cannot be read.
        EndpointError: If the endpoint cannot be reached.
    """

    def __init__(
        self,
        layers: Collection[str],
        *,
        endpoint: EndpointConfig,
        vocabulary: Schema,
        pack: Pack | None = None,
        discovery: Discovery | None = None,
        embedder: Embedder | None = None,
        schema_card: SchemaCard | None = None,
        budgets: Budgets = Budgets(),
        hidden: Collection[str] = (),
        tools: bool = False,
    ) -> None:
        for name in layers:
            if name not in LAYERS:
                hint = f"choose from {', '.join(sorted(LAYERS))}"
                raise UsageError(f"unknown layer {name!r}", hint=hint, code="unknown-layer")
        self.layers = tuple(name for name in LAYERS if name in layers)
        self._budgets = budgets
        needed = {"L0"} if schema_card is not None else {"L0", "L1"}
        if discovery is None and needed & set(layers):
            with SPARQLClient(endpoint) as client:
                discovery = discover(client)
        self._static: dict[str, Layer] = {}
        if "L0" in layers:
            self._static["L0"] = sense_card(
                endpoint,
                discovery,
                vocabulary,
                pack=pack,
                hidden=hidden,
                tools=tools,
                budget=budgets.L0,
            )
        if "L3" in layers:
            self._static["L3"] = guide(pack, budgets.L3)
        if "L1" in layers and schema_card is None:
            schema_card = SchemaCard.of(endpoint, vocabulary, pack=pack, embedder=embedder)
        self._schema = schema_card if "L1" in layers else None
        self._pack = pack

    @property
    def static(self) -> str:
        """The beginning of every context."""
        return _joined([self._static[name].text for name in _STATIC if name in self._static])

    def build(self, question: str, retrieval: Retrieval | None = None) -> Context:
        """Return the context of a question.

        Args:
            question: The question, which ranks the schema.
            retrieval: What was found in memory for it; shown if L2 is enabled.
        """
        layers = dict(self._static)
        if self._schema is not None:
            layers["L1"] = self._schema.about(question, self._budgets.L1)
        shown: Retrieval | None = None
        if "L2" in self.layers:
            layers["L2"], shown = procedures(retrieval, self._budgets.L2)
        text = _joined([layers[name].text for name in self.layers])
        by_layer = {name: layers[name].tokens for name in sorted(self.layers)}
        return Context(text, self.static, count_tokens(text), by_layer, shown)

    def fingerprint(self) -> dict[str, str]:
        """Return hashes of what determines the contexts, 16 hexadecimal digits each.

        ``L0`` and ``L3`` are of the text that is shown, ``L1`` of the schema and its ranking,
        ``guide`` and ``anti_patterns`` of the pack's files, ``budgets`` of the budgets.
        """
        parts = {name: layer.text for name, layer in self._static.items()}
        for name, file in hints_files(self._pack).items():
            parts[name] = file.read_text(encoding="utf-8")
        parts["budgets"] = str(sorted(asdict(self._budgets).items()))
        hashes = {
            name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in parts.items()
        }
        if self._schema is not None:
            hashes["L1"] = self._schema.fingerprint()
        return dict(sorted(hashes.items()))


def procedures(retrieval: Retrieval | None, budget: int = 600) -> tuple[Layer, Retrieval | None]:
    """Return the items of a search as layer L2, each whole, and the search as it is shown."""
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
    texts = [found.text.strip() for found in shown if found.example is None]
    text = "\n\n".join([_TITLE, *texts]) if texts else ""
    return Layer("L2", text, count_tokens(text) if text else 0, len(skipped)), retrieval


def _joined(texts: Collection[str]) -> str:
    return "\n\n".join(text for text in texts if text)
