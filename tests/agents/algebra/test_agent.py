"""The algebra agent: programs are validated, planned and run; the model here is scripted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from towns import write_towns

from reasoningbank.agents import Attempt, Episode, make_agent
from reasoningbank.agents.algebra import (
    open_stage,
    shown_programs,
)
from reasoningbank.algebra import Limits, mistakes, read_program, run_program
from reasoningbank.algebra.queries import as_query
from reasoningbank.algebra.source import with_prefixes
from reasoningbank.corpus import Pack, load_pack, load_shacl_tasks, open_endpoint
from reasoningbank.errors import ModelError, UsageError
from reasoningbank.sparql import EndpointConfig

from .programs import (
    ALL,
    BIG,
    COPY,
    ENDPOINT,
    JUTLAND,
    READ,
    WRITE,
    op,
    select,
    steps,
    tasks,
    value,
)


def test_a_program_that_asks_one_query_answers_with_it(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    attempt = solve(READ, select(BIG))
    assert (attempt.status, attempt.usage.lm_calls) == ("submitted", 1)
    assert attempt.sparql is not None
    # The prefixes that it leaves undeclared are those of the pack.
    assert attempt.sparql.endswith(BIG)
    assert attempt.sparql.startswith("PREFIX p: <http://towns.example/p/>")
    assert strict(READ, attempt)


def test_any_other_program_answers_with_what_it_returned(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    big = op("Filter", input=select(ALL), expression="?n > 10000")
    names = op("ForEach", select=big, operation=value("name"))
    attempt = solve(READ, names)
    assert attempt.sparql is not None
    assert '"Køge"@da' in attempt.sparql
    assert strict(READ, attempt)
    assert not strict(READ, solve(READ, op("ForEach", select=select(ALL), operation=value("name"))))


def test_what_is_wrong_is_reported_and_fixed(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    wrong = op("SELECT", endpoint=ENDPOINT, qurey=BIG)
    attempt = solve(READ, "Sure!", wrong, f"```json\n{json.dumps(select(BIG))}\n```")
    assert strict(READ, attempt)
    assert attempt.usage.lm_calls == attempt.usage.iterations == 3
    first, second, third = (one["problems"] for one in steps(attempt, "write"))
    assert "not valid JSON" in first[0]
    assert second[0].startswith("$.args: SELECT has no argument 'qurey'")
    assert third == []
    messages = attempt.trajectory.resolve(attempt.trajectory.of("lm_call")[-1].data)["messages"]
    assert "has no argument 'qurey'" in messages[-1]["content"]
    assert json.loads(messages[-2]["content"]) == wrong
    assert "Towns have names." in messages[0]["content"]
    assert "SELECT(endpoint: URL, query: Query)" in messages[0]["content"]


def test_what_fails_when_it_runs_is_reported_too(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    elsewhere = op("SELECT", endpoint="https://elsewhere.example/sparql", query=BIG)
    attempt = solve(READ, elsewhere, select(BIG))
    assert strict(READ, attempt)
    assert "may not be read" in steps(attempt, "run")[0]["problems"][0]


def test_an_empty_result_is_reported_and_kept_where_nothing_better_comes(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    empty = select("SELECT ?name WHERE { ?town p:nmae ?name }")
    assert strict(READ, solve(READ, empty, select(BIG)))
    attempt = solve(READ, empty, "no", "no")
    assert attempt.status == "fallback"
    assert attempt.sparql is not None
    assert attempt.sparql.endswith("p:nmae ?name }")
    assert "its result is empty" in steps(attempt, "run")[0]["problems"][0]


def test_a_program_that_comes_twice_is_not_shown_again(solve: Callable[..., Attempt]) -> None:
    wrong = op("SELECT", endpoint=ENDPOINT, qurey=BIG)
    attempt = solve(READ, wrong, wrong, select(BIG))
    calls = attempt.trajectory.of("lm_call")
    second, third = (attempt.trajectory.resolve(call.data)["messages"] for call in calls[1:])
    assert "qurey" in second[-2]["content"]
    # The specification's own program stands before the instruction in all of them.
    assert len(third) == len(second) - 2 == 4
    assert "it was wrong" not in third[-1]["content"]
    assert "Another program was tried" in third[-1]["content"]
    assert third[-1]["content"].startswith("Which towns have more than 10000 people?")


def test_repairs_end(solve: Callable[..., Attempt]) -> None:
    attempt = solve(READ, "no", "no", "no", select(BIG), max_repairs=1)
    assert (attempt.sparql, attempt.status, attempt.usage.lm_calls) == (None, "refused", 2)
    assert "not valid JSON" in attempt.error


def test_a_repair_is_a_turn_of_the_budget(
    towns: Pack, served: EndpointConfig, episode: Callable[..., Episode]
) -> None:
    given = episode(*[{"program": "no"}] * 4, endpoint=served, pack=towns, iterations=2)
    attempt = make_agent("algebra", max_repairs=3).solve(tasks(towns)[READ].blind(), given)
    assert (attempt.usage.iterations, attempt.usage.lm_calls) == (2, 2)


def test_a_model_that_repeats_itself_is_asked_with_a_temperature(
    towns: Pack, served: EndpointConfig, episode: Callable[..., Episode]
) -> None:
    wrong = op("SELECT", endpoint=ENDPOINT, qurey=BIG)
    texts = [json.dumps(wrong), json.dumps(wrong, indent=2), json.dumps(select(BIG))]
    model = DummyLM([{"program": text} for text in texts])
    given = episode(endpoint=served, pack=towns, lm=model)
    make_agent("algebra").solve(tasks(towns)[READ].blind(), given)
    asked = [entry["kwargs"].get("temperature") for entry in model.history]
    assert len(asked) == 3
    assert asked[0] == asked[1] != 0.7
    assert asked[2] == 0.7


def test_documents_are_planned_and_written(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    attempt = solve(WRITE, COPY)
    assert attempt.status == "submitted"
    assert strict(WRITE, attempt)
    (plan,) = steps(attempt, "plan")
    assert {(one["method"], one["url"], one["allowed"]) for one in plan["writes"]} == {
        ("PUT", "http://docs.example/towns/Aarhus", True),
        ("PUT", "http://docs.example/towns/Ribe", True),
    }
    names = [event.data["step"] for event in attempt.trajectory.of("step")]
    assert names.index("plan") < names.index("run")


def test_resources_are_had_by_addresses_with_any_letters(solve: Callable[..., Attempt]) -> None:
    attempt = solve(READ, op("GET", url="http://towns.example/id/Køge"))
    assert attempt.sparql is not None
    assert (
        '<http://towns.example/id/Køge> <http://towns.example/p/people> "38588"' in attempt.sparql
    )


def test_every_attempt_finds_the_documents_as_they_were(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    title = {"@id": "http://docs.example/x", "dct:title": "wrong"}
    corrupted = [
        op("PUT", url="http://docs.example/x", data=title),
        op("GET", url="http://no.example/"),
    ]
    attempt = solve(WRITE, corrupted, COPY)
    assert strict(WRITE, attempt)
    assert attempt.sparql is not None
    assert "wrong" not in attempt.sparql


def test_what_was_written_before_a_failure_is_what_is_judged(
    solve: Callable[..., Attempt],
) -> None:
    title = {"@id": "http://docs.example/x", "dct:title": "kept"}
    corrupted = [
        op("PUT", url="http://docs.example/x", data=title),
        op("GET", url="http://no.example/"),
    ]
    attempt = solve(WRITE, corrupted, max_repairs=0)
    assert attempt.status == "fallback"
    assert attempt.sparql is not None
    assert '"kept"' in attempt.sparql


def test_a_write_that_fails_inside_a_loop_is_reported(solve: Callable[..., Attempt]) -> None:
    nowhere = op("PUT", url=value("town"), data={"@id": "", "dct:title": "x"})
    attempt = solve(WRITE, op("ForEach", select=select(JUTLAND), operation=nowhere), max_repairs=0)
    assert attempt.sparql is None
    assert "may not be written" in attempt.error


def test_a_document_that_is_changed_is_reported_whole(solve: Callable[..., Attempt]) -> None:
    url = "http://docs.example/old"
    update = f'DELETE DATA {{ <{url}> dct:title "Old" }}; INSERT DATA {{ <{url}> dct:title "New" }}'
    attempt = solve(WRITE, op("PATCH", url=url, update=update))
    assert attempt.sparql is not None
    assert attempt.sparql.startswith(f"CLEAR SILENT GRAPH <{url}> ;\nINSERT DATA")
    assert '"New"' in attempt.sparql
    assert '"Old"' not in attempt.sparql


def test_only_known_operations_can_be_chosen(solve: Callable[..., Attempt]) -> None:
    attempt = solve(READ, select(BIG), operations="SELECT, Value")
    system = attempt.trajectory.resolve(attempt.trajectory.of("lm_call")[0].data)["messages"][0]
    assert "SELECT(endpoint" in system["content"]
    assert "STRUUID" not in system["content"]
    with pytest.raises(UsageError, match="there is no operation 'Selec'"):
        make_agent("algebra", operations="Selec")
    with pytest.raises(UsageError, match="max_repairs"):
        make_agent("algebra", max_repairs=-1)


def test_a_query_runs_for_the_judge_as_it_ran_in_the_program(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    # Programs know more prefixes than the pack.
    query = BIG.replace("FILTER", "FILTER NOT EXISTS { ?town foaf:name ?other } FILTER")
    assert strict(READ, solve(READ, select(query)))


def test_a_query_of_another_endpoint_answers_with_what_it_returned(
    solve: Callable[..., Attempt],
) -> None:
    query = "SELECT ?title WHERE { ?document dct:title ?title }"
    attempt = solve(READ, op("SELECT", endpoint="http://docs.example/sparql", query=query))
    assert attempt.sparql is not None
    assert '("Old")' in attempt.sparql


def test_the_results_of_several_operations_are_answers_each(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    rows = op("Variable", name="rows", value=select(BIG))
    names = op("ForEach", select=value("$rows"), operation=value("name"))
    assert strict(READ, solve(READ, [rows, names]))
    asked = op("ASK", endpoint=ENDPOINT, query="ASK { ?town p:name ?name }")
    truth = solve(READ, [op("Variable", name="unused", value="x"), asked])
    assert truth.sparql == "ASK {}"


def test_limits_of_a_program_are_shown_to_its_author(
    solve: Callable[..., Attempt], strict: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasoningbank.algebra.stage.LIMITS", Limits(requests=2))
    asked = op("ASK", endpoint=ENDPOINT, query="ASK { ?town p:name ?name }")
    attempt = solve(READ, op("ForEach", select=select(ALL), operation=asked), select(BIG))
    assert attempt.status == "submitted"
    assert strict(READ, attempt)
    assert "2 requests are used up" in steps(attempt, "run")[0]["problems"][0]


def test_questions_inside_a_program_are_counted(
    towns: Pack, served: EndpointConfig, episode: Callable[..., Episode]
) -> None:
    asked = op("SPARQLString", question=value("name"))
    program = op("ForEach", select=select(ALL), operation=select(asked))
    model = DummyLM([{"program": json.dumps(program)}, *[{"sparql": BIG}] * 9])
    given = episode(endpoint=served, pack=towns, lm=model, lm_calls=3)
    attempt = make_agent("algebra").solve(tasks(towns)[READ].blind(), given)
    assert (attempt.status, attempt.usage.lm_calls) == ("exhausted", 3)
    assert attempt.budget == "lm_calls"


def test_a_model_that_is_gone_inside_a_program_ends_the_attempt(
    solve: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> str:
        raise ModelError("the server hung up")

    monkeypatch.setattr("reasoningbank.agents.algebra.written_query", gone)
    with pytest.raises(ModelError, match="hung up"):
        solve(READ, select(op("SPARQLString", question="towns of Jutland")), select(BIG))


def test_replies_nested_too_deeply_are_reported(solve: Callable[..., Attempt]) -> None:
    deep = '{"@op": "Str", "args": {"input": ' * 450 + '"x"' + "}}" * 450
    attempt = solve(READ, deep, select(BIG))
    assert attempt.status == "submitted"
    assert "nested more than 64 deep" in steps(attempt, "write")[0]["problems"][0]


def test_nothing_is_written_elsewhere(solve: Callable[..., Attempt]) -> None:
    data = {"@id": "http://towns.example/id/Ribe", "dct:title": "mine"}
    attempt = solve(WRITE, op("PUT", url="http://towns.example/id/Ribe", data=data), max_repairs=0)
    assert "may not be written" in attempt.error
    assert attempt.sparql is None


def test_a_question_inside_a_program_is_asked_once(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    asked = op("SPARQLString", question="towns of Jutland")
    program = json.loads(json.dumps(COPY))
    program["args"]["select"]["args"]["query"] = asked
    attempt = solve(WRITE, program, JUTLAND)
    assert strict(WRITE, attempt)
    # The plan and the run share the query.
    calls = attempt.trajectory.of("lm_call")
    assert len(calls) == 2
    messages = attempt.trajectory.resolve(calls[1].data)["messages"]
    assert "Name the columns ?name, ?town" in messages[-1]["content"]


def test_a_question_inside_a_describe_gets_a_describe(solve: Callable[..., Attempt]) -> None:
    question = op("SPARQLString", question="towns of Jutland")
    program = op("DESCRIBE", endpoint=ENDPOINT, query=question)
    described = JUTLAND.replace("SELECT ?town ?name", "DESCRIBE ?town")
    assert described != JUTLAND
    attempt = solve(READ, program, JUTLAND, described)
    assert attempt.status == "submitted"
    calls = attempt.trajectory.of("lm_call")
    assert len(calls) == 3
    first, again = (attempt.trajectory.resolve(call.data)["messages"] for call in calls[1:])
    assert "Begin with DESCRIBE" in str(first)
    assert "Begin with SELECT" not in str(first)
    # The query that did not fit is a turn of the conversation.
    assert len(again) == len(first) + 2


def test_the_packs_programs_run_in_their_order() -> None:
    pack = load_pack("algebra")
    shown = shown_programs(pack)
    assert len(shown) >= 3
    with (
        open_endpoint(pack) as endpoint,
        open_stage(pack, endpoint) as stage,
        stage.scene() as scene,
    ):
        for one in shown:
            before = scene.update()
            program = read_program(with_prefixes(one.program, endpoint.prefixes))
            result = as_query(run_program(program, scene.runtime))
            if program.writes:
                assert scene.update() != before
            else:
                assert result.count("\n") > 1


def test_no_task_is_shown() -> None:
    asked = {task.query for task in load_shacl_tasks("algebra")}
    golds = "\n".join(task.expected_sparql for task in load_shacl_tasks("algebra"))
    for one in shown_programs(load_pack("algebra")):
        assert one.instruction not in asked
        assert "localhost/shelf" not in golds
        assert "localhost/neighbours" not in golds


def test_a_pack_without_any_shows_the_specifications_own(tmp_path: Path) -> None:
    assert shown_programs(write_towns(tmp_path / "towns")) == shown_programs(None)
    assert not mistakes(shown_programs(None)[0].program)


def test_what_is_not_a_list_of_them_is_reported(tmp_path: Path) -> None:
    pack = write_towns(tmp_path / "towns")
    file = pack.root / "hints" / "programs.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text('[{"instruction": "x"}]')
    with pytest.raises(UsageError) as caught:
        shown_programs(pack)
    assert caught.value.fields["field"] == "0.program"
