"""Loading a corpus: a folder of SHACL examples becomes tasks.

Examples are described the way SPARQL endpoints publish them: ``sh:SPARQLExecutable`` with the
question as ``rdfs:comment``, the query under ``sh:select``, ``sh:ask``, ``sh:construct``,
``spex:describe`` or ``sh:update``, and the endpoint as ``schema:target``. Only an example without
a question or a query is left out; everything else that is odd becomes a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from reasoningbank.corpus.examples import (
    SCHEMA,
    ExampleFile,
    TaskDraft,
    canonical_targets,
    read_example_file,
)
from reasoningbank.corpus.pack import Pack, load_pack
from reasoningbank.corpus.splits import Split, groups_of, split_tasks
from reasoningbank.corpus.task import LoadedTask, Task, check_complexity
from reasoningbank.findings import Finding


@dataclass(frozen=True)
class Corpus:
    """The tasks of a folder of examples, and what was odd about it."""

    name: str  #: The pack's name, or the folder's
    tasks: tuple[LoadedTask, ...]  #: Sorted by source file, then by order in the file
    findings: tuple[Finding, ...]  #: Sorted by file (`where`) and code

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
        UsageError: If there is no such pack or folder, or a complexity is unknown.
    """
    given = [complexity_filter] if isinstance(complexity_filter, str) else complexity_filter
    wanted = None if given is None else frozenset(given)
    for word in wanted or ():
        check_complexity(word, "complexity_filter")
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
    drafts = (
        TaskDraft(raw, file.path, findings).task(pack, targets, prefixes_for(file.path), language)
        for file in files
        for raw in file.examples
    )
    tasks = [task for task in drafts if task is not None]
    if not tasks:
        findings.append(Finding("no-examples", f"{root.name} holds no SHACL example", "."))
    unique = _with_unique_ids(tasks, findings)
    findings.sort(key=lambda finding: (finding.where, finding.code))
    return Corpus(pack.key, unique, tuple(findings))


def _prefixes_by_folder(
    files: Sequence[ExampleFile], base: Mapping[str, str]
) -> Callable[[str], dict[str, str]]:
    """Return a function from file to prefixes: a declaration holds in its folder and below."""
    declared: dict[PurePosixPath, dict[str, str]] = {}
    for file in files:
        if file.prefixes:
            declared.setdefault(PurePosixPath(file.path).parent, {}).update(file.prefixes)

    @cache
    def of_folder(folder: PurePosixPath) -> dict[str, str]:
        above = dict(base) if folder == folder.parent else of_folder(folder.parent)
        return {**above, **declared.get(folder, {})}

    return lambda path: of_folder(PurePosixPath(path).parent)


def _with_unique_ids(
    tasks: Sequence[LoadedTask], findings: list[Finding]
) -> tuple[LoadedTask, ...]:
    """Rename tasks that share an id: by their folder if that makes them different."""
    counts = Counter(task.id for task in tasks)
    seen: Counter[str] = Counter()
    out: list[LoadedTask] = []
    for task in tasks:
        folder = PurePosixPath(task.source_file).parent.name
        new = f"{folder}-{task.id}" if counts[task.id] > 1 and folder else task.id
        seen[new] += 1
        if seen[new] > 1:
            new = f"{new}~{seen[new]}"
        if new != task.id:
            what = f"{counts[task.id]} examples have the id {task.id}; this one is now {new}"
            facts = {"id": new, "duplicate": task.id}
            findings.append(Finding("duplicate-id", what, task.source_file, fields=facts))
        out.append(task.changed(id=new))
    return tuple(out)
