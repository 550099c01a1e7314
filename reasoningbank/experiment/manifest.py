"""What a run is about: configuration, versions and hashes, written before its first trial."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.code_history import code_hashes, hash_files, with_code
from reasoningbank.experiment.config import Experiment, parse_experiment
from reasoningbank.experiment.memory_config import MemorySettings, find_bank, seeds_of
from reasoningbank.experiment.prompt_hashes import prompt_hashes
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord

__all__ = [
    "build_manifest",
    "hash_files",
    "hash_tasks",
    "memory_hashes",
    "open_run",
    "replacements",
]

_PACKAGES = ("reasoningbank", "dspy", "litellm", "oxigraph", "pyoxigraph", "rdflib", "xllamacpp")


def build_manifest(
    experiment: Experiment,
    tasks: Sequence[Task],
    data: Iterable[Path],
    models: Mapping[str, Mapping[str, Any]],
    prompts: Mapping[str, str],
    memory: Mapping[str, Any] | None = None,
    stream: Sequence[Task] = (),
) -> dict[str, Any]:
    """Return the manifest of a run.

    Args:
        experiment: What is run.
        tasks: The selected tasks.
        data: Files of the embedded store; empty for a remote endpoint.
        models: Fingerprint by model name.
        prompts: Hash by name of what is put before the model, e.g. demonstrations.
        memory: Hashes of what memory rests on, as `memory_hashes` returns them; none where no arm
            has use for it.
        stream: The tasks that are learned from; those of the evaluation are `tasks`.
    """
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
            "store": hash_files(data),
            "models": dict(models),
            "prompts": dict(prompts),
            **({"memory": dict(memory)} if memory else {}),
        },
        "tasks": [task.id for task in tasks],
        **({"stream": [task.id for task in stream]} if stream else {}),
        **({"code": code_hashes()} if memory else {}),
        "versions": {name: _version(name) for name in _PACKAGES},
        "machine": {"python": platform.python_version(), "system": platform.system()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def open_run(
    folder: RunFolder,
    manifest: dict[str, Any],
    on_notice: Callable[[str], None] = lambda _: None,
    *,
    goes_on: bool = True,
) -> None:
    """Write the manifest of a new run, or check that the folder's run is the same.

    Models are compared by name: those that this invocation does not need are left as they are,
    and those that are needed for the first time are added; so are texts that an earlier version
    of this package had no hash of. Changed code of the rooms that decide results is told and
    written down (`code_history`), and refused nowhere: what is mended there need not touch results.

    Args:
        folder: The run's folder.
        manifest: What is to be run.
        on_notice: Told of changed code.
        goes_on: Whether any trial is left to run, by the code of now.

    Raises:
        UsageError: If the folder holds another run: another experiment, corpus, store or model.
    """
    old = folder.manifest
    if old is None:
        if folder.trial_names():
            raise UsageError(
                "holds trials and no manifest, so that nothing says which run they are of",
                where=str(folder.path),
                hint="restore manifest.json, or choose another folder with --out",
            )
        folder.write_manifest(manifest)
        return
    differs = []
    if _fingerprint(old) != manifest["fingerprint"]:
        differs.append("experiment file")
    was, now = dict(old.get("hashes") or {}), dict(manifest["hashes"])
    models = dict(was.pop("models", None) or {})
    for name, fingerprint in now.pop("models").items():
        if models.setdefault(name, fingerprint) != fingerprint:
            differs.append(f"model {name}")
    if "memory" in was and "memory" in now:
        was["memory"] = _with_new_texts(was["memory"], now["memory"])
    differs += [
        name for part, value in now.items() for name in _changed(part, was.get(part), value)
    ]
    if differs:
        raise UsageError(
            f"holds the records of another run ({', '.join(differs)} changed)",
            where=str(folder.path),
            hint="choose another folder with --out, or move this one away",
        )
    known = {**old, "hashes": {**was, "models": models}}
    if goes_on:
        code = manifest.get("code") or {}
        begun = old.get("code") or {}
        mended = [room for room, now in code.items() if begun.get(room) not in (None, now)]
        if mended:
            on_notice(f"the code of {', '.join(mended)} is not what it was when this run began")
        known = with_code(known, code)
    if known != old:
        folder.write_manifest(known)


def replacements(folder: RunFolder, again: Iterable[TrialKey]) -> Callable[[TrialRecord], None]:
    """Return what writes down each trial that was judged and is run again, once that is on disk.

    Who runs an arm's failures again, and only these, gets a better arm: the summary says so. Trials
    that errors of the infrastructure ended are no choice and not told.
    """
    before: dict[TrialKey, TrialRecord] = {}
    for key in again:
        with contextlib.suppress(RecordError):
            record = folder.read(key)
            if record.status != "error":
                before[key] = record

    def note(record: TrialRecord) -> None:
        old = before.pop(record.key, None)
        manifest = folder.manifest
        if old is None or manifest is None:
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        trial = f"{old.key.arm}/{old.key.task}.{old.key.seed}"
        entry = {"time": now, "trial": trial, "status": old.status, "strict": old.strict}
        folder.write_manifest({**manifest, "replaced": [*(manifest.get("replaced") or ()), entry]})

    return note


def _with_new_texts(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return hashes of memory, with those of texts that had none when they were written down."""
    return {**was, "prompts": {**now.get("prompts", {}), **was.get("prompts", {})}}


def _changed(part: str, was: Any, now: Any) -> list[str]:
    """Return what of a part differs, by name."""
    if was == now:
        return []
    if part != "memory" or not isinstance(was, Mapping):
        return [part]
    names = sorted({*was, *now})
    return [f"{part} {name}" for name in names if was.get(name) != now.get(name)]


def memory_hashes(experiment: Experiment, pack: Pack, stream: Sequence[Task]) -> dict[str, Any]:
    """Return hashes of what memory and its evaluation rest on; empty where no arm has use for it.

    They are on disk before the first trial: nothing of it can be mended after a look at what the
    evaluation gives.

    Args:
        experiment: The experiment.
        pack: Its pack; its hints are hashed.
        stream: Tasks that are learned from.
    """
    if experiment.mode != "learn" and not experiment.remembers:
        return {}
    arms = experiment.arms
    hints = [file for file in pack.hints.rglob("*") if file.is_file()] if pack.hints else []
    banks = {
        " ".join(filter(None, (arm.memory.bank, arm.memory.stream))): _hash_banks(
            arm.memory, seeds_of(experiment, arm)
        )
        for arm in arms
        if arm.memory.bank
    }
    return {
        "stream": hash_tasks(stream),
        "hints": hash_files(hints),
        "prompts": prompt_hashes(arm.agent for arm in arms),
        **({"banks": banks} if banks else {}),
    }


def _hash_banks(memory: MemorySettings, seeds: Iterable[int]) -> str:
    found = {
        (storage.root, name): storage for storage, name in (find_bank(memory, s) for s in seeds)
    }
    digest = hashlib.sha256()
    for (_, name), storage in sorted(found.items(), key=lambda one: one[0]):
        digest.update(hashlib.sha256(storage.read(name)).digest())
    return digest.hexdigest()[:16]


def _fingerprint(manifest: Mapping[str, Any]) -> str:
    """Return the fingerprint of a manifest's experiment as this version reckons it."""
    try:
        return parse_experiment(manifest["experiment"]).fingerprint()
    except (UsageError, KeyError):
        return str(manifest.get("fingerprint"))


def hash_tasks(tasks: Sequence[Task]) -> str:
    """Return a hash of the questions and golds, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for task in tasks:
        for part in (task.id, task.query, task.expected_sparql):
            digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
