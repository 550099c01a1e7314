"""What the nodes of a graph work with; none of it is ever part of the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.agents.confidence import Calibration, load_calibration
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.protocol import Episode
from reasoningbank.agents.recording import RecordedClient
from reasoningbank.agents.shown_examples import ShownExamples, pack_of, shown_examples
from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import PatternSet, load_patterns
from reasoningbank.sparql import EndpointConfig, SPARQLClient

__all__ = ["Parts"]


@dataclass(frozen=True)
class Parts:
    """What one run of a graph uses.

    Attributes:
        episode: Endpoint, budget, meter and recorder.
        pack: The pack.
        settings: Which steps are taken.
        lm: The model that writes queries.
        fast: The model that analyses, plans and verifies.
        calibration: What scores are worth; None where that was not measured.
    """

    episode: Episode
    pack: Pack
    settings: GraphSettings = field(default_factory=GraphSettings)
    lm: Any = None
    fast: Any = None
    calibration: Calibration | None = None

    @classmethod
    def of(cls, episode: Episode, settings: GraphSettings) -> Parts:
        """Gather the parts of an episode; its extract step's model is the fast tier.

        On a local server that is the same model with a slot of its own, so that neither tier
        evicts the other's cached beginning.

        Raises:
            UsageError: The episode has no pack or no model, or a file of the pack is broken.
        """
        pack = pack_of(episode, "graph")
        if episode.lm is None:
            raise UsageError("there is no model to ask", where="agent graph")
        return cls(
            episode,
            pack,
            settings,
            episode.lm,
            episode.extractor or episode.lm,
            load_calibration(pack, model=getattr(episode.lm, "model", "")),
        )

    @property
    def shown(self) -> ShownExamples:
        """What examples may be retrieved."""
        return shown_examples(
            self.pack,
            self.episode.hidden,
            whole_groups=self.settings.whole_groups,
            retrieval=self.settings.retrieval,
            embedding=self.settings.embedding,
            index=self.settings.index,
        )

    @property
    def patterns(self) -> PatternSet:
        """The pack's patterns."""
        return load_patterns(self.pack)

    def client(self, endpoint: EndpointConfig | None = None) -> SPARQLClient:
        """Return a connection whose queries are metered and recorded."""
        return RecordedClient(self.episode, endpoint)

    def turn(self) -> None:
        """Count a call of a model that is about to be made.

        Raises:
            BudgetError: A budget is used up.
        """
        self.episode.meter.turn()

    def record(self, step: str, found: Mapping[str, Any]) -> None:
        """Record that a step is done."""
        told = {key: value for key, value in found.items() if key not in _LONG}
        examples = found.get("retrieved_examples")
        if examples is not None:
            kept = ("id", "group", "score")
            told["examples"] = [{key: one[key] for key in kept} for one in examples]
        self.episode.recorder.add("step", {"step": step, **told})


#: Parts of the state that other events hold, or that say the same in full.
_LONG = frozenset(
    ("retrieved_examples", "relevant_constraints", "refinement_history", "execution_result")
)
