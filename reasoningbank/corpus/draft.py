"""One SHACL example on its way to being a task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import cast

import pyoxigraph as ox

from reasoningbank.corpus.findings import Finding, FindingCode
from reasoningbank.corpus.loaded import LoadedTask
from reasoningbank.corpus.pack import Pack
from reasoningbank.corpus.prefixes import complete_prefixes
from reasoningbank.corpus.task import QueryForm
from reasoningbank.corpus.turtle import RawExample, local_name, plain_text
from reasoningbank.corpus.vocabulary import (
    CLASS_OF_FORM,
    QUERY_PROPERTIES,
    RB,
    RDF_TYPE,
    RDFS,
    SCHEMA,
    SPEX,
)
from reasoningbank.sparql import address_key

__all__ = ["Draft"]

_HTML = "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML"
_TRUE = ("true", "1")


class Draft:
    """One example on its way to being a task; oddities go to `findings`."""

    def __init__(self, raw: RawExample, file: str, findings: list[Finding]) -> None:
        self.raw = raw
        self.file = file
        self.findings = findings
        stem = PurePosixPath(file).stem
        self.id = re.sub(r"[^\w.\-]+", "_", local_name(raw.resource)) or stem
        if self.id != stem:
            self.note("id-mismatch", f"{self.id} stands in a file of another name")

    def note(self, code: FindingCode, message: str) -> None:
        self.findings.append(Finding(self.file, code, message))

    def task(
        self,
        pack: Pack,
        targets: Mapping[str, str],
        prefixes: Mapping[str, str],
        language: str,
    ) -> LoadedTask | None:
        query = self._query()
        question = self._question(language)
        if query is None or question is None:
            return None
        form, text = query
        completed = complete_prefixes(text, prefixes)
        if completed.unknown:
            names = ", ".join(f"{p}:" for p in completed.unknown)
            self.note("unknown-prefix", f"{self.id} uses {names} and nobody declares it")
        rb = self.raw.texts
        task = LoadedTask(
            id=self.id,
            query=question[0],
            expected_sparql=completed.text,
            endpoint=self._target(pack.endpoint, targets),
            keywords=self._keywords(),
            form=form,
            resource=self.raw.resource,
            federates_with=tuple(dict.fromkeys(rb(SPEX + "federatesWith"))),
            source_file=self.file,
            corpus=pack.key,
            group=next(iter(rb(RB + "group")), ""),
            bag=any(v in _TRUE for v in rb(RB + "bag")),
            ordered=any(v in _TRUE for v in rb(RB + "ordered")),
            language=question[1],
        )
        return task.deferred()

    def _query(self) -> tuple[QueryForm, str] | None:
        found = [
            (cast("QueryForm", form), text)
            for iri, form in QUERY_PROPERTIES.items()
            for text in self.raw.texts(iri)
        ]
        if not found:
            self.note("no-query", f"{self.id} has no query; give it one under sh:select")
            return None
        if len(found) > 1:
            self.note("several-queries", f"{self.id} has {len(found)} queries; the first is used")
        form, text = found[0]
        if not text.strip():
            self.note("empty-query", f"the query of {self.id} is empty")
            return None
        classes = set(self.raw.texts(RDF_TYPE))
        if not classes:
            self.note("no-class", f"{self.id} has no class; give it sh:SPARQLExecutable")
        elif others := classes & (set(CLASS_OF_FORM.values()) - {CLASS_OF_FORM[form]}):
            names = ", ".join(sorted(local_name(c) for c in others))
            self.note("form-mismatch", f"{self.id} is called {names} but holds a {form} query")
        return form, text

    def _question(self, language: str) -> tuple[str, str] | None:
        texts = self.raw.values.get(RDFS + "comment") or self.raw.values.get(RDFS + "label") or ()
        found = [v for v in texts if isinstance(v, ox.Literal) and v.value.strip()]
        if not found:
            self.note("no-question", f"{self.id} has no question; give it an rdfs:comment")
            return None
        in_language = [v for v in found if (v.language or "").split("-")[0] == language]
        if len(in_language or found) > 1:
            self.note("several-questions", f"{self.id} has several comments; one is used")
        # Plain text is preferred to HTML, the asked language to others, then the first.
        best = min(
            in_language or found, key=lambda v: (v.datatype.value == _HTML, v.language is None)
        )
        text = best.value
        if best.datatype.value == _HTML:
            self.note("html-question", f"the question of {self.id} is HTML; its text is used")
            text = plain_text(text)
            if not text:
                self.note("no-question", f"the question of {self.id} is HTML without text")
                return None
        return " ".join(text.split()), (best.language or language)

    def _keywords(self) -> tuple[str, ...]:
        words = (
            word.strip() for text in self.raw.texts(SCHEMA + "keywords") for word in text.split(",")
        )
        found = tuple(dict.fromkeys(w for w in words if w))
        if not found:
            self.note("no-keywords", f"{self.id} has no keywords")
        return found

    def _target(self, endpoint: str, targets: Mapping[str, str]) -> str:
        written = list(dict.fromkeys(self.raw.texts(SCHEMA + "target")))
        for bad in (t for t in written if address_key(t) is None):
            self.note("bad-target", f"the target {bad!r} of {self.id} is no http address")
        usable = [t for t in written if address_key(t) is not None]
        for target in usable:
            if targets[target] != target:
                self.note("target-variant", f"{target} was read as {targets[target]}")
        canonical = list(dict.fromkeys(targets[t] for t in usable))
        if not canonical:
            self.note("no-target", f"{self.id} names no endpoint; the pack's is used")
            return endpoint
        if len(canonical) > 1:
            self.note("several-targets", f"{self.id} names {', '.join(canonical)}")
        return endpoint if endpoint in canonical else canonical[0]
