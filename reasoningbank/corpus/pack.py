"""Domain packs: a folder per endpoint with its examples, data, schema and hints; and serving it.

A pack is a folder with a ``pack.toml``. Packs are found by name in ``ontology/`` of the working
directory, of the installed package and of the repository, in that order. A folder without a
``pack.toml`` is a pack that holds nothing but examples.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from reasoningbank.errors import UsageError, invalid_data, read_toml, said_of, unknown_key
from reasoningbank.sparql import STANDARD_PREFIXES, EndpointConfig, OxigraphServer
from reasoningbank.sparql.terms import absolute

_Hints = TypeVar("_Hints", bound=BaseModel)

_FILE = "pack.toml"
#: What a pack may hold besides its examples; loaded as ``PACK-test`` and ``PACK-instances``.
ExampleSet = Literal["test", "instances"]
SETS: tuple[ExampleSet, ...] = get_args(ExampleSet)
#: The engine's own limit; clients set shorter ones, the judge's is the longest.
SERVER_TIMEOUT_S = 90.0


def _resolved(value: Any, info: ValidationInfo) -> Any:
    """Return a path of `pack.toml` as an absolute one; an empty one is None."""
    root: Any = info.context
    return (root / value).resolve() if isinstance(value, str) and value else value or None


_PackPath = Annotated[Path, BeforeValidator(_resolved)]
_OptionalPath = Annotated[Path | None, BeforeValidator(_resolved)]


def _expanded(name: str, info: ValidationInfo) -> str:
    # Without a context a model is made in code, with IRIs; "?" stands for a variable.
    if not info.context or name == "?" or (name.startswith("<") and name.endswith(">")):
        return name.removeprefix("<").removesuffix(">")
    namespaces, where = info.context
    iri = absolute(name, namespaces)
    if iri is None:
        raise UsageError(
            f"{name!r} is not a name with a known prefix",
            where=where,
            hint="use one of the pack's prefixes, e.g. rdfs:label, or write <iri>",
            code="unknown-prefix",
            name=name,
        )
    return iri


#: An IRI, written in a hint file with the pack's prefixes.
Iri = Annotated[str, AfterValidator(_expanded)]
_FORBID = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True)
class _Described:
    """What is said of an endpoint: of a pack's own, and of those it federates with."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID

    name: str = ""  #: The endpoint's name for people, e.g. ``UniProt``.
    authority: str = ""  #: Who is responsible for the endpoint
    prefixes: Mapping[str, str] = field(default_factory=dict)  #: Prefix → namespace
    label_properties: tuple[str, ...] = ()  #: IRIs of the label properties
    data: tuple[_PackPath, ...] = ()  #: The files of the embedded sample
    void: _OptionalPath = None  #: Service description and statistics, as Turtle
    void_graph: str = ""  #: The named graph that the service description is loaded into
    union_default_graph: bool = True  #: Whether the default graph is the union of the named ones


@dataclass(frozen=True)
class FederatedEndpoint(_Described):
    """An endpoint that the examples of a pack federate with.

    Its `data` are served in its place offline; without data it is only reached remotely. Its
    prefixes add to the pack's, and the pack's label properties hold if it has none.
    """

    url: Annotated[str, Field(min_length=1)]


#: Spelled as a server spells its documents, since they are recognized by this prefix.
_BASE = r"^https?://[a-z0-9.-]+(:[0-9]+)?/([A-Za-z0-9_.~%!$&'()*+,;=@-]+/)*$"


@dataclass(frozen=True)
class DocumentSpace:
    """The documents that programs of a pack read and write."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID

    base: Annotated[str, Field(pattern=_BASE)]  #: Prefix of the addresses of writable documents
    #: What documents hold at the start, as TriG with a document's address as its graph's name; None
    #: if they start empty
    initial: _OptionalPath = None
    #: Prefix of the addresses of resources that answer GET with the statements that the pack's data
    #: make about them; empty without such resources
    resources: Annotated[str, Field(pattern=r"^(https?://[^/?#]+/[^?#]*)?$")] = ""


@dataclass(frozen=True)
class Pack(_Described):
    """What a pack's ``pack.toml`` says; paths are absolute."""

    key: str  #: The name it is loaded by: the folder's
    root: Path  #: The folder
    examples: _PackPath  #: The folder with the SHACL examples
    endpoint: str = ""  #: The public address of the endpoint; ``''`` in a bare folder
    title: str = ""  #: One line
    description: str = ""  #: A paragraph
    licence: str = ""  #: The licence of the pack's data
    schema: _OptionalPath = None  #: Classes and properties, as Turtle
    hints: _OptionalPath = None  #: The folder with patterns, constraints and guides
    languages: tuple[str, ...] = ("en",)  #: The languages of the questions
    federated: tuple[FederatedEndpoint, ...] = ()  #: The endpoints that the examples federate with
    sources: tuple[Mapping[str, Any], ...] = ()  #: The source of each kind of fact
    test: _OptionalPath = None  #: The folder with a separate test set
    instances: _OptionalPath = None  #: The folder with the instances of the pack's templates
    #: The documents that its tasks write; None if no task does
    documents: DocumentSpace | None = None

    def __hash__(self) -> int:
        # What is read of a pack is cached by it.
        return hash((self.root, self.examples))

    def with_set(self, name: ExampleSet) -> Pack:
        """Return the pack with its test set or its template instances as its examples."""
        folder: Path | None = getattr(self, name)
        if folder is None:
            what, where = f"the pack has no set {name!r}", str(self.root)
            hint = f'add {name} = "…", the name of a folder, to its {_FILE}'
            raise UsageError(what, where=where, hint=hint, code=f"no-{name}-set")
        return replace(self, examples=folder)


_PACK = TypeAdapter(Pack)
#: Types of pydantic's errors about keys that a table does not have.
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
#: Keys for words that others use for them.
_MEANT = {"license": "licence", "url": "endpoint", "queries": "examples", "namespaces": "prefixes"}


def load_pack(name_or_path: str | Path) -> Pack:
    """Load a pack by name (``uniprot``) or folder, or make one of any folder of examples.

    Args:
        name_or_path: A known pack's name; a folder; or ``ontology/NAME`` from anywhere. A name
            followed by ``-test`` or ``-instances`` is the pack with that set as its examples.

    Raises:
        UsageError: If there is no such pack, test set or folder, or its ``pack.toml`` is broken.
    """
    text = str(name_or_path)
    for name in SETS:
        base = text.removesuffix(f"-{name}")
        if base != text and not Path(text).is_dir():
            known = known_packs()
            folder = Path(base).expanduser() / _FILE
            if text not in known and (base in known or folder.is_file()):
                return load_pack(base).with_set(name)
    root = _find(name_or_path)
    file = root / _FILE
    if file.is_file():
        return _read(root, file)
    examples = root / "examples"
    return Pack(root.name, root, examples if examples.is_dir() else root)


def known_packs() -> dict[str, Path]:
    """Return the folders of the packs that can be loaded by name."""
    found: dict[str, Path] = {}
    for base in pack_homes():
        for file in sorted(base.glob(f"*/{_FILE}")):
            found.setdefault(file.parent.name, file.parent)
    return found


def endpoint_config(
    pack: Pack,
    query_url: str | None = None,
    *,
    of: FederatedEndpoint | None = None,
    federated: Sequence[EndpointConfig] = (),
    aliases: Mapping[str, str] | None = None,
) -> EndpointConfig:
    """Return how to reach a pack's endpoint, at `query_url` if given.

    With `of`, one of ``pack.federated``: prefixes and label properties of the pack are its
    defaults, and `aliases` let it federate back.
    """
    source, url = of or pack, of.url if of else pack.endpoint
    if not url:
        hint, where = f'add endpoint = "https://…" to its {_FILE}', str(pack.root)
        raise UsageError("the pack names no endpoint", where=where, hint=hint, code="no-endpoint")
    own = {url: query_url} if query_url else {}
    config = EndpointConfig(
        url,
        source.name,
        source.authority,
        prefixes={**pack.prefixes, **source.prefixes},
        query_url=query_url,
        aliases=dict(own if aliases is None else aliases),
        federated=tuple(federated),
    )
    labels = source.label_properties or pack.label_properties or config.label_properties
    return replace(config, label_properties=labels)


@contextlib.contextmanager
def open_endpoint(
    pack: Pack, url: str | None = None, *, port: int | None = None, services: Iterable[str] = ()
) -> Iterator[EndpointConfig]:
    """Make a pack's endpoint, and those it federates with, reachable for the length of a block.

    The data of the pack and of each federated endpoint are served on a loopback port each. SERVICE
    clauses keep the public addresses; the configuration's `aliases` map them to the servers. A
    federated endpoint without data is not reachable from an embedded one.

    Args:
        url: A running endpoint to use instead. A pack without data is reached at its public
            address. Either way the endpoints it federates with are then the public ones.
        port: Port of the server of the pack's own data; a free one by default.
        services: Addresses that SERVICE may name at a running endpoint, besides the endpoints that
            the pack federates with.

    Yields:
        The configuration for tools and judge; its `federated` holds one for each endpoint that can
        be queried directly.

    Raises:
        UsageError: If the pack has neither data nor an address, or a data file is missing.
        SetupError: If a server does not start, or the port is in use.
    """
    if url is not None or not pack.data:
        public = [endpoint_config(pack, of=other) for other in pack.federated]
        config = endpoint_config(pack, url, federated=public)
        # An agent must not make a public server send data to an address of its choice.
        yield replace(config, services=(*(other.url for other in pack.federated), *services))
        return
    others = [other for other in pack.federated if other.data]
    servers = [_server(pack, port=port), *map(_server, others)]
    try:
        with ThreadPoolExecutor(max_workers=len(servers)) as pool:
            list(pool.map(OxigraphServer.start, servers))
        publics = (pack.endpoint, *(other.url for other in others))
        aliases = {url: server.url for url, server in zip(publics, servers, strict=True)}
        federated = [endpoint_config(pack, aliases[o.url], of=o, aliases=aliases) for o in others]
        yield endpoint_config(pack, servers[0].url, federated=federated, aliases=aliases)
    finally:
        for server in servers:
            server.stop()


def _server(source: Pack | FederatedEndpoint, *, port: int | None = None) -> OxigraphServer:
    for path in source.data:
        if not path.exists():
            raise UsageError("the pack's data file is missing", where=str(path), code="no-data")
    files: list[Path | tuple[Path, str]] = [*source.data]
    if source.void is not None and source.void.exists():
        files.append((source.void, source.void_graph) if source.void_graph else source.void)
    union = source.union_default_graph
    return OxigraphServer(files, union_default_graph=union, timeout_s=SERVER_TIMEOUT_S, port=port)


def pack_homes() -> list[Path]:
    """Return where packs are found by name: working directory, installed package, repository."""
    package = Path(__file__).resolve().parent.parent
    return [Path.cwd() / "ontology", package / "ontology", package.parent / "ontology"]


def namespaces_of(pack: Pack) -> dict[str, str]:
    """Return namespaces by prefix: the standard ones, the pack's, its federated endpoints'."""
    found = dict(STANDARD_PREFIXES)
    for other in (*pack.federated, pack):
        found.update(other.prefixes)
    return found


def hints_file(pack: Pack | None, name: str) -> Path | None:
    """Return a file of a pack's ``hints/``; None if there is none."""
    file = pack.hints / name if pack is not None and pack.hints is not None else None
    return file if file is not None and file.is_file() else None


def read_hints(pack: Pack, name: str, model: type[_Hints]) -> tuple[_Hints, str]:
    """Read a file of a pack's ``hints/``, and return what it holds and where; both may be empty."""
    file = hints_file(pack, name)
    if file is None:
        return model(), ""
    data, where = read_toml(file, "bad-hints"), str(file)
    try:
        return model.model_validate(data, context=(namespaces_of(pack), where)), where
    except ValidationError as error:
        raise invalid_data(error, where, "bad-hints") from None


def _find(name_or_path: str | Path) -> Path:
    text, known = str(name_or_path), known_packs()
    given = Path(text).expanduser()
    if isinstance(name_or_path, str) and given.parts == (text,) and text in known:
        return known[text].resolve()
    if given.is_dir():
        return given.resolve()
    # The repository's own spelling works from every working directory.
    if given.parts[:-1] == ("ontology",) and given.name in known:
        return known[given.name].resolve()
    near = difflib.get_close_matches(text, known, n=1)
    choices = f"did you mean {near[0]}?" if near else f"choose {', '.join(sorted(known))}"
    hint = f"{choices}; or name a folder of SHACL examples"
    raise UsageError(f"unknown pack {text!r}", code="unknown-pack", hint=hint, near=near)


def _read(root: Path, file: Path) -> Pack:
    data = read_toml(file, "bad-pack")
    try:
        facts = {"name": root.name, "examples": "examples", **data, "key": root.name, "root": root}
        return _PACK.validate_python(facts, context=root)
    except ValidationError as error:
        # An unknown key explains that another one is missing.
        first = min(error.errors(), key=lambda one: one["type"] not in _UNKNOWN)
        place = ".".join(str(part) for part in first["loc"])
        said = said_of(first)
        if first["type"] in _UNKNOWN:
            inside = {"federated": FederatedEndpoint, "documents": DocumentSpace}
            table = inside.get(str(first["loc"][0]), Pack) if len(first["loc"]) > 1 else Pack
            keys = {one.name for one in fields(table)} - {"key", "root"}
            said = unknown_key(str(first["loc"][-1]), keys, _MEANT)
        what = f"{place}: {said}"
        raise UsageError(what, where=str(file), code="bad-pack", field=place) from None
