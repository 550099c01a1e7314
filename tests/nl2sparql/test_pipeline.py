"""The pipeline with a scripted model: each way to a query, the fix loop, its ends, its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from dspy.utils.callback import BaseCallback
from hashed_words import HashedWords

from reasoningbank.corpus import Pack
from reasoningbank.errors import BudgetError, ModelError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.nl2sparql import (
    NL2SPARQL,
    HybridRetriever,
    PackExample,
)
from reasoningbank.nl2sparql.examples import question_similarity, swap_entities
from reasoningbank.nl2sparql.pipeline import Candidate, Translation, adapt_query, write_query
from reasoningbank.nl2sparql.validation import EndpointValidation
from reasoningbank.sparql import EndpointConfig

RIGHT = "SELECT ?h { ?t a w:Tree ; w:height ?h }"
UNKNOWN = "SELECT ?h { ?t w:hight ?h }"
EMPTY = "SELECT ?h { ?t w:height ?h FILTER(?h > 99) }"
BROKEN = "SELECT ?h { ?t w:height"
#: Like no example, and of the pattern HEIGHT.
QUESTION = "List every altitude: how high?"


@pytest.fixture(scope="module")
def retriever(woods: Pack) -> HybridRetriever:
    return HybridRetriever(woods, embedder=HashedWords())


@pytest.fixture
def pipeline(
    woods: Pack, woods_endpoint: EndpointConfig, retriever: HybridRetriever
) -> Callable[..., NL2SPARQL]:
    """Return what makes a pipeline: the scripted model's queries, and settings."""

    def make(*queries: str, **settings: Any) -> NL2SPARQL:
        lm = DummyLM([{"sparql": query} for query in queries])
        settings = {"endpoint": woods_endpoint, "retriever": retriever, **settings}
        return NL2SPARQL(woods, lm, **settings)

    return make


def prompt_of(lm: Any, call: int = -1) -> str:
    return "\n".join(message["content"] for message in lm.history[call]["messages"])


def problem(level: str, code: str) -> Finding:
    return Finding(code, code, fields={"level": level})


def test_a_query_that_ran_is_better_than_one_that_only_parses() -> None:
    slow, empty = problem("endpoint", "not-executed"), problem("endpoint", "empty")
    timed_out = Candidate("A", "written", (slow,), EndpointValidation((slow,)))
    checked = EndpointValidation((empty,), executed=True)
    ran = Candidate("B", "fixed", (empty, problem("semantic", "x")), checked)
    broken = Candidate("C", "fixed", (problem("syntax", "parse"),))
    assert Translation(QUESTION, candidates=[broken, timed_out, ran]).best is ran
    assert Translation(QUESTION, candidates=[broken, timed_out]).best is timed_out
    assert Translation(QUESTION).best is None


def test_a_sound_query_takes_one_call(pipeline: Callable[..., NL2SPARQL]) -> None:
    translator = pipeline(RIGHT)
    found = translator.translate(QUESTION)
    assert (found.sparql, found.is_valid, found.calls, found.rows) == (RIGHT, True, 1, 2)
    assert [one.how for one in found.candidates] == ["written"]
    assert [one.pattern for one in found.patterns] == ["HEIGHT"]
    prompt = prompt_of(translator.lm)
    assert "Heights are metres." in prompt
    assert found.retrieved[0].example.nl.strip() in prompt
    assert "PREFIX" not in prompt
    # What is always the same stands before what changes.
    assert prompt.index("Write one query.") < prompt.index(QUESTION)


def test_examples_are_shown_in_the_question_s_language(
    pipeline: Callable[..., NL2SPARQL],
) -> None:
    translator = pipeline(RIGHT, RIGHT)
    translator.translate("Elenca le altezze degli arbusti che sono nella foresta")
    italian = prompt_of(translator.lm)
    translator.translate("List the heights of the shrubs that are in the forest")
    english = prompt_of(translator.lm)
    assert "Qual è l'altezza" in italian
    assert "What is the height" not in italian
    assert "What is the height" in english
    assert "Qual è l'altezza" not in english


def test_fences_and_lost_headers_do_no_harm(
    woods: Pack, retriever: HybridRetriever, pipeline: Callable[..., NL2SPARQL]
) -> None:
    assert pipeline(f"```sparql\n{RIGHT}\n```").translate(QUESTION).sparql == RIGHT

    class Headless(DummyLM):  # type: ignore[misc]
        def _format_answer_fields(self, field_names_and_values: dict[str, Any]) -> str:
            return str(field_names_and_values["sparql"])

    lm = Headless([{"sparql": f"Here:\n{RIGHT}"}])
    assert NL2SPARQL(woods, lm, retriever=retriever).translate(QUESTION).sparql == RIGHT


@pytest.mark.parametrize(
    ("first", "code"),
    [(BROKEN, "syntax-error"), (UNKNOWN, "unknown-property"), (EMPTY, "empty")],
)
def test_the_problem_of_each_level_is_in_the_next_prompt(
    pipeline: Callable[..., NL2SPARQL], first: str, code: str
) -> None:
    translator = pipeline(first, RIGHT)
    found = translator.translate(QUESTION)
    assert (found.sparql, found.is_valid, found.calls) == (RIGHT, True, 2)
    assert [one.how for one in found.candidates] == ["written", "fixed"]
    prompt = prompt_of(translator.lm)
    problems = found.candidates[0].problems
    assert code in [one.code for one in problems]
    assert first in prompt
    assert str(problems[0]) in prompt
    # The prompt of the fix begins like the first, so that a server reads only its end anew.
    before = prompt_of(translator.lm, -2)
    assert prompt.startswith(before)


def test_the_best_is_kept_when_nothing_is_sound(pipeline: Callable[..., NL2SPARQL]) -> None:
    found = pipeline(BROKEN, EMPTY, UNKNOWN).translate(QUESTION)
    assert (found.sparql, found.is_valid, found.calls) == (EMPTY, False, 3)
    assert [problem.code for problem in found.problems] == ["empty"]
    assert found.rows == 0
    assert found.stopped is None


def test_rows_speak_for_a_query_against_a_rule(pipeline: Callable[..., NL2SPARQL]) -> None:
    against = "SELECT ?h { ?t w:height ?h ; w:near ?o }"
    found = pipeline(against, EMPTY, BROKEN).translate(QUESTION)
    assert found.sparql == against
    assert found.rows == 2
    assert not found.is_valid


def test_a_repeated_query_ends_the_loop(pipeline: Callable[..., NL2SPARQL]) -> None:
    again = f"{UNKNOWN}  # again"
    found = pipeline(UNKNOWN, again, again, RIGHT, max_fixes=3).translate(QUESTION)
    assert found.calls == 3
    assert found.sparql == UNKNOWN
    assert found.stopped is not None
    assert found.stopped.code == "repeated"


def test_a_repeated_query_is_asked_for_once_more_with_a_temperature(
    pipeline: Callable[..., NL2SPARQL],
) -> None:
    translator = pipeline(UNKNOWN, UNKNOWN, RIGHT)
    found = translator.translate(QUESTION)
    assert (found.sparql, found.calls, found.stopped) == (RIGHT, 3, None)
    asked: Any = translator.lm
    warm = [call["kwargs"].get("temperature") for call in asked.history]
    assert warm == [None, None, 0.7]
    assert asked.history[1]["messages"] == asked.history[2]["messages"]


def test_a_reply_without_a_query(pipeline: Callable[..., NL2SPARQL]) -> None:
    found = pipeline("I cannot say.").translate(QUESTION)
    assert (found.sparql, found.is_valid, found.calls) == (None, False, 1)
    assert found.stopped is not None
    assert found.stopped.code == "no-query"
    found = pipeline(UNKNOWN, "I cannot say.").translate(QUESTION)
    assert (found.sparql, found.calls) == (UNKNOWN, 2)
    assert found.stopped is not None
    assert found.stopped.code == "no-query"


def test_settings_switch_parts_off(pipeline: Callable[..., NL2SPARQL]) -> None:
    assert pipeline(UNKNOWN, max_fixes=0).translate(QUESTION).calls == 1
    only_syntax = pipeline(UNKNOWN, levels=["syntax"]).translate(QUESTION)
    assert (only_syntax.is_valid, only_syntax.rows) == (True, None)
    unexecuted = pipeline(EMPTY, endpoint=None).translate(QUESTION)
    assert (unexecuted.is_valid, unexecuted.rows) == (True, None)
    alone = pipeline(RIGHT, top_k=0)
    assert alone.translate(QUESTION).retrieved == ()
    assert "Which trees are" not in prompt_of(alone.lm)
    with pytest.raises(UsageError):
        pipeline(RIGHT, top_k=-1)
    with pytest.raises(UsageError, match="empty"):
        pipeline(RIGHT).translate(" ")


def test_groups_of_the_question_are_not_shown(pipeline: Callable[..., NL2SPARQL]) -> None:
    translator = pipeline(RIGHT)
    assert translator.retriever is not None
    translator.retriever = translator.retriever.without(["height"], ["number"])
    found = translator.translate(QUESTION)
    assert [one.example.id for one in found.retrieved] == ["near_pine"]
    assert "What is the height" not in prompt_of(translator.lm)


# -- an example that is nearly the question -----------------------------------------------------


@pytest.mark.parametrize(
    "question", ['What is the height of "pine"?', "Qual è l'altezza di «pine»?"]
)
def test_the_same_question_of_another_thing_takes_no_call(
    pipeline: Callable[..., NL2SPARQL], question: str
) -> None:
    found = pipeline().translate(question)
    assert (found.calls, found.is_valid, found.rows) == (0, True, 1)
    assert found.sparql is not None
    assert 'rdfs:label "pine"' in found.sparql
    assert [one.how for one in found.candidates] == ["exchanged"]


def test_numbers_are_exchanged_too(pipeline: Callable[..., NL2SPARQL]) -> None:
    found = pipeline().translate("Which trees are higher than 25 metres?")
    assert found.sparql is not None
    assert "FILTER(?h > 25)" in found.sparql
    assert found.rows == 2


def test_an_exchange_that_finds_nothing_is_written_anew(
    pipeline: Callable[..., NL2SPARQL],
) -> None:
    found = pipeline(RIGHT).translate("Which trees are higher than 99 metres?")
    assert found.sparql == RIGHT
    assert [one.how for one in found.candidates] == ["exchanged", "written"]
    assert found.calls == 1


def test_a_near_example_is_adapted_by_the_model(pipeline: Callable[..., NL2SPARQL]) -> None:
    translator = pipeline(RIGHT)
    found = translator.translate("Which trees grow higher than 35 metres?")
    assert [one.how for one in found.candidates] == ["adapted"]
    prompt = prompt_of(translator.lm)
    assert "FILTER(?h > 35)" in prompt
    assert "Heights are metres." not in prompt
    written = pipeline(RIGHT, adapt=False).translate("Which trees grow higher than 35 metres?")
    assert [one.how for one in written.candidates] == ["written"]


IN_THE_OTHER_ONE = "Words in Parmigiano but not in Sicilian?"


@pytest.mark.parametrize(
    ("query", "asked", "question", "expected"),
    [
        ('ASK { ?s ?p "cane"@it }', 'Sensi di "cane"?', 'Sensi di "gatto"?', '"gatto"@it'),
        ('FILTER(REGEX(?w, "zione$"))', "Parole in -zione?", "Parole in -mento?", '"mento$"'),
        ("ASK { up:P05067 ?p ?o }", "Is P05067 here?", "Is Q9Y6K9 here?", "up:Q9Y6K9"),
        ("ASK { ?s ?p ?o }", 'Sensi di "cane"?', 'Sensi di "gatto"?', None),
        ('ASK { ?s ?p "cane" }', 'Sensi di "cane"?', 'Sensi di "a" e "b"?', None),
        ('ASK { ?s ?p "cane" }', 'Sensi di "cane"?', 'Parti di "gatto"?', None),
        ('ASK { ?a ?b "x" . ?c ?d "y" }', '"x" e "y"?', '"y" e "x"?', None),
        ("ASK {}", "Words in Sicilian but not in Parmigiano?", IN_THE_OTHER_ONE, None),
        ("ASK {}", "Le parole tradotte dal siciliano", "Le parole tradotte in siciliano", None),
        ("ASK {}", "Tutti gli iponimi?", "Gli iponimi?", None),
        ("ASK { FILTER(?v < -0.8) }", "Values below -0.8?", "Values below 0.8?", None),
        ("ASK { FILTER(?v < -0.8) }", "Values below -0.8?", "Values below -0.5?", "-0.5)"),
        ("HAVING(COUNT(?s) > 10) LIMIT 10", "More than 10 senses?", "More than 5 senses?", None),
        ("ASK { ?s ?p 10 ; ?q 10 }", "More than 10 senses?", "More than 5 senses?", None),
        ("SELECT * { ?s ?p ?o } LIMIT 10", "The first 10 words?", "The first 5 words?", None),
        ("SELECT * { ?s ?p ?o } OFFSET 10", "All but 10 words?", "All but 5 words?", None),
        ("HAVING(COUNT(?s) > 10) LIMIT 3", "More than 10 senses?", "More than 5 senses?", "> 5)"),
        ('REGEX(?l, "^cane$")', 'Sensi di "cane"?', 'Sensi di "(x."?', None),
        ('REGEX(?l, "cane")', 'Sensi di "cane"?', 'Sensi di "a+"?', None),
        (r'REGEX(?l, "^a\\+$")', 'Sensi di "a+"?', 'Sensi di "b+"?', None),
        ('STRSTARTS(?l, "cane")', 'Sensi di "cane"?', 'Sensi di "a+"?', '"a+"'),
        (r'ASK { ?s ?p "a\"b" }', "Sensi di 'a\"b'?", "Sensi di 'c'?", None),
        ('FILTER(LCASE(STR(?l)) = "cane")', 'Sensi di "cane"?', 'Sensi di "gatto"?', '"gatto"'),
        ('FILTER(LCASE(STR(?l)) = "cane")', 'Sensi di "cane"?', 'Sensi di "Roma"?', None),
        ('FILTER(?l = "cane")', 'Sensi di "Cane"?', 'Sensi di "Roma"?', '"roma"'),
        ('?s ?p "cane"', 'Sensi di "cane"?', 'Sensi di "Roma"?', '"Roma"'),
    ],
)
def test_exchanging_entities(query: str, asked: str, question: str, expected: str | None) -> None:
    found = swap_entities(question, PackExample("e", asked, query))
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert expected in found


@pytest.mark.parametrize(
    "query",
    [
        "PREFIX e: <urn:e>\nprefix : <urn:f>\nASK { ?s e:p ?o }",
        "PREFIX e: <urn:e> PREFIX : <urn:f> ASK { ?s e:p ?o }",
    ],
)
def test_examples_are_shown_without_their_prefixes(query: str) -> None:
    lm = DummyLM([{"sparql": RIGHT}])
    write_query("Which?", "Rules.", [PackExample("1", "Any?", query)], lm=lm)
    said = [(one["role"], one["content"]) for one in lm.history[0]["messages"]]
    assert said[1:] == [
        ("user", "Any?"),
        ("assistant", "ASK { ?s e:p ?o }"),
        ("user", "Which?"),
    ]


def test_similarity_is_of_words_without_entities() -> None:
    assert question_similarity('Sensi di "cane"?', 'i sensi di "gatto"') == 1
    assert 0 < question_similarity("Which tall trees?", "Which tall shrubs?") < 1
    assert question_similarity("", "Which trees?") == 0


# -- failures and steps -------------------------------------------------------------------------


def test_a_budget_ends_it_and_what_was_done_is_kept(
    woods: Pack, woods_endpoint: EndpointConfig, retriever: HybridRetriever
) -> None:
    class Spends(BaseCallback):  # type: ignore[misc]
        left = 1

        def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            if self.left == 0:
                spent.append(BudgetError("the budget of calls is used up"))
            self.left -= 1

    spent: list[BudgetError] = []

    class Spent(DummyLM):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if spent:
                raise spent[0]
            return super().__call__(*args, **kwargs)

    translator = NL2SPARQL(
        woods, Spent([{"sparql": UNKNOWN}] * 2), endpoint=woods_endpoint, retriever=retriever
    )
    with dspy.context(callbacks=[Spends()]):
        found = translator.translate(QUESTION)
    assert found.sparql == UNKNOWN
    assert found.stopped is not None
    assert found.stopped.code == "budget"
    with pytest.raises(BudgetError):
        translator.translate(QUESTION)


def test_a_model_that_cannot_be_reached(woods: Pack, retriever: HybridRetriever) -> None:
    lm = dspy.LM("openai/none", api_base="http://127.0.0.1:9/v1", api_key="none", num_retries=0)
    with pytest.raises(ModelError):
        NL2SPARQL(woods, lm, retriever=retriever).translate(QUESTION)


def test_the_model_of_the_context_is_used(woods: Pack) -> None:
    example = PackExample("1", "What?", "ASK { ?s ?p ?o }")
    with dspy.context(lm=DummyLM([{"sparql": RIGHT}])):
        assert adapt_query("What else?", example) == RIGHT


def test_steps_are_reported_as_they_complete(pipeline: Callable[..., NL2SPARQL]) -> None:
    steps: list[tuple[str, Any]] = []
    pipeline(UNKNOWN, RIGHT).translate(QUESTION, on_step=lambda name, d: steps.append((name, d)))
    assert [name for name, _ in steps] == [
        "detect",
        "retrieve",
        "constrain",
        "synthesise",
        "validate",
        "fix",
        "validate",
    ]
    assert steps[0][1] == {"patterns": {"HEIGHT": 0.8}}
    assert steps[4][1]["codes"] == ["unknown-property", "empty"]
    assert steps[6][1]["rows"] == 2
