"""What calls consume, token estimates, and queries in replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import dspy
import pytest
from asked_models import make_lm
from hypothesis import given
from hypothesis import strategies as st
from work import calls

from reasoningbank.lm import UsageCounter
from reasoningbank.lm.reply import query_in, repaired
from reasoningbank.lm.tokens import count_tokens, estimate_tokens
from reasoningbank.trajectory import Recorder, Usage

from .scripted import ScriptedServer, chat, failure, said, scripted


class Asking(NamedTuple):
    outputs: Any
    event: Mapping[str, Any]
    usage: Usage


Ask = Callable[..., Asking]


@pytest.mark.parametrize("name", ["openai/x", "hosted_vllm/x"])
def test_tokens_are_counted_and_recorded(name: str) -> None:
    reply = chat("Paris", prompt_tokens_details={"cached_tokens": 7})
    recorder = Recorder()
    counter = UsageCounter(recorder, role="judge")
    with scripted(reply) as server:
        lm = make_lm(name, api_base=server.base)
        with dspy.context(callbacks=[counter]):
            lm("Capital of France?")
            lm("Capital of France?")
    expected = Usage(
        lm_calls=2, prompt_tokens=22, completion_tokens=6, cached_prompt_tokens=14, dollars=None
    )
    assert counter.usage == expected
    first, second = recorder.trajectory().of("lm_call")
    assert first.data["messages"] == [{"role": "user", "content": "Capital of France?"}]
    assert (first.data["response"], first.data["role"]) == ("Paris", "judge")
    assert (second.data["prompt_tokens"], second.data["finish_reason"]) == (11, "stop")
    assert first.seconds > 0


def test_a_priced_model_costs_dollars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    counter = UsageCounter()
    reply = chat("x", prompt_tokens=1_000_000, completion_tokens=0, total_tokens=1_000_000)
    with scripted(reply) as server, dspy.context(callbacks=[counter]):
        make_lm("openai/gpt-4o-mini", api_base=server.base)("q")
        assert counter.usage.dollars is not None
        assert 0 < counter.usage.dollars < 100
        make_lm("openai/x", api_base=server.base)("q")
    assert counter.usage.dollars is None, "a sum with an unknown part is no price"


@pytest.fixture(params=["native", "litellm"])
def asked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask an OpenAI model by DSPy's own client, or by LiteLLM, and return outputs and events."""
    monkeypatch.setenv("OPENAI_API_KEY", "replayed")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    def ask(server: ScriptedServer, name: str = "openai/gpt-4.1-mini", **options: Any) -> Asking:
        recorder = Recorder()
        address = server.base if request.param == "native" else None
        if address is None:
            monkeypatch.setenv("OPENAI_API_BASE", server.base)
        lm = make_lm(name, api_base=address, temperature=0.7)
        counter = UsageCounter(recorder)
        with dspy.context(callbacks=[counter]):
            outputs = lm("q", **options)
        (event,) = recorder.trajectory().of("lm_call")
        return Asking(outputs, event.data, counter.usage)

    return ask


def test_what_a_model_thinks_is_recorded_apart_from_its_answer(asked: Ask) -> None:
    with scripted(said("Paris", reasoning_content="France, so")) as server:
        data = asked(server).event
    assert (data["response"], data["reasoning"]) == ("Paris", "France, so")
    with scripted(chat("Paris")) as server:
        assert "reasoning" not in asked(server).event


def test_calls_of_tools_are_recorded(asked: Ask) -> None:
    call = {"name": "find", "arguments": '{"x": 1}'}
    with scripted(said(None, tool_calls=[{"id": "1", "type": "function", "function": call}])) as s:
        data = asked(s).event
    (found,) = data["tool_calls"]
    assert (found["tool"], json.loads(found["arguments"])) == ("find", {"x": 1})
    assert data["response"] == ""


def test_several_answers_are_one_call_with_the_tokens_of_all(asked: Ask) -> None:
    # A server that knows `n` answers once; of DSPy's own client each answer is a request.
    both = chat("one")
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "two"}}
    both.body["choices"].append({"index": 1, **choice})
    with scripted() as server:
        server.next_reply = lambda: (  # type: ignore[method-assign]
            both if server.asked[-1].body.get("n") else chat(["one", "two"][len(server.asked) - 1])
        )
        outputs, data, usage = asked(server, n=2)
    assert outputs == ["one", "two"]
    assert (data["response"], data["other_responses"]) == ("one", ["two"])
    assert usage.lm_calls == 1
    assert usage.prompt_tokens == 11 * len(server.asked)
    assert usage.dollars == pytest.approx(9.2e-6 * len(server.asked))


@pytest.mark.parametrize("native", [True, False])
def test_a_model_with_function_calling_is_offered_tools(native: bool) -> None:
    class Act(dspy.Signature):  # type: ignore[misc]
        question: str = dspy.InputField()
        tools: list[dspy.Tool] = dspy.InputField()
        calls: dspy.ToolCalls = dspy.OutputField()

    def find(x: int) -> int:
        return x

    call = {"name": "find", "arguments": '{"x": 1}'}
    with scripted(said(None, tool_calls=[{"id": "1", "type": "function", "function": call}])) as s:
        lm = make_lm("openai/gpt-4.1-mini" if native else "openai/x", api_base=s.base)
        assert lm.supports_function_calling == native
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
            calls = dspy.Predict(Act)(question="?", tools=[dspy.Tool(find)]).calls
    assert [(one.name, one.args) for one in calls.tool_calls] == [("find", {"x": 1})]
    assert ("tools" in s.asked[0].body) == native


def test_a_model_with_structured_outputs_is_given_a_schema() -> None:
    with scripted(chat('{"answer": 7}')) as server:
        lm = make_lm("openai/gpt-4.1-mini", api_base=server.base)
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            assert dspy.Predict("question -> answer: int")(question="?").answer == 7
    assert server.asked[0].body["response_format"]["type"] == "json_schema"


def test_an_answer_from_the_cache_costs_nothing() -> None:
    counter = UsageCounter()
    with scripted(chat("x")) as server, dspy.context(callbacks=[counter]):
        # The port makes the question new, so that no earlier run has answered it.
        question = f"cached? {server.base}"
        lm = make_lm("openai/x", api_base=server.base, cache=True)
        assert lm(question) == lm(question)
    assert len(server.asked) == 1
    assert (counter.usage.lm_calls, counter.usage.cached_calls) == (1, 1)
    assert counter.usage.prompt_tokens == 11


def test_a_failed_call_is_recorded_and_counted_apart() -> None:
    recorder = Recorder()
    counter = UsageCounter(recorder)
    with (
        scripted(failure(401, "bad key")) as server,
        dspy.context(callbacks=[counter]),
        pytest.raises(dspy.LMError),
    ):
        make_lm("openai/x", api_base=server.base)("q")
    assert counter.usage == Usage()
    (event,) = recorder.trajectory().of("lm_call")
    assert "bad key" in recorder.trajectory().resolve(event.data["error"])


def test_calls_from_several_threads_are_distinguished() -> None:
    recorder = Recorder()
    counter = UsageCounter(recorder)
    replies = [chat(f"[[ ## answer ## ]]\n{n}", completion_tokens=n) for n in range(1, 13)]
    with scripted(*replies) as server:
        lm = make_lm("openai/x", api_base=server.base)
        ask = dspy.Predict("question -> answer")
        with dspy.context(lm=lm, callbacks=[counter]):
            parallel = dspy.Parallel(num_threads=4, disable_progress_bar=True)
            parallel([(ask, {"question": str(n)}) for n in range(12)])
    assert counter.usage.lm_calls == 12
    assert counter.usage.completion_tokens == sum(range(1, 13))
    for event in recorder.trajectory().of("lm_call"):
        assert event.data["response"].endswith(f"\n{event.data['completion_tokens']}")


def test_nothing_is_counted_outside_the_trial() -> None:
    counter = UsageCounter()
    with scripted(chat("x")) as server:
        lm = make_lm("openai/x", api_base=server.base)
        with dspy.context(callbacks=[counter]):
            lm("in")
        lm("out")
    assert counter.usage.lm_calls == 1


def test_the_key_never_reaches_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "gw-secret-1")
    recorder = Recorder(redact=["gw-secret-1"])
    with scripted(failure(401, "key gw-secret-1 refused")) as server:
        lm = make_lm("openai/x", api_base=server.base, api_key_env="MY_KEY")
        with dspy.context(callbacks=[UsageCounter(recorder)]), pytest.raises(dspy.LMError):
            lm("q")
    assert "gw-secret-1" not in str(recorder.trajectory().to_json())


COUNTED = json.loads(Path(__file__).with_name("token_counts.json").read_text(encoding="utf-8"))

#: How far the texts of one kind may be off together, and one of them alone.
OFF = {"italian": (0.15, 0.25)}


@pytest.mark.parametrize("kind", sorted({one["kind"] for one in COUNTED}))
def test_it_is_near_the_tokenizer(kind: str) -> None:
    texts = [(one["text"], one["tokens"]) for one in COUNTED if one["kind"] == kind]
    assert len(texts) >= 4
    together, alone = OFF.get(kind, (0.08, 0.2))
    reported = [count_tokens(text) for text, _ in texts]
    assert sum(reported) / sum(real for _, real in texts) == pytest.approx(1, abs=together)
    for number, (_, real) in zip(reported, texts, strict=True):
        assert number / real == pytest.approx(1, abs=alone)


def test_the_record_holds_what_it_is_for() -> None:
    sizes = {kind: len(list(of)) for kind, of in groupby(COUNTED, lambda one: one["kind"])}
    assert set(sizes) == {"question", "query", "hint", "italian", "turtle", "prose"}


@given(st.text())
def test_any_text_has_a_count(text: str) -> None:
    number = count_tokens(text)
    assert number == count_tokens(text)
    assert (number > 0) == bool(text)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n"), min_size=1).filter(str.strip)))
def test_lines_add_up(lines: list[str]) -> None:
    ended = [f"{line}\n" for line in lines]
    whole = estimate_tokens("".join(ended))
    assert sum(map(estimate_tokens, ended)) == pytest.approx(whole, abs=len(lines) or 1e-9)
    assert sum(map(estimate_tokens, ended)) >= whole - 1e-6


def test_parts_are_cheaper_together() -> None:
    assert count_tokens("P05067") == 6
    assert count_tokens("proteins") < count_tokens("p r o t e i n s")


QUERY = "PREFIX up: <http://purl.uniprot.org/core/>\nSELECT ?p WHERE { ?p a up:Protein }"


@pytest.mark.parametrize(
    "reply",
    [
        QUERY,
        f"```sparql\n{QUERY}\n```",
        f"```\n{QUERY}\n```",
        f"Sure:\n```sparql\n{QUERY}\n```\nIt lists proteins.",
        f"[[ ## sparql ## ]]\n{QUERY}",
        f"```sparql\n{QUERY}",
        f"{QUERY}[[ ## completed ## ]]",
        f"First ```python\nprint(1)\n``` and\n```sparql\n{QUERY}\n```",
        f"```sparql {QUERY} ```",
        f"```sparql\r\n{QUERY}\r\n```\r\nDone",
        f"The query is: {QUERY}",
        f"`{QUERY}`",
        f"Use `{QUERY}`, which lists proteins.",
        f"{QUERY}\n\nThis query selects all proteins.",
        f"{QUERY} It doesn't need a LIMIT. Where it's slow, add one.",
        f"Select the class first, then:\n{QUERY}\nOrder matters not.",
        f"{QUERY}\n```\nExplanation: it selects proteins.",
        f"```sparql\n{QUERY}\n```\nThat is:\n```\nSELECT picks columns.\n```",
        f"```sparql\n{QUERY}\n```\nNot `ASK {{ ?p a up:Protein }}`, which says yes or no.",
        f"```sparql\nSELECT ?p {{ ?p a up:Protein\n```\nBetter:\n```sparql\n{QUERY}\n```",
        f"```sparql\n{QUERY}\n```\nNot:\n```sparql\nSELECT ?p {{ ?p a up:Protein\n```",
        f"# SELECT all\n{QUERY}",
        f'{{"sparql": "{QUERY}"}}',
        f'query = """{QUERY}"""\nprint(query)',
    ],
)
def test_the_query_is_found(reply: str) -> None:
    assert query_in(reply) == QUERY


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        "I cannot.",
        "Please select a protein first.",
        "Ask yourself what is needed. I cannot answer this.",
        "Describe the protein first.\nSelect nothing.",
        "```\nSELECT picks columns.\n```",
        "Ask for exactly the columns that the question names.",
        "Prefix the name, and select what you find from there, where it is.",
    ],
)
def test_no_query_is_none(reply: str | None) -> None:
    assert query_in(reply) is None


@pytest.mark.parametrize(
    "reply",
    [
        "<think>ASK { ?s ?p ?o }? No, ASK {} is not it.</think>\nI do not know.",
        "Perhaps ```sparql\nASK {}\n```\n</think>\n\nI do not know.",
        "<think>\nFirst, ASK {} and then",
    ],
)
def test_what_a_model_only_thinks_is_not_a_query(reply: str) -> None:
    assert query_in(reply) is None
    answered = f"{reply}</think>" if "</think>" not in reply else reply
    assert query_in(f"{answered}\nASK {{ ?a ?b ?c }}") == "ASK { ?a ?b ?c }"


def test_the_last_of_several_queries_counts() -> None:
    assert query_in("```sparql\nASK {}\n```\nbetter:\n```sparql\nASK { ?s ?p 1 }\n```") == (
        "ASK { ?s ?p 1 }"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o } GROUP BY ?s HAVING (COUNT(*) > 2) ORDER BY DESC(?s) ?p LIMIT 3",
        "SELECT (EXISTS { ?s ?p 1 } AS ?x) { ?s ?p ?o } OFFSET 2 VALUES ?s { ex:a }",
        "select ?s { { SELECT ?s { ?s ?p '}' } limit 2 } } order by lcase(?s)",
        "CONSTRUCT { ?s a ex:T } WHERE { ?s a ex:U }",
        "DESCRIBE ex:a",
        "PREFIX e: <http://e/>\nDELETE { ?s e:p 1 } INSERT { ?s e:p 2 } WHERE { ?s e:p 1 }",
        "PREFIX e: <http://e/>\nINSERT DATA { e:a e:p 1 } ; INSERT DATA { e:b e:p 1 }",
    ],
)
def test_all_of_a_query_is_taken_and_nothing_else(query: str) -> None:
    assert query_in(f"The answer:\n{query}\n\nIt isn't long (as you see).") == query
    assert query_in(f"```sparql {query}```") == query


@pytest.mark.parametrize(
    "broken",
    [
        "SELECT ?s WHERE { ?s ?p ?o",
        "SELECT ?s WHERE { ?s ?p ?o } }",
        "SELECT ?s WHERE { ?s ?p ?o } FILTER(?o > 3)",
        "SELECT ?s WHERE { ?s ?p ?o } . ?s ?q ?r }",
        "SELECT ?s WHERE { ?s ?p ?o } LIMIT 3 ;",
        "SELECT ?s WHERE { ?s ?p ?o } ORDER BY 1",
        "SELECT COUNT(?s) WHERE { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT (COUNT(?s) AS ?n WHERE { { SELECT ?s { ?s ?p ?o } } }",
        "SELECT ?s WHERE { ?s ?p . SELECT ?t { ?t ?p ?o } }",
        "SELECT ?s ?p ?s ?p ?s ?p ?s",
        "SELECT ?s WHERE { GRAPH ?g { ?s ?p ?o } }\n ?s ?q '}' .\n}",
        "SELECT ?s WHERE { ?s ?p ?o } ORDER BY ?s ASC, ?p ASC",
        "SELECT ?s WHERE { ?s ?p ?o } GROUP BY ?s HAVING count >= 3",
        "SELECT ?s WHERE { ?s ?p ?o } UNION SELECT ?s WHERE { ?s ?q ?o }",
        "PREFIX ex : <http://e/>\nSELECT ?s WHERE { ?s ex:p ?o }",
        "PREFIX ex <http://e/>\nSELECT ?s WHERE { ?s ex:p ?o }",
        "SELECT label, kind FROM words WHERE label = 'x'",
        "PREFIX a: <http://a/>\nPREFIX b: <http://b/>",
    ],
)
def test_a_query_with_a_mistake_keeps_it(broken: str) -> None:
    for reply in (broken, f"```sparql\n{broken}\n```", f"Sure:\n{broken}"):
        assert query_in(reply) == broken


def test_many_brackets_in_an_update_do_no_harm() -> None:
    update = f"PREFIX e: <http://e/> DELETE {{}} WHERE {{ {'{' * 20_000}"
    assert query_in(update) == update


@pytest.mark.parametrize(
    "part",
    [
        "SELECT ?s { ?s ?p ?o }\n",
        "SELECT ?s {} LIMIT 1 " + "LIMIT 2 " * 9,
        "select # ",
        "SELECT ?s ",
        "ASK { ",
        "PREFIX e: <u> ",
        "``` ",
    ],
)
def test_the_work_grows_with_the_length_of_a_reply(part: str) -> None:
    few, many = (calls(lambda n=n: query_in(part * n)) for n in (60, 240))  # type: ignore[misc]
    assert many < 6 * few


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT COUNT(?s) AS ?n { ?s ?p ?o }", "SELECT (COUNT(?s) AS ?n) { ?s ?p ?o }"),
        ("SELECT ?c (MAX(?s) AS ?m) AVG(?o) { ?s ?c ?o } GROUP BY ?c",
         "SELECT ?c (MAX(?s) AS ?m) (AVG(?o) AS ?avg) { ?s ?c ?o } GROUP BY ?c"),
        ("SELECT ?s { ?s a ?c } ?s ?p ?o } FILTER(?o > 1) }",
         "SELECT ?s { ?s a ?c . ?s ?p ?o . FILTER(?o > 1) }"),
        ("SELECT ?s { ?s ?p ?o . ORDER BY ?o DESC LIMIT 1 }",
         "SELECT ?s { ?s ?p ?o . } ORDER BY DESC(?o) LIMIT 1 "),
        # What parses stays, and so does what no repair makes parse.
        ("SELECT ?s { { ?s a ?c } UNION { ?s ?p ?o } }",) * 2,
        ("SELECT count(*) { ?s ?p",) * 2,
        ("SELECT ?s { ?s ?p ?o EXCEPT { ?s a ?c } }",) * 2,
        ("",) * 2,
    ],
)  # fmt: skip
def test_the_form_of_a_query_is_repaired_if_it_parses_then(query: str, whole: str) -> None:
    assert repaired(query) == whole
