"""Operations on strings and URIs."""

from __future__ import annotations

from typing import Any

import pytest

from reasoningbank.algebra import ProgramError, mistakes
from reasoningbank.algebra.builtin import strings as module
from reasoningbank.algebra.builtin.strings import replace_all

from .faults import raises, said
from .in_memory import op, outcome, text, uri, value

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


@pytest.mark.parametrize(("pattern", "replacement", "flags", "reported"), REFUSED)
def test_what_is_refused(pattern: str, replacement: str, flags: str, reported: str) -> None:
    with pytest.raises(ProgramError) as failed:
        replace_all("abc", pattern, replacement, flags)
    assert said(failed.value) == reported


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


def test_the_place_of_a_mistake_is_reported() -> None:
    with pytest.raises(ProgramError) as failed:
        outcome(op("Str", input=op("Replace", input="x", pattern="(", replacement="")))
    assert failed.value.where == "$.args.input.args.pattern"


ENCODED = [
    ("Los Angeles", "Los%20Angeles"),
    ("~bébé", "~b%C3%A9b%C3%A9"),
    ("Malmö Municipality", "Malm%C3%B6%20Municipality"),
    ("azAZ09-_.~", "azAZ09-_.~"),
    ("a/b:c?d#e&f=g+h", "a%2Fb%3Ac%3Fd%23e%26f%3Dg%2Bh"),
    ("100%", "100%25"),
    ("%20", "%2520"),
    ("'()*!", "%27%28%29%2A%21"),
    ("日本", "%E6%97%A5%E6%9C%AC"),
    ("𝒳", "%F0%9D%92%B3"),
    ("e\u0301", "e%CC%81"),  # not composed: it is another string than é
    ("a\nb\t", "a%0Ab%09"),
    ("", ""),
]


@pytest.mark.parametrize(("words", "encoded"), ENCODED)
def test_encode_for_uri(words: str, encoded: str) -> None:
    assert outcome(op("EncodeForURI", input=words)) == encoded


def test_encode_for_uri_takes_strings_with_a_language() -> None:
    assert outcome(op("EncodeForURI", input=text("é", "fr"))) == "%C3%A9"


@pytest.mark.parametrize("given", [uri("http://e/é"), op("URI", input="http://e/é")])
def test_functions_on_strings_take_no_uri(given: Any) -> None:
    for call in (
        op("EncodeForURI", input=given),
        op("Replace", input=given, pattern="e", replacement="f"),
    ):
        (wrong,) = mistakes(call)
        assert said(wrong) == "$.args.input wrong-type"
    rows = op("ForEach", select=[{"x": given}], operation=op("EncodeForURI", input=value("x")))
    with raises(ProgramError, "wrong-type"):
        outcome(rows)
    assert outcome(op("EncodeForURI", input=op("Str", input=given))) == "http%3A%2F%2Fe%2F%C3%A9"


BASE = "http://a/b/c/d;p?q"
# RFC 3986, section 5.4.
RESOLVED = [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"),
    ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"),
    ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y#s"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
    ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
    ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
    ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
    ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
    (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
    ("g;x=1/../y", "http://a/b/c/y"),
]  # fmt: skip


@pytest.mark.parametrize(("relative", "full"), RESOLVED)
def test_resolve_uri(relative: str, full: str) -> None:
    assert outcome(op("ResolveURI", base=BASE, relative=relative)) == full


CLEANED = [
    ("a b", "http://e/d/a%20b"),
    ("København", "http://e/d/København"),
    ("a%20b", "http://e/d/a%20b"),
    ('<>"{}|^`\\', "http://e/d/%3C%3E%22%7B%7D%7C%5E%60%5C"),
    ("a\tb\n", "http://e/d/a%09b%0A"),
    ("Aarhus (by)", "http://e/d/Aarhus%20(by)"),
    ("100%", "http://e/d/100%25"),
    ("a[1]", "http://e/d/a%5B1%5D"),
    ("//[::1]:80/a", "http://[::1]:80/a"),
    ("#", "http://e/d/#"),
]


@pytest.mark.parametrize(("relative", "full"), CLEANED)
def test_what_no_iri_may_hold_is_encoded(relative: str, full: str) -> None:
    assert outcome(op("ResolveURI", base="http://e/d/", relative=relative)) == full


def test_other_schemes() -> None:
    assert outcome(op("ResolveURI", base="ftp://e/d/", relative="x")) == "ftp://e/d/x"
    assert outcome(op("ResolveURI", base="coap://e/d/", relative="x")) == "coap://e/d/x"
    assert outcome(op("ResolveURI", base="http://e/d", relative="urn:isbn:1")) == "urn:isbn:1"


def test_what_cannot_be_resolved() -> None:
    with raises(ProgramError, "bad-iri"):
        outcome(op("ResolveURI", base="http://e/", relative="\ufffe"))


def test_uri() -> None:
    for given in ("urn:isbn:1", uri("http://e/ø"), text("http://e/", "en")):
        assert outcome(op("URI", input=given)) == (
            given if isinstance(given, str) else given["value"]
        )


URIS_REFUSED = [
    (op("URI", input="a/b"), "$.args.input relative-iri"),
    (op("URI", input="http://e/a b"), "$.args.input relative-iri"),
    (op("ResolveURI", base="b/", relative="c"), "$.args.base relative-iri"),
    (op("GET", url="b/"), "$.args.url bad-url"),
    (op("GET", url="urn:isbn:1"), "$.args.url bad-url"),
    (op("GET", url="file:///etc/passwd"), "$.args.url bad-url"),
    (op("GET", url="http://"), "$.args.url bad-url"),
    (op("GET", url=5), "$.args.url bad-url"),
    (op("Str", input={"type": "bnode", "value": "b"}), "$.args.input blank-node"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "reported"), URIS_REFUSED)
def test_what_is_not_a_uri(program: object, reported: str) -> None:
    (wrong,) = mistakes(program)
    assert said(wrong) == reported


def test_a_uri_that_a_row_lacks() -> None:
    each = op("ForEach", select=[{"x": text("b c")}], operation=op("GET", url=value("x")))
    with pytest.raises(ProgramError) as failed:
        outcome(each)
    assert said(failed.value) == "$.args.operation.args.url bad-url"
