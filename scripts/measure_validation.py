"""Measure how many mistakes the semantic validation finds in corrupted gold queries.

Prints the table of docs/nl2sparql.md: python scripts/measure_validation.py. Each edit puts one
mistake into a gold, at every place where it can be made; an edit that does not parse is left out.
No query is run and no model asked. Not every edit makes a wrong query: a name may exist without its
last letter, too, and a pattern may make sense either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from rdflib.term import Variable

from reasoningbank.corpus import load_pack
from reasoningbank.nl2sparql import load_examples, validate_semantic, validate_syntax
from reasoningbank.schema import read_statements
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.tokens import Edit, Token, apply_edits
from reasoningbank.sparql.tree import outline

PACKS = {"UniProt": ("uniprot",), "LiITA": ("liita", "liita-test")}
#: What leads from an entry to its lemma: two entries of one lemma are two things.
LEADS = "http://www.w3.org/ns/lemon/ontolex#canonicalForm"
_TERMS = ("variable", "iri", "name")

#: A query to what is edited, once for each mistake.
Mistake = Callable[[str], Iterator[list[Edit]]]


def main() -> None:
    """Print how many golds are sound, and one row for each edit and corpus."""
    rows: dict[str, list[str]] = {what: [] for what in MISTAKES}
    for title, names in PACKS.items():
        pack = load_pack(names[0])
        golds = [one for name in names for one in load_examples(load_pack(name))]
        sound = sum(validate_semantic(one.sparql, pack, one.patterns).ok for one in golds)
        print(f"{title}: {sound} of {len(golds)} golds are sound")
        queries = [(prepare(one.sparql, prefixes=pack.prefixes).text, one) for one in golds]
        for what, mistake in MISTAKES.items():
            corrupted = [
                (text, one.patterns)
                for query, one in queries
                for text in dict.fromkeys(apply_edits(query, made) for made in mistake(query))
                if validate_syntax(text, pack).ok
            ]
            found = sum(not validate_semantic(text, pack, by).ok for text, by in corrupted)
            rows[what].append(f"{found:,} of {len(corrupted):,}" if corrupted else "")
    print(f"\n| what was done to a gold | {' | '.join(PACKS)} |\n|---|{'---|' * len(PACKS)}")
    for what, cells in rows.items():
        print(f"| {what} | {' | '.join(cells)} |")


def exchanged(query: str) -> Iterator[list[Edit]]:
    """Exchange subject and object of each pattern whose three parts are single words."""
    for subject, before, (name, value, after) in _patterns(query):
        turned = f"{value.text} {name.text} {subject.text}"
        # In a list of properties the pattern stands for itself, and the list begins anew.
        start, lead = (before.start, " . ") if before.text == ";" else (subject.start, "")
        end, tail = (after.end, f" . {subject.text} ") if after.text == ";" else (value.end, "")
        yield [Edit(start, end, f"{lead}{turned}{tail}")]


def _patterns(query: str) -> Iterator[tuple[Token, Token, tuple[Token, Token, Token]]]:
    """Yield subjects, what stands before the pattern, and property, object and what follows."""
    tokens = outline(query).body
    subject: Token | None = None
    for at in range(len(tokens) - 3):
        before = tokens[at]
        if before.text in ("{", "}", ".", ")"):
            first = tokens[at + 1]
            subject, rest = (first if first.kind in _TERMS else None), tokens[at + 2 : at + 5]
        elif before.text == ";":
            rest = tokens[at + 1 : at + 4]
        else:
            if before.text in ("[", "]", "("):
                subject = None
            continue
        if subject is None or len(rest) < 3:
            continue
        name, value, after = rest
        if name.kind in ("name", "iri") and value.kind in _TERMS and after.text in (";", ".", "}"):
            yield subject, before, (name, value, after)


def cut(query: str) -> Iterator[list[Edit]]:
    """Leave out the last letter of each property, and class behind ``a``, that has a prefix."""
    places = [name for _, _, (name, _, _) in _patterns(query)]
    places += [name for word, name in pairwise(outline(query).body) if word.text == "a"]
    for name in dict.fromkeys(one.text for one in places if one.kind == "name"):
        if not name.endswith(":"):
            yield _renamed(query, name, name[:-1])


def graphs_exchanged(query: str) -> Iterator[list[Edit]]:
    """Put each graph of the query in the place of each other one."""
    named = [
        name
        for word, name in pairwise(outline(query).body)
        if word.is_word("GRAPH") and name.kind in ("iri", "name")
    ]
    for name in named:
        for other in dict.fromkeys(one.text for one in named):
            if other != name.text:
                yield [Edit(name.start, name.end, other)]


def without_service(query: str) -> Iterator[list[Edit]]:
    """Ask the endpoint itself what another one is asked."""
    for word, name in pairwise(outline(query).body):
        if word.is_word("SERVICE") and name.kind in ("iri", "name"):
            yield [Edit(word.start, name.end, "")]


def made_one(query: str) -> Iterator[list[Edit]]:
    """Use one variable for two entries of a lemma."""
    leading: dict[object, list[str]] = {}
    for one in read_statements(query).statements:
        if str(one.predicate) == LEADS and isinstance(one.subject, Variable):
            leading.setdefault(one.object, []).append(f"?{one.subject}")
    for entries in leading.values():
        first, *others = dict.fromkeys(entries)
        for other in others:
            yield _renamed(query, other, first)


def _renamed(query: str, old: str, new: str) -> list[Edit]:
    return [Edit(one.start, one.end, new) for one in outline(query).body if one.text == old]


MISTAKES: dict[str, Mistake] = {
    "subject and object of a pattern exchanged": exchanged,
    "a property or class cut by its last letter": cut,
    "GRAPH names exchanged": graphs_exchanged,
    "SERVICE left out": without_service,
    "one variable for two entries of a lemma": made_one,
}


if __name__ == "__main__":
    main()
