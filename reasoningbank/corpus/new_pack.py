"""A new pack for an endpoint: its prefixes, classes and properties, and examples to begin with."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode

from reasoningbank.corpus.pack import SETS, known_packs
from reasoningbank.corpus.shacl import SCHEMA, SH
from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.schema import EndpointProfile, is_label, namespace_of, sampling
from reasoningbank.schema.names import spoken
from reasoningbank.sparql import STANDARD_PREFIXES, EndpointConfig, iri
from reasoningbank.sparql.terms import RDF_TYPE

#: Classes that are listed, those whose properties are listed, and properties of each.
CLASSES, DESCRIBED, PROPERTIES = 40, 12, 20
_MOST_PREFIXES = 200
#: Vocabularies whose classes describe the data, not the domain.
_META = tuple(STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl", "sh", "sd", "void"))
_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class FoundClass:
    """A class in the data, its instances if counted, and its most frequent properties."""

    iri: str
    count: int | None
    properties: tuple[str, ...] = ()


def new_pack(name: str, config: EndpointConfig) -> dict[Path, str]:
    """Explore an endpoint and return the files of a pack and of an experiment on it, by their path.

    Nothing is written. The paths are ``ontology/NAME/…`` and ``experiments/NAME.toml``.

    Raises:
        UsageError: If the name does not fit or is taken, or the endpoint has no instance of a
            class.
        EndpointError: If the endpoint cannot be reached.
    """
    if not _NAME.fullmatch(name) or name.endswith(tuple(f"-{one}" for one in SETS)):
        hint = "use lower-case letters, digits, _ and -, e.g. my_pack"
        raise UsageError("is not a name for a pack", where=name, hint=hint, code="bad-name")
    folder, experiment = Path("ontology") / name, Path("experiments") / f"{name}.toml"
    for taken in (known_packs().get(name), folder, experiment):
        if taken is not None and taken.exists():
            where, hint = str(taken), "choose another name"
            raise UsageError("exists already", where=where, hint=hint, code="exists")
    with contextlib.closing(EndpointProfile(config)) as profile:
        classes = _classes(profile)
        published = _published_prefixes(profile)
        examples = _examples(classes, profile)
    names = [one for c in classes for one in (c.iri, *c.properties)]
    prefixes = {**published, **_prefixes(names, published)}
    vocabularies = prefixes | {"schema": SCHEMA}
    vocabularies |= {key: STANDARD_PREFIXES[key] for key in ("owl", "rdf", "rdfs")}
    from jinja2 import Template  # 20 ms that only a new pack needs

    pages = files("reasoningbank.corpus").joinpath("new_pack.jinja").read_text("utf-8")
    page: Any = Template(pages, trim_blocks=True, lstrip_blocks=True).make_module(
        {
            "name": name,
            "config": config,
            "prefixes": prefixes,
            "vocabularies": vocabularies,
            "labels": [one for one in dict.fromkeys(names) if is_label(one)],
            "classes": classes,
            "properties": dict.fromkeys(one for c in classes for one in c.properties),
            "literal": Literal,
            "quoted": json.dumps,
            "text": spoken,
        }
    )
    made = {
        folder / "pack.toml": page.pack(),
        folder / "schema.ttl": _shortened(page.schema(), vocabularies),
        folder / "examples" / "prefixes.ttl": page.declared(),
        experiment: page.experiment(),
    }
    for number, (kind, question, query) in enumerate(examples, 1):
        key = f"{number}_{kind}"
        text = page.example(key, question, _shortened(query, prefixes))
        made[folder / "examples" / f"{key}.ttl"] = text
    return made


def _classes(profile: EndpointProfile) -> list[FoundClass]:
    """Return the classes of the data, the most frequent first, the first ones with properties."""
    found: list[FoundClass] = []
    for name, count in sampling.classes(profile, CLASSES).items:
        if name.startswith(_META):
            continue
        has: Iterable[tuple[str, int | None]] = ()
        if len(found) < DESCRIBED:
            with contextlib.suppress(QueryError):
                has = sampling.properties_of(profile, name, PROPERTIES).items
        found.append(FoundClass(name, count, tuple(p for p, _ in has if p != RDF_TYPE)))
    if not any(one.properties for one in found):
        what = "no instance of a class with a property was found"
        raise UsageError(what, where=profile.config.url, code="no-classes")
    return found


def _published_prefixes(profile: EndpointProfile) -> dict[str, str]:
    """Return the prefixes that the endpoint declares in its data (`sh:declare`)."""
    declared = f"?x <{SH}prefix> ?prefix ; <{SH}namespace> ?namespace"
    query = (
        f"SELECT DISTINCT ?prefix ?namespace {{ {{ {declared} }} UNION "
        f"{{ GRAPH ?g {{ {declared} }} }} }} LIMIT {_MOST_PREFIXES}"
    )
    with contextlib.suppress(QueryError, EndpointError):
        return {
            prefix.value: namespace.value
            for prefix, namespace in profile.ask()(query).rows()
            if isinstance(prefix, Literal) and isinstance(namespace, Literal | NamedNode)
        }
    return {}


def _prefixes(names: Iterable[str], published: Mapping[str, str]) -> dict[str, str]:
    """Return a prefix for each namespace of the names that has none yet."""
    known = {iri: prefix for prefix, iri in STANDARD_PREFIXES.items()}
    done, made = set(published.values()), dict[str, str]()
    for namespace in dict.fromkeys(map(namespace_of, names)):
        if namespace in done or not namespace:
            continue
        parts = re.findall(r"[A-Za-z][A-Za-z0-9]*", namespace.partition("//")[2])
        word = known.get(namespace) or (parts[-1].lower() if parts else "ns")
        prefix, number = word, 2
        while prefix in published or prefix in made:
            prefix, number = f"{word}{number}", number + 1
        made[prefix] = namespace
    return made


def _examples(
    classes: Sequence[FoundClass], profile: EndpointProfile
) -> list[tuple[str, str, str]]:
    """Return examples over the most frequent class: name, question, query."""
    one = next(c for c in classes if c.properties)
    label = next((p for p in one.properties if is_label(p)), "")
    chosen = next((p for p in one.properties if p != label), label)
    thing, value = spoken(one.iri), spoken(chosen)
    a, has, within = f"?x a {iri(one.iri)}", iri(chosen), profile.within
    of_one: list[tuple[str, str, str]] = []
    for name in dict.fromkeys((label, "")):
        # A blank node cannot be asked for.
        named, asked = (f"{iri(name)} ?name ; ", "?name") if name else ("", "?x")
        where = f"{within(f'{a} ; {named}{has} ?value')} FILTER(!isBlank({asked}))"
        sample = f"SELECT {asked} WHERE {{ {where} }} LIMIT 1"
        # Where all are blank, the endpoint searches until its time limit.
        with contextlib.suppress(QueryError, EndpointError):
            for (term,) in [] if of_one else profile.ask()(sample).rows():
                subject = f"?x {iri(name)} {term} ;" if name else str(term)
                query = f"SELECT DISTINCT ?value WHERE {{ {within(f'{subject} {has} ?value')} }}"
                of_one = [("value", f"What is the {value} of {getattr(term, 'value', '')}?", query)]
    return [
        ("count", f"How many things of the class {thing} are there?",
         f"SELECT (COUNT(DISTINCT ?x) AS ?n) WHERE {{ {within(a)} }}"),
        ("list", f"Give up to 100 things of the class {thing} with their {value}.",
         f"SELECT ?x ?value WHERE {{ {within(f'{a} ; {has} ?value')} }} LIMIT 100"),
        *of_one,
        ("share", f"How many things of the class {thing} have a {value}?",
         f"SELECT (COUNT(DISTINCT ?x) AS ?n) WHERE {{ {within(f'{a} ; {has} ?value')} }}"),
        ("without", f"Is there a thing of the class {thing} without a {value}?",
         f"ASK WHERE {{ {within(a)} FILTER NOT EXISTS {{ {within(f'?x {has} ?value')} }} }}"),
    ]  # fmt: skip


def _shortened(query: str, prefixes: Mapping[str, str]) -> str:
    """Return a query with prefixed names for IRIs, where their local names are plain."""

    def short(match: re.Match[str]) -> str:
        for prefix, namespace in prefixes.items():
            local = match[1].removeprefix(namespace)
            if match[1].startswith(namespace) and re.fullmatch(r"[A-Za-z]\w*", local, re.ASCII):
                return f"{prefix}:{local}"
        return match[0]

    return re.sub(r"(?<!\^\^)<([^<>\s]+)>", short, query)
