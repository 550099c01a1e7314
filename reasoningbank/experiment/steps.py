"""What a stream learned at each step, one file a step, written last.

A step that is on disk was taken: trial, snapshot of the bank and step are written in this order,
each whole or not at all, so that a run that was killed goes on where the last whole step ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from reasoningbank.errors import RecordError
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.json_files import read_json, write_atomically
from reasoningbank.trajectory import Usage

__all__ = ["Step", "StepFolder", "StreamProgress", "step_is_taken", "streams_of"]

VERSION = 1


@dataclass(frozen=True)
class Step:
    """One step of a stream: what was learned from one trial.

    Attributes:
        arm: The arm.
        order: The order of its tasks: the trial's seed.
        step: Its place, from 0.
        task: The task.
        trial: The trial, as ``arm/task.order``.
        before: Snapshot of the bank that the trial saw.
        after: Snapshot of the bank with what was learned.
        retrieved: Ids of the items that the trial was shown.
        added: Ids of new items.
        merged: Ids of items that were there already, and whose evidence grew.
        rejected: What was distilled and is not stored: title, reason, kind, text.
        changes: What consolidation changed, in words.
        judges: What each judge said of the trial; None where it did not decide.
        used: The judge whose verdict was learned from.
        success: That verdict; None where nothing could be learned from it.
        control: The trial without memory whose outcome was set beside; empty where none was.
        usage: What a model consumed in distillation.
        seconds: How long judging, distillation and consolidation took.
    """

    arm: str
    order: int
    step: int
    task: str
    trial: str
    before: str
    after: str
    retrieved: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    rejected: tuple[Mapping[str, Any], ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    judges: Mapping[str, bool | None] = field(default_factory=dict)
    used: str = ""
    success: bool | None = None
    control: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the step as JSON-able data."""
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        """Read what `to_json` wrote."""
        rest = {name: value for name, value in data.items() if name != "version"}
        for name in ("retrieved", "added", "merged", "rejected", "changes"):
            rest[name] = tuple(rest.get(name) or ())
        return cls(**{**rest, "usage": Usage(**rest.get("usage", {}))})


class StepFolder:
    """The steps of one stream on disk: `learning/<arm>.<order>/<step>.json`.

    Args:
        run: Folder of the run.
        arm: The arm.
        order: The order of its tasks.
    """

    def __init__(self, run: Path, arm: str, order: int) -> None:
        self.path = run / "learning" / f"{arm}.{order}"
        self._name = (arm, order)

    def file(self, step: int) -> Path:
        """Return where a step lies, or would lie compressed."""
        path = self.path / f"{step:04}.json"
        return path if path.exists() else path.with_name(f"{path.name}.gz")

    def read(self, step: int) -> Step | None:
        """Return a step; None where it was not taken yet.

        Raises:
            RecordError: If its file is damaged, or of another step.
        """
        path = self.file(step)
        if not path.exists():
            return None
        try:
            found = Step.from_json(read_json(path))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise RecordError(f"is no step ({error!r})", where=str(path)) from error
        if (found.arm, found.order, found.step) != (*self._name, step):
            raise RecordError("holds another step", where=str(path))
        return found

    def write(self, step: Step) -> None:
        """Store a step; it is on disk, whole, when this returns."""
        path = self.path / f"{step.step:04}.json"
        write_atomically(path, step.to_json())
        path.with_name(f"{path.name}.gz").unlink(missing_ok=True)

    def set_aside(self, step: int) -> Path:
        """Rename the file of a step, so that the step is taken again."""
        path = self.file(step)
        return path.replace(path.with_name(f"{path.name}.damaged"))

    def taken(self) -> Sequence[Step]:
        """Return the steps from the first on, as far as each is there and begins where its
        predecessor ended.

        Raises:
            RecordError: If a file is damaged.
        """
        return list(self._taken())

    def _taken(self) -> Iterator[Step]:
        number, after = 0, None
        while (step := self.read(number)) is not None:
            if after is not None and step.before != after:
                return
            yield step
            number, after = number + 1, step.after


def step_is_taken(run: Path, job: Job) -> bool:
    """Tell whether what a trial of a stream teaches is on disk, and can be read."""
    if job.step is None:
        return False
    try:
        return StepFolder(run, job.key.arm, job.key.seed).read(job.step) is not None
    except RecordError:
        return False


class StreamProgress(NamedTuple):
    """How far a stream is.

    Attributes:
        arm: Its arm.
        order: The order of its tasks.
        taken: Steps that it has taken.
        total: Steps that it has.
    """

    arm: str
    order: int
    taken: int
    total: int


def streams_of(run: Path, manifest: Mapping[str, Any]) -> list[StreamProgress]:
    """Return how far each stream of a run is, those that have not begun included."""
    experiment = manifest.get("experiment") or {}
    found = []
    for arm in experiment.get("arms") or ():
        memory = arm.get("memory") or {}
        learns = isinstance(memory, Mapping) and memory.get("source") == "learned"
        if not learns or memory.get("of"):
            continue
        for order in arm.get("seeds") or experiment.get("seeds") or (0,):
            folder = StepFolder(run, str(arm["name"]), int(order))
            taken = {
                path.name[:4]
                for path in folder.path.glob("[0-9]*.json*")
                if path.suffix != ".damaged"
            }
            total = len(manifest.get("stream") or ())
            found.append(StreamProgress(str(arm["name"]), int(order), len(taken), total))
    return found
