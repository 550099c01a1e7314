"""Proof from the records that no trial was shown what it should have found by itself.

The audit reads records only: the trials with what memory showed them, the snapshots of the banks,
the steps of the streams, and the manifest. It shares no code with the guard that withholds items
while a run goes on, so that a mistake of the guard's is not its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from reasoningbank.analysis.frozen_banks import wrong_banks
from reasoningbank.analysis.leak import Leak, Leakage, LeakKind
from reasoningbank.analysis.leaked_text import TaskText, holds, searched, texts_in, words_of
from reasoningbank.analysis.memory_records import MemoryRecords, Origin
from reasoningbank.experiment import TrialRecord
from reasoningbank.trajectory import Trajectory

__all__ = ["LeakageAudit"]

_MEMORY_TOOLS = frozenset({"memory_search", "memory_get"})


class _Shown(NamedTuple):
    """One item, or the demonstration of one, shown to one trial."""

    trial: str
    task: str
    group: str
    corpus: str
    bank: str
    item: str
    src: str
    origin: Origin
    words: str


class LeakageAudit:
    """Takes the trials of a run one at a time, and tells at the end what leaked.

    Args:
        manifest: The run's manifest. Its tasks are held out, whether their trials are on record
            yet or not.
        memory: The run's banks and streams; without them an item's origin is what the retrieval
            says.
    """

    def __init__(
        self, manifest: Mapping[str, Any] | None = None, memory: MemoryRecords | None = None
    ) -> None:
        self._manifest = said = manifest or {}
        self._memory = memory or MemoryRecords()
        pack = str((said.get("experiment") or {}).get("pack") or "")
        # An item names its pack by the folder's name, wherever that lies.
        self._corpus = PurePath(pack).name
        self._held_out = set(map(str, said.get("tasks") or ()))
        self._group_of: dict[str, str] = {}
        self._texts: dict[str, TaskText] = {}
        self._words: dict[str, str] = {}
        self._shown: list[_Shown] = []
        self._withheld: Counter[str] = Counter()
        self._banks: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
        self._leaks: list[Leak] = []
        self._trials = self._with_memory = self._prompts = 0

    def add(self, record: TrialRecord) -> None:
        """Take what is needed of a trial; the record itself is not kept."""
        key = record.key
        name = f"{key.arm}/{key.task}.{key.seed}"
        self._trials += 1
        attempts = _attempts(record)
        retrieved = any(trajectory.of("memory_retrieved") for _, trajectory in attempts)
        self._with_memory += bool(retrieved or record.memory)
        self._group_of.setdefault(key.task, record.group)
        if key.task not in self._texts:
            self._texts[key.task] = TaskText.of(record.gold, record.question)
        if record.step is None:
            self._held_out.add(key.task)
            if record.memory:
                self._banks[key.arm, key.seed].setdefault(record.memory, name)
        written: list[str] = []
        for sparql, trajectory in attempts:
            self._search_shown(record, name, trajectory)
            self._search_prompt(record, name, trajectory, written)
            written.append(words_of(sparql))

    def finish(self) -> Leakage:
        """Check every showing against what all trials together say is held out."""
        groups = {self._group_of.get(task, "") for task in self._held_out} - {""}
        held_out = {t: text for t, text in self._texts.items() if t in self._held_out}
        unproven = 0
        found: dict[str, list[tuple[LeakKind, str]]] = {}
        for shown in self._shown:
            known = self._memory.origins.get((shown.bank, shown.item))
            proven = shown.src == "seed" or (known and any(origin.task for origin in known))
            unproven += not proven
            origins = {self._grouped(one) for one in (shown.origin, *(known or ()))}
            self._leaks += _by_origin(shown, origins, self._held_out, groups)
            if shown.words not in found:
                found[shown.words] = list(texts_in(shown.words, held_out))
            own = texts_in(shown.words, {shown.task: self._texts[shown.task]})
            self._leaks += (
                Leak(shown.trial, kind, shown.item, f"of {task}")
                for kind, task in (*found[shown.words], *own)
            )
        self._leaks += wrong_banks(self._banks, self._manifest, self._memory)
        return Leakage(
            trials=self._trials,
            with_memory=self._with_memory,
            showings=len(self._shown),
            items=len({shown.item for shown in self._shown}),
            prompts=self._prompts,
            evaluation=len(self._held_out),
            withheld=dict(self._withheld.most_common()),
            unproven=unproven,
            unread=len(self._memory.damaged) + len(self._memory.damaged_steps),
            leaks=tuple(dict.fromkeys(self._leaks)),
        )

    def _grouped(self, origin: Origin) -> Origin:
        """Return an origin with its task's group, where only the run's trials tell that."""
        own = origin.corpus.casefold() == self._corpus.casefold()
        if origin.group or not origin.task or not own:
            return origin
        return origin._replace(group=self._group_of.get(origin.task, ""))

    def _one(self, record: TrialRecord, name: str, item: Mapping[str, Any]) -> _Shown:
        # A question whose resources were written behind its words is told as it was, too.
        words = searched("\n".join(str(item.get(name) or "") for name in ("text", "question")))
        # The same item is shown again and again: its words are kept once.
        words = self._words.setdefault(words, words)
        task = str(item.get("task") or "")
        origin = Origin(task, str(item.get("group") or ""), self._corpus if task else "")
        return _Shown(
            name, record.key.task, record.group, self._corpus, record.memory,
            str(item.get("id", "")), str(item.get("src") or ""), origin, words,
        )  # fmt: skip

    def _search_shown(self, record: TrialRecord, name: str, trajectory: Trajectory) -> None:
        told: set[str] = set()
        for event in trajectory.of("memory_retrieved"):
            data = trajectory.resolve(event.data)
            self._withheld.update(_reasons(data.get("withheld")))
            for item in data.get("items") or ():
                told.add(str(item.get("id", "")))
                self._shown.append(self._one(record, name, item))
            for turns in data.get("demonstrations") or ():
                self._shown.append(self._one(record, name, turns))
        for given in _given_by_tools(trajectory):
            if given not in told:
                self._leaks.append(Leak(name, "not recorded", given))

    def _search_prompt(
        self, record: TrialRecord, name: str, trajectory: Trajectory, written: Iterable[str]
    ) -> None:
        # Later prompts hold what the model itself wrote, which may well be the gold; the first of
        # a refinement holds what earlier attempts wrote.
        first = next(iter(trajectory.of("lm_call")), None)
        gold = self._texts[record.key.task].gold
        if first is None or not gold:
            return
        self._prompts += 1
        messages = trajectory.resolve(first.data.get("messages")) or ()
        words = searched("\n".join(str(message.get("content") or "") for message in messages))
        for own in written:
            if gold in own:
                words = words.replace(own, " | ")
        if holds(words, gold):
            self._leaks.append(Leak(name, "gold in prompt"))


def _attempts(record: TrialRecord) -> list[tuple[str, Trajectory]]:
    """Return query and trajectory of all attempts of a trial, in the order they were made."""
    numbers = [int(one.get("number") or 0) for one in record.rollouts]
    # The one that was chosen has the number that is missing.
    chosen = next(number for number in range(len(numbers) + 1) if number not in numbers)
    made = [(chosen, record.sparql, record.trajectory)] + [
        (number, one.get("sparql"), Trajectory.from_json(one["trajectory"]))
        for number, one in zip(numbers, record.rollouts, strict=True)
        if one.get("trajectory")
    ]
    made.sort(key=lambda one: one[0])
    return [(sparql or "", trajectory) for _, sparql, trajectory in made]


def _by_origin(
    shown: _Shown, origins: Iterable[Origin], held_out: set[str], groups: set[str]
) -> Iterator[Leak]:
    for origin in sorted(origins):
        named = origin.corpus.casefold(), shown.corpus.casefold()
        # Ids of another pack's tasks mean nothing here; groups are compared all the same.
        task = origin.task if named[0] == named[1] or not all(named) else ""
        if task == shown.task:
            yield Leak(shown.trial, "own task", shown.item, task)
        elif origin.group and origin.group == shown.group:
            yield Leak(shown.trial, "own group", shown.item, f"{origin.task}, {origin.group}")
        elif task in held_out or origin.group in groups:
            yield Leak(shown.trial, "evaluation", shown.item, origin.task)


def _reasons(withheld: Any) -> Iterator[str]:
    for one in withheld or ():
        said = str(one.get("reason") if isinstance(one, Mapping) else one)
        # What follows the colon names the task in question.
        yield said.partition(":")[0]


def _given_by_tools(trajectory: Trajectory) -> Iterator[str]:
    """Yield the items that memory tools gave to the agent."""
    asked = {e.index for e in trajectory.of("tool_call") if e.data.get("tool") in _MEMORY_TOOLS}
    for event in trajectory.of("tool_result"):
        if event.parent in asked:
            yield from _ids(trajectory.resolve(event.data).get("result"))


def _ids(result: Any) -> Iterator[str]:
    if isinstance(result, Mapping):
        if isinstance(result.get("id"), str):
            yield result["id"]
        for value in result.values():
            if isinstance(value, (Mapping, list, tuple)):
                yield from _ids(value)
    elif isinstance(result, (list, tuple)):
        for one in result:
            yield from _ids(one)
