"""Reading examples."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.corpus import (
    Corpus,
    Task,
    get_task_stats,
    groups_of,
    load_corpus,
    load_shacl_tasks,
    sample_tasks,
    split_tasks,
)
from reasoningbank.corpus.shacl import property_of
from reasoningbank.errors import UsageError

from .conftest import GOOD, HEAD
from .oddities import DEFECTS

Folder = Callable[..., Path]
SHARES = {"train": 0.5, "dev": 0.2, "test": 0.3}


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


@pytest.mark.parametrize(
    ("wanted", "question"),
    [("en", "Which?"), ("pt", "Quais?"), ("pt-BR", "Quais?"), ("pt-PT", "Which?")],
)
def test_a_language_may_have_a_region(folder: Folder, wanted: str, question: str) -> None:
    root = folder(a=good("a", '"Which things are there?"@en', '"Which?"@en, "Quais?"@pt-BR'))
    assert load_shacl_tasks(root, language=wanted)[0].query == question


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


def test_a_file_with_a_byte_order_mark_or_an_ending_in_capitals_is_read(folder: Folder) -> None:
    root = folder(b=good("b"))
    (root / "b.ttl").rename(root / "b.TTL")
    (root / "a.ttl").write_text(HEAD + good("a", "things", "others"), encoding="utf-8-sig")
    assert len(load_shacl_tasks(root)) == 2
    assert not codes(load_corpus(root))


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


def test_loading_parses_no_query(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasoningbank.sparql.query.parseQuery", None)
    monkeypatch.setattr("reasoningbank.corpus.features.read_query", None)
    tasks = load_shacl_tasks(folder(**{f"t{i:04}": good(f"t{i:04}") for i in range(40)}))
    assert len(tasks) == 40
    assert "complexity" not in tasks[0].__dict__


def test_terms_of_other_vocabularies_are_no_annotations_of_ours() -> None:
    shacl, ours = "http://www.w3.org/ns/shacl#", "urn:reasoningbank:ontology#"
    for iri in (f"{shacl}order", f"{shacl}group", "https://schema.org/comment"):
        assert property_of(iri) == iri
    assert property_of(f"{ours}order") == f"{ours}ordered"
    assert property_of("http://schema.org/keywords") == "https://schema.org/keywords"


def make_tasks(groups: int = 40) -> list[Task]:
    kinds = [("simple", "SELECT"), ("moderate", "SELECT"), ("complex", "SELECT"), ("simple", "ASK")]
    tasks = []
    for g in range(groups):
        complexity, form = kinds[g % 4]
        tasks += [
            Task(
                f"t{g}_{i}",
                "?",
                "",
                "http://e/",
                keywords=("all", form.lower()),
                complexity=complexity,  # type: ignore[arg-type]
                form=form,  # type: ignore[arg-type]
                group=f"g{g}",
            )
            for i in range(1 + g % 5)
        ]
    return tasks


def test_no_group_is_in_two_parts_and_nothing_is_lost() -> None:
    tasks = make_tasks()
    split = split_tasks(tasks)
    parts = [split.train, split.dev, split.test]
    assert sorted(t.id for part in parts for t in part) == sorted(t.id for t in tasks)
    groups = [{t.group for t in part} for part in parts]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]
    assert split.by_id()[split.dev[0].id] == "dev"


def test_parts_have_their_share_of_every_kind() -> None:
    tasks = make_tasks()
    split = split_tasks(tasks)
    kinds = Counter((t.complexity, t.form) for t in tasks)
    for name, share in SHARES.items():
        part = getattr(split, name)
        assert len(part) == pytest.approx(share * len(tasks), abs=4)
        for kind, n in kinds.items():
            found = sum((t.complexity, t.form) == kind for t in part)
            assert found == pytest.approx(share * n, abs=4)


def test_a_split_depends_on_seed_and_groups_alone() -> None:
    tasks = make_tasks()
    shuffled = random.Random(7).sample(tasks, len(tasks))
    assert split_tasks(tasks) == split_tasks(shuffled)
    assert split_tasks(tasks, seed=1) != split_tasks(tasks)


_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_COMPLEXITIES = ("simple", "moderate", "complex")


@st.composite
def corpora(draw: st.DrawFn) -> list[Task]:
    """Tasks of any kinds in groups of any sizes, with any names."""
    kinds = st.tuples(st.sampled_from(_FORMS), st.sampled_from(_COMPLEXITIES))
    groups = draw(
        st.dictionaries(st.text(max_size=8), st.lists(kinds, min_size=1, max_size=6), max_size=40)
    )
    return [
        Task(f"{name}/{i}", "?", "", "http://e/", form=form, complexity=complexity, group=name)  # type: ignore[arg-type]
        for name, group in groups.items()
        for i, (form, complexity) in enumerate(group)
    ]


@settings(deadline=None)
@given(tasks=corpora(), seed=st.integers(0, 9))
def test_any_corpus_is_split_whole_by_group(tasks: list[Task], seed: int) -> None:
    parts = split_tasks(tasks, seed=seed).by_id()
    assert sorted(parts) == sorted(task.id for task in tasks)
    for group in groups_of(tasks).values():
        assert len({parts[task.id] for task in group}) == 1


@settings(deadline=None)
@given(tasks=corpora(), seed=st.integers(0, 9))
def test_each_stratum_has_its_share_to_within_a_group_at_each_cut(
    tasks: list[Task], seed: int
) -> None:
    # One form and one complexity: the stratum is the whole corpus.
    tasks = [replace(task, form="ASK", complexity="simple") for task in tasks]
    counts = Counter(split_tasks(tasks, seed).by_id().values())
    largest = max((len(group) for group in groups_of(tasks).values()), default=0)
    for part, share in SHARES.items():
        # An arc has two ends, and at each a group is in or out by its middle.
        assert abs(counts[part] - share * len(tasks)) <= largest + 1e-9


@settings(deadline=None)
@given(tasks=corpora(), more=st.integers(1, 6), seed=st.integers(0, 9))
def test_a_group_that_is_added_moves_only_what_lies_at_the_cuts_of_its_stratum(
    tasks: list[Task], more: int, seed: int
) -> None:
    new = [Task(f"new/{i}", "?", "", "http://e/", group="another group") for i in range(more)]
    before = split_tasks(tasks, seed=seed).by_id()
    after = split_tasks([*tasks, *new], seed=seed).by_id()
    moved = {task_id for task_id in before if before[task_id] != after[task_id]}
    by_id = {task.id: task for task in tasks}
    largest = max((len(group) for group in groups_of(tasks).values()), default=0)
    assert len(moved) <= 3 * (more + largest)
    for group in groups_of([by_id[task_id] for task_id in moved]).values():
        assert {task.form for task in group} == {"SELECT"}


def test_a_corpus_that_grows_keeps_nearly_every_task_in_its_part() -> None:
    tasks = make_tasks(60)
    whole = split_tasks(tasks).by_id()
    moved = 0
    for task in tasks:
        before = split_tasks([t for t in tasks if t is not task]).by_id()
        moved += sum(whole[task_id] != part for task_id, part in before.items())
    # On average, of the others, when one task is added.
    assert moved / len(tasks) / (len(tasks) - 1) < 0.03


def test_of_nothing_every_part_is_empty() -> None:
    assert split_tasks([]).by_id() == {}


def test_splits_are_part_of_a_corpus() -> None:
    tasks = make_tasks(8)
    corpus = Corpus("mine", tuple(tasks), ())
    assert corpus.split() == split_tasks(tasks)
    assert corpus.split(seed=2) == split_tasks(tasks, seed=2)


def test_a_task_without_a_group_is_one_by_itself() -> None:
    tasks = [Task(i, "?", "", "http://e/") for i in "ab"]
    assert len(groups_of(tasks)) == 2


def test_stats_count_and_order() -> None:
    stats = get_task_stats(make_tasks(8))
    assert stats["total"] == 21
    assert stats["by_form"] == {"SELECT": 14, "ASK": 7}
    assert sum(stats["by_complexity"].values()) == 21
    assert stats["by_endpoint"] == {"http://e/": 21}
    assert stats["groups"] == 8
    assert next(iter(stats["top_keywords"].items())) == ("all", 21)
    assert len(get_task_stats(make_tasks(8), top=1)["top_keywords"]) == 1
    assert get_task_stats([])["total"] == 0


def test_samples_are_the_same_each_time_and_nested() -> None:
    tasks = make_tasks()
    shuffled = random.Random(7).sample(tasks, len(tasks))
    assert sample_tasks(tasks, 10) == sample_tasks(shuffled, 10)
    assert sample_tasks(tasks, 10)[:4] == sample_tasks(tasks, 4)
    assert sample_tasks(tasks, 10) != sample_tasks(tasks, 10, seed=1)
    assert len({t.id for t in sample_tasks(tasks, 10)}) == 10


def test_samples_of_one_complexity_and_of_more_than_there_is() -> None:
    tasks = make_tasks()
    assert {t.complexity for t in sample_tasks(tasks, 5, "complex")} == {"complex"}
    assert len(sample_tasks(tasks, 10_000)) == len(tasks)
    assert sample_tasks(tasks, 0) == []
    assert len(sample_tasks(tasks)) == 10
    with pytest.raises(UsageError, match="-1"):
        sample_tasks(tasks, -1)
    with pytest.raises(UsageError, match="easy"):
        sample_tasks(tasks, 1, "easy")  # type: ignore[arg-type]
