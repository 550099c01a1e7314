"""What all trials of a run share: endpoint, judge with its gold results, models, sandboxes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from reasoningbank.agents import Demonstration, load_demonstrations
from reasoningbank.agents.sandbox import SandboxPool
from reasoningbank.cache import cache_dir
from reasoningbank.corpus import Pack, open_endpoint
from reasoningbank.experiment.config import EndpointSettings
from reasoningbank.experiment.manifest import hash_files
from reasoningbank.judge import DocumentChanges, ExecutionJudge, GoldStore
from reasoningbank.lm import ModelHandle
from reasoningbank.schema import EndpointProfile, Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient

__all__ = [
    "World",
    "data_files",
    "demonstration_files",
    "open_world",
    "opened_endpoint",
    "store_hash",
    "world_at",
]


@dataclass(frozen=True)
class World:
    """What all trials of a run share.

    Attributes:
        pack: The domain pack; None in a world made by hand.
        vocabulary: What names the endpoint knows, looked up once for all trials.
        survey: How the endpoint can be explored, found out once for all trials.
        endpoint: The endpoint the tasks ask about.
        client: The connection to it.
        judge: Judges attempts.
        models: Models that are open, by name.
        sandboxes: Where agents' code runs.
        demonstrations: Worked turns of the pack.
        hidden: Ids of the tasks whose examples no tool shows.
    """

    endpoint: EndpointConfig
    client: SPARQLClient
    judge: ExecutionJudge
    pack: Pack | None = None
    vocabulary: Schema | None = None
    survey: EndpointProfile | None = None
    models: Mapping[str, ModelHandle] = field(default_factory=dict)
    sandboxes: SandboxPool | None = None
    demonstrations: tuple[Demonstration, ...] = ()
    hidden: frozenset[str] = frozenset()


@contextlib.contextmanager
def open_world(
    pack: Pack,
    run_path: Path,
    *,
    endpoint: EndpointSettings | None = None,
    models: Mapping[str, ModelHandle] | None = None,
    spare_sandboxes: int = 0,
    hidden: frozenset[str] = frozenset(),
    services: Iterable[str] = (),
) -> Iterator[World]:
    """Open what trials share, for the length of a block.

    Args:
        pack: The domain pack.
        run_path: Folder of the run; gold results are frozen below it.
        endpoint: A running endpoint to use instead of the embedded one.
        models: Open models by name.
        spare_sandboxes: Sandboxes to keep warm.
        hidden: Ids of the tasks whose examples no tool shows.
        services: What SERVICE may name at a running endpoint; see `open_endpoint`.
    """
    with (
        opened_endpoint(pack, endpoint, services) as config,
        world_at(
            config,
            pack,
            GoldStore(run_path / "gold", store_hash(pack, endpoint)),
            models=models,
            spare_sandboxes=spare_sandboxes,
            hidden=hidden,
        ) as world,
    ):
        yield world


@contextlib.contextmanager
def world_at(
    config: EndpointConfig,
    pack: Pack,
    golds: GoldStore,
    *,
    models: Mapping[str, ModelHandle] | None = None,
    spare_sandboxes: int = 0,
    hidden: frozenset[str] = frozenset(),
) -> Iterator[World]:
    """Make a world at an endpoint that runs already, for the length of a block."""
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(SPARQLClient(config))
        sandboxes = stack.enter_context(SandboxPool(spare=spare_sandboxes))
        declared = Schema.of_files(pack.schema) if pack.schema else None
        if declared is not None:
            # A schema that is broken is told now, and not by a tool in the midst of a trial.
            _ = declared.classes
        survey = stack.enter_context(contextlib.closing(EndpointProfile(config, declared=declared)))
        yield World(
            endpoint=config,
            client=client,
            judge=ExecutionJudge(client, golds, documents=DocumentChanges.of(pack)),
            pack=pack,
            vocabulary=Schema.of(config, pack.schema),
            survey=survey,
            models=models or {},
            sandboxes=sandboxes,
            demonstrations=tuple(
                demonstration
                for path in demonstration_files(pack)
                for demonstration in load_demonstrations(path)
            ),
            hidden=hidden,
        )


def store_hash(pack: Pack, endpoint: EndpointSettings | None) -> str:
    """Return what stands for the content of the endpoint: of its files, or of its address."""
    return hash_files(data_files(pack)) if endpoint is None else _hash_text(endpoint.url)


@contextlib.contextmanager
def opened_endpoint(
    pack: Pack, settings: EndpointSettings | None, services: Iterable[str]
) -> Iterator[EndpointConfig]:
    """Open the pack's endpoint, or a running one as the settings say."""
    if settings is None:
        with open_endpoint(pack, services=services) as config:
            yield config
        return
    # A bare folder of examples names no endpoint; the experiment does.
    named = replace(pack, endpoint=pack.endpoint or settings.url, name=settings.name or pack.name)
    with open_endpoint(named, settings.url, services=services) as config:
        polite = {
            "user_agent": settings.user_agent or config.user_agent,
            "min_interval_s": settings.min_interval_s,
            "max_connections": settings.max_connections,
            "timeout_s": settings.timeout_s,
            "max_rows": settings.max_rows,
            "cache": cache_dir() / "answers.sqlite" if settings.cache else None,
        }
        yield replace(
            config,
            label_properties=settings.label_properties or config.label_properties,
            federated=tuple(replace(other, **polite) for other in config.federated),  # type: ignore[arg-type]
            **polite,  # type: ignore[arg-type]
        )


def data_files(pack: Pack) -> tuple[Path, ...]:
    """Return the files of the embedded stores, federated endpoints and documents included."""
    initial = pack.documents.initial if pack.documents else None
    documents = () if initial is None else (initial,)
    return (*pack.data, *(path for other in pack.federated for path in other.data), *documents)


def demonstration_files(pack: Pack) -> tuple[Path, ...]:
    """Return the pack's files of worked turns; a pack need not have any."""
    path = pack.root / "hints" / "demonstrations.json"
    return (path,) if path.exists() else ()


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
