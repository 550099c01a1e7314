"""What all trials of a run share: endpoint, judge with its gold results, models, sandboxes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reasoningbank.agents import Demonstration, FewShotExample, load_demonstrations
from reasoningbank.agents.sandbox.interpreter import SandboxPool
from reasoningbank.cache import cache_dir
from reasoningbank.corpus import Pack, open_endpoint
from reasoningbank.experiment.settings import EndpointSettings
from reasoningbank.judge import DocumentChanges, ExecutionJudge, GoldStore
from reasoningbank.lm import ModelHandle
from reasoningbank.schema import EndpointProfile, Schema
from reasoningbank.sparql import EndpointConfig, EntityLinker, SPARQLClient
from reasoningbank.trajectory import Recorder


@dataclass(frozen=True)
class RunContext:
    """What all trials of a run share."""

    endpoint: EndpointConfig
    client: SPARQLClient
    judge: ExecutionJudge
    pack: Pack | None = None
    schema: Schema | None = None
    profile: EndpointProfile | None = None
    models: Mapping[str, ModelHandle] = field(default_factory=dict)
    sandboxes: SandboxPool | None = None
    demonstrations: tuple[Demonstration, ...] = ()
    hidden: frozenset[str] = frozenset()
    hidden_by_task: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @functools.cached_property
    def linker(self) -> EntityLinker:
        """Finds the resources that questions name."""
        return EntityLinker(self.client, self.endpoint, self.pack.languages if self.pack else ())


@dataclass(frozen=True)
class Recall:
    """What one trial is given of memory, as plain data: agents do not know banks."""

    snapshot: str = ""
    context: str = ""
    demonstrations: tuple[Demonstration, ...] = ()
    examples: tuple[FewShotExample, ...] = ()
    question: str = ""
    #: Gives the agent's DSPy module what an optimizer compiled.
    adopt: Callable[[Any], None] | None = None
    tools: Callable[[Recorder], Mapping[str, Callable[..., Any]]] | None = None
    event: Mapping[str, Any] | None = None
    seconds: float = 0.0


NOTHING = Recall()


@dataclass(frozen=True)
class Given:
    """What a trial needs of other trials of its run, as plain data that travels to a worker."""

    #: Hash of the snapshot of the bank that it sees; empty for none.
    bank: str = ""
    #: Tokens of the trial that it matches.
    tokens: int | None = None
    #: What an optimizer compiled.
    program: Mapping[str, Mapping[str, Any]] | None = None


@contextlib.contextmanager
def open_context(
    pack: Pack,
    run_path: Path,
    *,
    endpoint: EndpointSettings | None = None,
    services: Iterable[str] = (),
    **rest: Any,
) -> Iterator[RunContext]:
    """Open endpoint and context for the length of a block."""
    golds = GoldStore(run_path / "gold", store_hash(pack, endpoint))
    with (
        opened_endpoint(pack, endpoint, services) as config,
        context_at(config, pack, golds, **rest) as context,
    ):
        yield context


@contextlib.contextmanager
def context_at(
    config: EndpointConfig,
    pack: Pack,
    golds: GoldStore,
    *,
    models: Mapping[str, ModelHandle] | None = None,
    spare_sandboxes: int = 0,
    hidden: frozenset[str] = frozenset(),
    hidden_by_task: Mapping[str, frozenset[str]] | None = None,
) -> Iterator[RunContext]:
    """Open the context of a running endpoint for the length of a block."""
    declared = Schema.of_files(pack.schema) if pack.schema else None
    if declared is not None:
        # Report a broken schema now, not from a tool in the middle of a trial.
        _ = declared.classes
    with (
        SPARQLClient(config) as client,
        SandboxPool(spare=spare_sandboxes) as sandboxes,
        contextlib.closing(EndpointProfile(config, declared=declared)) as profile,
    ):
        yield RunContext(
            endpoint=config,
            client=client,
            judge=ExecutionJudge(client, golds, documents=DocumentChanges.of(pack)),
            pack=pack,
            schema=Schema.of(config, pack.schema),
            profile=profile,
            models=models or {},
            sandboxes=sandboxes,
            demonstrations=tuple(
                one for path in demonstration_files(pack) for one in load_demonstrations(path)
            ),
            hidden=hidden,
            hidden_by_task=hidden_by_task or {},
        )


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
        limits = {"min_interval_s", "max_connections", "timeout_s", "max_rows"}
        polite = settings.model_dump(include=limits)
        polite["user_agent"] = settings.user_agent or config.user_agent
        polite["cache"] = cache_dir() / "answers.sqlite" if settings.cache else None
        yield replace(
            config,
            label_properties=settings.label_properties or config.label_properties,
            federated=tuple(replace(other, **polite) for other in config.federated),
            **polite,
        )


def store_hash(pack: Pack, endpoint: EndpointSettings | None) -> str:
    """Return a hash of the endpoint's content: of its files, or of its address."""
    if endpoint is not None:
        return hashlib.sha256(endpoint.url.encode()).hexdigest()[:16]
    return hash_files(data_files(pack))


def data_files(pack: Pack) -> tuple[Path, ...]:
    """Return the files of the embedded stores, including federated endpoints and documents."""
    initial = pack.documents.initial if pack.documents else None
    documents = () if initial is None else (initial,)
    return (*pack.data, *(path for other in pack.federated for path in other.data), *documents)


def demonstration_files(pack: Pack) -> tuple[Path, ...]:
    """Return the pack's files of worked turns, if any."""
    path = pack.root / "hints" / "demonstrations.json"
    return (path,) if path.exists() else ()


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the contents of files, 16 hexadecimal digits; order does not matter."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]
