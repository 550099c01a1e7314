"""The guide and the warnings of a pack: read, true, and refused if broken."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack
from reasoningbank.errors import UsageError
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import guide, load_notes
from reasoningbank.sparql import SPARQLClient

from ..coded import raises
from .conftest import Known

NAME = re.compile(r"(?<![?\w<])([A-Za-z]\w*):([A-Za-z]\w+(?:-\w+)*)(?!_?…)")


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    hints = tmp_path / "hints"
    hints.mkdir()
    return Pack("p", tmp_path, tmp_path, hints=hints, prefixes={"e": "http://e/"})


def test_a_guide_is_shown_without_headings_from_the_top(pack: Pack) -> None:
    assert guide(None).text == guide(pack).text == ""
    assert pack.hints is not None
    lines = "# For writers\n\n- First things first.\n- Then others.\n"
    (pack.hints / "guide.md").write_text(lines, encoding="utf-8")
    assert guide(pack).text == "Guide:\n- First things first.\n- Then others."
    assert guide(pack, 10).text == "Guide:\n- First things first."
    (pack.hints / "guide.md").write_bytes(b"\xff\xfe")
    with raises(UsageError, "bad-hints"):
        guide(pack)


def test_the_guide_of_uniprot_fits_its_budget(uniprot: Known) -> None:
    layer = guide(uniprot.pack)
    assert layer == guide(uniprot.pack, budget=10_000)
    assert 100 < layer.tokens <= 200


def test_warnings_are_read_with_full_names(pack: Pack) -> None:
    assert load_notes(None) == load_notes(pack) == ()
    assert pack.hints is not None
    file = pack.hints / "anti_patterns.toml"
    file.write_text(
        '[[note]]\nabout = ["e:a", "<urn:a:b>", "rdfs:label"]\ntext = """Two\n  lines."""\n'
    )
    (note,) = load_notes(pack)
    assert note.about == {"http://e/a", "urn:a:b", "http://www.w3.org/2000/01/rdf-schema#label"}
    assert note.text == "Two lines."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[[note]\n", "bad-hints"),
        ("[[note]]\nabout = []\ntext = 'x'\n", "bad-hints"),
        ("[[note]]\nabout = ['e:a']\ntext = 'x'\nwhy = 'y'\n", "bad-hints"),
        ("[[note]]\nabout = ['e:a']\ntext = ' '\n", "bad-hints"),
        ("[[note]]\nabout = ['x:a']\ntext = 'x'\n", "unknown-prefix"),
        ("[[note]]\nabout = ['http://e/a']\ntext = 'x'\n", "unknown-prefix"),
    ],
)
def test_a_broken_file_is_refused(pack: Pack, text: str, code: str) -> None:
    assert pack.hints is not None
    (pack.hints / "anti_patterns.toml").write_text(text, encoding="utf-8")
    with raises(UsageError, code) as raised:
        load_notes(pack)
    assert raised.value.where.endswith("anti_patterns.toml")


def test_every_name_in_them_exists_unless_it_is_warned_of(uniprot: Known) -> None:
    texts = [guide(uniprot.pack).text, *(note.text for note in load_notes(uniprot.pack))]
    links = uniprot.schema.links
    known = {iri for link in links for iri in (link.subject, link.property, *link.objects)}
    known |= set(uniprot.vocabulary.classes)
    prefixes = uniprot.endpoint.namespaces
    wrong = []
    with SPARQLClient(uniprot.endpoint) as client:
        for text in texts:
            entry = re.sub(r"\bno up:\w+", "", text)
            for prefix, local in NAME.findall(entry):
                iri = prefixes[prefix] + local
                there = iri in known or client.query(f"ASK {{ ?s ?p <{iri}> }}").value  # type: ignore[union-attr]
                if not there and prefix not in ("uniprotkb",):
                    wrong.append(f"{prefix}:{local}")
            for warned in re.findall(r"\bno (up:\w+)", text):
                assert not client.query(f"ASK {{ ?s {warned} ?o }}").value  # type: ignore[union-attr]
                assert not client.query(f"ASK {{ ?s a {warned} }}").value  # type: ignore[union-attr]
    assert wrong == []


def test_the_ways_that_they_show_lead_somewhere(uniprot: Known) -> None:
    """Each graph pattern in a warning, as it stands, has a match in the data."""
    tried = 0
    with SPARQLClient(uniprot.endpoint) as client:
        for note in load_notes(uniprot.pack):
            for pattern in re.findall(
                r"(\?\w+ (?:up|rdf|rdfs|rh):[^?][^()]*?)(?=[.;] [a-z]|\.$|; o|; a|, an| \(|$)",
                note.text,
            ):
                body = pattern.strip(" .;")
                if "SERVICE" in note.text:
                    body = f"SERVICE <https://sparql.rhea-db.org/sparql> {{ {body} }}"
                assert client.query(f"ASK {{ {body} }}").value, pattern  # type: ignore[union-attr]
                tried += 1
    assert tried >= 14


def test_each_warning_is_short_and_about_something_known(uniprot: Known) -> None:
    links = uniprot.schema.links
    known = {n for link in links for n in (link.subject, link.property, *link.objects)}
    for note in load_notes(uniprot.pack):
        assert count_tokens(note.text) < 50
        assert note.about <= known | set(uniprot.vocabulary.classes)
