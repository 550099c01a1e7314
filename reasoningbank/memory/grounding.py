"""What schema and data say about names, and the checks on a draft before it is stored.

An item that names what does not exist, or that gives away a training task's answer, does harm for
as long as it is kept; so whatever is not known to hold is rejected, with the reason.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.findings import Finding
from reasoningbank.memory.experience import Draft, Experience
from reasoningbank.memory.skeleton import slot_names
from reasoningbank.schema import NamedTerm, Schema, namespace_of, probe_run
from reasoningbank.schema.names import used_names
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    BooleanResult,
    EndpointConfig,
    Result,
    TableResult,
    Term,
    iri,
    string_literal,
)
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.terms import absolute, written
from reasoningbank.sparql.tokens import tokenize, tokens_within
from reasoningbank.sparql.tree import outline, read_query

#: Texts of a resource that are compared with a question.
_MOST_TEXTS = 50
#: Shorter texts are in a question by chance.
_LEAST_TEXT = 3
#: Classes that say nothing about a resource.
_VAGUE = frozenset(
    STANDARD_PREFIXES[prefix] + name
    for prefix, names in (
        ("owl", ("Thing", "Class", "NamedIndividual")),
        ("rdfs", ("Class", "Resource")),
        ("skos", ("Concept",)),
    )
    for name in names
)


#: Maximum characters of the texts of an item; whole items are packed into a few hundred tokens.
MOST_CHARS = {"title": 120, "description": 400, "content": 1_200, "pattern": 1_500}

_NEGATIONS = frozenset({"no", "not", "never", "without", "nothing"})
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]+", re.UNICODE)


@dataclass(eq=False)
class Facts:
    """What is known of an endpoint's names; it is asked what the schema lacks, each query once."""

    vocabulary: Schema
    endpoint: EndpointConfig
    given: Callable[[str], Result] | None = None
    languages: Sequence[str] = ("en",)

    def __post_init__(self) -> None:
        self.namespaces: Mapping[str, str] = self.endpoint.namespaces
        self.terms = (*self.vocabulary.classes, *self.vocabulary.properties)
        #: The namespaces of classes and properties.
        self.homes = frozenset(map(namespace_of, self.terms))
        #: Sends queries; by default to the endpoint, within 3 s.
        self.run = self.given or probe_run(self.endpoint)
        self._answer = functools.cache(self.run)

    def iri_of(self, written: str) -> str | None:
        """Return the IRI of a name; None for other terms and unknown prefixes."""
        return absolute(written, self.namespaces)

    def names(self, query: str) -> dict[str, str]:
        """Return the names in a query, as written, and their IRIs."""
        written = (token.text for token in tokenize(query) if token.kind in ("iri", "name"))
        return {text: name for text in written if (name := self.iri_of(text)) is not None}

    def property_of(self, written: str) -> NamedTerm | None:
        return self.vocabulary.properties.get(self.iri_of(written) or "")

    def show(self, name: str) -> str:
        return written(name, self.namespaces)

    def is_term(self, name: str) -> bool:
        return self.vocabulary.term(name) is not None

    def has_data(self, name: str) -> bool:
        """Return whether a class or property is known to have instances or uses."""
        term = self.vocabulary.term(name)
        return term is not None and (
            term.in_data or not self.vocabulary.complete or bool(self.vocabulary.below(name))
        )

    def exists(self, name: str) -> bool | None:
        """Return whether an IRI occurs in the data; None if unknown."""
        if self.is_term(name):
            return self.has_data(name)
        term = iri(name)
        found = self.ask(
            f"ASK {{ {{ {term} ?p ?o }} UNION {{ ?s {term} ?o }} UNION {{ ?s ?p {term} }} }}"
        )
        return found.value if isinstance(found, BooleanResult) else None

    def kind_of(self, name: str) -> str:
        """Return the most specific known class of a resource; may be empty."""
        rows = self._rows(f"SELECT DISTINCT ?kind {{ {iri(name)} a ?kind }} LIMIT 10")
        kinds = {term.value for (term,) in rows if isinstance(term, NamedNode)} - _VAGUE
        return min(kinds, key=lambda kind: (not self.is_term(kind), kind), default="")

    def called_in(self, name: str, question: str) -> tuple[str, str] | None:
        """Return the property and the text by which a question refers to a resource."""
        asked = question.casefold()
        body = f"{iri(name)} ?property ?text FILTER(isLiteral(?text))"
        rows = self._rows(f"SELECT ?property ?text {{ {body} }} LIMIT {_MOST_TEXTS}")
        found = (
            (property_.value, text.value)
            for property_, text in rows
            if isinstance(property_, NamedNode)
            and isinstance(text, Literal)
            and len(text.value) >= _LEAST_TEXT
            and text.value.casefold() in asked
        )
        return min(found, key=lambda one: (-len(one[1]), *one), default=None)

    def is_called(self, texts: Sequence[str]) -> bool:
        """Return whether one of these texts occurs in the data."""
        tags = (None, *self.languages)
        written = " ".join(string_literal(text, tag) for text in texts for tag in tags)
        found = self.ask(f"ASK {{ VALUES ?text {{ {written} }} ?thing ?property ?text }}")
        return isinstance(found, BooleanResult) and found.value

    def _rows(self, query: str) -> list[tuple[Term | None, ...]]:
        found = self.ask(query)
        return found.rows() if isinstance(found, TableResult) else []

    def ask(self, query: str) -> Result | None:
        """Return the result of a query; None if it fails."""
        try:
            return self._answer(query)
        except (EndpointError, QueryError):
            # Not cached: a slow endpoint may answer for the next task.
            return None


@dataclass(frozen=True)
class Grounding:
    """Checks drafts against schema, data, and what their attempts saw."""

    facts: Facts

    def findings(self, draft: Draft) -> list[Finding]:
        """Return what is wrong with a draft; nothing if it may be stored."""
        found: list[Finding] = []
        if not draft.title.strip():
            found.append(Finding("no-title", "it has no title"))
        if not draft.content.strip() and not draft.pattern.strip():
            found.append(Finding("empty-item", "it says nothing"))
        for part, most in MOST_CHARS.items():
            length = len(getattr(draft, part))
            if length > most:
                what = f"its {part} has {length:,} characters, more than {most:,}"
                found.append(Finding("too-long", what, fields={"part": part, "chars": length}))
        found += self._of_pattern(draft.probe)
        found += self.of_text(draft, f"{draft.title}\n{draft.description}\n{draft.content}")
        said = _WORD.findall((draft.description + draft.content).casefold())
        if not draft.pattern and said == _WORD.findall(draft.experience.question.casefold()):
            found.append(Finding("only-question", "it says nothing but the question"))
        turns = "\n".join(f"{t.reasoning}\n{t.code}\n{t.output}" for t in draft.turns)
        found += self._secrets(f"{draft.pattern}\n{draft.question}\n{draft.query}\n{turns}")
        if draft.unproven:
            what = "its patterns match nothing, so many wrong queries give the same answer"
            found.append(Finding("unproven", what))
        return list(dict.fromkeys(found))

    def of_text(self, draft: Draft, text: str) -> list[Finding]:
        """Return what is wrong with a text that is to be part of a draft."""
        found = []
        for sentence in _SENTENCE.split(text):
            negated = False
            for kind, word in _words(sentence):
                if kind == "word":
                    negated = negated or word.casefold() in _NEGATIONS
                elif finding := self._name(draft, word, negated=negated):
                    found.append(finding)
        if answer := _answer_in(text, draft.experience, draft.constants):
            what = f"gives away what the attempt found: {answer!r:.60}"
            found.append(Finding("answer", what, fields={"value": answer}))
        found += self._secrets(text)
        for name in [n for n in slot_names(text) if n not in slot_names(draft.pattern)][:1]:
            what = f"mentions <<{name}>>, which is not one of its slots"
            found.append(Finding("unknown-slot", what, fields={"name": name}))
        return found

    def _of_pattern(self, probe: str) -> Iterator[Finding]:
        if not probe:
            return
        try:
            prepared = prepare(probe, prefixes=self.facts.namespaces)
            used = used_names(read_query(prepared.text))
        except QueryError as error:
            yield Finding("bad-skeleton", f"its skeleton does not parse: {error.what}")
            return
        vocabulary = self.facts.vocabulary
        for name in used:
            if name.role == "resource" or name.iri.startswith("urn:slot"):
                continue
            exists = self.facts.exists(name.iri)
            fields = {"name": name.written, "role": name.role}
            what = f"its skeleton uses the {name.role} {name.written}"
            is_property = name.iri in vocabulary.properties and name.iri not in vocabulary.classes
            if exists is False:
                yield Finding("unknown-name", f"{what}, which is not in the data", fields=fields)
            elif exists is None:
                what += ", and whether it exists could not be checked"
                yield Finding("unchecked-name", what, fields=fields)
            elif name.role == "class" and is_property:
                yield Finding("wrong-role", f"{what}, which is a property", fields=fields)

    def _name(self, draft: Draft, written: str, *, negated: bool) -> Finding | None:
        facts, fields = self.facts, {"name": written}
        name = facts.iri_of(written)
        if written in draft.denied:
            if not negated:
                what = f"names {written}, which does not exist, without saying so"
                return Finding("denied-name", what, fields=fields)
            if name is not None and facts.exists(name):
                what = f"says that {written} does not exist, but it does"
                return Finding("denied-name", what, fields=fields)
            return None
        if name is None:
            if written.startswith("<"):
                return None
            what = f"names {written}, whose prefix is unknown"
            return Finding("unknown-prefix", what, fields=fields)
        # A name of a right query's SERVICE is of another endpoint.
        queries = (draft.pattern, draft.experience.sparql or "")
        of_service = any(written in services_names(query) for query in queries)
        if name.startswith("urn:") or (draft.experience.success and of_service):
            return None
        exists = facts.exists(name)
        at_home = namespace_of(name) in facts.homes
        if exists is False:
            is_class = written.partition(":")[2][:1].isupper()
            kind = "resource" if not at_home else "class" if is_class else "property"
            what = f"names the {kind} {written}, which is not in the data"
            return Finding("unknown-name", what, fields={**fields, "role": kind})
        if exists is None:
            what = f"names {written}, and whether it exists could not be checked"
            return Finding("unchecked-name", what, fields=fields)
        # An individual of the vocabulary, such as a rank or a method, is part of the schema.
        if written not in draft.constants and not at_home and not facts.is_term(name):
            what = f"names {written}, which is not in the question's query: it may be an answer"
            return Finding("foreign-name", what, fields=fields)
        return None

    def _secrets(self, text: str) -> list[Finding]:
        secret = secret_in(text, self.facts.endpoint)
        return [Finding("secret", f"contains {secret}")] if secret else []


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words and the names of a text, in order."""
    for token in tokenize(text):
        # In prose a colon may follow a name, and occurs in times of day.
        written = token.text.rstrip(":") if token.kind == "name" else token.text
        if token.kind == "iri" or (token.kind == "name" and ":" in written[1:]):
            yield "name", written
        elif token.kind in ("word", "name"):
            yield "word", written


def names_in(text: str) -> tuple[str, ...]:
    """Return the prefixed names and IRIs in a text, each once, as written."""
    return tuple(dict.fromkeys(word for kind, word in _words(text) if kind == "name"))


def services_names(query: str) -> frozenset[str]:
    """Return the names in a query's SERVICE clauses, and their addresses."""
    try:
        body = outline(query).body if query else ()
    except QueryError:
        body = ()
    inside = tokens_within(body, ("SERVICE",), "{}")
    return frozenset(token.text for token in inside if token.kind in ("iri", "name"))


#: Shorter values, such as small numbers, are in any text by chance.
_LEAST_ANSWER = 4
#: Tools that show the rows of a query.
_SHOW_ROWS = frozenset({"sparql_peek", "sparql_slice"})


def _answer_in(text: str, experience: Experience, constants: frozenset[str]) -> str:
    """Return a value that a text gives away: one in rows that the attempt looked at."""
    trajectory = experience.trajectory
    showing = {e.index for e in trajectory.of("tool_call") if e.data.get("tool") in _SHOW_ROWS}
    seen: set[str] = set()
    for event in trajectory.of("tool_result"):
        if event.parent in showing:
            shown = leaves(trajectory.resolve(event.data).get("result"))
            seen.update(str(v) for v in shown if isinstance(v, str | int | float))
    asked = f"{experience.question}\n{experience.sparql or ''}".casefold()
    said = text.casefold()
    for value in sorted(seen - constants):
        # Names are checked as such.
        is_name = value.startswith("<") or (":" in value and " " not in value)
        plain = value.casefold()
        if is_name or len(value) < _LEAST_ANSWER or plain in asked:
            continue
        if re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", said):
            return value
    return ""


def leaves(value: Any) -> Iterator[Any]:
    """Yield what mappings and lists within one another hold, without truth values."""
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from leaves(inner)
    elif not isinstance(value, bool):
        yield value


#: Kind of secret → its shapes.
_SECRETS = {
    "a key": re.compile(
        r"""\b(?:sk|pk|hf|ghp|gho|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}
        | \b(?:AKIA|AIza)[A-Za-z0-9_-]{12,}
        | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----""",
        re.VERBOSE,
    ),
    "a password": re.compile(
        r"""(?i:\b(?:api[_-]?key|passw(?:or)?d|secret|token|authorization)\b\s*[:=]\s*['"]?\S{4,})
        | \b(?:Bearer|Basic)\s+[A-Za-z0-9+/._=-]{12,}
        | \bhttps?://[^\s/@:]+:[^\s/@]+@""",
        re.VERBOSE,
    ),
    # After a letter, a colon or a slash it is the end of an IRI or a step of a property path. On
    # Windows at least two folders: a REGEX may contain "C:\\w".
    "a path of a machine": re.compile(
        r"""(?<![\w:/.])/(?:home|Users|Volumes|root|tmp|var|opt|etc|usr|srv|mnt|media|scratch
        |work|workspace)/[^\s'"]+
        | \b(?i:file):/[^\s'"<>]+
        | (?<!\w)[A-Za-z]:\\{1,2}[A-Za-z][\w .-]+\\""",
        re.VERBOSE,
    ),
}
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s<>\"'{}]+", re.IGNORECASE)
_OWN_HOSTS = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
#: Shorter header values, such as ``*/*``, are in a text by chance.
_LEAST_HEADER_CHARS = 8


def secret_in(text: str, endpoint: EndpointConfig | None = None) -> str:
    """Return the kind of secret in a text: a key, a password, a private address; empty if none."""
    for what, shape in _SECRETS.items():
        if shape.search(text):
            return what
    if any(_is_private(address) for address in _ADDRESS.findall(text)):
        return "an address of a machine"
    headers = endpoint.headers.values() if endpoint is not None else ()
    if any(len(value) >= _LEAST_HEADER_CHARS and value in text for value in headers):
        return "a password"
    return ""


def _is_private(address: str) -> bool:
    try:
        host = (urlsplit(address).hostname or "").rstrip(".,;)]")
        return f".{host}".endswith(_OWN_HOSTS) or ipaddress.ip_address(host).is_private
    except ValueError:
        return False
