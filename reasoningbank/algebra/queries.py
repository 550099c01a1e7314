"""SPARQL texts of programs: validation, substitution, VALUES blocks, conditions, results."""

from __future__ import annotations

import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import pyoxigraph
from rdflib import BNode, Graph, Literal, URIRef
from rdflib.namespace import XSD

from reasoningbank.algebra.terms import PREFIXES, ProgramError, Term, one_of, scalar, to_sparql
from reasoningbank.algebra.values import Row, Table, Value, kept, names_in
from reasoningbank.errors import QueryError
from reasoningbank.sparql import prepare
from reasoningbank.sparql.query import FAILS, complaint_of, offset_in, parsed_alone
from reasoningbank.sparql.syntax import MOST_CHARS, refuse_escaped_ascii, syntax_error
from reasoningbank.sparql.tokens import (
    Edit,
    Token,
    apply_edits,
    begins_update,
    check_update_size,
    closing,
    is_update,
    origin,
    position,
    tokenize,
)
from reasoningbank.sparql.tree import QueryTree, outline, projection

#: The queries that operations send of their own.
QUERIES = tomllib.loads(Path(__file__).with_name("queries.toml").read_text("utf-8"))
#: Base of relative IRIs.
_BASE = "http://document.invalid/"
#: The rule in an error of Oxigraph's parser.
_RULE = re.compile(r"(?:Variables|Blank nodes)[a-z ]* are not allowed in [A-Z ]+[A-Z]")
#: Keywords that end a list of selected, grouped or sorted variables.
_ENDING = ("WHERE", "FROM", "LIMIT", "OFFSET", "HAVING", "GRAPH", "SERVICE", "AS")
_CLOSING = frozenset(")},;.]")


def query_outline(text: str, *forms: str) -> QueryTree:
    """Return the outline of a query of one of the forms."""
    shape = outline(text)
    if forms and shape.form not in forms:
        what = f"expected a {' or '.join(forms)} query, got {shape.form}"
        hint = f"use the operation {shape.form}"
        raise QueryError(what, hint=hint, code="wrong-form", form=shape.form)
    return shape


def source_query(data: Any) -> str | None:
    """Return the text that Substitute and Values make a query of, with its form and columns."""
    while isinstance(data, Mapping) and data.get("@op") in ("Substitute", "Values"):
        data = data["args"].get("query") if isinstance(data.get("args"), Mapping) else None
    return data if isinstance(data, str) else None


@functools.lru_cache(maxsize=512)
def check_query(text: str, *forms: str) -> QueryTree:
    """Check that a text is a query of one of the forms, and return its outline."""
    shape = query_outline(text, *forms)
    head = _declarations_for(text, shape.body, shape.declared)
    edits = [Edit(shape.prefix_at, shape.prefix_at, head)] if head else []
    if complaint_of(shape, edits, base=_BASE) is not None:
        # The slower parser decides, and locates the mistake.
        prepare(text, prefixes=PREFIXES)
    return shape


def _declarations_for(text: str, tokens: Sequence[Token], declared: Collection[str]) -> str:
    """Declare the well-known prefixes that a query or update uses; others are an error."""
    used: dict[str, Token] = {}
    for token in tokens:
        if token.kind == "name":
            used.setdefault(token.text.partition(":")[0], token)
    missing = [name for name in used if name not in declared]
    for name in missing:
        if name not in PREFIXES:
            hint = f"declare it with PREFIX {name}: <...>"
            what = f"the prefix {name + ':'!r} is not declared"
            code = "unknown-prefix"
            raise syntax_error(text, used[name].start, what, hint=hint, code=code, prefix=name)
    return "".join(f"PREFIX {name}: <{PREFIXES[name]}> " for name in missing)


def check_update(text: str) -> None:
    """Check that a text is a SPARQL Update."""
    refuse_escaped_ascii(text)
    tokens = tokenize(text)
    begin = begins_update(tokens)
    if begin is None:
        hint = "begin with INSERT, DELETE or WITH"
        raise QueryError("expected a SPARQL Update", hint=hint, code="wrong-form")
    check_update_size(tokens)
    load = next((token for token in tokens if token.is_word("LOAD")), None)
    if load is not None:
        raise syntax_error(
            text, load.start, "LOAD is not allowed", hint="GET it, and PUT it", code="load"
        )
    declared, edits = _declarations(tokens, begin.start)
    later = [f"PREFIX {written} " for written in declared.values() if written]
    head = "".join([_declarations_for(text, tokens, declared), *later])
    # All of it is parsed, then its first operation fails: nothing is carried out.
    edits.append(Edit(begin.start, begin.start, f"{head}{FAILS}"))
    made = apply_edits(text, edits)
    message = parsed_alone(made, _BASE)
    if message is not None:
        raise _update_error(text, made, edits, message)


def _declarations(tokens: Sequence[Token], body: int) -> tuple[dict[str, str], list[Edit]]:
    """Return the prefixes of an update, and edits that remove those declared after a ``;``."""
    declared: dict[str, str] = {}
    moved: list[Edit] = []
    for word, name, space in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if word.is_word("PREFIX") and name.kind == "name" and space.kind == "iri":
            inside = word.start >= body
            written = f"{name.text} {space.text}" if inside else ""
            declared.setdefault(name.text.partition(":")[0], written)
            moved += [Edit(word.start, space.end, "")] if inside else []
    return declared, moved


def _update_error(text: str, made: str, edits: Sequence[Edit], message: str) -> QueryError:
    found = offset_in(made, message)
    if found is None:
        return QueryError(f"the update cannot be parsed: {message}", code="syntax")
    offset = origin(edits, found)
    rule = _RULE.search(message)
    if rule is None:
        unclosed = any(token.kind == "other" for token in tokenize(text))
        hint = "" if unclosed else "check the text just before it"
        return syntax_error(text, offset, said="(at char", hint=hint)
    line, column = position(text, offset)
    return QueryError(rule[0], where=f"line {line}, column {column}", code="syntax")


def _check_result(made: str, hint: str) -> None:
    """Check that a text that was put together is a query or an update."""
    try:
        if is_update(made):
            check_update(made)
        else:
            check_query(made)
    except QueryError as error:
        cause = f"{error.where}: {error.what}" if error.where else error.what
        what = f"the result is not a valid query: {cause}"
        raise ProgramError(what, hint=hint, code="invalid-result", cause=error.code) from None


def _written(name: str, term: Term) -> str:
    """Return the SPARQL text of the term of a variable."""
    if isinstance(term, BNode):
        hint = "no query can refer to it: ask for its parts in one query"
        raise ProgramError(f"?{name} is a blank node", hint=hint, code="blank-node", name=name)
    return to_sparql(term)


def _no_variable(wanted: str, there: Iterable[str], hint: str = "") -> ProgramError:
    known = one_of([f"?{name}" for name in there])
    what = f"the query has no {wanted}"
    return ProgramError(what, hint=f"it has {known}{hint}", code="no-such-variable")


@dataclass
class _Bracket:
    """An open bracket: the clause that its last tokens belong to, and what its SELECT selects."""

    clause: str = ""
    selected: set[str] = field(default_factory=set)

    def enter(self, token: Token, before: Token) -> None:
        if token.is_word("SELECT", "VALUES"):
            self.clause, self.selected = token.text.upper(), set()
        elif token.is_word("BY") and before.is_word("GROUP", "ORDER"):
            self.clause = before.text.upper()
        elif token.kind == "punct" or token.is_word(*_ENDING):
            self.clause = ""
        elif token.kind == "variable" and self.clause == "SELECT":
            self.selected.add(token.text[1:])


def substitute(query: str, terms: Mapping[str, Term]) -> str:
    """Return a query or update with terms in place of variables, by the query's grammar."""
    tokens = tokenize(query)
    there = list(dict.fromkeys(t.text[1:] for t in tokens if t.kind == "variable"))
    if not any(name in there for name in terms):
        raise _no_variable(" or ".join(f"?{name}" for name in terms) or "variable", there)
    _check_minus(query, tokens, terms)
    written = {name: _written(name, term) for name, term in terms.items() if name in there}
    around = [_Bracket()]
    edits: list[Edit] = []
    for at, token in enumerate(tokens):
        inner = around[-1]
        if token.text in ("(", "[", "{"):
            around.append(_Bracket(inner.clause if inner.clause == "VALUES" else ""))
            if token.text == "{":
                inner.clause = around[-1].clause = ""
        elif token.text in (")", "]", "}"):
            if len(around) > 1:
                around.pop()
        else:
            inner.enter(token, tokens[at - 1])
        if token.kind == "variable" and token.text[1:] in written:
            edits.append(_edit(query, tokens, at, written[token.text[1:]], around))
    made = apply_edits(query, edits)
    _check_result(made, "substitute only where a term is allowed")
    return made


#: What a variable may stand for, where only a run knows it.
_SAMPLES = (URIRef("http://term.invalid/"), scalar(1), scalar(True), Literal("x"))


def check_substitution(query: str, name: str, term: Term | None) -> None:
    """Check that a query is valid with a term, or some term, in place of a variable."""
    errors: list[QueryError] = []
    for sample in _SAMPLES if term is None else (term,):
        try:
            substitute(query, {name: sample})
        except QueryError as error:
            errors.append(error)
        else:
            return
    raise errors[0]


def _edit(
    query: str, tokens: Sequence[Token], at: int, term: str, around: Sequence[_Bracket]
) -> Edit:
    token, before, clause = tokens[at], tokens[max(at - 1, 0)], around[-1].clause
    by = "AS" if before.is_word("AS") else "VALUES" if clause == "VALUES" else ""
    if by:
        line, column = position(query, token.start)
        what = f"{token.text} is assigned by {by} at line {line}, column {column}"
        hint = "substitute another variable, or remove the assignment"
        raise ProgramError(what, hint=hint, code="assigned-variable", name=token.text[1:])
    text, start, end = term, token.start, token.end
    if clause == "SELECT":
        text = f"({term} AS ?{_alias(token.text[1:], tokens, around)})"
    elif clause in ("GROUP", "ORDER"):
        text = f"({term})"
    elif before.text == "(" and at > 1 and tokens[at - 2].is_word("BOUND"):
        # BOUND takes only a variable, and a term is bound.
        text, start, end = "true", tokens[at - 2].start, tokens[at + 1].end
    # The term must not merge with its neighbours.
    if start and not query[start - 1].isspace() and query[start - 1] not in "({[":
        text = " " + text
    if end < len(query) and not query[end].isspace() and query[end] not in _CLOSING:
        text += " "
    return Edit(start, end, text)


def _alias(name: str, tokens: Sequence[Token], around: Sequence[_Bracket]) -> str:
    """Return the name of a selected term: another one inside a SELECT that selects it too."""
    depth = sum(name in outer.selected for outer in around[:-1])
    taken = _variables(tokens)
    alias = name
    while depth and (alias in taken or not alias.endswith(f"_{depth}")):
        alias = f"{alias}_{depth}"
    return alias


def _check_minus(query: str, tokens: Sequence[Token], terms: Collection[str]) -> None:
    """Refuse to substitute all variables that a MINUS shares with what it is subtracted from."""
    for at, token in enumerate(tokens[:-1]):
        if not token.is_word("MINUS") or tokens[at + 1].text != "{":
            continue
        inside = _variables(tokens[at + 1 : closing(tokens, at + 1)])
        begin, depth = at, 0
        while begin > 0 and depth < 1:
            begin -= 1
            depth += (tokens[begin].text == "{") - (tokens[begin].text == "}")
        shared = inside & _variables(tokens[begin:at])
        if shared and shared <= set(terms):
            line, column = position(query, token.start)
            named = ", ".join(f"?{name}" for name in sorted(shared))
            what = f"without {named} the MINUS at line {line}, column {column} removes nothing"
            raise ProgramError(
                what, hint="write FILTER NOT EXISTS instead of MINUS", code="empty-minus"
            )


def _variables(tokens: Sequence[Token]) -> set[str]:
    return {token.text[1:] for token in tokens if token.kind == "variable"}


def values_block(names: Sequence[str], rows: Iterable[Row]) -> str:
    """Write rows as a VALUES block (SPARQL 1.1, section 10); an unbound variable is UNDEF."""
    lines: list[str] = []
    size = 0
    for row in rows:
        terms = ((name, row.get(name)) for name in names)
        cells = ("UNDEF" if term is None else _written(name, term) for name, term in terms)
        lines.append(f"  ({' '.join(cells)})\n")
        size += len(lines[-1])
        if size > MOST_CHARS:
            hint = "add a LIMIT to the query of the rows, or use ForEach with Substitute"
            raise ProgramError("too many rows for one query", hint=hint, code="too-many-rows")
    head = " ".join(f"?{name}" for name in names)
    return f"VALUES ({head}) {{\n{''.join(lines)}}}"


def with_values(query: str, names: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a query with a VALUES block at the beginning of its WHERE."""
    shape = query_outline(query)
    tokens, opening = shape.body, _opening(shape.body)
    end = len(tokens) - 1 if opening is None else closing(tokens, opening) - 1
    there = _joining(tokens[opening or 0 : end + 1])
    # With no names there are no rows, so any variable will do.
    names = names or sorted(there)[:1]
    absent = [name for name in names if name not in there]
    if absent or not names:
        wanted = f"?{absent[0]}" if absent else "variable"
        raise _no_variable(wanted, sorted(there), "; choose columns with vars").at("args.query")
    block = values_block(names, rows)
    if opening is None:
        # A comment at the end must not hide the block.
        made = f"{query[: tokens[end].end]}\n{block}"
    else:
        nested = tokens[opening + 1].is_word("SELECT")
        at = tokens[opening].end
        edits = [Edit(at, at, f" {block}{' {' if nested else ''}")]
        edits += [Edit(tokens[end].start, tokens[end].start, "} ")] if nested else []
        made = apply_edits(query, edits)
    _check_result(made, "choose other columns with vars")
    return made


def _opening(tokens: Sequence[Token]) -> int | None:
    """Return where the WHERE group opens; None where none may hold a VALUES block."""
    start, depth = 0, 0
    if tokens[0].is_word("CONSTRUCT"):
        if tokens[1].text != "{":
            return None
        start = closing(tokens, 1)
    for at, token in enumerate(tokens[start:], start):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "{" and not depth:
            return at
    return None


def _joining(tokens: Sequence[Token]) -> set[str]:
    """Return the variables that a VALUES block joins with: of a subselect those it projects."""
    found: set[str] = set()
    at = 0
    while at < len(tokens):
        if tokens[at].text == "{" and tokens[at + 1].is_word("SELECT"):
            end = closing(tokens, at)
            inside = tokens[at + 1 : end - 1]
            star, projected = projection(inside)
            found.update(_joining(inside) if star else projected)
            at = end
        else:
            found |= _variables(tokens[at : at + 1])
            at += 1
    return found


class RowFilter:
    """A SPARQL expression that holds for a row or not; if it raises an error, it does not hold."""

    def __init__(self, text: str) -> None:
        # Parsed in its context: by itself, `?a<1&&?b>2` would be an IRI between two numbers.
        tree = outline(f"ASK {{ FILTER({text}\n) }}")
        tokens = [t for t in tree.body[4:] if t.start < len(tree.text) - 4]
        self.names = tuple(dict.fromkeys(t.text[1:] for t in tokens if t.kind == "variable"))
        self._text = text
        self._store = pyoxigraph.Store()
        what = f"{text!r} is not a condition"
        hint = "write one expression as in FILTER, e.g. ?population > 100000"
        try:
            self._head = _declarations_for(tree.text, tokens, ())
            where = tree.where
            single = where is not None and where.end == len(tree.text) and len(where.clauses) == 1
            if where is None or not single or where.clauses[0].groups:
                raise ProgramError(what, hint=hint, code="bad-condition")
            self.holds({})
        except (SyntaxError, QueryError) as failure:
            if isinstance(failure, QueryError) and failure.code == "unknown-prefix":
                what, hint = f"{what}: {failure.what}", "write the IRI in full, as <...>"
            raise ProgramError(what, hint=hint, code="bad-condition") from None

    def holds(self, row: Row) -> bool:
        binds = []
        for name in self.names:
            term = row.get(name)
            if isinstance(term, BNode):
                binds.append(f"BIND(BNODE() AS ?{name}) ")
            elif term is not None:
                binds.append(f"VALUES ?{name} {{ {to_sparql(term)} }} ")
        # The newline ends a comment in the text.
        query = f"{self._head}ASK {{ {''.join(binds)} FILTER({self._text}\n) }}"
        return bool(self._store.query(query))


#: The column of a single value; several values of a row are numbered.
COLUMN = "value"
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def as_query(result: Value, *, several: bool = False) -> str:
    """Return a SPARQL query that returns a program's result as inline data.

    A table is a SELECT over VALUES, a graph a CONSTRUCT of its triples, a boolean an ASK. The list
    of a ForEach is a table if its entries are tables, rows or values: rows of tables follow one
    another, the values of a list are the columns of one row. Graphs are merged. With `several`, the
    result is the list of the results of several operations, which follow one another.
    """
    whole = kept(result)
    results = whole if several and isinstance(whole, list) else [whole]
    parts: list[Value] = [part for part in results if part is not None]
    single = parts[0] if len(parts) == 1 else None
    if isinstance(single, Literal) and single.datatype == XSD.boolean:
        return "ASK {}" if single.value else "ASK { FILTER(false) }"
    leaves = [leaf for leaf in _leaves(parts) if not _is_nothing(leaf)]
    graphs = [leaf for leaf in leaves if isinstance(leaf, Graph)]
    if 0 < len(graphs) < len(leaves):
        what = "the result mixes graphs with other values"
        raise ProgramError(what, hint="yield one of the two", code="mixed-results")
    query = _construct(graphs) if graphs else _select(parts)
    if len(query) > MOST_CHARS:
        what = "the result is longer than a query may be"
        raise ProgramError(what, hint="return less", code="too-many-rows")
    return query


def is_empty(result: Value) -> bool:
    """Return whether a result in memory holds no row, no triple and no value."""
    if isinstance(result, list):
        return all(is_empty(entry) for entry in result)
    if isinstance(result, Table):
        return not any(True for _ in result.rows)
    return result is None or (isinstance(result, Graph) and not len(result))


def _select(parts: Sequence[Value]) -> str:
    rows = [row for part in parts for row in _rows(part)]
    columns = (name for leaf in _leaves(parts) if isinstance(leaf, Table) for name in leaf.vars)
    names = names_in(rows, columns)
    if not names:
        hint = "end it with the operation that yields the answer"
        raise ProgramError("the program yields no answer", hint=hint, code="no-answer")
    known: dict[str, str] = {}
    for name in names:
        plain = _NO_NAME.sub("_", name) or COLUMN
        choices = chain([plain], (f"{plain}_{number}" for number in count(2)))
        known[name] = next(one for one in choices if one not in known.values())
    # A row that binds nothing is the same as no row.
    bound = [{known[name]: term for name, term in row.items()} for row in rows if row]
    block = values_block(list(known.values()), bound)
    return f"SELECT {' '.join(f'?{name}' for name in known.values())} WHERE {{ {block} }}"


def _is_nothing(value: Value) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_nothing, value)))


def _construct(graphs: Sequence[Graph]) -> str:
    # In a template a label is one new blank node; graphs share none.
    labels: defaultdict[BNode, str] = defaultdict(lambda: f"_:b{len(labels)}")

    def written(part: Any) -> str:
        return labels[part] if isinstance(part, BNode) else to_sparql(part)

    lines = {f"  {' '.join(map(written, triple))} .\n" for graph in graphs for triple in graph}
    return "CONSTRUCT {\n" + "".join(sorted(lines)) + "} WHERE {}"


def _rows(value: Value) -> Iterator[Row]:
    if isinstance(value, Table):
        yield from value.rows
    elif isinstance(value, Mapping):
        yield value
    elif isinstance(value, Term):
        yield {COLUMN: value}
    elif isinstance(value, list):
        leaves = list(_leaves(value))
        lists = [leaf for leaf in leaves if isinstance(leaf, list)]
        places = {at for leaf in lists for at, one in enumerate(leaf) if one is not None}
        # A single value has no number.
        columns = {at: f"{COLUMN}{number}" for number, at in enumerate(sorted(places), 1)}
        if len(places) == 1:
            columns = dict.fromkeys(places, COLUMN)
        for leaf in leaves:
            if isinstance(leaf, list):
                yield {columns[at]: one for at, one in enumerate(leaf) if isinstance(one, Term)}
            else:
                yield from _rows(leaf)


def _leaves(entries: Iterable[Value]) -> Iterator[Value]:
    """Flatten nested lists, except lists of values, which are one row each."""
    for entry in entries:
        if isinstance(entry, list) and not all(
            one is None or isinstance(one, Term) for one in entry
        ):
            yield from _leaves(entry)
        else:
            yield entry
