"""Reading one Turtle file of a corpus: the SHACL examples and prefix declarations in it."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pyoxigraph as ox

from reasoningbank.corpus.findings import Finding
from reasoningbank.corpus.vocabulary import QUERY_PROPERTIES, RDF_TYPE, SH, property_of

__all__ = ["ExampleFile", "RawExample", "local_name", "plain_text", "read_example_file"]

Value = ox.NamedNode | ox.BlankNode | ox.Literal
_EXECUTABLE = "SPARQLExecutable"


@dataclass
class RawExample:
    """What a file says of one example, in the order it says it.

    Attributes:
        resource: The IRI of the example; ``''`` for a blank node.
        values: The values by property, misspelt properties mended.
    """

    resource: str
    values: dict[str, list[Value]] = field(default_factory=lambda: defaultdict(list))

    def texts(self, iri: str) -> list[str]:
        """Return the lexical values of a property."""
        return [v.value for v in self.values.get(iri, ())]


@dataclass
class ExampleFile:
    """What one file holds."""

    path: str
    examples: list[RawExample] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def read_example_file(path: Path, name: str) -> ExampleFile:
    """Read the examples of one Turtle file.

    Args:
        path: Where the file is.
        name: How findings call it.

    Returns:
        What could be read: of a file that breaks off in a syntax error, the subjects before
        the broken one, and a finding.
    """
    out = ExampleFile(name)
    subjects: dict[str, RawExample] = {}
    last = ""
    try:
        for key, predicate, value in _statements(path.read_bytes()):
            last = key
            raw = subjects.setdefault(key, RawExample("" if key.startswith("_:") else key))
            iri, as_written = property_of(predicate)
            raw.values[iri].append(value)
            if not as_written:
                out.findings.append(
                    Finding(
                        name,
                        "misspelt-property",
                        f"<{predicate}> was read as <{iri}>; write the latter",
                    )
                )
    except OSError as error:
        out.findings.append(Finding(name, "unreadable", f"{error.strerror or error}"))
    except (SyntaxError, ValueError) as error:
        # The subject at hand may lack its second half, so it is not trusted.
        subjects.pop(last, None)
        out.findings.append(Finding(name, "syntax-error", _one_line(error)))
    out.prefixes = dict(_declarations(subjects))
    out.examples = [raw for raw in subjects.values() if _is_example(raw)]
    return out


def _statements(data: bytes) -> Iterator[tuple[str, str, Value]]:
    # Bytes that are no UTF-8 are kept readable rather than losing the example.
    try:
        data.decode()
    except UnicodeDecodeError:
        data = data.decode("latin-1").encode()
    for quad in ox.parse(data, format=ox.RdfFormat.TURTLE, base_iri="file:///", lenient=True):
        if isinstance(quad.subject, ox.Triple) or isinstance(quad.object, ox.Triple):
            continue
        key = str(quad.subject) if isinstance(quad.subject, ox.BlankNode) else quad.subject.value
        yield key, quad.predicate.value, quad.object


def _is_example(raw: RawExample) -> bool:
    if any(iri in raw.values for iri in QUERY_PROPERTIES):
        return True
    return any(local_name(v.value).endswith(_EXECUTABLE) for v in raw.values.get(RDF_TYPE, ()))


def _declarations(subjects: dict[str, RawExample]) -> Iterator[tuple[str, str]]:
    for raw in subjects.values():
        names, namespaces = raw.texts(SH + "prefix"), raw.texts(SH + "namespace")
        if names and namespaces:
            yield names[0].removesuffix(":"), namespaces[0]


def local_name(iri: str) -> str:
    """Return the part of an IRI behind its last ``#``, ``/`` or, without these, ``:``.

    Examples:
        >>> local_name("https://example.org/.well-known/sparql-examples/017_names")
        '017_names'
        >>> local_name("urn:example:017_names")
        '017_names'
    """
    iri = iri.rstrip("/#:")
    # An IRI with neither, such as urn:example:017_names, ends in what follows its last colon.
    return re.split(r"[/#]", iri)[-1] if re.search(r"[/#]", iri) else iri.rpartition(":")[2]


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def plain_text(html: str) -> str:
    """Return the text of an HTML fragment on one line, tags left out.

    Examples:
        >>> plain_text("Which <a href='/p'>proteins</a>\\n are &lt; 10 kDa?")
        'Which proteins are < 10 kDa?'
    """
    parser = _Text()
    # Python's parser gives up on marked sections such as <![x[; what stands before is kept.
    with contextlib.suppress(AssertionError):
        parser.feed(html)
        parser.close()
    return " ".join("".join(parser.parts).split())


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
