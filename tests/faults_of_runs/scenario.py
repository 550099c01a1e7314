"""A scenario for faults: a run of six trials, and the parts that can be made to fail."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import trees

from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord

from .commands import Change, Command, Done, begin
from .model import Model
from .proxy import Proxy

__all__ = ["TASKS", "Fault", "Scenario", "Seen", "observe", "third_trial", "write_pack"]

TASKS = 6
#: What differs from run to run.
_PASSING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:…"),
    (re.compile(r"(/[\w.+-]+)+/(?=(run|cache|trees)\b)"), "…/"),
    (re.compile(r"\.[0-9a-f]{16}\."), ".…."),
    (re.compile(r"\d+(\.\d+)? s\b"), "… s"),
    (re.compile(r"line \d+ column \d+ \(char \d+\)"), "line …"),
)
#: Waits that tests can afford.
QUICK = {"backoff_s": 0.05, "stop_after": 3, "write_s": 1}
_EXAMPLE = """\
ex:t{0:03} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
  rdfs:comment "Which plants are higher than {0} m?"@en ;
  sh:select '''SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {0}) }}''' ;
  schema:target <https://trees.example/sparql/> .
"""


def write_pack(folder: Path) -> None:
    """Write a pack of six questions about trees."""
    (folder / "examples").mkdir(parents=True)
    (folder / "pack.toml").write_text(trees.PACK, encoding="utf-8")
    (folder / "trees.ttl").write_text(trees.TREES, encoding="utf-8")
    examples = "".join(_EXAMPLE.format(number) for number in range(TASKS))
    (folder / "examples" / "tasks.ttl").write_text(trees.EXAMPLES + examples, encoding="utf-8")


class Scenario:
    """One run, and all that it needs.

    Args:
        folder: A folder; it is made.
        port: Port of a real endpoint that serves the trees.
        cache: What is shared with other scenarios; by default a cache of its own.
    """

    def __init__(self, folder: Path, port: int, cache: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.model = Model()
        self.endpoint = Proxy(port)
        self.path = folder / "run"
        self.cache = cache or folder / "cache"
        self.repairs = contextlib.ExitStack()
        self.planned = TASKS
        write_pack(folder / "trees")
        self.experiment()

    def close(self) -> None:
        self.repairs.close()
        self.model.close()
        self.endpoint.close()

    def experiment(
        self,
        *,
        agent: str = "direct",
        lm: str = "replay",
        embedded: bool = False,
        retries: dict[str, float] | None = None,
        rest: str = "",
    ) -> None:
        """Write the experiment file; by default one arm that asks the model once a trial.

        Args:
            agent: The arm's agent.
            lm: The model, by OpenAI's name.
            embedded: Whether the run serves the trees by itself.
            retries: Settings of the retries that differ from `QUICK`.
            rest: Further tables.
        """
        lines = ["[retries]", *(f"{k} = {v}" for k, v in {**QUICK, **(retries or {})}.items())]
        if not embedded:
            lines += ["[endpoint]", f'url = "{self.endpoint.url}"', "min_interval_s = 0"]
        arm = f'[[arms]]\nname = "{agent}"\nagent = "{agent}"\nlm = "openai/{lm}"\n'
        text = "\n".join(['name = "small"', 'pack = "trees"', *lines, rest, arm])
        (self.folder / "small.toml").write_text(text, encoding="utf-8")
        self.arm = agent

    def begin(self, *changes: Change, words: tuple[str, ...] = ()) -> Command:
        """Begin the run, or another command."""
        environment = {
            "OPENAI_API_BASE": self.model.url,
            "OPENAI_API_KEY": "replayed",
            "REASONINGBANK_CACHE": str(self.cache),
        }
        words = words or ("run", "small.toml", "--out", "run")
        return begin(words, self.folder, environment, changes)

    def run(self, *changes: Change) -> Done:
        """Run to the end."""
        return self.begin(*changes).wait()

    def command(self, *words: str) -> Done:
        """Run another command to its end."""
        return self.begin(words=words).wait()

    def trial(self, number: int) -> Path:
        """Return the file of a trial."""
        return self.path / TrialKey(self.arm, f"t{number:03}", 0).path

    def finished(self) -> dict[str, str]:
        """Return the hash of each trial's file that is whole and judged, by task."""
        found = {}
        for path in sorted((self.path / "trials").glob("*/*.json")):
            with contextlib.suppress(RecordError):
                record = read(path)
                if record.status != "error" and record.verdict and path == self._place(record):
                    found[record.key.task] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def records(self) -> Iterator[TrialRecord]:
        """Yield the records on disk."""
        return RunFolder(self.path).trials()

    def _place(self, record: TrialRecord) -> Path:
        return self.path / record.key.path


def third_trial(scenario: Scenario, *changes: Change) -> Command:
    """Begin the run and return when the third trial waits for the model."""
    scenario.model.hold(3)
    command = scenario.begin(*changes)
    assert scenario.model.held.wait(120), command.err
    return command


def read(path: Path) -> TrialRecord:
    """Read one trial's file."""
    folder = RunFolder(path.parents[2])
    task, seed = path.name.removesuffix(".json").rsplit(".", 1)
    return folder.read(TrialKey(path.parent.name, task, int(seed)))


@dataclass(frozen=True)
class Fault:
    """What happens to a run, and what must follow.

    Attributes:
        name: What happens, in a few words.
        inject: Makes it happen; returns how the interrupted command ended.
        said: Regular expression that what is said must match; empty where nothing is said.
        status: Exit status of that command.
        kept: Trials finished when it ended.
        again: The command afterwards; the same as before where empty.
    """

    name: str
    inject: Callable[[Scenario], Done] = field(repr=False)
    said: str
    status: int
    kept: int
    again: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What a fault led to.

    Attributes:
        status: Exit status of the interrupted command.
        said: Its message.
        kept: Trials finished when it ended.
        again: Exit status of the command afterwards.
        finished: Trials finished in the end.
        planned: Trials of the run.
        changed: Finished trials whose file changed afterwards.
        asked_again: Calls of the model for trials that were finished before.
        calls: Calls of the model in all.
        err: What both wrote to standard error.
    """

    status: int
    said: str
    kept: int
    again: int
    finished: int
    planned: int
    changed: int
    asked_again: int
    calls: int
    err: str

    @property
    def shown(self) -> str:
        """What was said, without what differs from run to run."""
        text = self.said
        for pattern, instead in _PASSING:
            text = pattern.sub(instead, text)
        return text


def observe(fault: Fault, scenario: Scenario) -> Seen:
    """Inject a fault, repair what was broken, run the command again, and count."""
    first = fault.inject(scenario)
    kept, asked = scenario.finished(), len(scenario.model.asked)
    scenario.repairs.close()
    again = scenario.command(*fault.again) if fault.again else scenario.run()
    finished = scenario.finished()
    done = {int(task.removeprefix("t")) for task in kept}
    return Seen(
        status=first.status,
        said=first.said,
        kept=len(kept),
        again=again.status,
        finished=len(finished),
        planned=scenario.planned,
        changed=sum(finished.get(task) != content for task, content in kept.items()),
        asked_again=sum(task in done for task in scenario.model.asked[asked:]),
        calls=len(scenario.model.asked),
        err=first.err + again.err,
    )
