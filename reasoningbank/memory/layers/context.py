"""The context of an agent: the layers it is given, what never changes first."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layers.guide import guide, guide_file
from reasoningbank.memory.layers.lines import Layer
from reasoningbank.memory.layers.notes import notes_file
from reasoningbank.memory.layers.procedures import procedures
from reasoningbank.memory.layers.schema_card import SchemaCard
from reasoningbank.memory.layers.sense_card import sense_card
from reasoningbank.memory.search import Retrieval
from reasoningbank.retrieval import Embedder
from reasoningbank.schema import Schema
from reasoningbank.sparql import Discovery, EndpointConfig, SPARQLClient, discover

__all__ = ["LAYERS", "Budgets", "Context", "ContextBuilder"]

#: The layers in the order in which they stand: what is the same for every question first.
LAYERS = ("L0", "L3", "L1", "L2")
_STATIC = ("L0", "L3")


@dataclass(frozen=True)
class Budgets:
    """Tokens that each layer may take.

    Attributes:
        L0: The sense card.
        L1: The schema card.
        L2: What earlier tasks taught; its title comes on top.
        L3: The guide.
    """

    L0: int = 150
    L1: int = 400
    L2: int = 600
    L3: int = 200


@dataclass(frozen=True)
class Context:
    """What an agent is given before a question.

    Attributes:
        text: All of it; empty where no layer has anything to say.
        static: Its beginning, byte-identical for every question of a builder.
        tokens: Tokens of the text.
        by_layer: Tokens of each layer that is switched on.
        retrieval: What layer L2 shows; None where nothing was searched for.
    """

    text: str = ""
    static: str = ""
    tokens: int = 0
    by_layer: Mapping[str, int] = field(default_factory=dict)
    retrieval: Retrieval | None = None


class ContextBuilder:
    """Builds the contexts of one endpoint; several threads may use it.

    What is the same for every question is made once, when the builder is: the endpoint is asked
    then, and never again. Two builders with the same arguments build the same contexts.

    Args:
        layers: The layers that are switched on, of ``L0``, ``L1``, ``L2`` and ``L3``.
        endpoint: The endpoint that is asked.
        vocabulary: Its classes and properties.
        pack: Its pack; without one there is no guide and there are no warnings.
        discovery: What the endpoint says of itself; asked for where a layer needs it and None.
        embedder: What finds the names near a question; the one of the package by default.
        schema_card: What writes the schema cards, where several builders share one; made where a
            layer needs it and None.
        budgets: Tokens of each layer.
        hidden: Ids of the tasks of which nothing may be shown.
        tools: Whether the agent can call the tools for exploring.

    Raises:
        UsageError: There is no such layer, or a file of the pack's hints cannot be read.
        EndpointError: The endpoint cannot be reached.
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
                raise UsageError(
                    f"unknown layer {name!r}", hint=f"choose from {', '.join(sorted(LAYERS))}"
                )
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
            void = discovery.void if discovery is not None else None
            schema_card = SchemaCard.of(endpoint, vocabulary, void, pack=pack, embedder=embedder)
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
            retrieval: What was found in memory for it; shown if L2 is switched on.
        """
        layers = dict(self._static)
        shown: Retrieval | None = None
        if self._schema is not None:
            layers["L1"] = self._schema.about(question, self._budgets.L1)
        if "L2" in self.layers:
            layers["L2"], shown = procedures(retrieval, self._budgets.L2)
        text = _joined([layers[name].text for name in self.layers])
        return Context(
            text=text,
            static=self.static,
            tokens=count_tokens(text),
            by_layer={name: layers[name].tokens for name in sorted(self.layers)},
            retrieval=shown,
        )

    def fingerprint(self) -> dict[str, str]:
        """Return hashes of what decides the contexts, 16 hexadecimal digits each.

        ``L0`` and ``L3`` are of the text that is shown, ``L1`` of the schema and its ranking,
        ``guide`` and ``anti_patterns`` of the pack's files as they are, ``budgets`` of the budgets.
        """
        parts = {name: layer.text for name, layer in self._static.items()}
        files = {"guide": guide_file(self._pack), "anti_patterns": notes_file(self._pack)}
        parts |= {name: f.read_text(encoding="utf-8") for name, f in files.items() if f}
        parts["budgets"] = str(sorted(asdict(self._budgets).items()))
        hashes = {
            name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in parts.items()
        }
        if self._schema is not None:
            hashes["L1"] = self._schema.fingerprint()
        return dict(sorted(hashes.items()))


def _joined(texts: Collection[str]) -> str:
    return "\n\n".join(text for text in texts if text)
