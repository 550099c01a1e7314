"""Which items a question is shown: ranked by several criteria, packed whole into a token budget."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from reasoningbank.agents import FewShotExample
from reasoningbank.corpus.task import shuffle_key
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.item import SLOT, ItemSource, MemoryItem, Scope, without_quoted
from reasoningbank.memory.leakage import LeakageFilter
from reasoningbank.sparql import EntityLinker
from reasoningbank.sparql.endpoint import same_address
from reasoningbank.sparql.tree import Form, outline

if TYPE_CHECKING:
    from reasoningbank.memory.demonstrations import ShownDemonstration


#: Candidates to rank: at least so many, and so many times the items wanted.
LEAST_DEPTH = 20
DEPTH = 5
#: Prior: tasks helped, and hurt, before anything is known of an item.
PRIOR = 2.0

_WORDS = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"\S*\d\S*")
#: Words that ask for a form of query, English and Italian; the first match decides.
_ASKS_FOR: Mapping[Form, re.Pattern[str]] = {
    "CONSTRUCT": re.compile(
        r"(?i)\b(?:as an? (?:rdf )?graph|triples|construct|come grafo|triple)\b"
    ),
    "DESCRIBE": re.compile(
        r"(?i)^\W*(?:describe|descrivi)\b"
        r"|\b(?:everything|all) that is (?:recorded|known|said|stated)\b"
        r"|\btutto ci(?:ò|o') che (?:è|si) (?:registrato|noto|sa|dice)\b"
    ),
    "ASK": re.compile(
        r"(?i)^\W*(?:is|are|was|were|do|does|did|has|have|can"
        r"|è vero|esiste|esistono|è|ha|hanno|ci sono)\b"
    ),
}


@dataclass(frozen=True)
class Ranking:
    """The weight of each criterion beside the text match, which is in [0, 1]."""

    #: Added if pack and endpoint are those of the trial, subtracted if they are others
    scope: float = 0.1
    #: Times the share of tasks that the item helped among those that it changed, from -0.5 to 0.5,
    #: with a prior of two each way
    evidence: float = 0.2
    #: Times the share of its words that an item has in common with one ranked before it
    repetition: float = 0.1
    #: Subtracted if its query has another form than the question asks for: beside a CONSTRUCT a
    #: small model writes CONSTRUCT, whatever it is asked
    form: float = 0.2
    #: Times the overlap of the classes of the entities that both questions name without quotation
    #: marks, 0.5 if one names none. A small model has to see how a name enters a query.
    entities: float = 0.2
    #: Subtracted if it is composed: a question that one strategy answers needs no two
    composed: float = 0.1


#: Sources that share a part of the budget: what worked, what to avoid, what was given.
FAMILIES: Mapping[ItemSource, str] = {
    "success": "success",
    "composed": "success",
    "failure": "failure",
    "contrast": "failure",
    "seed": "seed",
    "gold": "seed",
}
#: How many of the items that do not fit are reported.
MOST_SKIPPED = 5

_HEADS: Mapping[ItemSource, str] = {
    "success": "Strategy",
    "composed": "Strategy",
    "failure": "Pitfall",
    "contrast": "Contrast",
    "seed": "Hint",
    "gold": "Example",
}


@dataclass(frozen=True)
class FoundItem:
    """A retrieved item."""

    item: MemoryItem
    score: float  #: Its ranking score, comparable within one search only
    text: str  #: The text that is shown, never cut; `tokens` long
    tokens: int
    #: The few-shot example that is shown instead of the text, if any
    example: FewShotExample | None = None

    @classmethod
    def of(
        cls,
        item: MemoryItem,
        score: float,
        *,
        examples: bool = False,
        linker: EntityLinker | None = None,
    ) -> FoundItem:
        """Return an item as it is shown, as a few-shot example if it has one and that is wanted."""
        example, text = example_of(item) if examples else None, item_text(item)
        if example is not None:
            if linker is not None:
                example = replace(example, question=linker.annotated(example.question))
            text = f"Question: {example.question}\nQuery:\n{example.query}"
        return cls(item, score, text, count_tokens(text), example)


class Packed(NamedTuple):
    """What a budget holds, and the ids of what did not fit, with the reasons."""

    chosen: tuple[FoundItem, ...]
    skipped: tuple[tuple[str, Finding], ...]


@dataclass(frozen=True)
class Retrieval:
    """The result of one search."""

    query: str  #: The text searched for
    found: tuple[FoundItem, ...] = ()  #: The items that are shown, best first
    #: Id and reason of the items that the leakage filter removed
    filtered_out: tuple[tuple[str, Finding], ...] = ()
    #: Id and reason of the items that did not fit the budget
    skipped: tuple[tuple[str, Finding], ...] = ()
    at_random: bool = False  #: Whether the items were drawn at random
    #: Worked turns that are shown beside the items; their tokens are extra
    demonstrations: tuple[ShownDemonstration, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of the items that are shown."""
        return sum(one.tokens for one in self.found)

    def to_event(self) -> dict[str, Any]:
        """Return the data of a ``memory_retrieved`` event; tokens are of all that is shown."""
        return {
            "query": self.query,
            "tokens": self.tokens + sum(one.tokens for one in self.demonstrations),
            "at_random": self.at_random,
            "items": [_shown(one) for one in self.found],
            "demonstrations": [one.to_event() for one in self.demonstrations],
            "filtered_out": _reasons(self.filtered_out),
            "skipped": _reasons(self.skipped),
        }


def retrieve(
    bank: MemoryBank,
    question: str,
    *,
    leakage: LeakageFilter,
    k: int = 3,
    tokens: int = 600,
    kinds: frozenset[ItemSource] | None = None,
    scope: Scope = Scope(),  # noqa: B008
    ranking: Ranking = Ranking(),
    examples: bool = False,
    linker: EntityLinker | None = None,
    own: Callable[[str, Sequence[MemoryItem]], Iterable[MemoryItem]] | None = None,
) -> Retrieval:
    """Return the items that a question is shown.

    The bank ranks by text, without a threshold; the leakage filter removes what must not be
    shown; the rest is ranked again by scope, evidence, query form and diversity (maximal marginal
    relevance, Carbonell and Goldstein 1998), and packed whole into the budget.

    Args:
        question: A question or a few words.
        leakage: What must not be shown.
        k: Maximum number of items.
        tokens: Maximum number of tokens of all items together.
        kinds: Sources to take items from; None for all.
        scope: The pack and endpoint of the trial.
        examples: Whether items with a question and a query are shown as few-shot examples.
        linker: Finds the entities that a question names. Items are then searched for by the
            question with the classes of its entities in place of their names, ranked by these
            classes too, and shown as few-shot examples with their entities linked.
        own: Chooses, instead, from the question and all items that may be shown, the best first.
    """
    text = question if linker is None else linker.generalized(question)
    text = without_identifiers(without_quoted(text))
    allowed: list[tuple[MemoryItem, float]] = []
    filtered_out: list[tuple[str, Finding]] = []
    # Search examples separately, since the many similar lessons would crowd them out.
    for with_example in () if own else (True, False) if examples else (None,):
        matches, findings = _matching(bank, text, k, leakage, kinds, with_example)
        allowed += matches
        filtered_out += findings
    ranked = _ranked(allowed, question, scope, ranking, linker)
    if own is not None:
        pool = [item for item in bank.items() if kinds is None or item.src in kinds]
        found = {item.id: leakage.finding(item) for item in pool}
        filtered_out = [(name, finding) for name, finding in found.items() if finding]
        chosen: Any = own(question, [item for item in pool if found[item.id] is None])
        chosen = list(chosen) if isinstance(chosen, Iterable) else [chosen]
        if not all(isinstance(i, MemoryItem) and found.get(i.id, i) is None for i in chosen):
            what = "the retriever returned something else than items that it was given"
            raise UsageError(what, code="wrong-type")
        ranked = [(item, 1 / place) for place, item in enumerate(chosen, 1)]
    candidates = [FoundItem.of(i, score, examples=examples, linker=linker) for i, score in ranked]
    packed = (pack_examples if examples else pack)(candidates, items=k, tokens=tokens)
    return Retrieval(question, packed.chosen, tuple(filtered_out), packed.skipped)


def retrieve_random(
    bank: MemoryBank,
    question: str,
    *,
    tokens: int,
    leakage: LeakageFilter,
    seed: int = 0,
    k: int | None = None,
    kinds: frozenset[ItemSource] | None = None,
    examples: bool = False,
    example_tokens: int | None = None,
    linker: EntityLinker | None = None,
) -> Retrieval:
    """Return random items, as a control with as many tokens as a search returns.

    The draw depends on task, seed and item ids only, never on the question, so an item may also
    be one of the best matches by chance. Whole items are drawn while they fit, so the tokens fall
    short by less than the smallest item left.

    `leakage`, `kinds`, `examples` and `linker` are as in `retrieve`.
    """
    pool = [item for item in bank.items() if kinds is None or item.src in kinds]
    drawn: list[FoundItem] = []
    filtered_out: list[tuple[str, Finding]] = []
    # By whether it is an example; without `example_tokens` all share the second budget.
    left = {True: example_tokens or 0, False: tokens - (example_tokens or 0)}
    for item in sorted(pool, key=lambda i: (shuffle_key(seed, f"{leakage.task} {i.id}"), i.id)):
        one = FoundItem.of(item, 0.0, examples=examples)
        kind = example_tokens is not None and one.example is not None
        if one.tokens > left[kind] or len(drawn) == k:
            continue
        if linker is not None:
            # Linking makes it longer and asks the endpoint, so link only what may fit.
            one = FoundItem.of(item, 0.0, examples=examples, linker=linker)
            if one.tokens > left[kind]:
                continue
        if finding := leakage.finding(item):
            filtered_out.append((item.id, finding))
        else:
            drawn.append(one)
            left[kind] -= one.tokens
    return Retrieval(question, tuple(drawn), tuple(filtered_out), at_random=True)


def _matching(
    bank: MemoryBank,
    text: str,
    k: int,
    leakage: LeakageFilter,
    kinds: frozenset[ItemSource] | None,
    with_example: bool | None,
) -> tuple[list[tuple[MemoryItem, float]], list[tuple[str, Finding]]]:
    """Return the best matches with their scores, and those that the leakage filter removes."""

    def keep(item: MemoryItem) -> bool:
        wanted = with_example is None or (example_of(item) is not None) == with_example
        return wanted and (kinds is None or item.src in kinds)

    depth = max(LEAST_DEPTH, DEPTH * k)
    while True:
        matches = bank.match(text, depth, keep=keep)
        checked = [(item, match.score, leakage.finding(item)) for item, match in matches]
        allowed = [(item, score) for item, score, finding in checked if finding is None]
        # Composed items are many, and must not crowd out those that they are made of.
        single = sum(item.src != "composed" for item, _ in allowed)
        if single >= max(LEAST_DEPTH // 2, 2 * k) or len(matches) < depth:
            break
        depth *= 4
    return allowed, [(item.id, finding) for item, _, finding in checked if finding is not None]


def without_identifiers(question: str) -> str:
    """Return a question without the words that contain a digit, unless there are no others."""
    # Identifiers would draw the search to other questions about the same thing.
    return " ".join(_IDENTIFIER.sub(" ", question).split()) or question


@lru_cache(maxsize=4096)
def pattern_form(pattern: str) -> Form | None:
    """Return the form of an item's query, slots included; None if it has no query."""
    try:
        return outline(SLOT.sub("1", pattern)).form
    except QueryError:
        return None


def _ranked(
    allowed: Iterable[tuple[MemoryItem, float]],
    question: str,
    scope: Scope,
    ranking: Ranking,
    linker: EntityLinker | None,
) -> list[tuple[MemoryItem, float]]:
    """Return items by their score minus repetition; the returned scores are without that."""
    form: Form = next((f for f, sign in _ASKS_FOR.items() if sign.search(question)), "SELECT")
    asked = linker.kinds(without_quoted(question)) if linker else frozenset()
    left = []
    for item, score in allowed:
        if linker is not None:
            named = linker.kinds(without_quoted(item.question))
            score += ranking.entities * (_overlap(asked, named) if asked and named else 0.5)
        of = item.counters
        # Paired evidence only: an easy task succeeds with any item.
        helped = (of.helped + PRIOR) / (of.helped + of.hurt + 2 * PRIOR) - 0.5
        score += ranking.scope * _fit(item.scope, scope)
        score += ranking.evidence * helped
        score -= ranking.composed * (item.src == "composed")
        score -= ranking.form * (pattern_form(item.pattern) not in (form, None))
        said = _WORDS.findall(f"{item.title} {item.description} {item.pattern}".casefold())
        left.append((item, score, frozenset(said)))
    ranked: list[tuple[MemoryItem, float]] = []
    repeated = {item.id: 0.0 for item, _, _ in left}

    def place(one: tuple[MemoryItem, float, frozenset[str]]) -> tuple[float, str]:
        return -round(one[1] - ranking.repetition * repeated[one[0].id], 9), one[0].id

    while left:
        best = min(left, key=place)
        left.remove(best)
        ranked.append((best[0], best[1]))
        for item, _, words in left:
            repeated[item.id] = max(repeated[item.id], _overlap(best[2], words))
    return ranked


def _fit(of: Scope, wanted: Scope) -> float:
    """Return 1 if an item is of the wanted scope, -1 if of another, 0 if unknown."""
    fits = []
    if of.pack and wanted.pack:
        fits.append(of.pack == wanted.pack)
    if of.endpoint and wanted.endpoint:
        fits.append(same_address(of.endpoint, wanted.endpoint))
    return 0.0 if not fits else 1.0 if all(fits) else -1.0


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _shown(found: FoundItem) -> dict[str, Any]:
    item = found.item
    origin = item.provenance
    data = {"id": item.id, "title": item.title, "src": item.src, "score": round(found.score, 4)}
    data |= {"text": found.text, "task": origin.task, "trial": origin.trial}
    if found.example is not None and found.example.question != item.question:
        # Linked entities interrupt a question, so an audit would not recognize it.
        data["question"] = item.question
    return data


def _reasons(pairs: Sequence[tuple[str, Finding]]) -> list[dict[str, str]]:
    return [{"id": one, "code": why.code, "reason": str(why)} for one, why in pairs]


# -- items as they are shown, in a budget -------------------------------------------------


def example_of(item: MemoryItem) -> FewShotExample | None:
    """Return an item's question and query as a few-shot example; None if it has none."""
    query = item.pattern if item.src == "gold" else item.query
    return FewShotExample(item.question, query) if item.question and query else None


def item_text(item: MemoryItem) -> str:
    """Return an item as a prompt shows it: kind and title, when it applies, what to do, pattern."""
    title = item.title.strip()
    # A description is the question with its constants abstracted; an example has its own.
    when = "" if item.src == "gold" and item.question else item.description
    question = "" if when else item.question
    parts = {title: f"{_HEADS[item.src]}: {title}"}
    for head, text in (("When: ", when), ("Question: ", question), ("", item.content)):
        parts.setdefault(text.strip(), head + text.strip())
    lines = [line for text, line in parts.items() if text]
    pattern = item.pattern.strip()
    if pattern and pattern not in item.content:
        lines += ["Query:" if item.src == "gold" else "Pattern:", pattern]
    return "\n".join(lines)


def pack(ranked: Sequence[FoundItem], *, items: int, tokens: int) -> Packed:
    """Choose whole items for a budget, so that each family (`FAMILIES`) keeps a share."""
    families: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(ranked):
        families[FAMILIES[found.item.src]].append(place)
    shares: list[tuple[int, list[int]]] = []
    reserved = 0
    for places in families.values():
        least = min(ranked[place].tokens for place in places)
        if len(shares) < items and reserved + least <= tokens:
            shares.append((least, places))
            reserved += least
    chosen: set[int] = set()
    left = tokens
    for least, places in shares:
        reserved -= least
        best = next(place for place in places if ranked[place].tokens <= left - reserved)
        chosen.add(best)
        left -= ranked[best].tokens
    for place, found in enumerate(ranked):
        if len(chosen) < items and place not in chosen and found.tokens <= left:
            chosen.add(place)
            left -= found.tokens
    return _packed(ranked, chosen, items, tokens)


def pack_examples(ranked: Sequence[FoundItem], *, items: int, tokens: int) -> Packed:
    """Choose whole items for an agent that takes few-shot examples as turns."""
    shown: set[str] = set()
    chosen: set[int] = set()
    left = tokens
    for is_example in (True, False):
        room = items if is_example else max(items, len(chosen) + 1)
        for place, found in enumerate(ranked):
            wanted = (found.example is not None) == is_example and _query(found) not in shown
            if wanted and len(chosen) < room and found.tokens <= left:
                chosen.add(place)
                left -= found.tokens
                shown |= {_query(found)} - {""}
    # An item whose query is shown by another is not missing.
    repeated = {n for n, found in enumerate(ranked) if _query(found) in shown}
    return _packed(ranked, chosen, items, tokens, repeated)


def _query(found: FoundItem) -> str:
    """Return the query of an example with normalized white space; empty without one."""
    return "" if found.example is None else " ".join(found.example.query.split())


def _packed(
    ranked: Sequence[FoundItem],
    chosen: set[int],
    items: int,
    tokens: int,
    ignored: Collection[int] = (),
) -> Packed:
    """Return the chosen items, and those that ranked as high and did not fit, but for `ignored`."""
    left = tokens - sum(ranked[place].tokens for place in chosen)
    last = max(chosen, default=-1) if len(chosen) >= items else len(ranked)
    skipped = []
    for place, found in enumerate(ranked[: last + 1]):
        if found.tokens > left and place not in chosen and place not in ignored:
            whole = f"the {left} left of the" if found.tokens <= tokens else "the whole"
            what = f"{found.tokens} tokens, more than {whole} budget of {tokens}"
            fields = {"tokens": found.tokens, "budget": tokens, "left": left}
            skipped.append((found.item.id, Finding("over-budget", what, fields=fields)))
    return Packed(tuple(ranked[place] for place in sorted(chosen)), tuple(skipped[:MOST_SKIPPED]))
