"""The report: a run as one self-contained HTML page that needs no network.

`write_report` reads the records once and writes the page as it reads, so a run of any size needs
little memory: templates filled into one file, with the trials as compressed data. `page/` holds
template, style and scripts; `docs/report.md` describes the design.

The page's policy allows its own two scripts, by their hashes, and no network. Data are gzipped JSON
as base64 in script elements that the browser never runs: base64 has no character with a meaning in
HTML, so no text of a trial can end its element. A chunk is decoded only when it is shown.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader

from reasoningbank.analysis import tables
from reasoningbank.analysis.comparison import ArmComparison
from reasoningbank.analysis.memory import MemoryRecords, Problem, shown_items
from reasoningbank.analysis.scores import RunPlan
from reasoningbank.analysis.summary import RunSummary, summarise_run
from reasoningbank.analysis.tables import capital, ends, jsonable, number, share
from reasoningbank.cache import writing
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.findings import counted
from reasoningbank.version import __version__

if TYPE_CHECKING:
    from reasoningbank.analysis.frames import FrameBuilder, Frames

__all__ = ["Report", "environment", "scale", "write_report"]

#: The page's script, one concept per file, in the order of their dependencies.
_SCRIPTS = (
    "dom", "highlight", "store", "marks", "trials", "matrix", "values", "evidence", "events",
    "trial", "memory", "page",
)  # fmt: skip
#: Fields of a record that the index has, or that are written differently.
_TASK = ("question", "complexity", "form", "group", "template", "level")
_INDEXED = frozenset({"key", *_TASK, "trajectory"})
#: Characters of payloads that are compressed together: many prompts begin alike.
_BLOCK_CHARS = 256_000
#: Characters of a query that the search looks at.
_SEARCHED = 2000
#: Trials that a page holds as a whole.
MOST_WHOLE = 5000
_METRIC_NAMES = {"strict": "strict match", "lenient": "lenient match", "f1": "row F1"}
#: What HTML cannot hold, even escaped: controls, lone surrogates, non-characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Report:
    """A written page."""

    path: Path  #: The file
    size: int  #: Its size in bytes
    trials: int  #: Trials in it
    damaged: tuple[Path, ...]  #: Files of the run that could not be read; the page lists them
    whole: int  #: Trials that are in it with their prompts, calls and results


def write_report(folder: RunFolder, out: Path, *, back: str = "", most: int = MOST_WHOLE) -> Report:
    """Write one self-contained HTML page of a run.

    Trial files and memory snapshots that cannot be read are left out and listed in the page.

    Args:
        folder: The run.
        out: The file to write; an older one is replaced once the new one is complete.
        most: Of a run with more trials, about so many are in the page as a whole, chosen evenly by
            task and seed; of the others only what its list, matrix and figures show.
        back: Address that its first link leads to, e.g. of a list of runs; empty for none.

    Raises:
        UsageError: If the folder holds no run, or the file's name does not end with `.html`.
        RecordError: If the manifest cannot be read, or the page cannot be written.
    """
    manifest = folder.require_manifest()
    if out.suffix not in (".html", ".htm"):
        raise UsageError("name a file that ends with .html", where=str(out), code="not-a-page")
    with writing(out, "free space or choose another file with --out"):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=".report-") as name:
            draft = Path(name) / "page.html"
            index, damaged = _write(folder, manifest, draft, Path(name) / "data", back, most)
            draft.replace(out)
        paths = tuple(one.path for one in damaged)
        return Report(out, out.stat().st_size, len(index), paths, index.whole)


class TrialIndex:
    """What the page knows of every trial without opening it, as columns."""

    def __init__(self, arms: Iterable[str] = ()) -> None:
        self._arms = dict.fromkeys(arms)
        self._tasks: dict[str, dict[str, Any]] = {}
        self._columns: dict[str, list[Any]] = defaultdict(list)
        self.whole = 0

    def __len__(self) -> int:
        return len(self._columns["arm"])

    def add(self, record: TrialRecord) -> int:
        """Add a trial and return its number."""
        key, verdict = record.key, record.verdict or {}
        status = str(verdict.get("status", ""))
        outcome = record.outcome if record.judged else "defect" if verdict else "error"
        self._arms[key.arm] = None
        task = {name: getattr(record, name) for name in _TASK}
        self._tasks.setdefault(key.task, {"id": key.task} | task)
        row = {
            **vars(key),
            "status": record.status,
            "verdict": status,
            "outcome": outcome,
            "f1": round(record.f1, 4),
            "tokens": record.usage.tokens,
            "seconds": round(record.usage.seconds, 2),
            "step": record.step,
            "error": record.error[:_SEARCHED],
            "reason": str(verdict.get("reason", ""))[:_SEARCHED],
            "sparql": (record.sparql or "")[:_SEARCHED],
            "items": sorted(shown_items(record) - {""}),
        }
        for name, value in row.items():
            self._columns[name].append(value)
        return len(self) - 1

    def to_json(self) -> dict[str, Any]:
        """Return the arms in order, the tasks, and the columns of the trials."""
        tasks, columns = list(self._tasks.values()), dict(self._columns)
        return {"arms": list(self._arms), "tasks": tasks, "trials": columns}


class PayloadPool:
    """Long texts of all trials, each once, in blocks of a few hundred thousand characters."""

    def __init__(self, emit: Callable[[str], object], block_chars: int = _BLOCK_CHARS) -> None:
        self._emit = emit
        self._block_chars = block_chars
        self._places: dict[bytes, tuple[int, int]] = {}
        self._block: list[str] = []
        self._number = self._chars = 0

    def place(self, text: str) -> tuple[int, int]:
        """Return the block of a payload, and its position there."""
        # The records' own keys may differ between trials.
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = (self._number, len(self._block))
            self._block.append(text)
            self._chars += len(text)
            if self._chars >= self._block_chars:
                self.flush()
        return found

    def flush(self) -> None:
        """Emit the current block."""
        if self._block:
            self._emit(chunk(f"payloads-{self._number}", self._block))
            self._number += 1
            self._block, self._chars = [], 0


def encode(data: Any) -> str:
    """Return JSON-able data as base64 of gzipped ASCII JSON; equal data give equal text."""
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(jsonable(data), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


def chunk(name: str, data: Any) -> str:
    """Return the element that holds `data`, identified by `name`."""
    return f'<script type="application/json+gzip" id="{name}">{encode(data)}</script>\n'


def _write(
    folder: RunFolder, manifest: Mapping[str, Any], draft: Path, data: Path, back: str, most: int
) -> tuple[TrialIndex, list[Problem]]:
    # pandas takes half a second to import; other commands should not wait for it.
    from reasoningbank.analysis.frames import FrameBuilder

    frames = FrameBuilder()
    frames.open(folder.path.name, folder)
    plan = RunPlan(manifest)
    index = TrialIndex(plan.arms)
    damaged: list[Problem] = []
    with data.open("w", encoding="ascii") as file:
        written = _trials(folder, index, damaged, file, frames, most)
        memory = MemoryRecords.read(folder)
        summary = summarise_run(folder, written, memory)
        frames.close(memory)
        bank = _bank(folder, memory, damaged)
        if bank:
            file.write(chunk("memory", bank))
    title = str(plan.settings.get("title") or plan.settings.get("name") or folder.path.name)
    early, script = _part("early.js"), "\n".join(_part(f"{name}.js") for name in _SCRIPTS)
    with draft.open("w", encoding="utf-8") as page, data.open(encoding="ascii") as file:
        parts = (
            environment()
            .get_template("page.html")
            .generate(
                **overview(title, manifest, summary, damaged, len(index), index.whole),
                back=back,
                version=__version__,
                policy=_policy(early, script),
                style=_part("page.css"),
                early=early,
                script=script,
                figures=drawn_figures(frames.frames()),
                bank=bank,
                index=chunk("index", index.to_json()),
                data=file,
            )
        )
        page.writelines(parts)
    return index, damaged


def _trials(
    folder: RunFolder,
    index: TrialIndex,
    damaged: list[Problem],
    file: IO[str],
    frames: FrameBuilder,
    most: int,
) -> Iterator[TrialRecord]:
    """Yield the trials once, and write the data of each that is in the page as a whole."""
    pool = PayloadPool(file.write)
    share = most / max(1, len(folder.trial_names()))
    for path, found in folder.read_all():
        frames.add(path, found)
        if isinstance(found, RecordError):
            damaged.append(Problem(path.relative_to(folder.path), found.what))
            continue
        number = index.add(found)
        # By task and seed, so that a task has the trials of all arms.
        place = zlib.crc32(f"{found.key.task}.{found.key.seed}".encode(errors="replace"))
        if place / 2**32 >= share:
            yield found
            continue
        index.whole += 1
        # The fields as they are: copying them deeply would take longer than everything else.
        fields = {k: v for k, v in vars(found).items() if k not in _INDEXED}
        whole = {
            **{k: vars(v) if is_dataclass(v) else v for k, v in fields.items()},
            "file": found.key.path,
            "events": [vars(event) for event in found.trajectory.events],
            "payloads": {k: pool.place(text) for k, text in found.trajectory.payloads.items()},
        }
        file.write(chunk(f"trial-{number}", whole))
        yield found
    pool.flush()


def _bank(folder: RunFolder, memory: MemoryRecords, damaged: list[Problem]) -> list[dict[str, Any]]:
    """Return the items of the run's banks, each once, in the shape that the page expects."""
    at: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for stream in memory.streams:
        for step, snapshot in enumerate(stream.snapshots):
            at[snapshot].append((f"{stream.arm} · {stream.permutation}", step))
    items: dict[str, dict[str, Any]] = {}
    # By item and place: the number of the last snapshot with the item, and its state there.
    places: dict[str, dict[str, tuple[int, dict[str, Any]]]] = defaultdict(dict)
    for snapshot, item in folder.memory_items(lambda _: None):
        name = str(item.get("id", ""))
        items.setdefault(name, _item(item))
        for place, step in at.get(snapshot) or [(snapshot, 0)]:
            last, state = places[name].get(place, (-1, {"first": step}))
            first = min(step, state["first"])
            if step >= last:
                last, state = step, {**_state(item), "stream": snapshot in at}
            places[name][place] = (last, {**state, "first": first})
    for path, reason in memory.damaged:
        damaged.append(Problem(path.relative_to(folder.path), reason))
    return [
        {**item, "places": [{"place": p, **s} for p, (_, s) in sorted(places[name].items())]}
        for name, item in items.items()
    ]


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    names = ("title", "description", "content", "src", "pattern", "question", "query")
    return {
        **{name: str(item[name]) for name in names if item.get(name)},
        "tags": [str(tag) for tag in item.get("tags") or ()],
        "provenance": item.get("provenance") or {},
        "turns": len(item.get("turns") or ()),
        "id": str(item.get("id", "")),
    }


def _state(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "status": str(item.get("status") or "active"),
        "superseded_by": str(item.get("superseded_by") or ""),
        "counters": item.get("counters") or {},
        "evidence": list(item.get("evidence") or ()),
    }


def _policy(*scripts: str) -> str:
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    # Figures carry style attributes, which have no hash; without network they are harmless.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _part(name: str) -> str:
    return files("reasoningbank.analysis.report").joinpath("page", name).read_text("utf-8")


def environment() -> Environment:
    """Return the page's templates, which escape every value that they show."""
    made = Environment(
        loader=PackageLoader("reasoningbank.analysis.report", "page"),
        autoescape=True,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "capital": capital,
        "counted": counted,
        "ends": ends,
        "number": number,
        "numeric": tables.numeric,
        "pairs": _pairs,
        "share": share,
        "signed": lambda value: _typeset(number(value, sign="+")),
        "slug": lambda title: re.sub(r"\W+", "-", str(title)).strip("-").lower(),
        "typeset": _typeset,
    }
    made.tests["finite"] = math.isfinite
    return made


def overview(
    title: str,
    manifest: Mapping[str, Any],
    summary: RunSummary,
    damaged: Sequence[Problem],
    trials: int,
    whole: int | None = None,
) -> dict[str, Any]:
    """Return what `summary.html` shows."""
    plan = RunPlan(manifest)
    experiment = plan.settings
    when = str(manifest.get("created", ""))[:16].replace("T", " ")
    about = [
        experiment.get("name"),
        f"pack {experiment['pack']}" if experiment.get("pack") else None,
        f"{trials:,} trials" if trials != 1 else "1 trial",
        f"{whole:,} of them whole in this page" if whole not in (None, trials) else None,
        f"started {when} UTC" if when else None,
    ]
    columns = ["arm", "score", "95% CI", "right", "row F1", "ran", "ended", "seconds", "tokens"]
    if any(arm.dollars is not None for arm in summary.arms):
        columns.append("dollars")
    arms = tables.arm_table(summary, columns)
    order = dict.fromkeys([*plan.arms, *(arm.arm for arm in summary.arms)])
    return {
        "title": title,
        "about": " · ".join(str(fact) for fact in about if fact),
        "summary": summary,
        "experiment": experiment,
        "metric": _METRIC_NAMES.get(summary.metric, summary.metric),
        "score": number if summary.metric == "f1" else share,
        "most": scale(summary.registered),
        "arms": arms._replace(headers=tuple(_METRIC_NAMES.get(h, h) for h in arms.headers)),
        # As the figures colour them.
        "colours": {arm: place % 6 + 1 for place, arm in enumerate(order)},
        "methods": "; ".join(sorted({arm.mean.method for arm in summary.arms} - {""})),
        "sections": [made for made in tables.tables_of(summary).values() if made.rows],
        "damaged": damaged,
        "manifest": manifest,
        "whole_manifest": json.dumps(manifest, indent=1, ensure_ascii=False, default=str),
    }


def drawn_figures(frames: Frames) -> list[dict[str, str]]:
    """Return every figure that the records can fill, as inline SVG for wide and narrow screens."""
    # matplotlib takes a second to import.
    from reasoningbank.analysis.figures import FIGURES, NARROW, svg

    manifest = next(iter(frames.manifests.values()), {})
    found = []
    for name, entry in FIGURES.items():
        if (chart := entry.draw(frames, manifest)) is not None:
            narrow = entry.draw(frames, manifest, NARROW) or chart
            wide, small = (
                _UNFIT.sub("\ufffd", svg(one, prefix=f"figure-{name}{suffix}"))
                for one, suffix in ((chart, ""), (narrow, "-narrow"))
            )
            drawn = {"drawing": wide, "narrow": small, "caption": chart.description}
            found.append({"name": name, "title": entry.title, **drawn})
    return found


def scale(pairs: Sequence[ArmComparison]) -> float:
    """Return the largest difference on the headline's axis."""
    shown = [n for one in pairs for n in (one.low, one.high, one.difference, one.detectable or 0.0)]
    most = max(abs(value) for value in (*shown, 0.15) if math.isfinite(value))
    return min(1.0, math.ceil(most * 10 + 0.5) / 10)


def _pairs(data: object) -> str:
    if not isinstance(data, Mapping):
        return str(data or "")
    kept = {k: v for k, v in data.items() if v not in (None, [], {}, "")}
    return " · ".join(
        f"{k} {json.dumps(v, ensure_ascii=False) if isinstance(v, (list, dict)) else v}"
        for k, v in kept.items()
    )


def _plain(value: object) -> object:
    """Return a value as text that HTML can hold; U+FFFD replaces what it cannot."""
    return value if hasattr(value, "__html__") else _UNFIT.sub("\ufffd", str(value))


def _typeset(cell: str) -> str:
    """Return a cell for HTML: an en dash for nothing, a minus sign before a number."""
    if cell == "-":
        return "–"
    return f"−{cell[1:]}" if cell[:1] == "-" and cell[1:2].isdigit() else cell
