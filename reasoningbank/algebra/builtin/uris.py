"""Making URIs: ResolveURI, URI, EncodeForURI."""

from __future__ import annotations

import re
from urllib.parse import quote

import pyoxigraph
from pydantic import Field
from rdflib import Literal, URIRef

from reasoningbank.algebra.arguments import Text, Uri
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.values import Value

__all__ = ["URI", "EncodeForURI", "ResolveURI", "encode_for_uri", "resolve"]

#: ASCII characters that no IRI may hold, which `resolve` encodes.
_FORBIDDEN = frozenset('<>"{}|^`\\')
#: A percent sign that encodes nothing.
_STRAY = re.compile("%(?![0-9A-Fa-f]{2})")


def encode_for_uri(text: str) -> str:
    """Percent-encode all but the unreserved characters, as SPARQL's ENCODE_FOR_URI does.

    Raises:
        UnicodeEncodeError: It holds half of a character.

    Examples:
        >>> encode_for_uri("Malmö Municipality"), encode_for_uri("a/b:c~d")
        ('Malm%C3%B6%20Municipality', 'a%2Fb%3Ac~d')
    """
    return quote(text, safe="")


def resolve(base: str, relative: str) -> str:
    """Resolve a reference against a base by RFC 3986, section 5.

    Characters that no IRI may hold are percent-encoded; all others, percent signs of encoded
    characters included, stay.

    Raises:
        ProgramError: No IRI comes out.

    Examples:
        >>> resolve("http://e/page/Copenhagen/", "a b/")
        'http://e/page/Copenhagen/a%20b/'
        >>> resolve("http://e/page/Copenhagen", "custom-slug/")
        'http://e/page/custom-slug/'
    """
    told = ""
    # Square brackets belong into the address of a host and nowhere else.
    for forbidden in (_FORBIDDEN, _FORBIDDEN | {"[", "]"}):
        clean = _STRAY.sub("%25", "".join(_encoded(sign, forbidden) for sign in relative))
        document = f"<{clean}> <urn:p> <urn:o> ."
        try:
            triples = pyoxigraph.parse(document, pyoxigraph.RdfFormat.TURTLE, base_iri=base)
            subject = next(iter(triples)).subject
        except (SyntaxError, ValueError) as error:
            told = str(error).rpartition(": ")[2]
        else:
            return str(getattr(subject, "value", ""))
    what = f"{relative!r} cannot be resolved against {base}: {told}"
    raise ProgramError(what, hint="encode it with EncodeForURI")


def _encoded(sign: str, forbidden: frozenset[str]) -> str:
    odd = sign <= " " or sign == "\x7f" or "\ud800" <= sign <= "\udfff" or sign in forbidden
    return quote(sign, safe="", errors="replace") if odd else sign


@register
class ResolveURI(Operation):
    """Creates a new URI relative to the base URL.

    The relative URI must be pre-encoded (use EncodeForURI for names). The last segment of a base
    that does not end with a slash is replaced, as everywhere on the Web.
    """

    op = "ResolveURI"
    yields = "uri"
    examples = (
        Example(
            {"base": "http://dbpedia.org/page/Copenhagen/", "relative": "custom-slug/"},
            "http://dbpedia.org/page/Copenhagen/custom-slug/",
        ),
    )

    base: Uri = Field(description="The base URL; end it with a slash to add to it")
    relative: Text = Field(description="The relative URI, pre-encoded")

    def run(self, run: Evaluation) -> Value:
        """Return the URI."""
        return URIRef(resolve(str(self.base), str(self.relative)))


@register
class URI(Operation):
    """Makes a URI of a string, as SPARQL's URI() does.

    Use it where a string must become a URI in RDF data.
    """

    op = "URI"
    yields = "uri"
    examples = (
        Example(
            {"input": "http://dbpedia.org/resource/Copenhagen"},
            "http://dbpedia.org/resource/Copenhagen",
        ),
    )

    input: Uri = Field(description="An absolute URI")

    def run(self, run: Evaluation) -> Value:
        """Return the URI."""
        return self.input


@register
class EncodeForURI(Operation):
    """Percent-encodes a string for use inside a URI, as SPARQL's ENCODE_FOR_URI() does.

    Spaces, slashes, colons and all other special characters are replaced.
    """

    op = "EncodeForURI"
    yields = "text"
    examples = (Example({"input": "Malmö Municipality"}, "Malm%C3%B6%20Municipality"),)

    input: Text = Field(description="The string")

    def run(self, run: Evaluation) -> Value:
        """Return the encoded string."""
        return Literal(encode_for_uri(str(self.input)))
