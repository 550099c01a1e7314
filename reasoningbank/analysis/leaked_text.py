"""Finding a gold or a question in a text, however it was laid out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

__all__ = ["TaskText", "holds", "searched", "texts_in", "words_of"]

#: Words that a gold, and a question, must have to be looked for in a text.
LEAST_WORDS = 3
LEAST_QUESTION_WORDS = 5

_DECLARATION = re.compile(r"(?im)\bprefix\s+[\w.-]*:\s*<[^>]*>|\bbase\s*<[^>]*>")
_IRI = re.compile(r"<[^<>\s]*?([^<>\s/#:]*)>")
_NAME = re.compile(r"[\w.-]*:([\w.-]+)")
_VARIABLE = re.compile(r"[?$]\w+")
#: What may follow a query's last brace and makes it another query.
_GOES_ON = r"(?!(?:group|having|order|limit|offset|values) )"
_UNSAID = frozenset({"where", "a", "type"})


class TaskText(NamedTuple):
    """The words of a task's gold and question; empty where they are too few to tell anything."""

    gold: str
    question: str

    @classmethod
    def of(cls, gold: str, question: str) -> TaskText:
        """Take the words of a task's gold and question."""
        words, asked = words_of(gold), words_of(question)
        said = [word for word in words.split() if word not in "{}"]
        enough = len(said) >= LEAST_WORDS, len(asked.split()) >= LEAST_QUESTION_WORDS
        return cls(words if enough[0] else "", asked if enough[1] else "")


def words_of(text: str) -> str:
    """Return the words of a query, or of a text with queries in it, as they are compared.

    Prefix declarations, comments, variables, punctuation and layout are left out, IRIs are cut to
    their local names, and capitals made small: a query is found again however it was laid out,
    with whatever variables. Braces stay: by them a short query is told from the beginning of a
    longer one.

    Examples:
        >>> words_of("PREFIX up: <http://e/> SELECT ?p { ?p a up:Protein ; up:mass 7 } # all")
        ' select { protein mass 7 } '
        >>> words_of("select ?x where { ?x a <http://e/Protein> . ?x <http://e/mass> 7 }")
        ' select { protein mass 7 } '
    """
    # A turn's code may hold a query in a string of one line.
    text = re.sub(r"\\[nrt]", "\n", text)
    text = re.sub(r"(?m)(?:^|\s)#[^\r\n]*", " ", text)
    text = _IRI.sub(r" \1 ", _DECLARATION.sub(" ", text))
    text = _VARIABLE.sub(" ", _NAME.sub(r" \1 ", text))
    found = (word for word in re.findall(r"\w+|[{}]", text.lower()) if word not in _UNSAID)
    return f" {' '.join(found)} "


def searched(text: str) -> str:
    """Return the words of a text that is searched for queries.

    A turn's code may hold a query in a formatted string, whose braces are doubled: then the text
    is there twice, the second time with single ones.

    Examples:
        >>> words_of("ASK { e:p e:q 7 }") in searched("f'ASK {{ e:p e:q 7 }}'")
        True
    """
    words = words_of(text)
    if "{{" not in text:
        return words
    return f"{words}|{words_of(text.replace('{{', '{').replace('}}', '}'))}"


def holds(words: str, gold: str) -> bool:
    """Say whether a text holds a gold as a whole query.

    Args:
        words: The text, as `searched` returns it.
        gold: The gold, as `words_of` returns it.

    Examples:
        >>> gold = words_of("SELECT ?w { ?l e:written ?w FILTER(?w > ?x) }")
        >>> holds(searched('select ?a { ?b e:written ?a filter(?a > ?c) } limit 5'), gold)
        False
        >>> holds(searched("Take select ?a { ?b e:written ?a filter(?a > ?c)\\n}, then"), gold)
        True
    """
    return re.search(re.escape(gold) + _GOES_ON, words) is not None


def texts_in(
    words: str, texts: Mapping[str, TaskText]
) -> Iterator[tuple[Literal["gold text", "question text"], str]]:
    """Yield which tasks' golds and questions a text holds, as `searched` returns it."""
    for task, text in texts.items():
        if text.gold and holds(words, text.gold):
            yield "gold text", task
        if text.question and text.question in words:
            yield "question text", task
