"""Loading examples as they are found in the wild."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reasoningbank.corpus import Corpus, load_corpus, load_shacl_tasks
from reasoningbank.corpus.examples import property_of
from reasoningbank.corpus.findings import DEFECTS
from reasoningbank.errors import UsageError

from .conftest import GOOD, HEAD

Folder = Callable[..., Path]


def codes(corpus: Corpus) -> set[str]:
    return {finding.code for finding in corpus.findings}


def good(name: str, old: str = "", new: str = "") -> str:
    text = GOOD.replace("NAME", name)
    assert old in text
    return text.replace(old, new) if old else text


def test_a_plain_example_fills_every_field(folder: Folder) -> None:
    (task,) = load_shacl_tasks(folder(**{"001_things": good("001_things")}))
    assert task.id == "001_things"
    assert task.query == "Which things are there?"
    assert task.expected_sparql.startswith("SELECT ?s")
    assert task.endpoint == "https://example.org/sparql/"
    assert task.keywords == ("thing", "list")
    assert (task.form, task.complexity, task.language) == ("SELECT", "simple", "en")
    assert task.resource.endswith("/001_things")
    assert task.source_file == "001_things.ttl"
    assert task.corpus == "examples_here"
    assert task.group.startswith("template-")
    assert not task.bag
    assert not task.ordered


def test_a_plain_example_has_no_findings(folder: Folder) -> None:
    assert load_corpus(folder(a=good("a"))).findings == ()


def test_all_four_forms(folder: Folder) -> None:
    root = folder(
        a=good("a", "sh:select", "sh:ask")
        .replace("SELECT ?s WHERE", "ASK")
        .replace("Select", "Ask"),
        b=good("b", "sh:select", "sh:construct")
        .replace("SELECT ?s WHERE", "CONSTRUCT WHERE")
        .replace("Select", "Construct"),
        c=good("c", "sh:select", "spex:describe")
        .replace("SELECT", "DESCRIBE")
        .replace("sh:SPARQLSelect", "spex:SPARQLDescribe"),
        d=good("d"),
    )
    corpus = load_corpus(root)
    assert [t.form for t in corpus.tasks] == ["ASK", "CONSTRUCT", "DESCRIBE", "SELECT"]
    assert corpus.findings == ()


def test_our_annotations(folder: Folder) -> None:
    text = good("a").rstrip().removesuffix(".") + '; rb:group "g" ; rb:bag true ; rb:ordered true .'
    (task,) = load_shacl_tasks(folder(a=text))
    assert (task.group, task.bag, task.ordered) == ("g", True, True)


def test_both_kinds_of_long_strings_keep_quotes_and_newlines(folder: Folder) -> None:
    query = 'SELECT ?s WHERE {\n ?s ?p "it\'s" # "\n}'
    text = good("a", '"""SELECT ?s WHERE { ?s a <http://example.org/Thing> }"""', f"'''{query}'''")
    (task,) = load_shacl_tasks(folder(a=text))
    assert task.expected_sparql == query


def test_html_question_becomes_text(folder: Folder) -> None:
    text = good("a", '"Which things are there?"@en', '"Which <b>big</b> things?"^^rdf:HTML')
    corpus = load_corpus(folder(a=text))
    assert corpus.tasks[0].query == "Which big things?"
    assert codes(corpus) == {"html-question"}


def test_of_several_comments_the_asked_language_and_plain_text_win(folder: Folder) -> None:
    several = '"<i>HTML</i>"^^rdf:HTML, "Quali cose?"@it, "Which?"@en, "Which one?"@en'
    root = folder(a=good("a", '"Which things are there?"@en', several))
    assert load_shacl_tasks(root)[0].query == "Which?"
    italian = load_shacl_tasks(root, language="it")[0]
    assert (italian.query, italian.language) == ("Quali cose?", "it")
    assert codes(load_corpus(root)) == {"several-questions"}
    assert codes(load_corpus(root, language="it")) == set()


def test_several_targets_take_one_and_say_so(folder: Folder) -> None:
    both = "<https://example.org/sparql/>, <https://other.example/sparql>"
    corpus = load_corpus(folder(a=good("a", "<https://example.org/sparql/>", both)))
    assert corpus.tasks[0].endpoint == "https://example.org/sparql/"
    assert codes(corpus) == {"several-targets"}


def test_spelling_variants_of_a_target_are_one_endpoint(folder: Folder) -> None:
    variant = "<http://Example.org/sparql>"
    corpus = load_corpus(
        folder(a=good("a"), b=good("b"), c=good("c", "<https://example.org/sparql/>", variant))
    )
    assert {t.endpoint for t in corpus.tasks} == {"https://example.org/sparql/"}
    assert [(f.where, f.code) for f in corpus.findings] == [("c.ttl", "target-variant")]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('schema:keywords "thing", "list"', "rdfs:seeAlso ex:x", "no-keywords"),
        ("schema:target <https://example.org/sparql/>", "rdfs:seeAlso ex:x", "no-target"),
        ("schema:target <https://example.org/sparql/>", 'schema:target "sparql"', "bad-target"),
        ("a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;", "", "no-class"),
        ("sh:SPARQLSelectExecutable", "sh:SPARQLAskExecutable", "form-mismatch"),
        ("schema:keywords", "schema:keyword", "misspelt-property"),
        ("rdfs:comment", "rdfs:coment", "misspelt-property"),
        ("sh:select", "sh:Select", "misspelt-property"),
        ("?s a <http://example.org/Thing>", "?s a foo:Thing", "unknown-prefix"),
    ],
)
def test_an_oddity_is_a_finding_and_the_task_is_kept(
    folder: Folder, old: str, new: str, code: str
) -> None:
    corpus = load_corpus(folder(a=good("a", old, new)))
    assert [t.query for t in corpus.tasks] == ["Which things are there?"]
    assert code in codes(corpus)
    assert not any(f.code in DEFECTS for f in corpus.findings)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('rdfs:comment "Which things are there?"@en ;', "", "no-question"),
        (
            'sh:select """SELECT ?s WHERE { ?s a <http://example.org/Thing> }""" ;',
            "",
            "no-query",
        ),
        ("SELECT ?s WHERE { ?s a <http://example.org/Thing> }", "  ", "empty-query"),
        ("schema:keywords", "schema:keywords ;; oops oops", "syntax-error"),
    ],
)
def test_a_defect_costs_the_example_and_nothing_else(
    folder: Folder, old: str, new: str, code: str
) -> None:
    corpus = load_corpus(folder(a=good("a", old, new), b=good("b")))
    assert [t.id for t in corpus.tasks] == ["b"]
    assert [(f.where, f.code) for f in corpus.findings if f.code in DEFECTS] == [("a.ttl", code)]


def test_a_file_that_breaks_off_keeps_what_stands_before(folder: Folder) -> None:
    corpus = load_corpus(
        folder(a=good("a") + good("b").replace("schema:target <", "schema:target <<<"))
    )
    assert [t.id for t in corpus.tasks] == ["a"]
    assert "syntax-error" in codes(corpus)


def test_a_file_in_another_encoding_is_read(folder: Folder) -> None:
    root = folder(b=good("b"))
    (root / "a.ttl").write_bytes((HEAD + good("a", "things", "séquences")).encode("latin-1"))
    assert {t.query for t in load_shacl_tasks(root)} == {
        "Which séquences are there?",
        "Which things are there?",
    }


def test_prefixes_hold_in_their_folder_and_below(folder: Folder) -> None:
    def declares(prefix: str, namespace: str) -> str:
        return f'_:p sh:declare [ sh:prefix "{prefix}" ; sh:namespace "{namespace}" ] .'

    uses = "SELECT ?s WHERE { ?s a up:A ; sib:b 1 }"
    query = "SELECT ?s WHERE { ?s a <http://example.org/Thing> }"
    corpus = load_corpus(
        folder(
            prefixes=declares("up", "http://common/"),
            one__prefixes=declares("sib", "http://one/"),
            one__a=good("a", query, uses),
            two__b=good("b", query, uses),
        )
    )
    first, second = corpus.tasks
    assert first.expected_sparql == (
        f"PREFIX up: <http://common/>\nPREFIX sib: <http://one/>\n{uses}"
    )
    assert second.expected_sparql == f"PREFIX up: <http://common/>\n{uses}"
    assert [(f.where, f.code) for f in corpus.findings] == [("two/b.ttl", "unknown-prefix")]


def test_ids_are_unique_and_duplicates_are_named(folder: Folder) -> None:
    corpus = load_corpus(folder(one__a=good("a"), two__a=good("a"), b=good("b"), c=good("b")))
    assert [t.id for t in corpus.tasks] == ["b", "b~2", "one-a", "two-a"]
    assert sorted(f.where for f in corpus.findings if f.code == "duplicate-id") == [
        "c.ttl",
        "one/a.ttl",
        "two/a.ttl",
    ]
    assert [f.where for f in corpus.findings if f.code == "id-mismatch"] == ["c.ttl"]


def test_complexity_filter(folder: Folder) -> None:
    harder = (
        "SELECT ?s (COUNT(?x) AS ?n) WHERE { ?s ?p ?x . OPTIONAL { ?s ?q ?y } "
        "FILTER NOT EXISTS { ?s ?r ?z } } GROUP BY ?s"
    )
    query = "SELECT ?s WHERE { ?s a <http://example.org/Thing> }"
    root = folder(a=good("a"), b=good("b", query, harder))
    assert [t.id for t in load_shacl_tasks(root, ["simple"])] == ["a"]
    assert [t.id for t in load_shacl_tasks(root, ["moderate", "complex"])] == ["b"]
    assert [t.id for t in load_shacl_tasks(root, "simple")] == ["a"]
    with pytest.raises(UsageError, match="unknown complexity 'easy'"):
        load_shacl_tasks(root, ["easy"])


def test_an_empty_folder_is_a_finding(folder: Folder) -> None:
    corpus = load_corpus(folder())
    assert corpus.tasks == ()
    assert codes(corpus) == {"no-examples"}


def test_thousands_of_files_load_fast_since_no_query_is_parsed(folder: Folder) -> None:
    root = folder(**{f"t{i:04}": good(f"t{i:04}") for i in range(1200)})
    started = time.perf_counter()
    tasks = load_shacl_tasks(root)
    seconds = time.perf_counter() - started
    assert len(tasks) == 1200
    # About 0.5 s on an idle core; rdflib's parser alone would take 20 s.
    assert seconds < 5
    assert "complexity" not in tasks[0].__dict__


def test_terms_of_other_vocabularies_are_no_annotations_of_ours() -> None:
    shacl, ours = "http://www.w3.org/ns/shacl#", "urn:reasoningbank:ontology#"
    for iri in (f"{shacl}order", f"{shacl}group", "https://schema.org/comment"):
        assert property_of(iri) == (iri, True)
    assert property_of(f"{ours}order") == (f"{ours}ordered", False)
    assert property_of("http://schema.org/keywords") == ("https://schema.org/keywords", False)
