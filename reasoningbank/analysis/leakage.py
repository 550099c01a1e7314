"""Audit of a run's records for leakage: no trial may be shown its own task's or a held-out answer.

The audit reads records only: trials with what memory showed them, bank snapshots, stream steps,
compiled programs and the manifest. It shares no code with the leakage filter of a running
experiment, so that it does not repeat the filter's mistakes.
"""

from __future__ import annotations

import functools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from reasoningbank.analysis.memory import MemoryRecords, Origin, code_of, filtered_out
from reasoningbank.analysis.scores import RunPlan
from reasoningbank.experiment import TrialRecord
from reasoningbank.findings import counted
from reasoningbank.tools.returns import MEMORY_TOOL_NAMES
from reasoningbank.trajectory import Trajectory

#: own task, own group: the item is based on an attempt at the trial's task, or its group.
#: evaluation: it is based on a held-out task, or on the group of one; a program was compiled on it.
#: gold text: the shown text contains the gold query of the trial's own or of a held-out task.
#: question text: the shown text contains the question of the trial's own or of a held-out task.
#: gold in prompt: the first prompt contains the task's own gold query, which no earlier attempt of
#: the trial wrote.
#: not recorded: a memory tool returned the item to the agent, and no retrieval recorded it.
#: bank changed: trials of one frozen evaluation saw different banks.
#: other bank: they saw another bank than the last of the arm's stream, or the few-shot bank.
LeakKind = Literal[
    "own task", "own group", "evaluation", "gold text", "question text", "gold in prompt",
    "not recorded", "bank changed", "other bank",
]  # fmt: skip

#: Least number of words of a gold query, and of a question, that is searched for.
_LEAST_GOLD, _LEAST_QUESTION = 3, 5

_DECLARATION = re.compile(r"(?im)\bprefix\s+[\w.-]*:\s*<[^>]*>|\bbase\s*<[^>]*>")
_IRI = re.compile(r"<([^<>\s]*?)([^<>\s/#:]*)>")
_NAME = re.compile(r"[\w.-]*:([\w.-]+)")
_VARIABLE = re.compile(r"[?$]\w+")
#: What can follow a query's last brace and makes it another query.
_CONTINUES = r"(?!(?:group|having|order|limit|offset|values) )"
_SKIPPED = frozenset({"where", "a", "type"})
#: Between the namespace of an IRI, whose characters other than letters and digits are ``_``, and
#: its local name.
_OF = "__"
_NAMESPACE = re.compile(rf"\b\w+{_OF}")


@dataclass(frozen=True)
class Leak:
    """One thing that a trial should not have been shown."""

    #: The trial, as ``arm/task.seed``; of a sampled one, any of its attempts. Or what was compiled
    #: for an arm, as ``compiled/arm.seed``
    trial: str
    kind: LeakKind  #: The kind of leak
    item: str = ""  #: The memory item, if any
    detail: str = ""  #: The evidence: a task, a group, or a snapshot

    def sentence(self) -> str:
        """Return it in one line."""
        item = f", item {self.item}" if self.item else ""
        return f"{self.trial}: {self.kind}{item}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class Leakage:
    """The result of the audit of a run."""

    trials: int = 0  #: Trials read
    with_memory: int = 0  #: Trials with a memory: a retrieval or a snapshot is on record
    #: Items and demonstrations shown, once per attempt and retrieval; all were checked.
    showings: int = 0
    items: int = 0  #: Different items among them
    prompts: int = 0  #: First prompts of attempts that were searched for the task's own gold query
    programs: int = 0  #: Compiled programs that were searched for held-out questions and golds
    evaluation: int = 0  #: Held-out tasks
    #: Items that the leakage filter removed, once per retrieval, by reason code.
    filtered_out: Mapping[str, int] = field(default_factory=dict)
    #: Showings of items that the trial's snapshot lacks or that have no origin, except seeds: only
    #: the retrieval's task and the text could be checked.
    unproven: int = 0
    unread: int = 0  #: Snapshots and steps that cannot be read
    leaks: tuple[Leak, ...] = ()  #: The leaks

    def sentence(self) -> str:
        """Return what was checked and the result in one line."""
        prompts = f"{counted(self.prompts, 'first prompt')} searched for the gold query"
        if self.programs:
            prompts += f"; {counted(self.programs, 'compiled program')} for held-out tasks"
        if not self.with_memory:
            parts = [f"no memory in any of {counted(self.trials, 'trial')}", prompts]
        else:
            reasons = ", ".join(f"{n} {reason}" for reason, n in self.filtered_out.items())
            parts = [
                f"{counted(self.showings, 'showing')} of {counted(self.items, 'item')} checked in "
                f"{self.with_memory} of {counted(self.trials, 'trial')} (the others have no "
                f"memory) against {counted(self.evaluation, 'held-out task')}",
                prompts,
                f"removed by the leakage filter: {reasons or 'nothing'}",
            ]
        if self.unproven:
            parts.append(f"{self.unproven} of unproven origin")
        if self.unread:
            parts.append(f"{counted(self.unread, 'file')} of memory cannot be read")
        sound = "no leak in what can be read" if self.unread else "no leak"
        return f"{'; '.join(parts)}: {counted(len(self.leaks), 'leak') if self.leaks else sound}"

    @property
    def proven(self) -> bool:
        """Whether nothing leaked and everything relevant could be read."""
        return not self.leaks and not self.unread

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {**asdict(self), "sentence": self.sentence()}


class _Showing(NamedTuple):
    """One item, or its demonstration, shown to one trial."""

    trial: str
    task: str
    group: str
    bank: str
    item: str
    src: str
    origin: Origin
    words: str


class _TaskText(NamedTuple):
    """The words of a task's gold query and question; empty if they are too few to search for."""

    gold: str
    question: str


class LeakageAudit:
    """Takes the trials of a run one at a time and reports what leaked."""

    def __init__(
        self, manifest: Mapping[str, Any] | None = None, memory: MemoryRecords | None = None
    ) -> None:
        self._manifest, self._plan = manifest or {}, RunPlan(manifest)
        self._memory = memory or MemoryRecords()
        # An item names its pack by the name of its folder, wherever that is.
        self._corpus = PurePath(str(self._plan.settings.get("pack") or "")).name
        self._held_out = set(map(str, self._manifest.get("tasks") or ()))
        self._group_of: dict[str, str] = {}
        self._texts: dict[str, _TaskText] = {}
        self._shown: list[_Showing] = []
        self._filtered_out: Counter[str] = Counter()
        self._banks: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
        self._leaks: list[Leak] = []
        self._trials = self._with_memory = self._prompts = 0

    def add(self, record: TrialRecord) -> None:
        """Read a trial; the record itself is not kept."""
        key = record.key
        self._trials += 1
        attempts = _attempts(record)
        retrieved = any(attempt.trajectory.of("memory_retrieved") for attempt in attempts)
        self._with_memory += bool(retrieved or record.memory)
        self._group_of.setdefault(key.task, record.group)
        if key.task not in self._texts:
            gold, question = words_of(record.gold), words_of(record.question)
            long = sum(word not in "{}" for word in gold.split()) >= _LEAST_GOLD
            asked = len(question.split()) >= _LEAST_QUESTION
            self._texts[key.task] = _TaskText(gold if long else "", question if asked else "")
        if record.step is None:
            self._held_out.add(key.task)
            if record.memory:
                self._banks[key.arm, key.seed].setdefault(record.memory, str(key))
        written: list[str] = []
        for attempt in attempts:
            self._read_shown(attempt)
            self._search_prompt(attempt, written)
            written.append(words_of(attempt.sparql or ""))

    def finish(self) -> Leakage:
        """Check every showing against the tasks that all trials together hold out."""
        groups = {self._group_of.get(task, "") for task in self._held_out} - {""}
        held_out = {t: text for t, text in self._texts.items() if t in self._held_out}
        unproven = 0
        found: dict[str, list[tuple[LeakKind, str]]] = {}
        for shown in self._shown:
            known = self._memory.origins.get((shown.bank, shown.item))
            proven = shown.src == "seed" or (known and any(origin.task for origin in known))
            unproven += not proven
            self._leaks += self._by_origin(shown, known or (), groups)
            if shown.words not in found:
                found[shown.words] = list(_texts_in(shown.words, held_out))
            own = _texts_in(shown.words, {shown.task: self._texts[shown.task]})
            self._leaks += (
                Leak(shown.trial, kind, shown.item, f"of {task}")
                for kind, task in (*found[shown.words], *own)
            )
        self._leaks += self._wrong_banks()
        for program in self._memory.programs:
            self._leaks += self._in_program(program, held_out)
        return Leakage(
            trials=self._trials,
            with_memory=self._with_memory,
            showings=len(self._shown),
            items=len({shown.item for shown in self._shown}),
            prompts=self._prompts,
            programs=len(self._memory.programs),
            evaluation=len(self._held_out),
            filtered_out=dict(self._filtered_out.most_common()),
            unproven=unproven,
            unread=len(self._memory.damaged),
            leaks=tuple(dict.fromkeys(self._leaks)),
        )

    def _by_origin(
        self, shown: _Showing, known: Iterable[Origin], groups: set[str]
    ) -> Iterator[Leak]:
        origins = set()
        for origin in (shown.origin, *known):
            # Only the run's trials may know the group of a task of this pack.
            own = origin.corpus.casefold() == self._corpus.casefold()
            found = self._group_of.get(origin.task, "") if own and origin.task else ""
            origins.add(origin._replace(group=origin.group or found))
        for origin in sorted(origins):
            packs = origin.corpus.casefold(), self._corpus.casefold()
            # Task ids of another pack mean nothing here; groups are compared all the same.
            task = origin.task if packs[0] == packs[1] or not all(packs) else ""
            if task == shown.task:
                yield Leak(shown.trial, "own task", shown.item, task)
            elif origin.group and origin.group == shown.group:
                yield Leak(shown.trial, "own group", shown.item, f"{origin.task}, {origin.group}")
            elif task in self._held_out or origin.group in groups:
                yield Leak(shown.trial, "evaluation", shown.item, origin.task)

    def _in_program(
        self, program: Mapping[str, Any], held_out: Mapping[str, _TaskText]
    ) -> Iterator[Leak]:
        """Yield what a compiled program holds of held-out tasks, in instructions or examples."""
        name = f"compiled/{program.get('arm')}.{program.get('seed')}"
        for task in self._held_out.intersection(program.get("tasks") or ()):
            yield Leak(name, "evaluation", detail=task)
        for parts in (program.get("programs") or {}).values():
            for part, made in parts.items():
                demos = ("\n".join(map(str, demo.values())) for demo in made.get("demos") or ())
                for text in (str(made.get("instructions") or ""), *demos):
                    for kind, task in _texts_in(_searchable(text), held_out):
                        yield Leak(name, kind, part, f"of {task}")

    def _wrong_banks(self) -> Iterator[Leak]:
        """Yield frozen evaluations that did not see the bank that they evaluate."""
        steps = len(self._manifest.get("stream") or ())
        right: dict[tuple[str, int | None], str] = {
            (stream.arm, stream.permutation): stream.steps[-1].after
            for stream in self._memory.streams
            if steps and len(stream.steps) == steps
        }
        right |= {(arm, None): made.snapshot for arm, made in self._memory.few_shot.items()}
        for (arm, seed), banks in self._banks.items():
            first, *others = banks
            for bank in others:
                yield Leak(banks[bank], "bank changed", detail=f"{first}, then {bank}")
            owner = self._plan.bank_arms.get(arm, arm)
            wanted = right.get((owner, seed)) or right.get((owner, None))
            for bank, trial in banks.items():
                if wanted and bank not in (wanted, self._memory.composed.get(wanted)):
                    detail = f"{bank}, and {owner} has {wanted}"
                    yield Leak(trial, "other bank", detail=detail)

    def _read_shown(self, attempt: TrialRecord) -> None:
        known: set[str] = set()
        trajectory = attempt.trajectory
        for event in trajectory.of("memory_retrieved"):
            data = trajectory.resolve(event.data)
            self._filtered_out.update(map(code_of, filtered_out(data)))
            known.update(str(item.get("id", "")) for item in data.get("items") or ())
            for item in (*(data.get("items") or ()), *(data.get("demonstrations") or ())):
                self._shown.append(self._one(attempt, item))
        for item in _returned_by_tools(trajectory):
            if item not in known:
                self._leaks.append(Leak(str(attempt.key), "not recorded", item))

    def _one(self, attempt: TrialRecord, item: Mapping[str, Any]) -> _Showing:
        # The question as it was before entity linking added IRIs to its words.
        text = "\n".join(str(item.get(name) or "") for name in ("text", "question"))
        # The same item is shown many times: its words are kept once.
        words = sys.intern(_searchable(text))
        task = str(item.get("task") or "")
        origin = Origin(task, str(item.get("group") or ""), self._corpus if task else "")
        return _Showing(
            str(attempt.key), attempt.key.task, attempt.group, attempt.memory,
            str(item.get("id", "")), str(item.get("src") or ""), origin, words,
        )  # fmt: skip

    def _search_prompt(self, attempt: TrialRecord, written: Iterable[str]) -> None:
        # Later prompts contain what the model itself wrote, which may be the gold query; the first
        # prompt of a refinement contains what earlier attempts wrote.
        first = next(iter(attempt.trajectory.of("lm_call")), None)
        gold = self._texts[attempt.key.task].gold
        if first is None or not gold:
            return
        self._prompts += 1
        messages = attempt.trajectory.resolve(first.data.get("messages")) or ()
        # One by one: most messages of a run are those of its other trials.
        parts = [_searchable(str(one.get("content") or "")).strip() for one in messages]
        words = f" {' '.join(parts)} "
        for own in written:
            if _local(gold) in _local(own):
                words = words.replace(own, " | ")
        if contains_query(words, gold):
            self._leaks.append(Leak(str(attempt.key), "gold in prompt"))


@functools.lru_cache(maxsize=4096)
def words_of(text: str) -> str:
    """Return the words of a query, or of a text with queries, in the form that is compared."""
    # A turn's code may contain a query in a one-line string.
    text = re.sub(r"\\[nrt]", "\n", text)
    text = re.sub(r"(?m)(?:^|\s)#[^\r\n]*", " ", text)
    text = _IRI.sub(_one_word, _DECLARATION.sub(" ", text))
    text = _VARIABLE.sub(" ", _NAME.sub(r" \1 ", text))
    found = (word for word in re.findall(r"\w+|[{}]", text.lower()) if word not in _SKIPPED)
    return f" {' '.join(found)} "


def _one_word(iri: re.Match[str]) -> str:
    return f" {re.sub(r'[^a-zA-Z0-9]+', '_', iri[1])}{_OF}{iri[2]} "


def contains_query(words: str, gold: str) -> bool:
    """Return whether a text contains a gold query as a whole query; both as `words_of` returns.

    A name with a prefix is compared by its local name, since a text need not declare the prefix.
    """
    if _local(gold) not in _local(words):
        return False
    parts = (re.escape(word).rpartition(_OF) for word in gold.split())
    same = (
        f"(?:{space}{_OF})?{local}" if of else rf"(?:\w+{_OF})?{local}"
        for space, of, local in parts
    )
    return re.search(f" {' '.join(same)} {_CONTINUES}", words) is not None


@functools.lru_cache(maxsize=4096)
def _local(words: str) -> str:
    """Return words without the namespaces of IRIs."""
    return _NAMESPACE.sub("", words)


def _searchable(text: str) -> str:
    words = words_of(text)
    if "{{" not in text:
        return words
    # A turn's code may contain a query in an f-string, whose braces are doubled.
    return f"{words}|{words_of(text.replace('{{', '{').replace('}}', '}'))}"


def _texts_in(
    words: str, texts: Mapping[str, _TaskText]
) -> Iterator[tuple[Literal["gold text", "question text"], str]]:
    for task, text in texts.items():
        if text.gold and contains_query(words, text.gold):
            yield "gold text", task
        if text.question and text.question in words:
            yield "question text", task


def _attempts(record: TrialRecord) -> list[TrialRecord]:
    """Return all attempts of a trial, in the order they were made."""
    numbers = [int(one.get("number") or 0) for one in record.rollouts]
    # The chosen attempt has the missing number.
    chosen = next(number for number in range(len(numbers) + 1) if number not in numbers)
    made = zip((chosen, *numbers), record.attempts(), strict=True)
    return [attempt for _, attempt in sorted(made, key=itemgetter(0))]


def _returned_by_tools(trajectory: Trajectory) -> Iterator[str]:
    """Yield the items that memory tools returned to the agent."""
    asked = {e.index for e in trajectory.of("tool_call") if e.data.get("tool") in MEMORY_TOOL_NAMES}
    for event in trajectory.of("tool_result"):
        if event.parent in asked:
            yield from _ids(trajectory.resolve(event.data).get("result"))


def _ids(result: Any) -> Iterator[str]:
    if isinstance(result, Mapping):
        if isinstance(result.get("id"), str):
            yield result["id"]
        result = result.values()
    elif not isinstance(result, (list, tuple)):
        return
    for value in result:
        yield from _ids(value)
