"""`fn:replace`: groups, escapes, flags, classes, and what is refused."""

from __future__ import annotations

import pytest

from reasoningbank.algebra import ProgramError
from reasoningbank.algebra.builtin import strings as module
from reasoningbank.algebra.builtin.strings import replace_all

from .faults import raises, said
from .in_memory import op, outcome, text, value

# The first eight are the examples of XPath and XQuery Functions and Operators 3.1, section 5.6.4.
CASES = [
    ("abracadabra", "bra", "*", "", "a*cada*"),
    ("abracadabra", "a.*a", "*", "", "*"),
    ("abracadabra", "a.*?a", "*", "", "*c*bra"),
    ("abracadabra", "a", "", "", "brcdbr"),
    ("abracadabra", "a(.)", "a$1$1", "", "abbraccaddabbra"),
    ("AAAA", "A+", "b", "", "b"),
    ("AAAA", "A+?", "b", "", "bbbb"),
    ("darted", "^(.*?)d(.*)$", "$1c$2", "", "carted"),
    # Groups: as many digits as name one; one that took no part is empty; $0 is the match.
    ("abcd", "(ab)|(a)", "[1=$1][2=$2]", "", "[1=ab][2=]cd"),
    ("abc", "(b)", "$12", "", "ab2c"),
    ("abcdefghijkl", "(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)", "$10", "", "jkl"),
    ("abc", "b", "$1", "", "ac"),
    ("abc", "b", "x$0x", "", "axbxc"),
    # Escapes of the replacement.
    ("abc", "b", "\\$", "", "a$c"),
    ("abc", "b", "\\\\", "", "a\\c"),
    ("abc", "b", "\\$1", "", "a$1c"),
    ("abc", "b", "\\\\$0", "", "a\\bc"),
    # Flags.
    ("ABC", "b", "x", "i", "AxC"),
    ("ÅÄÖ", "å", "a", "i", "aÄÖ"),
    ("a\nb", "a.b", "x", "", "a\nb"),
    ("a\nb", "a.b", "x", "s", "x"),
    ("a\nb", "^b", "x", "", "a\nb"),
    ("a\nb", "^b", "x", "m", "a\nx"),
    ("helloworld", "hello world", "x", "x", "x"),
    ("hello world", "hello[ ]world", "x", "x", "x"),
    ("a.b.c", ".", "x", "q", "axbxc"),
    ("a\\b", "\\", "$1", "q", "a$1b"),
    ("A.B", "a.b", "\\", "qi", "\\"),
    # Classes and categories.
    ("abc", "[a-z-[b]]", "x", "", "xbx"),
    ("éa1", "\\p{L}", "x", "", "xx1"),
    ("éa1", "\\P{L}", "x", "", "éax"),
    ("x1", "\\i", "_", "", "_1"),
    ("١٢", "\\d", "x", "", "xx"),
    # Back-references and Unicode.
    ("aab", "(a)\\1", "x", "", "xb"),
    ("𝒳y", ".", "<$0>", "", "<𝒳><y>"),
    ("line\n", "e$", "x", "", "line\n"),
    ("", "a", "x", "", ""),
]


@pytest.mark.parametrize(("words", "pattern", "replacement", "flags", "result"), CASES)
def test_replace(words: str, pattern: str, replacement: str, flags: str, result: str) -> None:
    assert replace_all(words, pattern, replacement, flags) == result


REFUSED = [
    (".*?", "$1", "", "args.pattern empty-match"),
    ("", "x", "", "args.pattern empty-match"),
    ("$", "x", "m", "args.pattern empty-match"),
    ("a|b*", "x", "", "args.pattern empty-match"),
    ("b(", "x", "", "args.pattern bad-pattern"),
    ("(?=b)", "x", "", "args.pattern bad-pattern"),
    ("\\b", "x", "", "args.pattern bad-pattern"),
    ("[b-a]", "x", "", "args.pattern bad-pattern"),
    ("[a", "x", "", "args.pattern bad-pattern"),
    ("b", "$", "", "args.replacement bad-replacement"),
    ("b", "$a", "", "args.replacement bad-replacement"),
    ("b", "\\n", "", "args.replacement bad-replacement"),
    ("b", "x\\", "", "args.replacement bad-replacement"),
    ("b", "x", "z", "args.flags bad-flag"),
]


@pytest.mark.parametrize(("pattern", "replacement", "flags", "told"), REFUSED)
def test_what_is_refused(pattern: str, replacement: str, flags: str, told: str) -> None:
    with pytest.raises(ProgramError) as failed:
        replace_all("abc", pattern, replacement, flags)
    assert said(failed.value) == told


def test_a_pattern_that_backtracks_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.05)
    with raises(ProgramError, "slow-pattern"):
        replace_all("a" * 5_000 + "!", "(a|aa)+$", "x")


def test_the_language_is_kept() -> None:
    replaced = op("Replace", input=value("n"), pattern="k", replacement="K")
    encoded = op("Substitute", query="ASK { ?s ?p ?o }", var="o", binding=replaced)
    rows = [{"n": text("køb", "da")}, {"n": text("køb")}]
    assert outcome(op("ForEach", select=rows, operation=encoded)) == [
        'ASK { ?s ?p "Køb"@da }',
        'ASK { ?s ?p "Køb" }',
    ]


def test_the_place_of_a_mistake_is_told() -> None:
    with pytest.raises(ProgramError) as failed:
        outcome(op("Str", input=op("Replace", input="x", pattern="(", replacement="")))
    assert failed.value.where == "$.args.input.args.pattern"
