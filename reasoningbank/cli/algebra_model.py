"""A model beside programs: it writes them, and the queries that they leave to it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reasoningbank.agents import Budget, Episode, Meter
from reasoningbank.agents.algebra import Stage, composer, open_stage
from reasoningbank.cli.output import progress_console
from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.errors import UsageError
from reasoningbank.lm import ModelHandle, UsageCounter, open_lm
from reasoningbank.memory.layers import ContextBuilder
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder

__all__ = ["Author", "open_author", "open_stage_of"]

#: Tokens that a program may have.
MOST_TOKENS = 1024
_LAYERS = ("L1", "L3")


@dataclass(frozen=True)
class Author:
    """A model that is ready, with what is known of an endpoint.

    Attributes:
        model: The model.
        stage: Where a pack's public addresses are really asked; None without a pack.
        context: Returns what the pack tells near a question.
    """

    model: ModelHandle
    stage: Stage | None = None
    context: Callable[[str], str] = lambda _: ""

    def episode(self, question: str, endpoint: EndpointConfig) -> Episode:
        """Return what one question about an endpoint is worked on with."""
        recorder = Recorder(redact=list(self.model.secrets))
        counter = UsageCounter(recorder)
        meter = Meter(Budget(), lambda: counter.usage)
        own = self.stage if self.stage and endpoint == self.stage.endpoint else None
        return Episode(
            endpoint=endpoint,
            tools={},
            lm=self.model.lm(temperature=0.0, max_tokens=MOST_TOKENS, seed=0),
            budget=meter.budget,
            recorder=recorder,
            meter=meter,
            callbacks=[counter],
            context=self.context(question) if own else "",
            pack=own.pack if own else None,
        )

    def compose(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        """Return a query that answers a question of a program; see `algebra.Runtime`.

        Of another endpoint than the pack's nothing is known but its address.

        Raises:
            UsageError: No endpoint is known.
            QueryError: The model wrote no query.
            ModelError: The model failed.
        """
        about = self._endpoint(endpoint)
        return composer(self.episode(question, about))(question, endpoint, names)

    def _endpoint(self, address: str) -> EndpointConfig:
        if self.stage is not None:
            own = self.stage.endpoint
            if not address or own.is_at(address):
                return own
        if not address:
            hint = "put the SPARQLString into an operation with an endpoint, or give --pack"
            raise UsageError("nobody knows which endpoint the question is about", hint=hint)
        return EndpointConfig(address)


@contextlib.contextmanager
def open_stage_of(pack: str, url: str | None = None) -> Iterator[Stage]:
    """Open a pack's endpoint, and what stands for the addresses its programs read, for a block.

    Raises:
        UsageError: There is no such pack.
        SetupError: The machine lacks a part.
    """
    loaded = load_pack(pack)
    with open_endpoint(loaded, url) as endpoint, open_stage(loaded, endpoint) as stage:
        yield stage


@contextlib.contextmanager
def open_author(lm: str, stage: Stage | None) -> Iterator[Author]:
    """Open a model, for the length of a block.

    Args:
        lm: The model's name.
        stage: Where a pack's addresses are asked; None without a pack.

    Raises:
        UsageError: There is no such model.
        SetupError: The machine lacks a part.
    """
    progress_console.print(f"opening {lm} …")
    with open_lm(lm) as model:
        if stage is None:
            yield Author(model)
            return
        schema = stage.pack.schema if stage.pack else None
        builder = ContextBuilder(
            _LAYERS,
            endpoint=stage.endpoint,
            vocabulary=Schema.of(stage.endpoint, schema),
            pack=stage.pack,
        )
        yield Author(model, stage, lambda asked: builder.build(asked).text)
