"""Words of questions: quotes, elisions, accents, inflection, codes."""

from __future__ import annotations

import re

import pytest

from reasoningbank.nl2sparql.words import (
    content_words,
    folded,
    language_of,
    masked,
    read_tokens,
    spoken_languages,
    stem,
    stream,
)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ('Sensi di "cane"?', ["cane"]),
        ("Sensi di «cane» e “gatto”", ["cane", "gatto"]),
        ("Sensi di 'cane'?", ["cane"]),
        ("L'emozione dell'aggettivo e un po' di gioia, c'è?", []),
        ("the dog's tail and the cats' tails", []),
        ("un ‘cane’ d’oro", ["cane"]),
        ('una virgoletta " sola', []),
    ],
)
def test_quotes_are_told_from_apostrophes(question: str, quoted: list[str]) -> None:
    found = [token.text for token in read_tokens(question) if token.kind == "quoted"]
    assert found == quoted


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("emozione", "emozioni"),
        ("iperonimo", "iperonimi"),
        ("traduzione", "traduzioni"),
        ("velenoso", "velenosi"),
        ("polarità", "polarita"),
        ("aggettivo", "aggettivi"),
    ],
)
def test_italian_forms_and_accents_are_one_stem(one: str, other: str) -> None:
    assert stem(one, "it") == stem(other, "it")


def test_english_forms_are_one_stem_and_other_words_are_not() -> None:
    assert stem("translations", "en") == stem("translation", "en")
    assert stem("cats", "en") != stem("category", "en")


@pytest.mark.parametrize("form", ["dell'emozione", "dell’emozione", "della emozione"])
def test_elided_prepositions_come_as_their_base(form: str) -> None:
    words = [word for _, word in stream(read_tokens(form), "it")]
    assert words == ["di", stem("emozione", "it")]


def test_kinds_of_codes_are_the_packs() -> None:
    shapes = {"ec": re.compile(r"\d+(\.(\d+|-)){3}"), "accession": re.compile(r"[OPQ]\d\w{3}\d")}
    kinds = {t.text: t.kind for t in read_tokens("Is P05067 an EC 2.7.11.1, or 35?", shapes)}
    assert kinds["P05067"] == "accession"
    assert kinds["2.7.11.1"] == "ec"
    assert kinds["35"] == "number"


def test_affixes_are_no_words() -> None:
    kinds = [t.kind for t in read_tokens("aggettivi in -oso e verbi con ri-")]
    assert kinds == ["word", "word", "affix", "word", "word", "word", "affix"]


def test_entities_are_masked_for_shape_and_kept_for_words() -> None:
    question = 'Quali emozioni esprime "Tristezza infinita" in P05067?'
    assert masked(question) == "Quali emozioni esprime X in X?"
    assert content_words(question).split()[-3:] == ["tristezza", "infinita", "p05067"]
    assert masked("") == content_words("") == ""


def test_folding_keeps_letters_of_other_alphabets() -> None:
    assert folded("ÀÈÉ Straße") == "aee strasse"
    assert folded("Λόγε") == "λογε"


@pytest.mark.parametrize(
    ("question", "language", "spoken"),
    [
        ("Quali sono le parole della gioia?", "it", {"it"}),
        ("What are the words of joy?", "en", {"en"}),
        ("gioia", "xx", {"it", "en"}),
        ("", "xx", {"it", "en"}),
        ("Quali sono le parole per the words of joy that are there?", "en", {"it", "en"}),
    ],
)
def test_languages_by_function_words(question: str, language: str, spoken: set[str]) -> None:
    assert language_of(question, default="xx") == language
    assert spoken_languages(read_tokens(question)) == spoken
