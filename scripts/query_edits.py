"""Edits of a right query: into others that mean the same, and into ones with a single mistake.

Each edit is what a person or a model would write: a path spelt out, a constant in VALUES; or a
filter forgotten, a neighbouring property, a column too many. Whether an edited query is right or
wrong is not decided here: it is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["MISTAKES", "REWRITINGS", "Edit"]

#: A query to the queries that an edit makes of it, none where it does not apply.
Edit = Callable[[str], Iterator[str]]

#: Properties and classes that are taken for one another.
NEIGHBOURS: Mapping[str, str] = {
    "up:recommendedName": "up:alternativeName",
    "up:alternativeName": "up:recommendedName",
    "up:fullName": "up:shortName",
    "up:shortName": "up:fullName",
    "skos:prefLabel": "skos:altLabel",
    "skos:altLabel": "skos:prefLabel",
    "up:scientificName": "up:commonName",
    "up:commonName": "up:scientificName",
    "up:mnemonic": "up:oldMnemonic",
    "up:mass": "up:md5Checksum",
    "up:name": "rdfs:comment",
    "up:abbreviation": "rdfs:label",
    "up:substitution": "rdfs:comment",
    "up:source": "up:evidence",
    "faldo:begin": "faldo:end",
    "faldo:end": "faldo:begin",
    "rh:equation": "rh:id",
    "oboInOwl:hasExactSynonym": "oboInOwl:hasRelatedSynonym",
    "oboInOwl:hasRelatedSynonym": "oboInOwl:hasExactSynonym",
    "oboInOwl:hasNarrowSynonym": "oboInOwl:hasExactSynonym",
    "up:Modified_Sequence": "up:Simple_Sequence",
    "up:Function_Annotation": "up:Subcellular_Location_Annotation",
    "up:Natural_Variant_Annotation": "up:Mutagenesis_Annotation",
    "up:Modified_Residue_Annotation": "up:Glycosylation_Annotation",
    "up:Transmembrane_Annotation": "up:Topological_Domain_Annotation",
    "up:NMR_Spectroscopy": "up:X-Ray_Crystallography",
    "up:Predicted_Existence": "up:Uncertain_Existence",
    "up:Inferred_from_Homology_Existence": "up:Evidence_at_Transcript_Level_Existence",
    "up:Evidence_at_Protein_Level_Existence": "up:Evidence_at_Transcript_Level_Existence",
}

#: Operators and words that are taken for one another.
SLIPS: Mapping[str, str] = {
    ">": ">=", ">=": ">", "<": "<=", "<=": "<", "MIN": "MAX", "MAX": "MIN", "AVG": "MAX",
    "DESC": "ASC", "STRSTARTS": "CONTAINS", "CONTAINS": "STRSTARTS", "true": "false",
    "false": "true",
}  # fmt: skip

_NAMES_OF_OTHERS = ("item", "value", "res", "obj", "result", "thing", "label", "num", "entity", "z")


def _edited(query: str, token: Token, text: str) -> str:
    return query[: token.start] + text + query[token.end :]


def _body(query: str) -> int:
    """Return where the query begins, after its prefixes."""
    ends = [m.end() for m in re.finditer(r"(?im)^\s*prefix\s+\S*\s*<[^>]*>", query)]
    return max(ends, default=0)


def _each(query: str, replacements: Mapping[str, str]) -> Iterator[str]:
    for token in tokenize(query):
        if token.start >= _body(query) and token.text in replacements:
            yield _edited(query, token, replacements[token.text])


def _where(query: str) -> int:
    """Return the place after the first brace of the pattern; -1 if the query has none."""
    found = re.compile(r"(?is)\b(?:where\s*|ask\s*)\{").search(query, _body(query))
    return found.end() if found else -1


# -- that mean the same --------------------------------------------------------------------


def renamed(query: str) -> Iterator[str]:
    """Rename every variable."""
    names = list(dict.fromkeys(t.text for t in tokenize(query) if t.kind == "variable"))
    if not names or len(names) > len(_NAMES_OF_OTHERS):
        return
    new = dict(zip(names, _NAMES_OF_OTHERS, strict=False))
    text = query
    for token in reversed(tokenize(query)):
        if token.kind == "variable":
            text = _edited(text, token, f"?{new[token.text]}")
    yield text


def spelt_out(query: str) -> Iterator[str]:
    """Write the steps of paths as nested blank nodes."""
    step = r"(\S+?:\S+?)/(\S+?:[^\s/]+)\s+(\?\w+|\"[^\"]*\")(?=\s*[.;}\]])"
    text = re.sub(step, r"\1 [ \2 \3 ]", query[_body(query) :])
    if text != query[_body(query) :]:
        yield query[: _body(query)] + text


def with_values(query: str) -> Iterator[str]:
    """Put the first constant of the data into VALUES."""
    at = _where(query)
    for token in tokenize(query):
        if token.start > at > 0 and re.match(r"(uniprotkb|taxon|keywords|ECO):\w", token.text):
            rest = query[at:].replace(token.text, "?given")
            yield f"{query[:at]} VALUES ?given {{ {token.text} }}{rest}"
            return


def turned_round(query: str) -> Iterator[str]:
    """Write a triple from its object, with an inverse path."""
    triple = re.compile(r"(\?\w+)\s+(up:\w+|rdfs:\w+)\s+(\?\w+|taxon:\d+|keywords:\d+)\s*\.\s")
    found = triple.search(query, max(0, _where(query)))
    if found:
        subject, name, value = found.groups()
        yield f"{query[: found.start()]}{value} ^{name} {subject} .\n{query[found.end() :]}"


def with_class(query: str) -> Iterator[str]:
    """Say that a protein is one."""
    at = _where(query)
    if at > 0 and re.search(r"\?protein\b", query[at:]):
        yield f"{query[:at]} ?protein a up:Protein .{query[at:]}"


def distinct(query: str) -> Iterator[str]:
    """Ask for different rows; a result is a set in any case."""
    text = re.sub(r"(?m)^(SELECT)(?! DISTINCT)", r"\1 DISTINCT", query, count=1)
    if text != query:
        yield text


def wrapped(query: str) -> Iterator[str]:
    """Put the query into one that takes its columns over."""
    at = _body(query)
    head = re.match(r"(?s)\s*SELECT (?:DISTINCT )?((?:\?\w+ )+)WHERE", query[at:])
    if head and "SERVICE" not in query:
        yield f"{query[:at]}\nSELECT {head[1]}WHERE {{\n{{{query[at:]}}}\n}}"


# -- with one mistake ----------------------------------------------------------------------


def neighbour(query: str) -> Iterator[str]:
    """Take a property or class for its neighbour."""
    at = _body(query)
    for name, other in NEIGHBOURS.items():
        for found in reversed([*re.finditer(rf"(?<![\w:]){re.escape(name)}(?!\w)", query[at:])]):
            yield query[: at + found.start()] + other + query[at + found.end() :]


def slip(query: str) -> Iterator[str]:
    """Take an operator, a function, or a truth value for another."""
    yield from _each(query, SLIPS)


def without_filter(query: str) -> Iterator[str]:
    """Forget a filter."""
    for word in ("FILTER NOT EXISTS", "MINUS", "FILTER"):
        for found in re.finditer(rf"{word}\s*[({{]", query):
            end = _closing(query, found.end() - 1)
            yield query[: found.start()] + query[end + 1 :]
    for found in re.finditer(r"HAVING\s*\(", query):
        yield query[: found.start()] + query[_closing(query, found.end() - 1) + 1 :]


def without_triple(query: str) -> Iterator[str]:
    """Forget one of several statements about a thing."""
    for found in re.finditer(r";\s*(?:a|[\w-]+:\S+)\s+[^\s;.{}]+(?=\s*[;.])", query):
        yield query[: found.start()] + query[found.end() :]
    for found in re.finditer(r"(?m)^\s+\?\w+ (?:a|[\w-]+:\S+) [^\s;{}]+ \.\n", query):
        yield query[: found.start()] + "\n" + query[found.end() :]


def extra_column(query: str) -> Iterator[str]:
    """Give a column that was not asked for."""
    head = re.compile(r"(?s)SELECT (?:DISTINCT )?(.*?)WHERE").search(query, _body(query))
    if head is None or "GROUP BY" in query:
        return
    found_names = set(re.findall(r"\?\w+", head[1]))
    for name in dict.fromkeys(re.findall(r"\?\w+", query[head.end() :])):
        if name not in found_names:
            yield f"{query[: head.end(1)]}{name} {query[head.end(1) :]}"


def missing_column(query: str) -> Iterator[str]:
    """Leave a column out that was asked for."""
    head = re.compile(r"SELECT (?:DISTINCT )?((?:\?\w+ ){2,})WHERE").search(query, _body(query))
    for name in reversed(head[1].split()) if head else ():
        kept = " ".join(n for n in head[1].split() if n != name) if head else ""
        yield f"{query[: head.start(1)]}{kept} {query[head.end(1) :]}" if head else query


def count_otherwise(query: str) -> Iterator[str]:
    """Count different things where all are asked for, or the other way round."""
    for found in re.finditer(r"COUNT\((DISTINCT )?(\?\w+)\)", query):
        inner = found[2] if found[1] else f"DISTINCT {found[2]}"
        yield f"{query[: found.start()]}COUNT({inner}){query[found.end() :]}"
    for found in re.finditer(r"COUNT\((?:DISTINCT )?(\?\w+)\)", query):
        others = dict.fromkeys(re.findall(r"\?\w+", query[found.end() :]))
        for name in list(others)[:3]:
            if name != found[1]:
                yield f"{query[: found.start()]}COUNT(DISTINCT {name}){query[found.end() :]}"


def other_direction(query: str) -> Iterator[str]:
    """Go up where the question asks for what is below."""
    for found in re.finditer(r"(\?\w+|<[^>]*>) rdfs:subClassOf (\?\w+|taxon:\d+|<[^>]*>)", query):
        turned = f"{found[2]} rdfs:subClassOf {found[1]}"
        yield query[: found.start()] + turned + query[found.end() :]


def other_limit(query: str) -> Iterator[str]:
    """Give too few or too many."""
    for found in re.finditer(r"LIMIT (\d+)", query):
        yield f"{query[: found.start()]}LIMIT {int(found[1]) * 2}{query[found.end() :]}"
    if re.search(r"(?m)^SELECT", query) and "LIMIT" not in query:
        yield f"{query.rstrip()}\nLIMIT 5"


def half_of_union(query: str) -> Iterator[str]:
    """Forget one of two alternatives."""
    for found in re.finditer(r"\(([\w:]+)\|([\w:]+)\)", query):
        yield query[: found.start()] + found[1] + query[found.end() :]
    for found in re.finditer(r"UNION\s*\{", query):
        yield query[: found.start()] + query[_closing(query, found.end() - 1) + 1 :]
    for found in re.finditer(r"(VALUES \?\w+ \{ \S+) [^}]*\}", query):
        yield f"{query[: found.start()]}{found[1]} }}{query[found.end() :]}"


def required(query: str) -> Iterator[str]:
    """Ask for what there need not be."""
    for found in re.finditer(r"OPTIONAL \{", query):
        end = _closing(query, found.end() - 1)
        yield query[: found.start()] + query[found.end() : end] + query[end + 1 :]


def _closing(query: str, at: int) -> int:
    """Return where the bracket that opens at a place is closed."""
    opening, closing = query[at], {"(": ")", "{": "}"}[query[at]]
    depth = 0
    for token in tokenize(query):
        if token.start >= at and token.text in (opening, closing):
            depth += 1 if token.text == opening else -1
            if not depth:
                return token.start
    return len(query) - 1


REWRITINGS: Mapping[str, Edit] = {
    "paths spelt out": spelt_out,
    "a constant in VALUES": with_values,
    "an inverse path": turned_round,
    "a class that goes without saying": with_class,
    "wrapped in a query": wrapped,
    "DISTINCT on a set": distinct,
    "other names of variables": renamed,
}

MISTAKES: Mapping[str, Edit] = {
    "a filter is missing": without_filter,
    "a neighbouring property": neighbour,
    "a column too many": extra_column,
    "half of a union": half_of_union,
    "a condition is missing": without_triple,
    "counted otherwise": count_otherwise,
    "the other direction": other_direction,
    "another operator": slip,
    "a column is missing": missing_column,
    "required what is optional": required,
    "cut short or too long": other_limit,
}
