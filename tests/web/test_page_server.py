"""What the server of the page answers, to its own page, to chat clients, and to strangers."""

from __future__ import annotations

import html
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from analysis.report.handmade import MANIFEST, record
from openai import NotFoundError, OpenAI

from reasoningbank.analysis import compare_runs
from reasoningbank.corpus import Pack
from reasoningbank.errors import BudgetError
from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.memory_sources import read_feedback
from reasoningbank.experiment.state import StateWriter, hold_run
from reasoningbank.web import PageSettings
from reasoningbank.web.answers import MOST_EARLIER, Answers, Asked

from .conftest import EMPTY, LM, QUERY, QUESTION, Page, events_of, rewritten, serving, written

LONG = {"role": "user", "content": "x" * 2_001}


def answer_in(events: list[tuple[str, Any]]) -> Any:
    assert [name for name, _ in events][-1] == "answer", events[-1]
    return events[-1][1]


def test_steps_come_before_the_answer(page: Page) -> None:
    page.script(written(EMPTY), written(QUERY))
    events = page.asked()
    steps = [data["name"] for name, data in events if name == "step"]
    assert steps == [
        "detect", "retrieve", "constrain", "synthesise", "validate", "fix", "validate", "output",
    ]  # fmt: skip
    fixed = next(data for name, data in events if name == "step" and data["name"] == "fix")
    assert fixed["code"] == QUERY
    answer = answer_in(events)
    assert (answer["sparql"], answer["columns"], answer["total"]) == (QUERY, ["plant", "metres"], 3)
    assert {"plant": "t:oak", "metres": 31} in answer["rows"]
    assert answer["prefixes"]["t"] == "http://e/"
    assert "t:oak" in answer["sentence"]
    assert answer["findings"] == []
    assert answer["confidence"] is None
    assert answer["explanation"]


def test_a_follow_up_is_rewritten_to_stand_alone(page: Page) -> None:
    page.script(rewritten("Which plants near the pine are mosses?"), written(QUERY))
    turn = {"question": QUESTION, "answer": "3 results: t:oak and 2 more."}
    # The page sends the whole conversation, and the last turns are read.
    forgotten = [turn | {"question": "Forgotten?"}] * 9
    events = page.asked(question="And mosses?", earlier=[*forgotten, *[turn] * MOST_EARLIER])
    steps = [data for name, data in events if name == "step"]
    assert (steps[0]["name"], steps[1]["name"]) == ("follow-up", "detect")
    answer = answer_in(events)
    assert answer["question"] == "Which plants near the pine are mosses?"
    first, second = (str(one.body["messages"]) for one in page.model.asked)
    assert "3 results: t:oak" in first
    assert "Forgotten?" not in first
    assert "Which plants near the pine are mosses?" in second
    # Both calls are counted.
    assert (answer["lm_calls"], answer["prompt_tokens"]) == (2, 22)


def test_other_agents_answer_with_the_same_model(page: Page) -> None:
    page.script(written("ASK { t:oak a t:Tree }"))
    answer = answer_in(page.asked(agent="direct"))
    assert (answer["sentence"], answer["total"]) == ("Yes.", 1)


def test_a_query_is_run_again_by_hand(page: Page) -> None:
    body = {"pack": page.settings.default.pack, "lm": LM}
    found = page.post("/api/query", body | {"sparql": EMPTY}).json()
    assert (found["total"], found["sentence"]) == (0, "Nothing was found.")
    assert found["findings"]
    broken = page.post("/api/query", body | {"sparql": "SELECT ?x WHERE {"})
    assert broken.status_code == 200
    assert (broken.json()["total"], broken.json()["rows"]) == (None, [])
    unknown = page.post("/api/query", body | {"sparql": "SELECT ?x { ?x a t:Tre }"}).json()
    assert "unknown-class" in {one["code"] for one in unknown["findings"]}
    update = page.post("/api/query", body | {"sparql": "DELETE WHERE { ?s ?p ?o }"}).json()
    assert update["total"] is None


def test_an_endpoint_needs_no_pack(page: Page, trees: Any) -> None:
    page.script(written("SELECT ?plant { ?plant a <http://e/Tree> }"))
    answer = answer_in(page.asked(pack="", url=trees.query_url, agent="direct"))
    assert answer["total"] == 3


def test_memory_is_shown_to_the_agent(page: Page) -> None:
    page.script(written(QUERY))
    events = page.asked(memory="bank.sqlite", agent="direct")
    first = next(data for name, data in events if name == "step")
    assert first["name"] == "memory"
    assert "Heights in metres" in first["text"]
    assert answer_in(events)["memory"]


def test_a_verdict_is_kept_with_the_attempt(page: Page) -> None:
    page.script(written(QUERY))
    answer = answer_in(page.asked(question="Which plants are trees?"))
    assert page.post("/api/feedback", {"id": answer["id"], "good": False}).status_code == 200
    assert page.post("/api/feedback", {"id": answer["id"], "good": True}).status_code == 200
    kept = [one for one in read_feedback(page.folder / "feedback") if one.id == answer["id"]]
    assert len(kept) == 1
    experience = kept[0].experience
    assert (experience.success, experience.judge, experience.sparql) == (True, "person", QUERY)
    # The pack has this question: what is learned must count as learned from that task.
    assert (experience.task, experience.group, experience.rows) == ("trees", "of-kind", 3)
    assert experience.trajectory.of("step")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/api/ask", {"question": "x", "nonsense": 1}, 400, "bad-request"),
        ("/api/ask", {"question": "x" * 3_000}, 400, "bad-request"),
        ("/api/ask", {"url": "file:///etc/passwd", "question": "x"}, 400, "bad-request"),
        ("/api/ask", [], 400, "bad-request"),
        ("/api/query", {"pack": "nowhere", "sparql": QUERY}, 400, "unknown-pack"),
        ("/api/query", {"pack": "", "sparql": QUERY}, 400, "no-endpoint"),
        ("/api/query", {"agent": "oracle", "sparql": QUERY}, 400, "unknown-agent"),
        # An import path would run code of any installed package.
        ("/api/query", {"agent": "os:getcwd", "sparql": QUERY}, 400, "unknown-agent"),
        ("/api/query", {"agent": "nobody", "sparql": QUERY}, 400, "unknown-agent"),
        ("/api/query", {"lm": "no model", "sparql": QUERY}, 400, "unknown-model"),
        ("/api/query", {"memory": "none", "sparql": QUERY}, 404, "no-memory"),
        ("/api/feedback", {"id": "none", "good": True}, 400, "unknown-answer"),
        ("/api/memory/none", {"undo": 1}, 404, "no-memory"),
        ("/api/memory/bank.sqlite", {"retire": "none"}, 404, "unknown-item"),
        ("/api/memory/bank.sqlite", {"undo": 999}, 400, None),
        ("/v1/chat/completions", {"model": "gpt-4", "messages": [{}]}, 404, "model_not_found"),
        ("/v1/chat/completions", {"messages": []}, 400, "bad-request"),
        ("/v1/chat/completions", {"messages": [LONG]}, 400, "bad-request"),
        ("/v1/chat/completions", {"messages": [LONG], "stream": True}, 400, "bad-request"),
        ("/v1/chat/completions", {"model": "rag/" + "x" * 501, "messages": [{}]}, 400, None),
    ],
)
def test_bad_input_gets_one_line(
    page: Page, path: str, body: Any, status: int, code: str | None
) -> None:
    said = page.post(path, body)
    assert said.status_code == status, said.text
    error = said.json()["error"]
    assert code in (None, error["code"])
    assert "Traceback" not in said.text


@pytest.mark.parametrize("question", ["", "   "])
def test_an_empty_question_is_an_error_in_the_stream(page: Page, question: str) -> None:
    assert page.asked(question=question)[-1][1]["code"] == "empty-question"


def test_a_model_that_is_gone_is_an_error_in_the_stream(page: Page) -> None:
    page.script(type(written(QUERY))(401, {"error": {"message": "wrong key", "code": "x"}}))
    name, data = page.asked(question="Is this an error?", agent="direct")[-1]
    assert (name, data["code"]) == ("error", "bad-key")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/runs/none", "/runs/none/live", "/memory/none", "/static/none.js"]
)
def test_a_wrong_address_is_not_found(page: Page, path: str) -> None:
    said = httpx.get(page.url + path)
    assert said.status_code == 404
    assert "Traceback" not in said.text


def test_another_sites_page_may_not_ask(page: Page) -> None:
    body = {"question": "x"}
    assert page.post("/api/ask", body, Origin="https://evil.example").status_code == 403
    assert page.post("/api/ask", body, Host="evil.example").status_code == 421
    form = httpx.post(page.url + "/api/query", content="{}", headers={"Content-Type": "text/plain"})
    assert (form.status_code, form.json()["error"]["code"]) == (400, "not-json")
    large = httpx.post(
        page.url + "/api/query", content=b'"' + b"x" * 1_100_000 + b'"',
        headers={"Content-Type": "application/json"},
    )  # fmt: skip
    assert large.json()["error"]["code"] == "too-large"


def test_elsewhere_it_asks_for_a_token(page: Page) -> None:
    settings = PageSettings(page.settings.default, token="s3cret")
    with serving(settings) as url:
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, params={"token": "wrong"}).status_code == 401
        assert httpx.get(f"{url}/v1/models").json()["error"]["code"] == "token"
        bearer = {"Authorization": "Bearer s3cret"}
        assert httpx.get(f"{url}/v1/models", headers=bearer).status_code == 200
        with httpx.Client(base_url=url, follow_redirects=True) as client:
            opened = client.get("/runs", params={"token": "s3cret"})
            assert (opened.status_code, opened.url.query) == (200, b"")
            assert client.get("/").status_code == 200


def test_a_chat_client_asks(page: Page) -> None:
    page.script(written(QUERY))
    client = OpenAI(base_url=f"{page.url}/v1", api_key="none", max_retries=0)
    names = [model.id for model in client.models.list()]
    assert names[0] == f"rag/{page.settings.default.pack}"
    assert "direct/uniprot" in names
    messages: Any = [
        {"role": "system", "content": "You answer."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    said = client.chat.completions.create(model="direct", messages=messages, temperature=0.3)
    text = said.choices[0].message.content or ""
    assert f"```sparql\n{QUERY}\n```" in text
    assert "| t:oak | 31 |" in text
    assert said.usage is not None
    assert said.usage.total_tokens > 0
    parts = list(client.chat.completions.create(model="rag", messages=messages, stream=True))
    steps = [getattr(one.choices[0].delta, "reasoning_content", None) for one in parts]
    assert any("[retrieve]" in step for step in steps if step)
    assert QUERY in "".join(one.choices[0].delta.content or "" for one in parts)
    assert parts[-1].choices[0].finish_reason == "stop"
    page.script(rewritten("How tall is the oak?"), written(QUERY))
    conversation: Any = [
        *messages,
        {"role": "assistant", "content": f"{text}"},
        {"role": "user", "content": "And the oak?"},
    ]
    client.chat.completions.create(model="direct", messages=conversation)
    first, second = (str(one.body["messages"]) for one in page.model.asked)
    assert QUESTION in first
    assert "And the oak?" in first
    assert QUERY not in first
    assert "How tall is the oak?" in second
    with pytest.raises(NotFoundError):
        client.chat.completions.create(model="gpt-5", messages=messages)


def test_a_run_that_goes_on_is_followed(page: Page) -> None:
    """A run is going on as long as its lock is held; its trials are written while it is watched."""
    folder = RunFolder(page.folder / "runs" / "going")
    folder.write_manifest(MANIFEST)
    trials = [record("first", f"t{number}") for number in range(3)]
    heard: list[tuple[str, Any]] = []
    first = threading.Event()

    def listen() -> None:
        with httpx.stream("GET", f"{page.url}/api/runs/going", timeout=60) as response:
            text = ""
            for part in response.iter_text():
                text += part
                if "event: progress" in text:
                    first.set()
            heard.extend(events_of(text))

    with hold_run(folder):
        state = StateWriter(folder.path, total=3, done=0, workers=1)
        state.write()
        listener = threading.Thread(target=listen)
        listener.start()
        assert first.wait(60)
        for trial in trials:
            state.started(trial.key)
            folder.write(trial)
            state.ended(trial.key, recorded=True)
        state.write(status="finished")
    listener.join(60)
    assert [data["task"] for name, data in heard if name == "trial"] == ["t0", "t1", "t2"]
    progress = [data for name, data in heard if name == "progress"]
    assert (progress[0]["status"], progress[0]["done"]) == ("running", 0)
    assert (progress[-1]["status"], progress[-1]["done"]) == ("finished", 3)
    arm = next(one for one in progress[-1]["arms"] if one["arm"] == "first")
    assert (arm["done"], arm["right"]) == (3, 3)
    assert heard[-1][0] == "end"


def test_who_left_while_waiting_opens_nothing(tmp_path: Path) -> None:
    answers, stop = Answers(tmp_path, lambda _: (tmp_path, ""), ["rag"]), threading.Event()
    stop.set()
    with pytest.raises(BudgetError) as caught:
        # It would be refused once it is opened.
        answers.ask(Asked(pack="nowhere", question="?"), lambda *_: None, stop)
    assert caught.value.code == "stopped"
    answers.close()


def test_the_report_follows_the_run(page: Page) -> None:
    folder = RunFolder(page.folder / "runs" / "judged")
    folder.write_manifest(MANIFEST)
    trial, seen = record("first", "t1"), list[str]()
    for question in ("Which trees?", "Which ferns?"):
        # As after judging again: as many trials, and one of them another.
        folder.write(replace(trial, question=question))
        seen += [httpx.get(f"{page.url}/runs/judged", timeout=60).text for _ in range(2)]
    assert seen[0] == seen[1] != seen[2]
    report = httpx.get(f"{page.url}/runs/trees", timeout=60)
    assert report.status_code == 200
    assert 'href="/runs"' in report.text
    assert "script-src &#39;sha256-" in report.text
    assert json.loads(httpx.get(f"{page.url}/api/examples", params={"pack": ""}).text) == []


def test_examples_are_questions_that_may_be_shown(page: Page, forest: Pack) -> None:
    found = httpx.get(f"{page.url}/api/examples", params={"pack": str(forest.root)}).json()
    assert found
    assert all(isinstance(question, str) for question in found)


def test_two_arms_are_compared_as_on_the_command_line(page: Page) -> None:
    (found,) = compare_runs(page.run, page.run, arm="first", against="second").comparisons
    chosen = {"first": "trees/first", "second": "trees/second"}
    shown = httpx.get(f"{page.url}/compare", params=chosen)
    assert shown.status_code == 200
    text = html.unescape(shown.text)
    assert found.sentence()[1:] in text
    assert text.count('href="/runs/trees#trial/first/') == found.first_better + found.second_better
    assert "#trial/second/a_task/" in text


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("trees", "trees", 400),
        ("trees", "", 400),
        ("none", "trees", 404),
        ("trees/first", "trees/<b>", 400),
        ("trees/first", "trees", 400),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(
    page: Page, first: str, second: str, status: int
) -> None:
    shown = httpx.get(f"{page.url}/compare", params={"first": first, "second": second})
    assert shown.status_code == status
    assert shown.text.count('role="alert"') == 1
    assert "<form" in shown.text
    assert "<b>" not in shown.text
