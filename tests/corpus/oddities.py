"""A folder with every oddity that published corpora hold, one a file, and what is said of each."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .conftest import GOOD, HEAD

#: Codes of examples, or whole files, that could not become a task.
DEFECTS = frozenset(
    {"unreadable", "syntax-error", "no-query", "empty-query", "no-question", "no-examples"}
)
_QUERY = '"""SELECT ?s WHERE { ?s a <http://example.org/Thing> }"""'
_INNER = "SELECT ?s WHERE { ?s a <http://example.org/Thing> }"
_TARGET = "<https://example.org/sparql/>"
_COMMENT = '"Which things are there?"@en'


class Oddity(NamedTuple):
    """A change of the plain example, whether it is a task still, and the codes it gets."""

    old: str
    new: str
    codes: frozenset[str]
    task: bool = True


def _odd(old: str, new: str, *codes: str, task: bool = True) -> Oddity:
    return Oddity(old, new, frozenset(codes), task)


ODDITIES: dict[str, Oddity] = {
    "plain": _odd("", ""),
    # -- ways to write what is meant
    "single_quotes": _odd(_QUERY, f"'''{_INNER}'''"),
    "short_string": _odd(_QUERY, f'"{_INNER}"'),
    "escapes": _odd(_QUERY, '"SELECT ?s\\nWHERE { ?s a <http://example.org/Thing> }\\t"'),
    "windows_lines": _odd(_INNER, _INNER.replace(" WHERE", "\r\nWHERE")),
    "quotes_inside": _odd(_INNER, "SELECT ?s WHERE { ?s ?p ?o FILTER(?o != '''it's''') } #\\\\",
                          "unmentioned-constant"),
    "html": _odd(_COMMENT, '"""Which <b>big</b> things&nbsp;are\\n there?"""^^rdf:HTML',
                 "html-question"),
    "broken_html": _odd(_COMMENT, '"Which <![foo[ things <a href=\'"^^rdf:HTML', "html-question"),
    "html_and_plain": _odd(_COMMENT, f'{_COMMENT}, "<i>Which?</i>"^^rdf:HTML'),
    "several_comments": _odd(_COMMENT, f'{_COMMENT}, "What else?"@en', "several-questions"),
    "two_languages": _odd(_COMMENT, f'{_COMMENT}, "Quali cose?"@it'),
    "no_language": _odd(_COMMENT, '"Which things are there?"', "no-language"),
    "keywords_in_one": _odd('"thing", "list"', '"thing, list"'),
    "blank_node": _odd("ex:NAME", "[]"),
    # -- slips
    "misspelt_comment": _odd("rdfs:comment", "rdfs:coment", "misspelt-property"),
    "misspelt_select": _odd("sh:select", "sh:Select", "misspelt-property"),
    "misspelt_keywords": _odd("schema:keywords", "schema:keyword", "misspelt-property"),
    "misspelt_target": _odd("schema:target", "schema:targets", "misspelt-property"),
    "misspelt_vocabulary": _odd("schema:target", "<http://schema.org/target>",
                                "misspelt-property"),
    "unknown_property": _odd("schema:target", "sh:nonsense 1 ; schema:target", "unknown-property"),
    "unknown_annotation": _odd("schema:target", "rb:difficulty 3 ; schema:target",
                               "unknown-property"),
    "other_properties": _odd("schema:target", "schema:name 'n' ; rdfs:seeAlso ex:x ; ex:y 1 ; "
                             "schema:target"),
    # -- missing or doubled
    "no_keywords": _odd('schema:keywords "thing", "list"', "rdfs:seeAlso ex:x", "no-keywords"),
    "no_prefixes": _odd("sh:prefixes _:sparql_examples_prefixes ;", ""),
    "no_class": _odd("a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;", "", "no-class"),
    "no_target": _odd(f"schema:target {_TARGET}", "rdfs:seeAlso ex:x", "no-target"),
    "no_question": _odd(f"rdfs:comment {_COMMENT} ;", "", "no-question", task=False),
    "blank_question": _odd(_COMMENT, '"  "', "no-question", "no-language", task=False),
    "tags_only": _odd(_COMMENT, '"<br/>"^^rdf:HTML', "html-question", "no-question", task=False),
    "no_query": _odd(f"sh:select {_QUERY} ;", "", "no-query", task=False),
    "empty_query": _odd(_INNER, " ", "empty-query", task=False),
    "two_queries": _odd("schema:target", 'sh:ask "ASK { ?s ?p ?o }" ; schema:target',
                        "several-queries", "form-mismatch"),
    "two_targets": _odd(_TARGET, f"{_TARGET}, <https://other.example/sparql>", "several-targets"),
    # -- odd values
    "target_without_slash": _odd(_TARGET, "<https://example.org/sparql>", "target-variant"),
    "target_http": _odd(_TARGET, "<http://EXAMPLE.org/sparql/>", "target-variant"),
    "target_as_text": _odd(_TARGET, '"https://example.org/sparql/"', "odd-value"),
    "target_no_address": _odd(_TARGET, "<urn:uniprot>", "bad-target", "no-target"),
    "target_with_space": _odd(_TARGET, "<https://example.org/spa rql>", "bad-target", "no-target"),
    "target_port": _odd(_TARGET, "<https://[bad/sparql>", "bad-target", "no-target"),
    "question_as_iri": _odd(_COMMENT, "ex:question", "bad-value", "no-question", task=False),
    "keyword_as_iri": _odd('"thing", "list"', "ex:thing", "odd-value"),
    "query_with_language": _odd(f"{_QUERY} ;", f"{_QUERY}@en ;", "odd-value"),
    "bag_as_text": _odd("schema:target", 'rb:bag "yes" ; schema:target', "bad-value"),
    "ordered_ill_typed": _odd("schema:target", 'rb:ordered "yes"^^<http://www.w3.org/2001/'
                              'XMLSchema#boolean> ; schema:target', "bad-value"),
    "two_groups": _odd("schema:target", 'rb:group "a", "b" ; schema:target', "bad-value"),
    "wrong_class": _odd("SelectExecutable", "AskExecutable", "form-mismatch"),
    # -- queries
    "unknown_prefix": _odd("<http://example.org/Thing>", "foo:Thing", "unknown-prefix"),
    "unclosed": _odd("Thing> }", "Thing> ", "query-syntax"),
    "prose": _odd(_INNER, "all the things", "query-syntax"),
    "update": _odd(_INNER, "DELETE WHERE { ?s ?p ?o }", "query-syntax"),
    "half_and_unknown_prefix": _odd("<http://example.org/Thing> }", "foo:Thing",
                                    "query-syntax", "unknown-prefix"),
    "only_oxigraph": _odd(_INNER, "SELECT ?s { ?s ?p ?o . LATERAL { ?o ?q ?r } }",
                          "rdflib-syntax"),
    "only_rdflib": _odd(_INNER, "SELECT ?s (COUNT(*) AS ?n) { ?s a <http://example.org/Thing> }",
                        "oxigraph-syntax"),
    "constant_left_out": _odd("Thing> }", "Thing> ; <http://example.org/p> 'blue', 7 }",
                              "unmentioned-constant"),
    "service_unsaid": _odd("Thing> }", "Thing> SERVICE <https://far.example/sparql> {?s ?p ?o} }",
                           "federates-mismatch"),
    "service_not_there": _odd("schema:target", "spex:federatesWith <https://far.example/sparql> ; "
                              "schema:target", "federates-mismatch"),
    "service_variable": _odd("Thing> }", "Thing> ; ?p ?e SERVICE ?e { ?s ?p ?o } }"),
    # -- files
    "breaks_off": _odd("schema:keywords", "schema:keywords ;; oops", "syntax-error", task=False),
    "several_examples": _odd("", ""),
}  # fmt: skip


def write_oddities(root: Path) -> Path:
    """Write the folder: a file for each oddity, two of one id, one that is no Turtle at all."""
    root.mkdir(parents=True, exist_ok=True)
    for name, (old, new, _, _) in ODDITIES.items():
        assert old in GOOD, name
        text = GOOD.replace(old, new) if old else GOOD
        (root / f"{name}.ttl").write_text(HEAD + text.replace("NAME", name), encoding="utf-8")
    with (root / "several_examples.ttl").open("a", encoding="utf-8") as file:
        file.write(GOOD.replace("NAME", "second"))
    for folder in ("one", "two"):
        (root / folder).mkdir()
        text = HEAD + GOOD.replace("NAME", "twice").replace("SELECT ?s", "SELECT DISTINCT ?s")
        (root / folder / "twice.ttl").write_text(text, encoding="utf-8")
    (root / "latin.ttl").write_bytes(
        (HEAD + GOOD.replace("NAME", "latin").replace("things", "chös")).encode("latin-1")
    )
    (root / "binary.ttl").write_bytes(bytes(range(256)))
    (root / "empty.ttl").write_bytes(b"")
    (root / "folder.ttl").mkdir()
    return root
