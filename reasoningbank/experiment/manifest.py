"""The manifest of a run: configuration, versions and hashes, written before its first trial."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from reasoningbank.agents import PROMPT_VERSION
from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Experiment, parse_experiment, seeds_of
from reasoningbank.experiment.context import data_files, demonstration_files, hash_files
from reasoningbank.experiment.plan import Plan, find_bank, named_bank
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.settings import BankMemory
from reasoningbank.experiment.state import now
from reasoningbank.imports import is_import_path, source_files
from reasoningbank.version import __version__

_PACKAGES = ("dspy", "litellm", "oxigraph", "pyoxigraph", "rdflib", "xllamacpp")


def build_manifest(
    experiment: Experiment, plan: Plan, models: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the manifest of a run; `models` are their fingerprints by name."""
    tasks, pack, training = plan.tasks, plan.pack, plan.training
    stream = plan.stream if experiment.mode == "learn" else ()
    memory = _memory_hashes(experiment, pack, plan.stream)
    return {
        "version": 1,
        "experiment": experiment.model_dump(mode="json"),
        "fingerprint": experiment.fingerprint(),
        "primary": {
            "metric": experiment.metric,
            "comparison": experiment.comparison,
            **({"claims": experiment.claims} if experiment.claims else {}),
            "unit": experiment.unit,
        },
        "hashes": {
            "corpus": hash_tasks(tasks),
            "store": hash_files(() if experiment.endpoint else data_files(pack)),
            "models": dict(models),
            "prompts": {"demonstrations": hash_files(demonstration_files(pack))},
            **({"memory": memory} if memory else {}),
            **({"training": {a: hash_tasks(t) for a, t in training.items()}} if training else {}),
        },
        "tasks": [task.id for task in tasks],
        "levels": {task.id: task.level for task in tasks},
        **({"stream": [task.id for task in stream]} if stream else {}),
        "code": {**code_version(), **own_code(experiment)},
        "versions": {"reasoningbank": __version__, **{name: _version(name) for name in _PACKAGES}},
        "machine": {"python": platform.python_version(), "system": platform.system()},
        "created": now(),
    }


def open_run(
    folder: RunFolder,
    manifest: dict[str, Any],
    on_notice: Callable[[str], None] = lambda _: None,
    *,
    resumes: bool = True,
) -> None:
    """Write the manifest of a new run, or check that the folder's run is the same."""
    old = folder.manifest
    where = str(folder.path)
    if old is None:
        if folder.trial_names():
            what = "holds trials but no manifest that says which run they belong to"
            hint = "restore manifest.json, or choose another folder with --out"
            raise UsageError(what, where=where, hint=hint, code="no-manifest")
        folder.write_manifest(manifest)
        return
    differs = [] if _fingerprint(old) == manifest["fingerprint"] else ["experiment file"]
    was, now = dict(old.get("hashes") or {}), dict(manifest["hashes"])
    models = dict(was.pop("models", None) or {})
    for name, fingerprint in now.pop("models").items():
        known = models.setdefault(name, fingerprint)
        # Threads decide how fast a local model answers, and not what.
        if {**known, "threads": None} != {**fingerprint, "threads": None}:
            places = [str(one.get("api_base") or "its own address") for one in (known, fingerprint)]
            moved = f" from {places[0]} to {places[1]}" if places[0] != places[1] else ""
            differs.append(f"model {name}{moved}")
    for part, value in now.items():
        before = was.get(part)
        if part == "memory" and isinstance(before, Mapping):
            # Older versions hashed prompts; now their version is compared.
            names = sorted({*before, *value} - {"prompts"})
            differs += [f"{part} {one}" for one in names if before.get(one) != value.get(one)]
        elif before != value:
            differs.append(part)
    if differs:
        what = f"holds the records of another run ({', '.join(differs)} changed)"
        hint = "choose another folder with --out, or move this one away"
        raise UsageError(what, where=where, hint=hint, code="another-run", changed=differs)
    # Earlier versions wrote no levels.
    known = {"levels": manifest["levels"], **old, "hashes": {**was, "models": models}}
    code = manifest["code"]
    if resumes:
        known = _resumed(known, code, where, on_notice)
    elif own := [n for n in _differing(_code_states(old)[-1][1], code) if is_import_path(n)]:
        what = f"all trials are there, and {', '.join(own)} changed since"
        on_notice(f"{what}; name another folder with --out to run it as it is now")
    if known != old:
        folder.write_manifest(known)


def _resumed(
    manifest: dict[str, Any],
    code: Mapping[str, Any],
    where: str,
    on_notice: Callable[[str], None],
) -> dict[str, Any]:
    """Return the manifest of a run that is resumed with this code."""
    states = [state for _, state in _code_states(manifest)]
    first, last = states[0], states[-1]
    if (prompts := last.get("prompts")) != code["prompts"]:
        began = f"prompt version {prompts}" if "prompts" in last else "an older version"
        what = f"was begun with {began} of reasoningbank; this is prompt version {code['prompts']}"
        hint = "choose another folder with --out, or resume it with the version that began it"
        raise UsageError(what, where=where, hint=hint, code="other-prompts", prompts=prompts)
    changed = _differing(last, code)
    if not changed:
        return manifest

    def named(one: Mapping[str, Any]) -> str:
        commit = one.get("commit")
        return f"{one.get('version', 'an older version')}{f' ({commit})' if commit else ''}"

    other = f"resumed with other code ({', '.join(changed)})"
    on_notice(f"{other}: {named(code)}, begun with {named(first)}")
    return _with_entry(manifest, "code_history", code=dict(code))


def check_served(folder: RunFolder, record: TrialRecord) -> None:
    """Check that servers name their models as before; note what a new one names."""
    events = (event.data for event in record.trajectory.of("lm_call"))
    served = {str(one["model"]): str(one["served_as"]) for one in events if one.get("served_as")}
    manifest = folder.manifest if served else None
    if manifest is None:
        return
    known = manifest.get("served") or {}
    for model, name in served.items():
        if (began := known.get(model, name)) != name:
            what = f"{model} is answered by {name}, and the run began with {began}"
            hint = "restore the server and run the same command again, or choose --out"
            facts: dict[str, Any] = {"model": model, "served": [began, name]}
            raise UsageError(what, where=str(folder.path), hint=hint, code="another-model", **facts)
    if served.keys() - known.keys():
        folder.write_manifest({**manifest, "served": {**known, **served}})


def _with_entry(manifest: Mapping[str, Any], part: str, **entry: Any) -> dict[str, Any]:
    """Return a manifest with an entry added to a list of what happened."""
    return {**manifest, part: [*(manifest.get(part) or ()), {"time": now(), **entry}]}


class CodeChange(NamedTuple):
    """A run was resumed with other code."""

    time: str
    parts: tuple[str, ...]


def code_changes(manifest: Mapping[str, Any]) -> tuple[CodeChange, ...]:
    """Return when a run was resumed with other code, oldest first."""
    return tuple(
        CodeChange(time, _differing(before, after))
        for (_, before), (time, after) in pairwise(_code_states(manifest))
    )


@functools.cache
def code_version() -> dict[str, Any]:
    """Return what identifies the code of a run: package version, git commit, prompt version."""
    root = Path(__file__).parents[2]
    commit = ""
    if (root / ".git").exists():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            commit = subprocess.run(
                ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                cwd=root, capture_output=True, text=True, check=True, timeout=10,
            ).stdout.strip()  # fmt: skip
    return {"version": __version__, "commit": commit, "prompts": PROMPT_VERSION}


def own_code(experiment: Experiment) -> dict[str, str]:
    """Return a hash of the source of each object that the arms name by import path."""
    names: set[str] = set()
    for arm in experiment.arms:
        names |= {arm.agent, arm.judge_lm, *(arm.tools if isinstance(arm.tools, tuple) else ())}
        names |= {getattr(arm.memory, part, "") for part in ("distiller", "retriever")}
    return {name: hash_files(source_files(name)) for name in sorted(filter(is_import_path, names))}


def _code_states(manifest: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each code that a run used, empty if unknown, with the time from which on."""
    begun = str(manifest.get("created", "")), manifest.get("code") or {}
    return [begun, *((e["time"], e["code"]) for e in manifest.get("code_history") or ())]


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(part for part, now in after.items() if before.get(part) not in (None, now))


def replacements(folder: RunFolder, again: Iterable[TrialKey]) -> Callable[[TrialRecord], None]:
    """Return an observer that records in the manifest which judged trials were run again."""
    before: dict[TrialKey, dict[str, Any]] = {}
    for key in again:
        with contextlib.suppress(RecordError):
            record = folder.read(key)
            if not record.failed:
                before[key] = {"status": record.status, "strict": record.strict}

    def note(record: TrialRecord) -> None:
        old, manifest = before.pop(record.key, None), folder.manifest
        if old is not None and manifest is not None:
            entry = {"trial": str(record.key), **old}
            folder.write_manifest(_with_entry(manifest, "replaced", **entry))

    return note


def _memory_hashes(experiment: Experiment, pack: Pack, stream: Sequence[Task]) -> dict[str, Any]:
    """Return hashes of what memory rests on; empty if no arm uses memory."""
    if not experiment.uses_memory:
        return {}
    hints = [file for file in pack.hints.rglob("*") if file.is_file()] if pack.hints else []
    banks = {}
    for arm in experiment.arms:
        if named_bank(arm):
            stream_arm = arm.memory.stream if isinstance(arm.memory, BankMemory) else ""
            found = (find_bank(arm, seed) for seed in seeds_of(experiment, arm))
            files = {(name, storage.file(name)): storage.content(name) for storage, name in found}
            parts = b"".join(hashlib.sha256(raw).digest() for _, raw in sorted(files.items()))
            name = " ".join(filter(None, (named_bank(arm), stream_arm)))
            banks[name] = hashlib.sha256(parts).hexdigest()[:16]
    hashes = {"stream": hash_tasks(stream), "hints": hash_files(hints)}
    return {**hashes, "banks": banks} if banks else hashes


def hash_tasks(tasks: Sequence[Task]) -> str:
    """Return a hash of the questions and golds, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for task in tasks:
        for part in (task.id, task.query, task.expected_sparql):
            digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _fingerprint(manifest: Mapping[str, Any]) -> str:
    """Return the fingerprint of a manifest's experiment as this version computes it."""
    try:
        return parse_experiment(manifest["experiment"]).fingerprint()
    except (UsageError, KeyError):
        return str(manifest.get("fingerprint"))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
