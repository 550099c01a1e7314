"""What a run is about: configuration, versions and hashes, written before its first trial."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment.config import Experiment, parse_experiment
from reasoningbank.experiment.records import RunFolder

__all__ = ["build_manifest", "hash_files", "hash_tasks", "open_run"]

_PACKAGES = ("reasoningbank", "dspy", "litellm", "oxigraph", "pyoxigraph", "rdflib", "xllamacpp")


def build_manifest(
    experiment: Experiment,
    tasks: Sequence[Task],
    data: Iterable[Path],
    models: Mapping[str, Mapping[str, Any]],
    prompts: Mapping[str, str],
) -> dict[str, Any]:
    """Return the manifest of a run.

    Args:
        experiment: What is run.
        tasks: The selected tasks.
        data: Files of the embedded store; empty for a remote endpoint.
        models: Fingerprint by model name.
        prompts: Hash by name of what is put before the model, e.g. demonstrations.
    """
    return {
        "version": 1,
        "experiment": experiment.model_dump(mode="json"),
        "fingerprint": experiment.fingerprint(),
        "primary": {
            "metric": experiment.metric,
            "comparison": experiment.comparison,
            "unit": experiment.unit,
        },
        "hashes": {
            "corpus": hash_tasks(tasks),
            "store": hash_files(data),
            "models": dict(models),
            "prompts": dict(prompts),
        },
        "tasks": [task.id for task in tasks],
        "versions": {name: _version(name) for name in _PACKAGES},
        "machine": {"python": platform.python_version(), "system": platform.system()},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def open_run(folder: RunFolder, manifest: dict[str, Any]) -> None:
    """Write the manifest of a new run, or check that the folder's run is the same.

    Models are compared by name: those that this invocation does not need are left as they are,
    and those that are needed for the first time are added.

    Raises:
        UsageError: If the folder holds another run: another experiment, corpus, store or model.
    """
    old = folder.manifest
    if old is None:
        if any((folder.path / "trials").glob("*/*.json*")):
            raise UsageError(
                "holds trials and no manifest, so that nothing says which run they are of",
                where=str(folder.path),
                mend="restore manifest.json, or choose another folder with --out",
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
    differs += [part for part, value in now.items() if was.get(part) != value]
    if differs:
        raise UsageError(
            f"holds the records of another run ({', '.join(differs)} changed)",
            where=str(folder.path),
            mend="choose another folder with --out, or move this one away",
        )
    if models != (old.get("hashes") or {}).get("models"):
        folder.write_manifest({**old, "hashes": {**old["hashes"], "models": models}})


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


def hash_files(paths: Iterable[Path]) -> str:
    """Return a hash of the contents of files, 16 hexadecimal digits; order does not matter."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
