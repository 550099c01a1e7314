"""Rules of a pack: which are given for which patterns, and that a prompt stays bounded."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import (
    build_constraints,
    get_constraints_for_patterns,
    load_patterns,
)
from reasoningbank.nl2sparql.hints import MOST_CHARS, Direction, load_constraints

from .conftest import changed


def test_rules_of_the_patterns_and_the_rule_for_several_entries(woods: Pack) -> None:
    def titles(*patterns: str) -> list[str]:
        return [rule.title for rule in get_constraints_for_patterns(patterns, woods)]

    assert titles() == titles("COUNT") == []
    assert titles("height") == ["Heights"]
    assert titles("NEIGHBOUR", "HEIGHT") == ["several entries", "Heights", "Neighbours"]


def test_a_name_of_several_patterns_and_an_unknown_one() -> None:
    found = get_constraints_for_patterns(["SEMANTIC_RELATION"])
    assert {name for rule in found for name in rule.patterns} >= {"HYPERNYM", "MERONYM", "SYNONYM"}
    with pytest.raises(UsageError) as caught:
        get_constraints_for_patterns(["SEMANTICS"])
    assert caught.value.code == "unknown-pattern"


def test_a_prompt_begins_alike_and_has_what_its_patterns_need(woods: Pack) -> None:
    base = build_constraints([], woods)
    assert base.startswith("Write one query.\nPrefixes that are declared for you: w:")
    assert "?tree rdfs:label ?name" in base
    assert "w:height" not in base
    height = build_constraints(["HEIGHT"], woods)
    assert height.startswith(base)
    assert "- ?tree w:height ?metres" in height
    assert "Heights: Heights are metres." in height
    assert "w:near" not in height


def test_packs_of_one_folder_have_their_own_prefixes(woods: Pack) -> None:
    other = replace(woods, prefixes={**woods.prefixes, "forest": "http://w/"})
    assert "forest:" not in build_constraints([], woods)
    assert "forest:" in build_constraints([], other)
    moved = replace(woods, prefixes={"w": "http://moved/"})
    assert load_constraints(moved).properties[1].iri == "http://moved/height"
    assert load_constraints(woods).properties[1].iri == "http://w/height"
    signs = [load_patterns(pack).named("HEIGHT").signs[0].properties for pack in (woods, moved)]
    assert signs == [{"http://w/height"}, {"http://moved/height"}]


def test_whole_parts_are_left_out(woods: Pack) -> None:
    whole = build_constraints(["HEIGHT", "NEIGHBOUR"], woods)
    for room in range(0, len(whole) + 1, 7):
        cut = build_constraints(["HEIGHT", "NEIGHBOUR"], woods, most_chars=room)
        base = build_constraints([], woods)
        assert len(cut) <= max(room, len(base))
        assert all(part in whole.split("\n\n") for part in cut.split("\n\n"))
        assert (cut == whole) == (room >= len(whole))


@pytest.mark.parametrize("name", ["liita", "uniprot"])
def test_prompts_of_the_packs_are_bounded_for_any_two_patterns(name: str) -> None:
    names = load_patterns(name).names
    base = build_constraints([], name)
    for pair in combinations(names, 2):
        prompt = build_constraints(pair, name)
        assert prompt.startswith(base)
        assert len(prompt) <= MOST_CHARS
        assert prompt == build_constraints(pair, name, most_chars=10 * MOST_CHARS)
    assert len(build_constraints(names, name)) <= MOST_CHARS


def test_liita_tells_of_two_entries_where_two_are_needed() -> None:
    reported = "Two of them need two variables"
    assert reported in build_constraints(["EMOTION", "POLARITY"], "liita")
    assert reported in build_constraints(["multi_translation"], "liita")
    assert reported not in build_constraints(["EMOTION", "COUNT"], "liita")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[rule]]\ntitle = "a"\ntext = "b"\npatterns = ["NOPE"]\n', "unknown pattern 'NOPE'"),
        ('[[property]]\nname = "height"\nuse = "x"\n', "not a name with a known prefix"),
        ('[[direction]]\npattern = "A"\nproperty = "w:x"\nnamed = "left"\nhint = "m"\n', "named"),
        ("[base]\ntxt = 1\n", "base.txt"),
    ],
)
def test_broken_files_are_one_clear_line(woods: Pack, tmp_path: Path, text: str, said: str) -> None:
    pack = changed(woods, tmp_path, constraints_toml=text)
    with pytest.raises(UsageError, match=said) as caught:
        load_constraints(pack)
    assert "constraints.toml" in str(caught.value)


def test_a_pack_without_rules_has_a_prompt_of_its_prefixes(woods: Pack, tmp_path: Path) -> None:
    pack = changed(woods, tmp_path)
    assert build_constraints([], pack) == "Prefixes that are declared for you: w:"


def test_hint_files_may_use_the_old_key() -> None:
    rule = {"pattern": "HYPERNYM", "property": "urn:p", "named": "subject"}
    assert Direction(**rule, mend="turn it") == Direction(**rule, hint="turn it")  # old spelling
