"""Domain packs: folders that hold all that is known of one endpoint.

A pack is a folder with a ``pack.toml``. Packs are found by name in ``ontology/`` of the
working directory, of the installed package and of the repository, in that order; a folder
without a ``pack.toml`` is a pack that holds nothing but examples.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reasoningbank.errors import UsageError
from reasoningbank.sparql import EndpointConfig

__all__ = [
    "DocumentSpace",
    "FederatedEndpoint",
    "Pack",
    "endpoint_config",
    "federated_config",
    "known_packs",
    "load_pack",
]

_FILE = "pack.toml"
_TEST = "-test"


@dataclass(frozen=True)
class FederatedEndpoint:
    """An endpoint that the examples of a pack federate with.

    Attributes:
        url: Its public address.
        name: What people call it.
        authority: Who runs it.
        data: Files that stand for it offline; empty where it is only reached remotely.
        union_default_graph: Whether its default graph is the union of its named graphs.
        prefixes: Namespace by prefix, over those of the pack.
        label_properties: IRIs of the properties that name things there; the pack's where empty.
        void: Its service description and statistics, as Turtle; None where the pack has none.
        void_graph: The named graph that the service description is loaded into.
    """

    url: str
    name: str = ""
    authority: str = ""
    data: tuple[Path, ...] = ()
    union_default_graph: bool = True
    prefixes: Mapping[str, str] = field(default_factory=dict)
    label_properties: tuple[str, ...] = ()
    void: Path | None = None
    void_graph: str = ""


@dataclass(frozen=True)
class DocumentSpace:
    """The documents that programs of a pack read and write.

    Attributes:
        base: What the addresses of documents that may be written begin with.
        initial: What documents hold beforehand, as TriG with a document's address as its graph's
            name; None where there are none.
        resources: What the addresses of resources begin with of which each answers GET with the
            statements that the pack's data make of it; empty where none does.
    """

    base: str
    initial: Path | None = None
    resources: str = ""


@dataclass(frozen=True)
class Pack:
    """What a pack says of itself; paths are absolute.

    Attributes:
        key: The name it is loaded by: the folder's.
        root: The folder.
        examples: The folder with the SHACL examples.
        endpoint: The public address of the endpoint; ``''`` in a bare folder.
        name: What people call the endpoint, e.g. ``UniProt``.
        authority: Who is responsible for the endpoint.
        title: One line.
        description: A paragraph.
        licence: The licence of the pack's data.
        prefixes: Namespace by prefix.
        label_properties: IRIs of the properties that name things.
        data: The files of the embedded sample.
        schema: Classes and properties, as Turtle; None where the pack has none.
        void: Service description and statistics, as Turtle; None where the pack has none.
        void_graph: The named graph that the service description is loaded into.
        hints: The folder with patterns, constraints and guides; None where there is none.
        languages: The languages that questions come in.
        union_default_graph: Whether the default graph is the union of the named ones.
        federated: The endpoints that the examples federate with.
        sources: Where each kind of fact comes from, as the pack's file says it.
        test: The folder with a separate test set; None where the pack has none.
        documents: The documents that its tasks write; None where none does.
    """

    key: str
    root: Path
    examples: Path
    endpoint: str = ""
    name: str = ""
    authority: str = ""
    title: str = ""
    description: str = ""
    licence: str = ""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    label_properties: tuple[str, ...] = ()
    data: tuple[Path, ...] = ()
    schema: Path | None = None
    void: Path | None = None
    void_graph: str = ""
    hints: Path | None = None
    languages: tuple[str, ...] = ("en",)
    union_default_graph: bool = True
    federated: tuple[FederatedEndpoint, ...] = ()
    sources: tuple[Mapping[str, Any], ...] = ()
    test: Path | None = None
    documents: DocumentSpace | None = None

    def with_test_set(self) -> Pack:
        """Return the pack with its separate test set as its examples.

        Raises:
            UsageError: The pack has none.
        """
        if self.test is None:
            raise UsageError(
                "the pack has no separate test set",
                where=str(self.root),
                hint=f'write test = "…", the name of a folder, into its {_FILE}',
            )
        return replace(self, examples=self.test)


class _Federated(BaseModel):
    model_config = ConfigDict(extra="forbid")
    url: str = Field(min_length=1)
    name: str = ""
    authority: str = ""
    data: list[str] = []
    union_default_graph: bool = True
    prefixes: dict[str, str] = {}
    label_properties: list[str] = []
    void: str = ""
    void_graph: str = ""


class _Documents(BaseModel):
    model_config = ConfigDict(extra="forbid")
    # Spelled as a server's documents are, since documents are told by how their addresses begin.
    base: str = Field(pattern=r"^https?://[a-z0-9.-]+(:[0-9]+)?/([A-Za-z0-9_.~%!$&'()*+,;=@-]+/)*$")
    initial: str = ""
    resources: str = Field(default="", pattern=r"^(https?://[^/?#]+/[^?#]*)?$")


class _PackFile(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    endpoint: str = ""
    name: str = ""
    authority: str = ""
    title: str = ""
    description: str = ""
    licence: str = ""
    prefixes: dict[str, str] = {}
    label_properties: list[str] = []
    examples: str = "examples"
    test: str = ""
    data: list[str] = []
    schema_: str = Field(default="", alias="schema")
    void: str = ""
    void_graph: str = ""
    hints: str = ""
    languages: list[str] = ["en"]
    union_default_graph: bool = True
    federated: list[_Federated] = []
    sources: list[dict[str, Any]] = []
    documents: _Documents | None = None


def load_pack(name_or_path: str | Path) -> Pack:
    """Load a pack by name (``uniprot``), by its folder, or make one of any folder.

    Args:
        name_or_path: A known pack's name; a folder; or ``ontology/NAME`` from anywhere. A name
            followed by ``-test`` is the pack with its separate test set as its examples.

    Raises:
        UsageError: There is no such pack, test set or folder, or its ``pack.toml`` is broken.
    """
    text = str(name_or_path)
    base = text.removesuffix(_TEST)
    if base != text and not Path(text).is_dir():
        known = known_packs()
        if text not in known and base in known:
            return load_pack(base).with_test_set()
    root = _find(name_or_path)
    file = root / _FILE
    if not file.is_file():
        examples = root / "examples"
        return Pack(root.name, root, examples if examples.is_dir() else root)
    return _from_file(root, _read(file))


def known_packs() -> dict[str, Path]:
    """Return the folders of the packs that can be loaded by name."""
    found: dict[str, Path] = {}
    for base in _homes():
        for file in sorted(base.glob(f"*/{_FILE}")):
            found.setdefault(file.parent.name, file.parent)
    return found


def endpoint_config(
    pack: Pack,
    query_url: str | None = None,
    *,
    federated: Sequence[EndpointConfig] = (),
    aliases: Mapping[str, str] | None = None,
) -> EndpointConfig:
    """Return how to reach a pack's endpoint.

    Args:
        pack: A pack that names an endpoint.
        query_url: Where requests really go, e.g. an embedded server standing for the endpoint;
            the public address if None.
        federated: The endpoints it federates with, as they are asked directly.
        aliases: Real address by public one, for SERVICE; the endpoint's own where None.

    Raises:
        UsageError: The pack names no endpoint.
    """
    if not pack.endpoint:
        raise UsageError(
            "the pack names no endpoint",
            where=str(pack.root),
            hint=f'write endpoint = "https://…" into its {_FILE}',
        )
    own = {pack.endpoint: query_url} if query_url else {}
    config = EndpointConfig(
        pack.endpoint,
        pack.name,
        pack.authority,
        prefixes=dict(pack.prefixes),
        query_url=query_url,
        aliases=own if aliases is None else dict(aliases),
        federated=tuple(federated),
    )
    if not pack.label_properties:
        return config
    return replace(config, label_properties=pack.label_properties)


def federated_config(
    pack: Pack,
    endpoint: FederatedEndpoint,
    query_url: str | None = None,
    *,
    aliases: Mapping[str, str] | None = None,
) -> EndpointConfig:
    """Return how to ask one of the endpoints that a pack federates with directly.

    Args:
        pack: The pack, whose prefixes and label properties hold where the endpoint has none.
        endpoint: One of ``pack.federated``.
        query_url: Where requests really go; the public address if None.
        aliases: Real address by public one, so that it can federate back.
    """
    config = EndpointConfig(
        endpoint.url,
        endpoint.name,
        endpoint.authority,
        prefixes={**pack.prefixes, **endpoint.prefixes},
        query_url=query_url,
        aliases=dict(aliases or {}),
    )
    labels = endpoint.label_properties or pack.label_properties
    return replace(config, label_properties=labels) if labels else config


def _homes() -> list[Path]:
    package = Path(__file__).resolve().parent.parent
    return [Path.cwd() / "ontology", package / "ontology", package.parent / "ontology"]


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    given = Path(text).expanduser()
    known = known_packs()
    bare = isinstance(name_or_path, str) and given.parts == (text,)
    if bare and text in known:
        return known[text].resolve()
    if given.is_dir():
        return given.resolve()
    # The repository's own spelling works from every working directory.
    if given.parts[:-1] == ("ontology",) and given.name in known:
        return known[given.name].resolve()
    raise UsageError(
        f"unknown pack {text!r}",
        hint=f"choose {', '.join(sorted(known)) or 'a pack'} or name a folder of SHACL examples",
    )


def _read(file: Path) -> _PackFile:
    try:
        return _PackFile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from None
    except ValidationError as error:
        first = error.errors()[0]
        field_name = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{field_name}: {first['msg']}", where=str(file)) from None


def _from_file(root: Path, read: _PackFile) -> Pack:
    def inside(name: str) -> Path:
        return (root / name).resolve()

    return Pack(
        key=root.name,
        root=root,
        examples=inside(read.examples),
        endpoint=read.endpoint,
        name=read.name or root.name,
        authority=read.authority,
        title=read.title,
        description=read.description,
        licence=read.licence,
        prefixes=read.prefixes,
        label_properties=tuple(read.label_properties),
        data=tuple(inside(name) for name in read.data),
        schema=inside(read.schema_) if read.schema_ else None,
        void=inside(read.void) if read.void else None,
        void_graph=read.void_graph,
        hints=inside(read.hints) if read.hints else None,
        languages=tuple(read.languages),
        union_default_graph=read.union_default_graph,
        federated=tuple(
            FederatedEndpoint(
                item.url,
                item.name,
                item.authority,
                tuple(inside(name) for name in item.data),
                item.union_default_graph,
                item.prefixes,
                tuple(item.label_properties),
                inside(item.void) if item.void else None,
                item.void_graph,
            )
            for item in read.federated
        ),
        sources=tuple(read.sources),
        test=inside(read.test) if read.test else None,
        documents=None
        if read.documents is None
        else DocumentSpace(
            read.documents.base,
            inside(read.documents.initial) if read.documents.initial else None,
            read.documents.resources,
        ),
    )
