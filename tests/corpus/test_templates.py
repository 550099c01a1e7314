"""Templates become instances, tasks have levels, and splits keep what a corpus declares."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reasoningbank.cli.app import app
from reasoningbank.corpus import (
    Pack,
    Task,
    instantiate,
    levels,
    load_corpus,
    load_pack,
    load_shacl_tasks,
    near_duplicates,
    open_endpoint,
    split_tasks,
    write_instances,
)
from reasoningbank.corpus.splits import schema_items
from reasoningbank.corpus.templates import read_templates
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.sparql import SPARQLClient

PACKS = ("uniprot", "liita")
PACK = """\
endpoint = "https://towns.example/sparql"
data = ["towns.ttl"]
instances = "instances"
union_default_graph = false
[prefixes]
t = "http://towns.example/id/"
p = "http://towns.example/p/"
"""
TEMPLATES = """\
[slots.town]
query = "SELECT ?value ?text { ?value p:name ?text }"
[slots.number.values]
100 = { "" = ["100"] }
300 = { en = ["three hundred"], da = ["trehundrede"] }
[[template]]
id = "people_of_town"
query = "SELECT ?n { <<town>> p:people ?n }"
phrasings.en = ["How many live in <<town>>?", "People of <<town>>?", "<<town>>: how many?",
                "Count the people of <<town>>."]
[[template]]
id = "bigger_towns"
split = "test"
slots = { least = "number" }
query = "SELECT ?town { ?town p:people ?n FILTER(?n > <<least>>) }"
rows = [1, 10]
phrasings.en = ["Towns above <<least>>?", "Over <<least>>?", "More than <<least>>?", "<<least>>+?"]
phrasings.da = ["Byer over <<least>>?", "Over <<least>>?", "Flere end <<least>>?", "<<least>>+?"]
"""


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    root = tmp_path / "towns"
    (root / "templates").mkdir(parents=True)
    (root / "pack.toml").write_text(PACK)
    (root / "templates" / "all.toml").write_text(TEMPLATES)
    towns = "".join(
        f't:T{n} p:name "Town {n}" , "T-{n}" ; p:people {n * 50} .\n' for n in range(1, 13)
    )
    # Two towns share a name, which then names neither.
    towns += 't:A p:name "Same" ; p:people 7 . t:B p:name "Same" ; p:people 8 .\n'
    prefixes = "@prefix t: <http://towns.example/id/> . @prefix p: <http://towns.example/p/> .\n"
    (root / "towns.ttl").write_text(prefixes + towns)
    return load_pack(root)


@pytest.fixture
def client(pack: Pack) -> Iterator[SPARQLClient]:
    with open_endpoint(pack) as endpoint:
        yield SPARQLClient(endpoint)


def test_instances_are_loaded_as_tasks_of_their_splits(pack: Pack, client: SPARQLClient) -> None:
    made, findings = instantiate(pack, client, number=9)
    folder = pack.root / "instances"
    write_instances(pack, made, folder)
    corpus = load_corpus(pack.with_set("instances"))
    assert corpus.findings == ()
    assert {t.id: t.expected_sparql.split("\n")[-2] for t in corpus.tasks} == {
        one.id: one.query.split("\n")[-1] for one in made
    }
    by_split = Counter((t.template, t.split) for t in corpus.tasks)
    assert by_split == {
        ("people_of_town", "train"): 3,
        ("people_of_town", "dev"): 3,
        ("people_of_town", "test"): 3,
        ("bigger_towns", "test"): 2,
    }
    assert [(f.code, f.fields["instances"]) for f in findings] == [("few-instances", 2)]
    assert "Same" not in "".join(t.query for t in corpus.tasks)
    parts = split_tasks(corpus.tasks).by_id()
    assert all(parts[t.id] == t.split for t in corpus.tasks)
    danish = {t.id: t.query for t in load_corpus(pack.with_set("instances"), language="da").tasks}
    assert any("trehundrede" in text for text in danish.values())


def test_the_builder_is_deterministic_by_seed(pack: Pack, client: SPARQLClient) -> None:
    first, again, other = (instantiate(pack, client, number=9, seed=s)[0] for s in (0, 0, 1))
    assert first == again
    assert first != other


def test_answers_of_a_template_differ(pack: Pack, client: SPARQLClient) -> None:
    made, _ = instantiate(pack, client, number=12)
    answers = defaultdict(list)
    for one in made:
        result = client.query(one.query)
        answers[one.template.id].append(str(result.rows()))  # type: ignore[union-attr]
    assert all(len(set(found)) == len(found) for found in answers.values())


def test_an_unknown_key_of_a_template_suggests_a_known_one(pack: Pack) -> None:
    broken = TEMPLATES.replace("slots = {", "slot = {", 1)
    (pack.root / "templates" / "all.toml").write_text(broken)
    with pytest.raises(UsageError) as caught:
        read_templates(pack)
    assert caught.value.what.startswith("slot: unknown key; did you mean slots?")
    # One that explains that another is missing.
    broken = TEMPLATES.replace("phrasings.", "phrasing.")
    (pack.root / "templates" / "all.toml").write_text(f"\ufeff{broken}", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_templates(pack)
    assert caught.value.what.startswith("phrasing: unknown key; did you mean phrasings?")


@pytest.mark.parametrize(
    "broken",
    [
        TEMPLATES.replace('slots = { least = "number" }\n', ""),
        TEMPLATES.replace('"Count the people of <<town>>."', '"Count the people."'),
        TEMPLATES.replace(', "<<least>>+?"]', "]", 1),
        TEMPLATES.replace('query = "SELECT ?value ?text { ?value p:name ?text }"', ""),
        TEMPLATES + "\n[[template",
        TEMPLATES.replace("[[template]]", "[[templates]]"),
        TEMPLATES.replace('"People of <<town>>?"', '"how many live in  <<town>>?"'),
        TEMPLATES.replace("bigger_towns", "people_of_town"),
        TEMPLATES.replace("phrasings.da", 'phrasings."d a"'),
        TEMPLATES.replace("phrasings.en", "phrasings = {}\nkeywords", 1),
        TEMPLATES.replace("{ <<town>> p:people ?n }", "{ t:T1 p:people ?n }").replace(
            "<<town>>", ""
        ),
        TEMPLATES.replace("phrasings.en", "rows = [5, 1]\nphrasings.en", 1),
        "template = [3]",
        "[template]\nid = 'a'",
    ],
)
def test_a_broken_template_is_one_error(pack: Pack, broken: str) -> None:
    (pack.root / "templates" / "all.toml").write_text(broken)
    with pytest.raises(UsageError) as caught:
        read_templates(pack)
    assert caught.value.code == "bad-template"


def test_an_error_names_the_template_or_slot(pack: Pack, client: SPARQLClient) -> None:
    def said(old: str, new: str) -> str:
        (pack.root / "templates" / "all.toml").write_text(TEMPLATES.replace(old, new))
        with pytest.raises((UsageError, QueryError)) as caught:
            instantiate(pack, client)
        return str(caught.value)

    assert "all.toml, template bigger_towns: a phrasing in 'en'" in said('"<<least>>+?"]', '"+?"]')
    assert said("{ ?value p:name ?text }", "{ ?value").startswith("slot 'town', line 1")
    assert said("SELECT ?n {", "SELECT ?n").startswith("template 'people_of_town', line 1")


def test_a_value_without_a_form_in_a_language_is_left_out(pack: Pack, client: SPARQLClient) -> None:
    short = TEMPLATES.replace(', da = ["trehundrede"]', "")
    (pack.root / "templates" / "all.toml").write_text(short)
    made, findings = instantiate(pack, client, number=3)
    assert {o.questions["da"] for o in made if o.template.id == "bigger_towns"} == {"100+?"}
    none = short.replace('100 = { "" = ["100"] }', "")
    (pack.root / "templates" / "all.toml").write_text(none)
    _, findings = instantiate(pack, client, number=3)
    assert [f.what for f in findings] == [
        "bigger_towns has 0 instances of 3: no value of <<least>> has a form"
    ]


def test_answers_left_out_are_counted(pack: Pack, client: SPARQLClient) -> None:
    few = TEMPLATES.replace("rows = [1, 10]", "rows = [90, 99]")
    (pack.root / "templates" / "all.toml").write_text(few)
    _, findings = instantiate(pack, client, number=3)
    assert findings[0].what.endswith("0 instances of 3: 2 answers not of 90 to 99 rows")


def test_examples_that_were_not_made_are_kept(pack: Pack, client: SPARQLClient) -> None:
    made, _ = instantiate(pack, client, number=3)
    folder = pack.root / "examples"
    folder.mkdir()
    (folder / "mine.ttl").write_text("# by hand\n")
    with pytest.raises(UsageError):
        write_instances(pack, made, folder)
    assert [path.name for path in folder.iterdir()] == ["mine.ttl"]
    # Without an instance nothing is written.
    kept = write_instances(pack, made, pack.root / "instances")
    (pack.root / "templates" / "all.toml").write_text(TEMPLATES.replace("p:people", "p:none"))
    result = CliRunner().invoke(app, ["tasks", "build", str(pack.root)])
    assert result.exit_code != 0
    assert all(path.exists() for path in kept)


def test_instances_can_be_used_from_any_folder(pack: Pack, client: SPARQLClient) -> None:
    root = pack.root.parent / "my towns"
    pack.root.rename(root)
    pack = load_pack(root)
    made, _ = instantiate(pack, client, number=9)
    bare = root.parent / "elsewhere"
    write_instances(pack, made, bare)
    write_instances(pack, made, root / "instances")
    found = load_corpus(bare)
    assert found.findings == ()
    parts = found.split()
    assert levels(parts.test, parts.train)["people_of_town_03"] == "iid"
    # The set of a pack that is named by its folder.
    assert load_corpus(f"{root}-instances").tasks[0].query == found.tasks[0].query


def test_a_pack_without_templates_says_so(pack: Pack, client: SPARQLClient) -> None:
    with pytest.raises(UsageError) as caught:
        instantiate(replace(pack, root=pack.root / "data"), client)
    assert caught.value.code == "no-templates"


def test_levels_ignore_constants_order_and_names() -> None:
    seen = "SELECT ?x { ?x <urn:p> <urn:a> ; <urn:q> ?y . ?y a <urn:C> }"

    def level(query: str, training: str = seen) -> str:
        return levels([Task("t", "?", query, "http://e/")], [training])["t"]

    assert level("SELECT ?s { ?s <urn:q> ?o . ?o a <urn:C> . ?s <urn:p> <urn:b> }") == "iid"
    assert level("SELECT ?x { ?x <urn:q>/a <urn:C> }") == "compositional"
    assert level("SELECT ?x { ?x <urn:q> ?y . ?y a <urn:D> }") == "zero-shot"
    assert level("SELECT ?x { ?x <urn:p>|^<urn:r> ?y }") == "zero-shot"
    # A pattern of a memory bank, with slots and prefixes that the pack declares.
    pattern = "SELECT ?x { ?x e:p <<thing>> }"
    task = Task("t", "?", "SELECT ?v { ?v <urn:e:p> <urn:b> }", "http://e/")
    assert levels([task], [pattern], {"e": "urn:e:"}) == {"t": "iid"}
    # Prefixes that the golds declare hold for patterns too.
    task = replace(task, expected_sparql="PREFIX e: <urn:e:> SELECT ?v { ?v e:p e:b }")
    assert levels([task], [pattern]) == {"t": "iid"}


def test_schema_items_are_properties_and_classes() -> None:
    query = "SELECT * { ?x a <urn:C> ; <urn:p>/<urn:q>* <urn:thing> . FILTER(?x != <urn:other>) }"
    own = schema_items(query) - {"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}
    assert own == {"urn:C", "urn:p", "urn:q"}


def test_near_duplicates_are_found() -> None:
    train = [Task("a", "Which proteins does the gene TP53 encode?", "ASK {}", "http://e/")]
    asked = [
        Task("same", "Which proteins does the gene TP53 encode", "ASK {}", "http://e/"),
        Task("other", "What is encoded by TP53?", "ASK {}", "http://e/"),
    ]
    assert [pair[:2] for pair in near_duplicates(asked, train)] == [("same", "a")]


@pytest.mark.parametrize(
    ("name", "templates", "instances"), [("uniprot", 60, 900), ("liita", 40, 500)]
)
def test_the_packs_instances_cover_all_levels(name: str, templates: int, instances: int) -> None:
    pack = load_pack(f"{name}-instances")
    tasks = load_shacl_tasks(pack)
    assert len({task.template for task in tasks}) >= templates
    assert len(tasks) >= instances
    split = split_tasks(tasks)
    for part in (split.dev, split.test):
        assert set(levels(part, split.train, pack.prefixes).values()) == {
            "iid", "compositional", "zero-shot",
        }  # fmt: skip
        assert near_duplicates(part, split.train) == []
    held_out = {task.template for task in split.train} & {
        task.template
        for part in (split.dev, split.test)
        for task in part
        if levels([task], split.train, pack.prefixes)[task.id] != "iid"
    }
    assert held_out == set()


@pytest.mark.parametrize("name", PACKS)
def test_phrasings_of_evaluation_are_not_those_of_training(name: str) -> None:
    _, templates = read_templates(load_pack(name))
    for template in templates:
        for texts in template.phrasings.values():
            assert len(set(texts)) == len(texts)


def test_the_command_builds_and_classifies(pack: Pack) -> None:
    def run(*words: str) -> dict[str, object]:
        result = CliRunner().invoke(app, ["tasks", *words, "--json"])
        assert result.exit_code == 0, result.output
        return dict(json.loads(result.stdout))

    built = run("build", str(pack.root), "-n", "3")
    assert built["instances"] == 5
    tasks = load_shacl_tasks(replace(pack, examples=pack.root / "instances"))
    shown = run("levels", str(pack.root / "instances"))
    assert set(shown["levels"]) == {t.id for t in tasks if t.split == "test"}  # type: ignore[call-overload]


def test_levels_are_relative_to_a_file_of_items() -> None:
    bank = Path(__file__).parents[2] / "experiments" / "banks" / "uniprot_instances.jsonl"
    words = ["tasks", "levels", "uniprot-instances", "--split", "dev", "--json"]
    whole, part = (
        json.loads(CliRunner().invoke(app, [*words, *more]).stdout)["levels"].values()
        for more in ([], ["--bank", str(bank)])
    )
    assert 0 < list(part).count("iid") < list(whole).count("iid")
