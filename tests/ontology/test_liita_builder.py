"""How the tables of the LiITA pack are read, and what is said where one is wrong."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from ontology.liita.builder.__main__ import main
from ontology.liita.builder.complit import complit_facts, word_nodes
from ontology.liita.builder.liita import liita_facts
from ontology.liita.builder.tables import TABLES, TableError
from ontology.liita.builder.words import Words, read_words

DIALECTS = ("siciliano", "parmigiano")
SMALL = {
    "lemmas.tsv": "# comment\ncane\tn\tm\nanimale\tn\tm\nrosa\tn\tf\nrosa\tn\tm\tn-inv\n"
    "blu\ta\nottimo\ta\tsup\nolivo, ulivo\tn\tm\nstare\tv\t\tv-irr\n\nsempre\td\n",
    "senses.tsv": "animale\tessere che si muove\ncane\tanimale che abbaia\ncane\tpezzo del fucile\n"
    "rosa/n/f\tfiore\nrosa/n/m\tcolore\n",
    "kinds.tsv": "animale\tcane\n",
    "parts.tsv": "rosa/n/f\tanimale\n",
    "pairs.tsv": "=\tcane#2\trosa/n/m\n",
    "affect.tsv": "cane\t0.25\tAmore Fiducia\nsempre\t-\tFiducia\nblu\t0.0\t-\n",
    "siciliano.tsv": "cane\tcani\nolivo\taliva:f, ulivu/olivu\n",
    "parmigiano.tsv": "cane\tcan\n",
}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    for name, text in SMALL.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def read(tables: Path) -> Words:
    return read_words(tables, DIALECTS)


def test_lemmas_and_their_classes(tables: Path) -> None:
    words = read(tables)
    reported = {"/".join(lemma.key): (lemma.degree, lemma.inflection) for lemma in words.lemmas}
    assert reported == {
        "cane/n/m": ("", "n-e"),
        "animale/n/m": ("", "n-e"),
        "rosa/n/f": ("", "n-a"),
        "rosa/n/m": ("", "n-inv"),
        "blu/a/": ("positive", "a-inv"),
        "ottimo/a/": ("superlative", "a-o"),
        "olivo/n/m": ("", "n-o"),
        "stare/v/": ("", "v-irr"),
        "sempre/d/": ("", ""),
    }
    assert words.lemmas[6].forms == ("olivo", "ulivo")


def test_senses_are_numbered_in_their_order(tables: Path) -> None:
    words = read(tables)
    senses = {lemma.label: own for lemma, own in words.senses.items() if lemma.label == "cane"}
    assert [(sense.number, sense.definition) for sense in senses["cane"]] == [
        (1, "animale che abbaia"),
        (2, "pezzo del fucile"),
    ]
    (kind, part, pair) = words.relations
    assert (kind.subject.lemma.label, kind.kind, kind.of.lemma.label) == (
        "cane",
        "hyponym",
        "animale",
    )
    assert (part.subject.lemma.label, part.kind) == ("animale", "partMeronym")
    assert (pair.subject.number, pair.kind) == (2, "approximateSynonym")


def test_emotions_and_polarity_may_be_missing(tables: Path) -> None:
    cane, sempre, blu = read(tables).affects
    assert (cane.polarity, cane.emotions) == (Decimal("0.25"), ("Amore", "Fiducia"))
    assert (sempre.polarity, sempre.emotions) == (None, ("Fiducia",))
    assert (blu.polarity, blu.emotions) == (0, ())


def test_translations_have_spellings_and_genders(tables: Path) -> None:
    reported = read(tables).dialects
    assert [(each.forms, each.gender) for each in reported["siciliano"]] == [
        (("cani",), "m"),
        (("aliva",), "f"),
        (("ulivu", "olivu"), "m"),
    ]
    assert [each.forms for each in reported["parmigiano"]] == [("can",)]


def test_words_that_only_gender_tells_apart_are_numbered(tables: Path) -> None:
    words = read(tables)
    names = {node.value.partition("#")[2] for node in word_nodes(words).values()}
    assert names == {"MUScaneNOUN", "MUSanimaleNOUN", "MUSrosaNOUN", "MUSrosaNOUN2"}


def test_zero_is_neutral(tables: Path) -> None:
    values = {
        str(fact.value)
        for fact in liita_facts(read(tables))
        if fact.predicate.value.endswith("hasPolarity")
    }
    assert {value.rpartition("#")[2] for value in values} == {"Positive>", "Neutral>"}


def test_an_order_of_lines_changes_no_number(tables: Path) -> None:
    before = liita_facts(read(tables))
    for name in ("lemmas.tsv", "affect.tsv", "siciliano.tsv"):
        lines = (tables / name).read_text("utf-8").splitlines()
        (tables / name).write_text("\n".join(reversed(lines)), encoding="utf-8")
    assert {f for f in liita_facts(read(tables)) if "MUSrosa" not in str(f)} == {
        f for f in before if "MUSrosa" not in str(f)
    }


def test_both_inverses_are_reported(tables: Path) -> None:
    kinds = [fact.predicate.value.rpartition("#")[2] for fact in complit_facts(read(tables))]
    for one, other in (("hyponym", "hypernym"), ("partMeronym", "partHolonym")):
        assert kinds.count(one) == kinds.count(other) == 1
    assert kinds.count("approximateSynonym") == 2


@pytest.mark.parametrize(
    ("name", "line", "reported"),
    [
        ("lemmas.tsv", "gatto\tz\tm", "no part of speech 'z'"),
        ("lemmas.tsv", "gatto\tn", "no gender or degree ''"),
        ("lemmas.tsv", "bello\ta\tm", "no gender or degree 'm'"),
        ("lemmas.tsv", "cane\tn\tm", "cane/n/m is there twice"),
        ("lemmas.tsv", "gatto\tn\tm\tn-x", "no inflection class 'n-x'"),
        ("lemmas.tsv", "gatto", "2 to 4 cells are expected"),
        ("senses.tsv", "gatto\tanimale che miagola", "there is no lemma 'gatto'"),
        ("senses.tsv", "rosa\tfiore", "'rosa' may be rosa/n/f, rosa/n/m"),
        ("senses.tsv", "cane", "2 to 2 cells are expected"),
        ("kinds.tsv", "animale\tblu", "'blu' has 0 senses"),
        ("kinds.tsv", "animale\tcane#3", "none is 'cane#3'"),
        ("kinds.tsv", "cane\tanimale", "is there twice"),
        ("parts.tsv", "cane\tcane", "or of itself"),
        ("pairs.tsv", "?\tcane\tanimale", "'?' is neither = nor ≠"),
        ("affect.tsv", "cane/n\t0.1\tGioia", "'cane/n' is there twice"),
        ("affect.tsv", "cane\t2\tGioia", "2 is not between -1 and 1"),
        ("affect.tsv", "cane\tmolto\tGioia", "'molto' is no number"),
        ("affect.tsv", "cane\tNaN\tGioia", "NaN is not between -1 and 1"),
        ("affect.tsv", "cane\t0.1\tjoy", "no emotion 'joy'"),
        ("siciliano.tsv", "cane\tcani/cana:f", "have one gender"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(
    tables: Path, name: str, line: str, reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (tables / name).read_text("utf-8")
    (tables / name).write_text(f"{text}{line}\n", encoding="utf-8")
    with pytest.raises(TableError, match=f"^{name}:{text.count(chr(10)) + 1}: ") as raised:
        read(tables)
    assert reported in str(raised.value)
    assert main(["--tables", str(tables), "--out", str(tables)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tables / "data").exists()


def test_a_missing_table_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = tmp_path / "tables"
    shutil.copytree(TABLES, copied, ignore=shutil.ignore_patterns("*.py", "parts.tsv"))
    assert main(["--tables", str(copied), "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "parts.tsv" in error
    assert error.count("\n") == 1
