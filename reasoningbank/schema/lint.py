"""`lint`: what is wrong with a query, compared with the schema of its endpoint."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from reasoningbank.errors import QueryError
from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import Lookups
from reasoningbank.schema.schema import Schema
from reasoningbank.schema.statements import read_statements
from reasoningbank.schema.structure import Structure
from reasoningbank.schema.unknown import find_unknown
from reasoningbank.sparql import PreparedQuery, Result
from reasoningbank.sparql.probing import Prober
from reasoningbank.sparql.tree import outline, read_query

#: Findings that an agent is shown of one query, and characters of one line.
MOST_FINDINGS = 3
MOST_CHARS = 200
_OF_NAMES = frozenset(("unknown-class", "unknown-property", "wrong-role", "not-in-data",
                       "only-subclasses", "resource-as-class"))  # fmt: skip


def lint(
    prepared: PreparedQuery,
    schema: Schema,
    run: Callable[[str], Result] | None = None,
    *,
    namespaces: Mapping[str, str],
    skip: Collection[str] = (),
) -> list[Finding]:
    """Return what is wrong with a query, compared with a schema; the query may have rows.

    Found are columns that nothing binds, names that do not exist, names in the wrong SERVICE or
    GRAPH, wrong directions, properties of another class, and disconnected patterns.

    Args:
        prepared: The query.
        schema: The endpoint's schema.
        run: Sends a query to the endpoint; one request checks what an incomplete schema lacks.
            Without it, such names count as known.
        namespaces: Prefix → namespace, for the names in the findings.
        skip: IRIs that are not checked.
    """
    findings = unbound_columns(prepared)
    try:
        tree, query = read_query(prepared.text), read_statements(prepared.text)
    except QueryError:
        return findings
    prober = Prober(tree, run or _refuse, most=1 if run else 0)
    look = Lookups(prober, schema, namespaces, tree.declared)
    unknown, found = find_unknown(prepared, tree, look, skip=skip)
    findings += found
    structure = Structure(query, schema, namespaces)
    wrong = {*skip, *(name for name in unknown if schema.term(name) is None)}
    sound = []
    for one in query.statements:
        if str(one.predicate) in wrong or (str(one.object) in wrong and one.is_type):
            continue
        misplaced = structure.misplaced(one)
        if misplaced is None:
            sound.append(one)
        else:
            findings.append(misplaced)
    findings += structure.contradictions(sound)
    findings += structure.disconnected()
    return in_own_words(findings, prepared)


def _refuse(query: str) -> Result:
    raise QueryError("no endpoint was given")


def unbound_columns(prepared: PreparedQuery) -> list[Finding]:
    """Return a finding for each column that is always empty."""
    shape = outline(prepared.text)
    opening = next((at for at, t in enumerate(shape.body) if t.text == "{"), len(shape.body))
    head, where = shape.body[:opening], shape.body[opening:]
    given = list(dict.fromkeys(t.text[1:] for t in where if t.kind == "variable"))
    named = {after.text[1:] for before, after in pairwise(head) if before.is_word("AS")}
    used = {t.text[1:] for t in head if t.kind == "variable"}
    rest = [f"?{name}" for name in given if name not in used]
    return [
        Finding(
            "unbound-column",
            f"?{name} is selected, but no pattern binds it",
            hint=f"not selected are {', '.join(rest)}" if rest else "",
            fields={"column": name, "unselected": rest},
        )
        for name in shape.projected
        if name not in given and name not in named
    ]


def in_own_words(findings: Iterable[Finding], prepared: PreparedQuery) -> list[Finding]:
    """Return the findings with the author's text where the harness rewrote the query."""
    own = {
        edit.text: prepared.original[edit.start : edit.end]
        for edit in prepared.edits
        if edit.text.startswith("<") and edit.end > edit.start
    }

    def text(value: Any) -> Any:
        if isinstance(value, str):
            for sent, written in own.items():
                value = value.replace(sent, written)
        return value

    def restored(one: Finding) -> Finding:
        fields = {name: text(value) for name, value in one.fields.items()}
        return replace(one, what=text(one.what), hint=text(one.hint), fields=fields)

    return list(dict.fromkeys(map(restored, findings) if own else findings))


def as_lines(findings: Sequence[Finding], most: int = MOST_FINDINGS) -> tuple[str, ...]:
    """Return findings as short lines for an agent; short ones on names share a line."""
    lines: list[str] = []
    before = ""
    for finding in findings:
        text = textwrap.shorten(str(finding), MOST_CHARS, placeholder=" …")
        of_names = finding.code in _OF_NAMES and before in _OF_NAMES
        if of_names and len(lines[-1]) + len(text) + 2 <= MOST_CHARS:
            lines[-1] += f"; {text}"
        else:
            lines.append(text)
        before = finding.code
    return tuple(lines[:most])
