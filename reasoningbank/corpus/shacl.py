"""SHACL examples → tasks.

A corpus is a folder of Turtle files that describe example queries the way SPARQL endpoints
publish them: ``sh:SPARQLExecutable`` with the question as ``rdfs:comment``, the query under
``sh:select``, ``sh:ask``, ``sh:construct`` or ``spex:describe`` (``sh:update``, where documents
are to be written), and the endpoint as ``schema:target``. Files are read as RDF. What is odd
becomes a `Finding`; only an example without a question or a query is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import cast, get_args

from reasoningbank.corpus.draft import Draft
from reasoningbank.corpus.findings import Finding
from reasoningbank.corpus.loaded import LoadedTask
from reasoningbank.corpus.pack import Pack, load_pack
from reasoningbank.corpus.splits import Split, groups_of, split_tasks
from reasoningbank.corpus.targets import canonical_targets
from reasoningbank.corpus.task import Complexity, Task
from reasoningbank.corpus.turtle import ExampleFile, read_example_file
from reasoningbank.corpus.vocabulary import SCHEMA
from reasoningbank.errors import UsageError

__all__ = ["Corpus", "load_corpus", "load_shacl_tasks"]

_COMPLEXITIES: tuple[Complexity, ...] = get_args(Complexity)


@dataclass(frozen=True)
class Corpus:
    """The tasks of a folder of examples, and what was odd about it.

    Attributes:
        name: The pack's name, or the folder's.
        tasks: Sorted by source file, then by order in the file.
        findings: Remarks by file.
    """

    name: str
    tasks: tuple[Task, ...]
    findings: tuple[Finding, ...]

    @property
    def groups(self) -> dict[str, list[Task]]:
        """The tasks by group."""
        return groups_of(self.tasks)

    def split(self, seed: int = 0) -> Split:
        """Return train, dev and test with the default shares."""
        return split_tasks(self.tasks, seed=seed)


def load_shacl_tasks(
    path: str | Path | Pack,
    complexity_filter: Iterable[str] | None = None,
    *,
    language: str = "en",
) -> list[Task]:
    """Load the tasks of a corpus.

    Args:
        path: A pack, its name, its folder, or any folder of Turtle files.
        complexity_filter: Keep only these of ``simple``, ``moderate``, ``complex``.
        language: The question's language where an example has several.

    Raises:
        UsageError: No such pack or folder; an unknown complexity.
    """
    wanted = _checked_complexities(complexity_filter)
    tasks = load_corpus(path, language=language).tasks
    return [t for t in tasks if wanted is None or t.complexity in wanted]


def load_corpus(path: str | Path | Pack, *, language: str = "en") -> Corpus:
    """Load a corpus with its findings; arguments as in `load_shacl_tasks`."""
    pack = path if isinstance(path, Pack) else load_pack(path)
    root = pack.examples
    files = [
        read_example_file(file, file.relative_to(root).as_posix())
        for file in sorted(root.rglob("*.ttl"))
    ]
    findings = [finding for file in files for finding in file.findings]
    targets = canonical_targets(
        (t for file in files for raw in file.examples for t in raw.texts(SCHEMA + "target")),
        pack.endpoint,
    )
    prefixes_for = _prefixes_by_folder(files, pack.prefixes)
    tasks = [
        task
        for file in files
        for raw in file.examples
        if (
            task := Draft(raw, file.path, findings).task(
                pack, targets, prefixes_for(file.path), language
            )
        )
    ]
    if not tasks:
        findings.append(Finding(".", "no-examples", f"{root.name} holds no SHACL example"))
    unique = _with_unique_ids(tasks, findings)
    findings.sort(key=lambda f: (f.file, f.code))
    return Corpus(pack.key, unique, tuple(findings))


def _checked_complexities(given: Iterable[str] | None) -> frozenset[Complexity] | None:
    if given is None:
        return None
    wanted = [given] if isinstance(given, str) else list(given)
    for word in wanted:
        if word not in _COMPLEXITIES:
            raise UsageError(
                f"unknown complexity {word!r}",
                where="complexity_filter",
                hint="choose " + ", ".join(_COMPLEXITIES),
            )
    return frozenset(cast("list[Complexity]", wanted))


def _prefixes_by_folder(
    files: Sequence[ExampleFile], base: Mapping[str, str]
) -> Callable[[str], dict[str, str]]:
    """Return what gives a file's prefixes: a declaration holds in its folder and below."""
    declared: dict[PurePosixPath, dict[str, str]] = {}
    for file in files:
        if file.prefixes:
            declared.setdefault(PurePosixPath(file.path).parent, {}).update(file.prefixes)

    @cache
    def of_folder(folder: PurePosixPath) -> dict[str, str]:
        above = dict(base) if folder == folder.parent else of_folder(folder.parent)
        return {**above, **declared.get(folder, {})}

    return lambda path: of_folder(PurePosixPath(path).parent)


def _with_unique_ids(tasks: Sequence[LoadedTask], findings: list[Finding]) -> tuple[Task, ...]:
    """Rename tasks that share an id: by their folder where that tells them apart."""
    counts = Counter(task.id for task in tasks)
    seen: Counter[str] = Counter()
    out: list[Task] = []
    for task in tasks:
        new = task.id
        if counts[task.id] > 1:
            folder = PurePosixPath(task.source_file).parent.name
            new = f"{folder}-{task.id}" if folder else task.id
        seen[new] += 1
        if seen[new] > 1:
            new = f"{new}~{seen[new]}"
        if new != task.id:
            findings.append(
                Finding(
                    task.source_file,
                    "duplicate-id",
                    f"{counts[task.id]} examples are called {task.id}; this one is now {new}",
                )
            )
        out.append(task if new == task.id else task.renamed(new))
    return tuple(out)
