"""Words of a question, the patterns it needs by rules and by embeddings, and how often right."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from reasoningbank.corpus import Pack, load_corpus, load_pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import (
    examples_of,
    load_examples,
    load_patterns,
    pattern_report,
    patterns_of_query,
)
from reasoningbank.nl2sparql.detection import PatternDetector, detector_of
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
from reasoningbank.sparql import prepare

from .conftest import changed


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
def test_quotes_are_distinguished_from_apostrophes(question: str, quoted: list[str]) -> None:
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


ONTOLOGY = Path(__file__).parents[2] / "ontology"


@pytest.fixture(scope="module")
def detector(woods: Pack) -> PatternDetector:
    return PatternDetector(load_patterns(woods))


def names(detector: PatternDetector, question: str) -> set[str]:
    return {one.pattern for one in detector.detect(question)}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What heights do they have?", {"HEIGHT"}),
        ("Qual è l'altezza dell'albero?", {"HEIGHT"}),
        ("Le altezze degli alberi", {"HEIGHT"}),
        ('What does "height" mean?', set()),
        ("a highway", set()),
        ("a shrub close by", set()),
        ("one close by, beside the house", {"NEIGHBOUR"}),
        ("the height difference", {"NEIGHBOUR"}),
        ("draw heights", set()),
        ("The heights of those near it", {"HEIGHT", "NEIGHBOUR", "BOTH"}),
        ("number of very old trees", {"COUNT"}),
        ("number of those that are not trees", set()),
        ("all mossy trees", {"KIND", "HEIGHT"}),
        ("all mossy trees of Sicily", {"KIND", "HEIGHT", "MORE"}),
        ("how many, of all mossy trees", {"COUNT"}),
        ("", set()),
        ("¿¡?! 🌳", set()),
    ],
)
def test_rules(detector: PatternDetector, question: str, expected: set[str]) -> None:
    assert names(detector, question) == expected


def test_a_pasted_page_is_read_as_far_as_a_question_goes(detector: PatternDetector) -> None:
    assert names(detector, "the height " + "mossy stones " * 50_000) == {"HEIGHT"}
    assert names(detector, "mossy stones " * 50_000 + "the height") == set()


def test_exact_words_are_this_form_alone(detector: PatternDetector) -> None:
    assert names(detector, "how tall") == {"HEIGHT"}
    assert names(detector, "the tallest") == set()


def test_reasons_and_scores(detector: PatternDetector) -> None:
    (once,) = detector.detect("the height")
    (twice,) = detector.detect("the height: how high")
    assert once.because == ("height",)
    assert set(twice.because) == {"height", "high"}
    assert once.score < twice.score < 1


def test_reasons_are_the_words_however_accents_are_stored(detector: PatternDetector) -> None:
    text = unicodedata.normalize("NFD", "È così: qual è l'altezza?")
    assert [one.because for one in detector.detect(text)] == [("altezza",)]


def test_same_words_in_two_languages_count_once(woods: Pack, tmp_path: Path) -> None:
    text = '[[pattern]]\nname = "A"\nweak.it = ["zone"]\nweak.en = ["zone"]\n'
    pack = changed(woods, tmp_path, patterns_toml=text)
    assert PatternDetector(load_patterns(pack)).detect("zone") == []


def test_rules_of_another_language_do_not_read_a_question(woods: Pack, tmp_path: Path) -> None:
    text = '[[pattern]]\nname = "A"\nstrong.en = ["all <word> <word>"]\n'
    pack = changed(woods, tmp_path, patterns_toml=text)
    detector = PatternDetector(load_patterns(pack))
    assert names(detector, "Le parole che portano all'etichetta verde della sua casa") == set()
    assert names(detector, "Give me all mossy stones that are here") == {"A"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[pattern]]\nnme = "A"\n', "pattern.0"),
        ("[[pattern]\n", "cannot be read"),
        ('[[pattern]]\nname = "A"\nimplies = ["B"]\n', "unknown pattern 'B'"),
        ('[[pattern]]\nname = "A"\nquery = [{ properties = ["nope:x"] }]\n', "nope:x"),
        ('[shapes]\nx = "("\n', "valid regular expression"),
    ],
)
def test_broken_files_are_one_clear_line(woods: Pack, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_patterns(changed(woods, tmp_path, patterns_toml=text))
    assert said in str(caught.value)
    assert "patterns.toml" in str(caught.value)


def test_a_pack_without_the_file_has_no_patterns(woods: Pack, tmp_path: Path) -> None:
    assert load_patterns(changed(woods, tmp_path)).patterns == ()


def test_patterns_by_name(woods: Pack) -> None:
    patterns = load_patterns(woods)
    assert patterns.named("height").name == "HEIGHT"
    assert patterns.known(["count", "nothing", "Height"]) == ("HEIGHT", "COUNT")
    with pytest.raises(UsageError, match="choose HEIGHT"):
        patterns.named("WIDTH")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Quali lemmi esprimono 'tristezza'?", {"EMOTION"}),
        ("Which words evoke 'joy'?", {"EMOTION"}),
        ('Definizioni di "gioia" e "tristezza"', {"SENSE_DEFINITION"}),
        ('Traduzioni di "gioia"', {"TRANSLATION"}),
        ('Sinonimi di "casa"', {"SYNONYM"}),
        ('Which words have a similar meaning to "casa"?', {"SYNONYM"}),
        ('Qual è il contrario di "bello"?', {"ANTONYM"}),
        ('Antonyms of "bello"', {"ANTONYM"}),
        ("Al contrario, quali emozioni ci sono?", {"EMOTION"}),
        ('Le forme flesse di "andare"', {"INFLECTION"}),
        ('What is the plural of "uomo"?', {"INFLECTION"}),
    ],
)
def test_quoted_words_and_relations_of_liita(question: str, expected: set[str]) -> None:
    assert names(detector_of(load_pack("liita")), question) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('{ ?a ontolex:writtenRep ?w FILTER(REGEX(?w, "a$")) }', {"MORPHO_REGEX"}),
        ('{ ?a skos:definition ?w FILTER(REGEX(?w, "a$")) }', {"SENSE_DEFINITION"}),
        ('{ ?a rdfs:label "cane" ; lexinfo:hyponym ?b }', {"HYPERNYM"}),
        ('{ ?a lexinfo:hyponym ?b . ?b rdfs:label "cane" }', {"HYPONYM"}),
        ('{ ?b lexinfo:hypernym ?a . ?b rdfs:label "cane" }', {"HYPONYM"}),
        ("{ GRAPH ?g { ?a lila:hasPOS ?b } }", {"META_GRAPH", "POS"}),
        ("{ ?a lexinfo:antonym ?b }", {"ANTONYM"}),
        ("{ ?a lexinfo:approximateSynonym ?b }", {"SYNONYM"}),
        ("{ ?a lila:hasInflectionType ?b }", {"INFLECTION"}),
    ],
)
def test_untagged_queries_of_liita_show_their_patterns(query: str, expected: set[str]) -> None:
    pack = load_pack("liita")
    text = prepare(f"SELECT * {query}", prefixes=pack.prefixes).text
    assert set(patterns_of_query(text, load_patterns(pack))) == expected


def test_patterns_are_read_off_liitas_golds() -> None:
    patterns = load_patterns("liita")
    report = pattern_report(
        (patterns_of_query(one.sparql, patterns), one.patterns)
        for one in load_examples(load_pack("liita"))
    )
    assert report.precision >= 0.95
    assert report.recall >= 0.93


def test_signs_of_queries(woods: Pack) -> None:
    patterns = load_patterns(woods)
    prefix = "PREFIX w: <http://w/>\n"
    assert patterns_of_query(prefix + "ASK { ?t w:height/w:near 1 }", patterns) == (
        "HEIGHT",
        "NEIGHBOUR",
    )
    assert patterns_of_query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", patterns) == ("COUNT",)
    assert patterns_of_query('ASK { ?s ?p "w:height" }', patterns) == ()
    assert patterns_of_query("no query", patterns) == ()


@pytest.mark.parametrize(
    "question",
    [
        "Parole con traduzione siciliana e non parmigiana",
        "Parole tradotte in parmigiano ma non in siciliano",
        "Words translated into Sicilian but not into Parmigiano",
        "Words with a Parmigiano and without a Sicilian translation",
    ],
)
def test_one_dialect_without_the_other_needs_both(question: str) -> None:
    found = names(PatternDetector(load_patterns("liita")), question)
    assert found == {"TRANSLATION", "MULTI_TRANSLATION"}


def test_liita_rules_on_the_set_that_was_labelled_before_them() -> None:
    detector = PatternDetector(load_patterns("liita"))
    lines = (ONTOLOGY / "liita" / "detection.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for language in ("it", "en"):
        asked = [row for row in rows if row["language"] == language]
        assert len(asked) >= 60
        report = pattern_report(
            (names(detector, one["question"]), one["patterns"]) for one in asked
        )
        assert report.precision >= 0.95
        assert report.recall >= 0.95


def test_a_decimal_number_is_not_an_enzyme_class() -> None:
    detector = PatternDetector(load_patterns("uniprot"))
    assert "ENZYME" not in names(detector, "Which structures have a resolution below 2.5?")
    assert "ENZYME" in names(detector, "Which proteins are of 2.7.11?")


def test_uniprot_rules_on_train_and_dev() -> None:
    pack = load_pack("uniprot")
    patterns = load_patterns(pack)
    detector = PatternDetector(patterns)
    split = load_corpus(pack).split()
    examples = examples_of((*split.train, *split.dev), patterns)
    report = pattern_report((names(detector, e.nl), e.patterns) for e in examples)
    assert report.precision >= 0.9
    assert report.recall >= 0.95
