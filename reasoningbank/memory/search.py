"""Which items a question is shown: text, scope, evidence, form, and no two that say the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reasoningbank.corpus.sampling import shuffle_key
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.asked_form import asked_form, pattern_form
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.examples import example_of, example_text
from reasoningbank.memory.guard import Guard
from reasoningbank.memory.item import Counters, ItemSource, MemoryItem, Scope
from reasoningbank.memory.packing import Found, item_text, pack, pack_answered
from reasoningbank.sparql.endpoint import same_address
from reasoningbank.sparql.tree import Form

if TYPE_CHECKING:
    from reasoningbank.memory.demonstrating import Demonstrated

__all__ = ["Ranking", "Retrieval", "deal_at_random", "retrieve", "without_identifiers"]

#: Candidates that are ranked anew: at least so many, and so many times the items wanted.
LEAST_DEPTH = 20
DEPTH = 5
#: Tasks that would have been helped, and hurt, before anything is known of an item.
PRIOR = 2.0

_WORDS = re.compile(r"\w+")
_IDENTIFIER = re.compile(r"\S*\d\S*")


@dataclass(frozen=True)
class Ranking:
    """How much each reason counts beside the match of the text, which is in [0, 1].

    Attributes:
        scope: Added where pack and endpoint are those of the trial, subtracted where they are
            others.
        evidence: Times the share of tasks that the item helped among those that it changed,
            from -0.5 to 0.5, with a prior of two each way.
        repetition: Times the part of its words that an item shares with one ranked before.
        form: Subtracted where its query is of another form than the question asks for: beside
            CONSTRUCT a small model writes CONSTRUCT, whatever it is asked.
        named: Times the part of the kinds of resources that both questions name, or either does.
            How a name enters a query is what a small model has to see.
    """

    scope: float = 0.1
    evidence: float = 0.2
    repetition: float = 0.1
    form: float = 0.2
    named: float = 0.2


@dataclass(frozen=True)
class Retrieval:
    """What one search gave, and what it kept back.

    Attributes:
        query: What was searched for.
        found: What is shown, the best first.
        withheld: Id and reason of what the leakage guard kept back.
        tokens: Tokens of the items that are shown.
        skipped: Id and reason of what the budget had no room for.
        at_random: Whether the items were dealt at random.
        demonstrations: Worked turns that are shown beside the items; their tokens come on top.
    """

    query: str
    found: tuple[Found, ...] = ()
    withheld: tuple[tuple[str, str], ...] = ()
    tokens: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    at_random: bool = False
    demonstrations: tuple[Demonstrated, ...] = ()

    def to_event(self) -> dict[str, Any]:
        """Return the data of a ``memory_retrieved`` event; its tokens are of all that is shown."""
        return {
            "query": self.query,
            "tokens": self.tokens + sum(one.tokens for one in self.demonstrations),
            "at_random": self.at_random,
            "items": [_shown(found) for found in self.found],
            "demonstrations": [one.to_event() for one in self.demonstrations],
            "withheld": _reasons(self.withheld),
            "skipped": _reasons(self.skipped),
        }


def retrieve(
    bank: MemoryBank,
    question: str,
    *,
    guard: Guard,
    k: int = 3,
    tokens: int = 600,
    kinds: frozenset[ItemSource] | None = None,
    scope: Scope = Scope(),  # noqa: B008
    count: Callable[[str], int] = count_tokens,
    ranking: Ranking = Ranking(),
    examples: bool = False,
    linked: Callable[[str], str] | None = None,
    kinds_named: Callable[[str], frozenset[str]] | None = None,
) -> Retrieval:
    """Return the items that a question is shown.

    The bank ranks by text, without a threshold; what the guard objects to is left out and told;
    the rest is ranked anew by scope, evidence, query form and diversity (maximal marginal
    relevance, Carbonell and Goldstein 1998), and packed whole into the budget.

    Args:
        bank: Where to look.
        question: What to look for: a question or a few words.
        guard: What must not be shown.
        k: Items at most.
        tokens: Tokens at most, of all items together.
        kinds: Sources to take items from; None for all.
        scope: Where the trial is.
        count: Counts the tokens of a text.
        ranking: How much each reason counts.
        examples: Whether items that keep an answered question are shown as that.
        linked: Writes the resources that a question names behind its words, in examples too.
        kinds_named: Tells the classes of the resources that a question names; None leaves
            them out of the ranking.
    """
    text = without_identifiers(question)
    allowed: list[tuple[MemoryItem, float]] = []
    withheld: list[tuple[str, str]] = []
    # Lessons in words are many and near; they must not stand in the way of answered questions.
    for answered in (True, False) if examples else (None,):
        fitting, objections = _matching(bank, text, k, guard, kinds, answered)
        allowed += fitting
        withheld += objections
    if kinds_named is not None:
        wanted = kinds_named(question)
        allowed = [
            (item, score + ranking.named * _alike(wanted, kinds_named(item.question)))
            for item, score in allowed
        ]
    ranked = _ranked(allowed, asked_form(question), scope, ranking)
    candidates = [_found(item, score, count, examples, linked) for item, score in ranked]
    packed = (pack_answered if examples else pack)(candidates, items=k, tokens=tokens)
    used = sum(found.tokens for found in packed.chosen)
    return Retrieval(question, packed.chosen, tuple(withheld), used, packed.skipped)


def deal_at_random(
    bank: MemoryBank,
    question: str,
    *,
    like: int,
    guard: Guard,
    seed: int = 0,
    k: int | None = None,
    kinds: frozenset[ItemSource] | None = None,
    count: Callable[[str], int] = count_tokens,
    examples: bool = False,
    answered: int | None = None,
    linked: Callable[[str], str] | None = None,
) -> Retrieval:
    """Return items that are dealt at random, as a placebo for those that a search gives.

    Each item's place in the deal depends on task, seed and its id alone, never on the question:
    that an item is also one of the best matches is left to chance. Whole items are dealt while
    they fit, so that the tokens fall short of `like` by less than the smallest item left.

    Args:
        bank: Where to deal from.
        question: Recorded, not searched for.
        like: Tokens of what a search would have shown.
        guard: What must not be shown.
        seed: Another seed, another deal.
        k: Items at most; the tokens may then fall short by more.
        answered: Of these tokens, those of answered questions: as many are dealt of these, and the
            others of lessons. None deals of both alike.
        kinds: Sources to take items from; None for all.
        count: Counts the tokens of a text.
        examples: Whether items that keep an answered question are shown as that.
        linked: Writes the resources that a question names behind its words, in examples too.
    """
    pool = [item for item in bank.items() if kinds is None or item.src in kinds]
    pool.sort(key=lambda item: (shuffle_key(seed, f"{guard.task} {item.id}"), item.id))
    found: list[Found] = []
    withheld: list[tuple[str, str]] = []
    # By kind: whether it is an answered question; where these are not apart, all are one kind.
    left = {True: answered or 0, False: like - (answered or 0)}
    for item in pool:
        dealt = _found(item, 0.0, count, examples)
        kind = answered is not None and dealt.example is not None
        if dealt.tokens > left[kind] or len(found) == k:
            continue
        if linked is not None:
            # What is linked is longer; only what may fit is worth asking the endpoint about.
            dealt = _found(item, 0.0, count, examples, linked)
            if dealt.tokens > left[kind]:
                continue
        objection = guard.objection(item)
        if objection:
            withheld.append((item.id, objection))
            continue
        found.append(dealt)
        left[kind] -= dealt.tokens
    used = sum(dealt.tokens for dealt in found)
    return Retrieval(question, tuple(found), tuple(withheld), used, at_random=True)


def _matching(
    bank: MemoryBank,
    text: str,
    k: int,
    guard: Guard,
    kinds: frozenset[ItemSource] | None,
    answered: bool | None,
) -> tuple[list[tuple[MemoryItem, float]], list[tuple[str, str]]]:
    """Return the items that match best, with their scores, and those that the guard keeps back.

    Args:
        answered: Whether items that keep an answered question, or those that keep none; None for
            both.
    """

    def keep(item: MemoryItem) -> bool:
        wanted = answered is None or (example_of(item) is not None) == answered
        return wanted and (kinds is None or item.src in kinds)

    depth = max(LEAST_DEPTH, DEPTH * k)
    while True:
        matches = bank.match(text, depth, keep=keep)
        objections = [(item, match.score, guard.objection(item)) for item, match in matches]
        allowed = [(item, score) for item, score, objection in objections if not objection]
        if len(allowed) >= max(LEAST_DEPTH // 2, 2 * k) or len(matches) < depth:
            break
        depth *= 4
    return allowed, [(item.id, objection) for item, _, objection in objections if objection]


def without_identifiers(question: str) -> str:
    """Return a question without the words that hold a digit, unless there are no others.

    Accessions, EC numbers and codes tell which one is asked about, not what is asked of it; left
    in, they draw the search to whatever else was asked about the same one.

    Examples:
        >>> without_identifiers("What is the mass of P05067?")
        'What is the mass of'
        >>> without_identifiers("P05067")
        'P05067'
    """
    return " ".join(_IDENTIFIER.sub(" ", question).split()) or question


def _ranked(
    allowed: Iterable[tuple[MemoryItem, float]], form: Form, scope: Scope, ranking: Ranking
) -> list[tuple[MemoryItem, float]]:
    """Return items by their score less what they repeat; the scores are without that."""
    left = [
        (
            item,
            text
            + ranking.scope * _fit(item.scope, scope)
            + ranking.evidence * _evidence(item.counters)
            - ranking.form * (pattern_form(item.pattern) not in (form, None)),
            _words(item),
        )
        for item, text in allowed
    ]
    ranked: list[tuple[MemoryItem, float]] = []
    repeated = [0.0] * len(left)
    while left:
        best = min(
            range(len(left)),
            key=lambda at: (
                -round(left[at][1] - ranking.repetition * repeated[at], 9),
                left[at][0].id,
            ),
        )
        item, score, words = left.pop(best)
        repeated.pop(best)
        ranked.append((item, score))
        repeated = [
            max(before, _alike(words, other[2]))
            for before, other in zip(repeated, left, strict=True)
        ]
    return ranked


def _fit(of: Scope, wanted: Scope) -> float:
    """Return 1 where an item is of the wanted place, -1 where of another, 0 where unsaid."""
    fits = []
    if of.pack and wanted.pack:
        fits.append(of.pack == wanted.pack)
    if of.endpoint and wanted.endpoint:
        fits.append(same_address(of.endpoint, wanted.endpoint))
    if not fits:
        return 0.0
    return 1.0 if all(fits) else -1.0


def _evidence(counters: Counters) -> float:
    # Paired evidence alone: an easy task succeeds with any item.
    changed = counters.helped + counters.hurt
    return (counters.helped + PRIOR) / (changed + 2 * PRIOR) - 0.5


def _words(item: MemoryItem) -> frozenset[str]:
    text = f"{item.title} {item.description} {item.pattern}"
    return frozenset(word.casefold() for word in _WORDS.findall(text))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _found(
    item: MemoryItem,
    score: float,
    count: Callable[[str], int],
    examples: bool,
    linked: Callable[[str], str] | None = None,
) -> Found:
    example = example_of(item) if examples else None
    if example is not None and linked is not None:
        example = replace(example, question=linked(example.question))
    text = example_text(example) if example else item_text(item)
    return Found(item, score, text, count(text), example)


def _shown(found: Found) -> dict[str, Any]:
    item = found.item
    data = {
        "id": item.id,
        "title": item.title,
        "src": item.src,
        "score": round(found.score, 4),
        "text": found.text,
        "task": item.provenance.task,
        "trial": item.provenance.trial,
    }
    if found.example is not None and found.example.question != item.question:
        # Linked words break up a question, by which an audit would know it.
        data["question"] = item.question
    return data


def _reasons(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"id": item_id, "reason": reason} for item_id, reason in pairs]
