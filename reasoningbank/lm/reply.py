"""Taking a query out of what a model wrote."""

from __future__ import annotations

import re

__all__ = ["json_in", "query_in"]

_FENCE = re.compile(r"```[ \t]*([A-Za-z]*)[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_START = re.compile(r"(?im)^[ \t]*(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b")
#: DSPy's field markers, which small models put where they do not belong.
_MARKER = re.compile(r"\[\[ ## \w+ ## \]\]")


def query_in(text: str | None) -> str | None:
    """Return the SPARQL query in a reply, or None where there is none.

    Models wrap queries in code fences and sentences. Of several fenced blocks the last that
    holds a query is taken; without a fence, all from the first line that begins like a query.

    Examples:
        >>> query_in("Here it is:\\n```sparql\\nASK { ?s ?p ?o }\\n```\\nGood luck!")
        'ASK { ?s ?p ?o }'
        >>> query_in("select ?s where { ?s ?p ?o }")
        'select ?s where { ?s ?p ?o }'
        >>> query_in("I do not know.") is None
        True
    """
    if not text:
        return None
    text = _MARKER.sub("\n", text)
    blocks = [body for _, body in _FENCE.findall(text) if _START.search(body)]
    body = blocks[-1] if blocks else text.replace("```", "")
    start = _START.search(body)
    return body[start.start() :].strip() if start else None


def json_in(text: str) -> str:
    """Return the JSON in a reply: what stands in its last fence with an object or a list in it.

    Nothing is mended: what is no JSON comes back as it is, for a parser to say what is wrong.

    Examples:
        >>> json_in('Here you are:\\n```json\\n{"a": 1}\\n```')
        '{"a": 1}'
        >>> json_in(' {"a": 1}')
        '{"a": 1}'
    """
    text = _MARKER.sub("\n", text)
    blocks = [body for _, body in _FENCE.findall(text) if body.lstrip()[:1] in ("{", "[")]
    return (blocks[-1] if blocks else text).strip()
