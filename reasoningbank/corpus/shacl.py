"""SHACL examples in Turtle files become tasks: a folder of them is a corpus.

Examples are described the way SPARQL endpoints publish them: ``sh:SPARQLExecutable`` with the
question as ``rdfs:comment``, the query under ``sh:select``, ``sh:ask``, ``sh:construct``,
``spex:describe`` or ``sh:update``, and the endpoint as ``schema:target``. Only an example without
a question or a query is left out; everything else that is odd becomes a finding, never an error.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyoxigraph as ox
from rdflib import URIRef, namespace

from reasoningbank.corpus.pack import Pack, load_pack
from reasoningbank.corpus.splits import Split, split_tasks
from reasoningbank.corpus.task import LoadedTask, QueryForm, Task, check_complexity
from reasoningbank.findings import Finding
from reasoningbank.schema import local_name, namespace_of
from reasoningbank.sparql import address_key
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tokens import tokenize

SH = "http://www.w3.org/ns/shacl#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SCHEMA = "https://schema.org/"
SPEX = "https://purl.expasy.org/sparql-examples/ontology#"
#: Our own annotations of examples: group, bag, ordered.
RB = "urn:reasoningbank:ontology#"

#: The property that holds the query → its form.
QUERY_PROPERTIES: Mapping[str, QueryForm] = {
    SH + "select": "SELECT",
    SH + "ask": "ASK",
    SH + "construct": "CONSTRUCT",
    SPEX + "describe": "DESCRIBE",
    SH + "update": "UPDATE",
}

#: The class of an example of each form, besides ``sh:SPARQLExecutable``.
CLASS_OF_FORM = {
    form: f"{SPEX if form == 'DESCRIBE' else SH}SPARQL{form.title()}Executable"
    for form in QUERY_PROPERTIES.values()
}

#: The properties that are read.
PROPERTIES = (
    *QUERY_PROPERTIES,
    RDF_TYPE,
    *(RDFS + name for name in ("comment", "label")),
    *(SH + name for name in ("prefixes", "declare", "prefix", "namespace")),
    *(SCHEMA + name for name in ("target", "keywords")),
    SPEX + "federatesWith",
    *(RB + name for name in ("group", "bag", "ordered", "template", "split")),
)

#: Vocabularies whose terms are all known.
CLOSED: tuple[type[namespace.DefinedNamespace], ...] = (
    namespace.SH, namespace.RDFS, namespace.RDF, namespace.SDO, namespace.DCTERMS, namespace.SKOS,
    namespace.FOAF,
)  # fmt: skip
_NAMESPACES = (SH, RDFS, SCHEMA, SPEX, RB)
_LOCAL_NAMES = {local_name(p).lower(): p for p in PROPERTIES}
_EXECUTABLE = "SPARQLExecutable"
_HTML = "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML"
_TRUE = ("true", "1")

Value = ox.NamedNode | ox.BlankNode | ox.Literal


@lru_cache(maxsize=1024)
def property_of(iri: str) -> str:
    """Return the property that an IRI means, correcting misspelled ones of our vocabularies."""
    near = get_close_matches(namespace_of(iri), _NAMESPACES, n=1, cutoff=0.85)
    if iri in PROPERTIES or not near:
        return iri
    whole = near[0] + local_name(iri)
    if whole not in PROPERTIES and any(URIRef(whole) in known for known in CLOSED):
        # sh:order and sh:group are terms of their own, not our annotations misspelled.
        return iri
    meant = get_close_matches(local_name(iri).lower(), _LOCAL_NAMES, n=1, cutoff=0.8)
    return _LOCAL_NAMES[meant[0]] if meant else iri


@dataclass
class RawExample:
    """What a file says about one example: values by corrected property, in order."""

    resource: str
    file: str
    values: dict[str, list[Value]] = field(default_factory=lambda: defaultdict(list))
    findings: list[Finding] = field(default_factory=list)  #: What was odd about it as a task

    @cached_property
    def id(self) -> str:
        """The id that its task has or would have."""
        # Of a URN, its part after the last colon.
        name = re.sub(r"^(.*[/#]|.*:)", "", self.resource.rstrip("/#:"))
        return re.sub(r"[^\w.\-]+", "_", name) or PurePosixPath(self.file).stem

    def texts(self, iri: str) -> list[str]:
        """Return the lexical values of a property."""
        return [v.value for v in self.values.get(iri, ())]

    def finding(self, code: str, what: str, hint: str = "", **fields: Any) -> Finding:
        """Return a finding on the example."""
        return Finding(code, f"{self.id} {what}", self.file, hint, {"id": self.id, **fields})

    def _note(self, code: str, what: str, hint: str = "", **fields: Any) -> None:
        self.findings.append(self.finding(code, what, hint, **fields))

    def task(
        self, pack: Pack, targets: Mapping[str, str], prefixes: Mapping[str, str], language: str
    ) -> LoadedTask | None:
        """Return the task, or None without a query or question; oddities go to `findings`."""
        if self.id != PurePosixPath(self.file).stem and not self.texts(RB + "template"):
            self._note("id-mismatch", "is in a file with another name")
        query = self._query()
        question = self._question(language)
        if query is None or question is None:
            return None
        form, text = query
        completed = complete_prefixes(text, prefixes)
        if completed.unknown:
            names = ", ".join(f"{p}:" for p in completed.unknown)
            unknown = list(completed.unknown)
            self._note("unknown-prefix", f"uses undeclared prefixes: {names}", prefixes=unknown)
        texts = self.texts

        def first(name: str) -> str:
            return next(iter(texts(RB + name)), "")

        task = LoadedTask(
            id=self.id,
            query=question[0],
            expected_sparql=completed.text,
            endpoint=self._target(pack.endpoint, targets),
            keywords=self._keywords(),
            form=form,
            resource=self.resource,
            federates_with=tuple(dict.fromkeys(texts(SPEX + "federatesWith"))),
            source_file=self.file,
            corpus=pack.key,
            group=first("group"),
            bag=any(v in _TRUE for v in texts(RB + "bag")),
            ordered=any(v in _TRUE for v in texts(RB + "ordered")),
            language=question[1],
            template=first("template"),
            split=first("split"),
        )
        usable = (t for t in texts(SCHEMA + "target") if t in targets)
        return task.deferred(text, tuple(dict.fromkeys(usable)))

    def _query(self) -> tuple[QueryForm, str] | None:
        found = [(form, text) for iri, form in QUERY_PROPERTIES.items() for text in self.texts(iri)]
        if not found:
            self._note("no-query", "has no query", "add one as sh:select")
            return None
        if len(found) > 1:
            self._note("several-queries", f"has {len(found)} queries; the first is used")
        form, text = found[0]
        if not text.strip():
            self._note("empty-query", "has an empty query")
            return None
        classes = set(self.texts(RDF_TYPE))
        if not classes:
            self._note("no-class", "has no class", "add sh:SPARQLExecutable")
        elif others := classes & (set(CLASS_OF_FORM.values()) - {CLASS_OF_FORM[form]}):
            names = ", ".join(sorted(local_name(c) for c in others))
            self._note("form-mismatch", f"has the class {names} but a {form} query", form=form)
        return form, text

    def _question(self, language: str) -> tuple[str, str] | None:
        texts = self.values.get(RDFS + "comment") or self.values.get(RDFS + "label") or ()
        found = [v for v in texts if isinstance(v, ox.Literal) and v.value.strip()]
        if not found:
            self._note("no-question", "has no question", "add an rdfs:comment")
            return None
        # A basic language range (RFC 4647, section 3.3.1): "pt" also matches "pt-BR".
        wanted = f"{language.lower()}-"
        in_language = [v for v in found if f"{(v.language or '').lower()}-".startswith(wanted)]
        if len(in_language or found) > 1:
            self._note("several-questions", "has several comments; one is used")
        # Plain text before HTML, tagged text before untagged, then the first.
        best = min(
            in_language or found, key=lambda v: (v.datatype.value == _HTML, v.language is None)
        )
        text = best.value
        if best.datatype.value == _HTML:
            self._note("html-question", "has a question in HTML; its text is used")
            text = " ".join(unescape(re.sub(r"</?[A-Za-z!][^>]*>", "", text)).split())
            if not text:
                self._note("no-question", "has a question in HTML without text")
                return None
        return " ".join(text.split()), (best.language or language)

    def _keywords(self) -> tuple[str, ...]:
        words = ",".join(self.texts(SCHEMA + "keywords")).split(",")
        found = tuple(dict.fromkeys(filter(None, map(str.strip, words))))
        if not found:
            self._note("no-keywords", "has no keywords")
        return found

    def _target(self, endpoint: str, targets: Mapping[str, str]) -> str:
        written = list(dict.fromkeys(self.texts(SCHEMA + "target")))
        for bad in (t for t in written if t not in targets):
            self._note("bad-target", f"has a target that is no HTTP address: {bad!r}", target=bad)
        usable = [t for t in written if t in targets]
        for target in usable:
            if (read := targets[target]) != target:
                what = f"has the target {target}, read as {read}"
                self._note("target-variant", what, target=target, read=read)
        canonical = list(dict.fromkeys(targets[t] for t in usable))
        if not canonical:
            self._note("no-target", "has no target; the pack's endpoint is used")
            return endpoint
        if len(canonical) > 1:
            self._note("several-targets", f"has several targets: {', '.join(canonical)}")
        return endpoint if endpoint in canonical else canonical[0]


@dataclass
class ExampleFile:
    """What one file holds."""

    path: str
    examples: list[RawExample] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def example_files(folder: Path) -> list[Path]:
    """Return the Turtle files of a folder."""
    return sorted(file for file in folder.rglob("*") if file.suffix.lower() == ".ttl")


def read_examples(folder: Path) -> list[ExampleFile]:
    """Read the Turtle files of a folder."""
    return [_read_file(file, file.relative_to(folder).as_posix()) for file in example_files(folder)]


def _read_file(path: Path, name: str) -> ExampleFile:
    out = ExampleFile(name)
    subjects: dict[str, RawExample] = {}
    last = ""
    try:
        for key, predicate, value in _statements(path.read_bytes()):
            last = key
            raw = subjects.setdefault(key, RawExample("" if key.startswith("_:") else key, name))
            iri = property_of(predicate)
            raw.values[iri].append(value)
            if iri != predicate:
                what = f"<{predicate}> was read as <{iri}>"
                found = Finding("misspelt-property", what, name, "write the latter", {"iri": iri})
                out.findings.append(found)
    except OSError as error:
        out.findings.append(Finding("unreadable", f"{error.strerror or error}", name))
    except (SyntaxError, ValueError) as error:
        # The current subject may be incomplete, so it is dropped.
        subjects.pop(last, None)
        out.findings.append(Finding("syntax-error", " ".join(str(error).split())[:300], name))
    for raw in subjects.values():
        names, namespaces = raw.texts(SH + "prefix"), raw.texts(SH + "namespace")
        if names and namespaces:
            out.prefixes[names[0].removesuffix(":")] = namespaces[0]
        queried = not raw.values.keys().isdisjoint(QUERY_PROPERTIES)
        if queried or any(one.endswith(_EXECUTABLE) for one in raw.texts(RDF_TYPE)):
            out.examples.append(raw)
    return out


def _statements(data: bytes) -> Iterator[tuple[str, str, Value]]:
    try:
        data = data.decode("utf-8-sig").encode()
    except UnicodeDecodeError:
        data = data.decode("latin-1").encode()
    for quad in ox.parse(data, format=ox.RdfFormat.TURTLE, base_iri="file:///", lenient=True):
        if not isinstance(quad.object, ox.Triple):
            named = isinstance(quad.subject, ox.NamedNode)
            key = quad.subject.value if named else str(quad.subject)
            yield key, quad.predicate.value, quad.object


def canonical_targets(targets: Iterable[str], preferred: str = "") -> dict[str, str]:
    """Return each address's canonical spelling: `preferred`, else the most frequent variant."""
    counts = Counter(targets)
    chosen: dict[str, str] = {}
    for target in (preferred, *sorted(counts, key=lambda one: (-counts[one], one))):
        if key := address_key(target):
            chosen.setdefault(key, target)
    return {t: chosen[key] for t in counts if (key := address_key(t))}


def declared_prefixes(query: str) -> dict[str, str]:
    """Return the prefixes that a query or update declares: prefix → namespace."""
    tokens = tokenize(query)
    return {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.is_word("PREFIX") and name.kind == "name" and iri.kind == "iri"
    }


def corpus_prefixes(queries: Iterable[str]) -> dict[str, str]:
    """Return the prefixes that queries declare; of two namespaces the more frequent one."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for query in queries:
        for name, iri in declared_prefixes(query).items():
            found[name][iri] += 1
    return {name: counted.most_common(1)[0][0] for name, counted in sorted(found.items())}


class Completed(NamedTuple):
    """A query with declarations added, and the prefixes that nobody declares."""

    text: str
    unknown: tuple[str, ...]


def complete_prefixes(query: str, known: Mapping[str, str]) -> Completed:
    """Declare the known prefixes that a query uses and does not declare."""
    declared = declared_prefixes(query)
    used = dict.fromkeys(t.text.partition(":")[0] for t in tokenize(query) if t.kind == "name")
    missing = [prefix for prefix in used if prefix not in declared]
    head = "".join(f"PREFIX {prefix}: <{known[prefix]}>\n" for prefix in missing if prefix in known)
    return Completed(head + query, tuple(p for p in missing if p not in known))


@dataclass(frozen=True)
class Corpus:
    """The tasks of a folder of examples, and what was odd about it."""

    name: str  #: The pack's name, or the folder's
    tasks: tuple[LoadedTask, ...]  #: Sorted by source file, then by order in the file
    findings: tuple[Finding, ...]  #: Sorted by file (`where`) and code

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
    files = read_examples(pack.examples)
    findings = [finding for file in files for finding in file.findings]
    targets = canonical_targets(
        (t for file in files for raw in file.examples for t in raw.texts(SCHEMA + "target")),
        pack.endpoint,
    )
    declared: dict[PurePosixPath, dict[str, str]] = defaultdict(dict)
    for file in files:
        declared[PurePosixPath(file.path).parent].update(file.prefixes)
    drafts: list[LoadedTask | None] = []
    for file in files:
        prefixes = dict(pack.prefixes)
        # A declaration holds in its folder and below.
        for folder in reversed(PurePosixPath(file.path).parents):
            prefixes |= declared.get(folder, {})
        for raw in file.examples:
            drafts.append(raw.task(pack, targets, prefixes, language))
            findings += raw.findings
    tasks = [task for task in drafts if task is not None]
    if not tasks:
        findings.append(Finding("no-examples", f"{pack.examples.name} holds no SHACL example", "."))
    unique = _with_unique_ids(tasks, findings)
    findings.sort(key=lambda finding: (finding.where, finding.code))
    return Corpus(pack.key, unique, tuple(findings))


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
