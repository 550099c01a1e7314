"""Which share of the names in a gold query a schema card holds.

`python -m benchmarks.schema_recall` prints a table in two minutes. Cards are ranked by the
question, by use alone, or at random; beside them a bare list of the most used names, without
classes and ways, in as many tokens. Tasks are those of train and dev.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from pyoxigraph import NamedNode

from reasoningbank.corpus import (
    Task,
    load_pack,
    load_shacl_tasks,
    open_endpoint,
    split_tasks,
)
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import load_notes
from reasoningbank.memory.schema_card import SchemaCard, SchemaIndex
from reasoningbank.schema import Schema, SchemaMap, observed_values
from reasoningbank.sparql import EndpointConfig, SPARQLClient, compact
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import outline, read_query

BUDGETS = (200, 400, 800)

_NAME = re.compile(r"([A-Za-z]\w*):([A-Za-z]\w*(?:-\w+)*)")


@dataclass(frozen=True)
class Recall:
    """How much of the golds' names was shown: the mean share, and the share of tasks with all."""

    mean: float
    whole: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", default="uniprot")
    pack = load_pack(parser.parse_args().pack)
    split = split_tasks(load_shacl_tasks(pack.root))
    with open_endpoint(pack) as endpoint, SPARQLClient(endpoint) as client:
        vocabulary = Schema.of(endpoint, pack.schema)
        seen = observed_values(client, vocabulary)
        schema = SchemaMap.of(vocabulary, seen)
        every = [vocabulary, *vocabulary.services.values()]
        index = SchemaIndex(schema, every)
    by_use = _by_use(every, index)
    plain = SchemaCard(endpoint, schema, index)
    noted = SchemaCard(endpoint, schema, index, load_notes(pack))
    order = {name: 1 - rank / len(by_use) for rank, name in enumerate(by_use)}
    cards: Mapping[str, Callable[[Task, int], str]] = {
        "card, by question": lambda task, budget: noted.about(task.query, budget).text,
        "the same, no warnings": lambda task, budget: plain.about(task.query, budget).text,
        "card, by use": lambda task, budget: noted.of_scores(order, budget).text,
        "card, at random": lambda task, budget: noted.of_scores(_random(task, by_use), budget).text,
        "list, by use": lambda task, budget: _list(by_use, endpoint, budget),
    }
    print(f"{'':<24}" + "".join(f"{budget:>8} {part:<8}" for budget in BUDGETS for part in _PARTS))
    for name, card in cards.items():
        shown = [
            recall(getattr(split, part), _within(card, budget), endpoint)
            for budget in BUDGETS
            for part in _PARTS
        ]
        print(f"{name:<24}" + "".join(f"{r.mean:>8.2f} ({r.whole:.2f})  " for r in shown))


_PARTS = ("train", "dev")


def recall(tasks: Sequence[Task], card: Callable[[Task], str], endpoint: EndpointConfig) -> Recall:
    """Return which share of each gold's classes and properties its card names."""
    shares = []
    for task in tasks:
        wanted = set(gold_names(task, endpoint.namespaces))
        shown = {
            endpoint.namespaces[prefix] + local
            for prefix, local in _NAME.findall(card(task))
            if prefix in endpoint.namespaces
        }
        shares.append(len(wanted & shown) / len(wanted) if wanted else 1.0)
    return Recall(mean(shares), mean(share == 1 for share in shares))


def gold_names(task: Task, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Yield the classes and properties of a gold, those inside of SERVICE included."""
    declared = {**prefixes, **outline(task.expected_sparql).declared}
    for pattern in read_query(task.expected_sparql).triple_patterns():
        steps = [t for t in tokenize(pattern.predicate) if t.kind in ("iri", "name", "word")]
        path = [absolute(step.text, declared) for step in steps]
        yield from (iri for iri in path if iri is not None and iri != RDF_TYPE)
        kind = absolute(pattern.object, declared) if RDF_TYPE in path else None
        if kind is not None:
            yield kind


def _within(card: Callable[[Task, int], str], budget: int) -> Callable[[Task], str]:
    return lambda task: card(task, budget)


def _by_use(vocabularies: Sequence[Schema], index: SchemaIndex) -> list[str]:
    counts: dict[str, int] = {}
    for vocabulary in vocabularies:
        for iri, term in (*vocabulary.classes.items(), *vocabulary.properties.items()):
            counts.setdefault(iri, term.count or 0)
    return sorted(index.scores("anything"), key=lambda name: (-counts.get(name, 0), name))


def _random(task: Task, names: Sequence[str]) -> dict[str, float]:
    rng = random.Random(task.id)
    return {name: rng.random() for name in names}


def _list(names: Sequence[str], endpoint: EndpointConfig, budget: int) -> str:
    text = ""
    for name in names:
        longer = f"{text} {compact(NamedNode(name), endpoint.namespaces)}"
        if count_tokens(longer) > budget:
            break
        text = longer
    return text


if __name__ == "__main__":
    main()
