"""Checking a whole corpus: shapes, queries, questions and, given an endpoint, answers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from rdflib import URIRef
from rdflib import namespace as known
from rdflib.term import Literal

from reasoningbank.corpus.draft import Draft
from reasoningbank.corpus.findings import Finding
from reasoningbank.corpus.pack import Pack, load_pack
from reasoningbank.corpus.questions import unmentioned
from reasoningbank.corpus.schema_names import schema_names
from reasoningbank.corpus.shacl import load_corpus
from reasoningbank.corpus.task import Task
from reasoningbank.corpus.turtle import local_name, read_example_file
from reasoningbank.corpus.validation_golds import gold_findings, names_of
from reasoningbank.corpus.validation_queries import CheckedQuery, check_query
from reasoningbank.corpus.validation_shapes import NamedExample, shape_findings
from reasoningbank.corpus.vocabulary import PROPERTIES, QUERY_PROPERTIES, RB
from reasoningbank.sparql import SPARQLClient

__all__ = ["validate"]

SLOW_S = 5.0
#: As many as the execution judge reads: a gold that is cut here cannot be judged.
MOST_ROWS = 5_000_000
_MOST_NAMED = 5
_MOST_CHARS = 60
#: Vocabularies whose terms are all known.
_CLOSED: tuple[type[known.DefinedNamespace], ...] = (
    known.SH, known.RDFS, known.RDF, known.SDO, known.DCTERMS, known.SKOS, known.FOAF,
)  # fmt: skip

_Names = Mapping[URIRef, Sequence[str]]


def validate(
    path: str | Path | Pack,
    client: SPARQLClient | None = None,
    *,
    language: str = "en",
    slow_s: float = SLOW_S,
    max_rows: int = MOST_ROWS,
) -> tuple[Finding, ...]:
    """Check a corpus and tell all that is odd about it, file by file.

    Nothing in a corpus makes this fail: a broken file is a finding, and the others are checked.
    Without an endpoint a constant whose IRI ends in a code (``…/taxonomy/9606``) is left out of
    the comparison with the question, since only data can tell what people call it.

    Args:
        path: A pack, its name, its folder, or any folder of Turtle files.
        client: Speaks to the endpoint on which every gold is run; none is run without one.
        language: The question's language where an example has several; that questions mention
            the constants of their golds is checked in all languages of the pack.
        slow_s: Seconds after which a gold is called slow.
        max_rows: Most rows or triples read of one answer.

    Returns:
        The findings of `load_corpus` and those of the checks, sorted by file and code.

    Raises:
        UsageError: No such pack or folder; the pack's schema cannot be read.
        SetupError: pySHACL is not installed.
    """
    pack = path if isinstance(path, Pack) else load_pack(path)
    corpus = load_corpus(pack, language=language)
    examples = _examples(pack.examples)
    found = [*corpus.findings, *_new(shape_findings(examples), corpus.findings)]
    for example in examples:
        found += _unknown_properties(example)
    texts = _query_texts(examples)
    checked = [check_query(task, _as_written(task, texts)) for task in corpus.tasks]
    found += (finding for one in checked for finding in one.findings)
    told = schema_names(pack)
    for asked in (checked, *_in_other_languages(checked, pack, language)):
        found += _unmentioned(asked, client, told)
    if client is not None:
        golds = [one.task for one in checked if one.prepared is not None]
        found += gold_findings(golds, client, slow_s=slow_s, max_rows=max_rows)
    return tuple(sorted(dict.fromkeys(found), key=lambda f: (f.file, f.code, f.message)))


def _examples(root: Path) -> list[NamedExample]:
    files = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.ttl"))}
    return [
        NamedExample(name, Draft(raw, name, []).id, raw)
        for name, path in files.items()
        for raw in read_example_file(path, name).examples
    ]


def _new(found: Iterable[Finding], loaded: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that loading has not told of the same example."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for finding in loaded:
        told[finding.file, finding.code].append(finding.message)
    for finding in found:
        example_id = finding.message.partition(" ")[0]
        if not any(example_id in m for m in told.get((finding.file, finding.code), ())):
            yield finding


def _unknown_properties(example: NamedExample) -> Iterator[Finding]:
    for written in example.raw.values:
        if (remark := _unknown(written)) is not None:
            message = f"{example.id} uses <{written}>, which its vocabulary does not have{remark}"
            yield Finding(example.file, "unknown-property", message)


@lru_cache(maxsize=1024)
def _unknown(written: str) -> str | None:
    """Return the nearest name as a remark, or None for a property that is one."""
    terms = _terms_beside(written)
    if terms is None or written in terms or written in PROPERTIES:
        return None
    by_name = {local_name(term): term for term in terms}
    near = get_close_matches(local_name(written), by_name, n=1, cutoff=0.7)
    return f"; did you mean <{by_name[near[0]]}>?" if near else ""


def _terms_beside(written: str) -> list[str] | None:
    """Return the terms of a property's vocabulary; None where they are not all known."""
    if written.startswith(RB):
        return [p for p in PROPERTIES if p.startswith(RB)]
    for space in _CLOSED:
        if written.startswith(str(space)):
            # Asked for one by one, since rdflib lists only what a class annotates.
            if URIRef(written) in space or re.fullmatch(r"_\d+", written[len(str(space)) :]):
                return [written]
            return [str(term) for term in dir(space) if isinstance(term, URIRef)]
    return None


# -- queries -------------------------------------------------------------------------------


def _query_texts(examples: Iterable[NamedExample]) -> dict[tuple[str, str], list[str]]:
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file, _, raw in examples:
        texts[file, raw.resource] += [t for iri in QUERY_PROPERTIES for t in raw.texts(iri)]
    return texts


def _as_written(task: Task, texts: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Return the gold without the prefixes that loading put before it."""
    written = texts.get((task.source_file, task.resource), ())
    fitting = [text for text in written if text and task.expected_sparql.endswith(text)]
    return max(fitting, key=len, default=task.expected_sparql)


# -- questions -----------------------------------------------------------------------------


def _unmentioned(
    checked: Sequence[CheckedQuery], client: SPARQLClient | None, known: _Names
) -> Iterator[Finding]:
    names = dict(known)
    left = _left_out(checked, names)
    if client is not None:
        # Only what its own name does not explain is worth a question to an endpoint.
        for config in (client.config, *client.config.federated):
            wanted = {c for _, constants in left for c in constants if isinstance(c, URIRef)}
            if wanted:
                for iri, told in names_of(sorted(wanted), SPARQLClient(config)).items():
                    names[iri] = [*names.get(iri, ()), *told]
                left = _left_out([one for one, _ in left], names)
    for one, constants in left:
        kept = [c for c in constants if client is not None or not _is_code(c)]
        if kept:
            shown = ", ".join(map(_shown, kept[:_MOST_NAMED]))
            more = f" and {len(kept) - _MOST_NAMED} more" if len(kept) > _MOST_NAMED else ""
            tongue = "" if one.task.language == "en" else f" in {one.task.language!r}"
            message = f"the question of {one.task.id}{tongue} does not mention {shown}{more}"
            yield Finding(one.task.source_file, "unmentioned-constant", message)


def _in_other_languages(
    checked: Iterable[CheckedQuery], pack: Pack, language: str
) -> Iterator[list[CheckedQuery]]:
    """Yield the queries with their questions in each further language of the pack."""
    listed = list(checked)
    for other in pack.languages:
        if other != language:
            tasks = {t.id: t for t in load_corpus(pack, language=other).tasks}
            asked = [replace(one, task=tasks[one.task.id]) for one in listed]
            yield [one for one in asked if one.task.language == other]


def _left_out(
    checked: Iterable[CheckedQuery], names: _Names
) -> list[tuple[CheckedQuery, list[URIRef | Literal]]]:
    found = []
    for one in checked:
        if one.prepared is not None and one.prepared.parsed is not None:
            constants = unmentioned(
                one.task.query,
                one.prepared.parsed,
                lambda i: names.get(i, ()),
                language=one.task.language.split("-")[0],
            )
            if constants:
                found.append((one, constants))
    return found


def _is_code(constant: URIRef | Literal) -> bool:
    return isinstance(constant, URIRef) and bool(re.search(r"\d", local_name(str(constant))))


def _shown(constant: URIRef | Literal) -> str:
    text = " ".join(str(constant).split())
    text = text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "…"
    return f"<{text}>" if isinstance(constant, URIRef) else repr(text)
