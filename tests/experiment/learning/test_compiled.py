"""Optimizers of DSPy as arms: compiled once, kept, within a budget, and without the evaluation."""

from __future__ import annotations

import importlib.util
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults_of_runs.commands import Done, begin
from lm.scripted import ScriptedServer, failure

from reasoningbank.analysis import summarise_run
from reasoningbank.errors import ReasoningBankError, RecordError, SetupError, UsageError
from reasoningbank.experiment import Experiment, RunFolder, TrialKey
from reasoningbank.sparql import EndpointConfig

from .kills import dies_before_the_program, dies_before_the_second_trial
from .orchard import STREAM, TEST, write_orchard
from .pupils import ADVICE, reply, said_to, scripted_pupil

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]

OPTIONS: dict[str, dict[str, Any]] = {
    "BootstrapFewShot": {"max_bootstrapped_demos": 2, "max_labeled_demos": 3},
    "KNNFewShot": {"k": 2, "max_bootstrapped_demos": 1},
    "GEPA": {"max_metric_calls": 20},
    "MIPROv2": {},
}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with scripted_pupil() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "replayed")
        yield server


def arm(optimizer: str = "BootstrapFewShot", agent: str = "direct", **more: Any) -> dict[str, Any]:
    settings = {"optimizer": optimizer, "options": OPTIONS[optimizer], **more}
    return {"name": "made", "agent": agent, "lm": "openai/x", "compile": settings}


@pytest.fixture
def made(learning: Make) -> Make:
    """Return what makes an experiment of arms that do not learn."""
    return lambda *arms, **rest: learning(*arms, **{"mode": "evaluate", **rest})


@pytest.mark.parametrize("optimizer", OPTIONS)
def test_what_an_optimizer_makes_is_what_trials_see(
    made: Make, run: Run, model: ScriptedServer, optimizer: str
) -> None:
    notices: list[str] = []
    folder = run(made(arm(optimizer)), on_notice=notices.append)
    found = folder.program("made", 0)
    assert found is not None
    assert len(notices) == 1
    trials = list(folder.trials())
    # Without the prompt it would know two of the four.
    assert [trial.strict for trial in trials] == [True] * 4
    assert (found["optimizer"], sorted(found["tasks"])) == (optimizer, STREAM)
    assert found["usage"]["lm_calls"] == len(model.asked) - len(TEST)
    assert found["usage"]["prompt_tokens"] == 11 * found["usage"]["lm_calls"]
    seen = [said_to(asked.body) for asked in model.asked[-len(TEST) :]]
    for trial, said in zip(trials, seen, strict=True):
        program = found["programs"].get("") or found["programs"][trial.key.task]
        (part,) = program.values()
        assert json.dumps(part["instructions"])[1:-1] in said
        assert all(demo["question"] in said for demo in part["demos"])
        assert bool(part["demos"]) == (optimizer != "GEPA")
        assert (part["instructions"] == ADVICE) == (optimizer in ("GEPA", "MIPROv2"))
    manifest = folder.manifest or {}
    assert manifest["experiment"]["arms"][0]["compile"]["options"] == OPTIONS[optimizer]
    assert set(manifest["hashes"]["training"]) == {"made"}
    (cost,) = summarise_run(folder).compiled
    assert cost["usage"] == found["usage"]
    assert cost["new_instructions"] == (optimizer in ("GEPA", "MIPROv2"))


def test_a_package_that_an_optimizer_lacks_is_named_before_the_model_is_asked(
    made: Make, run: Run, model: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "optuna" else found(name, *rest),
    )
    with pytest.raises(SetupError) as caught:
        run(made(arm("MIPROv2")))
    assert (caught.value.code, caught.value.fields["package"]) == ("no-package", "optuna")
    assert not model.asked


def test_what_is_compiled_travels_to_workers(made: Make, run: Run, model: ScriptedServer) -> None:
    folder = run(made(arm(), executor={"kind": "dask", "workers": 1}))
    found = folder.program("made", 0)
    assert found is not None
    assert [trial.strict for trial in folder.trials()] == [True] * 4
    (part,) = found["programs"][""].values()
    for asked in model.asked[-len(TEST) :]:
        assert all(demo["question"] in said_to(asked.body) for demo in part["demos"])


@pytest.mark.parametrize("agent", ["react", "rlm"])
def test_agents_with_turns_are_compiled_too(
    made: Make, run: Run, model: ScriptedServer, agent: str
) -> None:
    tasks = {"ids": ["t000", "t003"]}
    folder = run(made(arm(agent=agent, tasks=tasks), tasks={"ids": ["t001"]}))
    found = folder.program("made", 0)
    assert found is not None
    first, extract = found["programs"][""]
    turns = found["programs"][""][first]["demos"]
    assert (first, extract) == {
        "react": ("react", "extract.predict"),
        "rlm": ("generate_action", "extract"),
    }[agent]
    assert {"next_tool_name", "code"} & set(turns[0])
    (trial,) = folder.trials()
    prompt = said_to(next(asked.body for asked in model.asked if "than 1 m" in said_to(asked.body)))
    assert "than 0 m" in prompt
    assert trial.strict


def test_each_seed_has_a_program_of_its_own_and_entities_are_linked(
    made: Make, run: Run, model: ScriptedServer, pack: Path
) -> None:
    file = pack / "examples" / "tasks.ttl"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("Which plants", "Beside the oak, which plants"), encoding="utf-8")
    one = {**arm(), "entity_linking": True, "seeds": [0, 1]}
    folder = run(made(one, tasks={"ids": ["t001"]}))
    orders = []
    for seed in (0, 1):
        found = folder.program("made", seed)
        assert found is not None
        orders.append(found["tasks"])
        (part,) = found["programs"][""].values()
        assert all("t:oak" in demo["question"] for demo in part["demos"])
    assert sorted(orders[0]) == sorted(orders[1]) == STREAM
    assert orders[0] != orders[1]


@pytest.mark.parametrize("optimizer", ["BootstrapFewShot", "KNNFewShot", "GEPA"])
def test_nothing_is_compiled_twice(
    made: Make, run: Run, model: ScriptedServer, optimizer: str
) -> None:
    experiment = made(arm(optimizer))
    folder = run(experiment, limit=2)
    program, spent = folder.program("made", 0), len(model.asked)
    run(experiment, limit=2)
    assert len(model.asked) == spent
    folder.file(TrialKey("made", "t001", 0).path).unlink()
    run(experiment, limit=2)
    assert len(model.asked) == spent + 1
    assert folder.program("made", 0) == program
    run(experiment)
    again = folder.program("made", 0)
    assert program is not None
    assert again is not None
    # For each question its own: those of the first trials stay as they were.
    assert again["programs"].items() >= program["programs"].items()
    assert len(again["programs"]) == (4 if optimizer == "KNNFewShot" else 1)
    (folder.path / "compiled" / "made.0.json").unlink()
    folder.file(TrialKey("made", "t001", 0).path).unlink()
    with pytest.raises(RecordError) as caught:
        run(experiment)
    assert caught.value.code == "no-program"


FILE = """
name = "orchard"
pack = "trees"
endpoint = {{ url = "{url}", min_interval_s = 0.0 }}
tasks = {{ ids = {test} }}
learning = {{ tasks = {{ ids = {stream} }} }}
[[arms]]
name = "made"
agent = "direct"
lm = "openai/x"
compile = {{ optimizer = "BootstrapFewShot", options = {{ max_bootstrapped_demos = 2 }} }}
"""


def test_a_killed_run_goes_on(tmp_path: Path, model: ScriptedServer, trees: EndpointConfig) -> None:
    write_orchard(tmp_path / "trees")
    lists = {"test": json.dumps(TEST), "stream": json.dumps(STREAM)}
    file = FILE.format(url=trees.address, **lists)
    (tmp_path / "orchard.toml").write_text(file, encoding="utf-8")
    folder = RunFolder(tmp_path / "run")

    def command(*changes: Callable[[], None]) -> Done:
        environment = {"REASONINGBANK_CACHE": str(tmp_path / "cache"), "OPENAI_API_KEY": "replayed"}
        environment |= {"OPENAI_API_BASE": model.base}
        words = ("run", "orchard.toml", "--out", "run")
        return begin(words, tmp_path, environment, changes).wait(120)

    assert command(dies_before_the_program).status == -signal.SIGKILL
    assert folder.program("made", 0) is None
    assert not folder.trial_names()
    assert command(dies_before_the_second_trial).status == -signal.SIGKILL
    program, spent = folder.program("made", 0), len(model.asked)
    assert program is not None
    assert len(folder.trial_names()) == 1
    done = command()
    assert done.status == 0, done.err
    assert folder.program("made", 0) == program
    # The trial that was killed is run again.
    assert len(model.asked) == spent + len(TEST) - 1
    shown = begin(("status", "run"), tmp_path, {}, ()).wait(60)
    assert "BootstrapFewShot" in shown.out


@pytest.mark.parametrize(("optimizer", "calls"), [("BootstrapFewShot", 3), ("GEPA", 6)])
def test_tokens_end_it_and_what_there_is_is_used(
    made: Make, run: Run, model: ScriptedServer, optimizer: str, calls: int
) -> None:
    options = {"max_bootstrapped_demos": 6} if optimizer == "BootstrapFewShot" else {}
    # A call takes 14; one that has begun ends.
    folder = run(made(arm(optimizer, tokens=14 * calls - 5, options=options)))
    found = folder.program("made", 0)
    assert found is not None
    assert (found["usage"]["lm_calls"], found["ended"]) == (calls, "budget")
    assert found["tokens_wanted"] == 14 * calls - 5
    assert len(list(folder.trials())) == 4
    (part,) = found["programs"][""].values()
    bootstrapped = sum("augmented" in demo for demo in part["demos"])
    assert bootstrapped == (calls if optimizer == "BootstrapFewShot" else 0)


def test_as_many_tokens_as_the_stream_of_another_arm(
    learning: Make, run: Run, model: ScriptedServer
) -> None:
    learned = {"name": "learned", "agent": "pupil", "memory": "learned"}
    made = arm("GEPA", match_tokens_of="learned", options={})
    experiment = learning(made, learned)
    with pytest.raises(UsageError) as caught:
        run(experiment, only=["made"])
    assert "learned.0" in str(caught.value)
    folder = run(experiment)
    steps = [trial for trial in folder.trials() if trial.step is not None]
    found = folder.program("made", 0) or {}
    used = found["usage"]["prompt_tokens"] + found["usage"]["completion_tokens"]
    assert found["tokens_wanted"] == sum(trial.usage.tokens for trial in steps)
    # Reflection on three examples may follow the last evaluation.
    assert 0 <= used - found["tokens_wanted"] <= 5 * 14
    assert found["ended"] == "budget"


def test_nothing_of_the_evaluation_is_shown(
    made: Make, run: Run, model: ScriptedServer, pack: Path
) -> None:
    file = pack / "examples" / "tasks.ttl"
    text = file.read_text(encoding="utf-8")
    # The gold of a training task is that of a test task; a proposal holds another's.
    text = text.replace("FILTER(?h > 3)", "FILTER(?h > 6)")
    file.write_text(text, encoding="utf-8")
    gold = "SELECT ?plant WHERE { ?plant t:height ?h . FILTER(?h > 7) }"
    model.next_reply = lambda: reply(  # type: ignore[method-assign]
        model.asked[-1].body, f"{ADVICE} For example:\n{gold}"
    )
    folder = run(made(arm("GEPA")))
    found = folder.program("made", 0) or {}
    assert "t003" not in found["tasks"]
    assert [(one["name"], one["code"]) for one in found["filtered_out"]] == [
        ("t003", "gold-query"),
        ("self", "gold-query"),
    ]
    assert found["programs"][""] == found["before"]
    assert not any("> 7" in said_to(asked.body).replace("than 7", "") for asked in model.asked[-4:])


def test_tasks_with_the_same_words_are_one_example(
    made: Make, run: Run, model: ScriptedServer, pack: Path
) -> None:
    file = pack / "examples" / "tasks.ttl"
    text = file.read_text(encoding="utf-8")
    text = text.replace("higher than 11 m", "higher than 0 m").replace("?h > 11", "?h > 25")
    file.write_text(text, encoding="utf-8")
    folder = run(made(arm(tasks={"ids": ["t000", "t011"]}), tasks={"ids": ["t001"]}))
    found = folder.program("made", 0) or {}
    assert found["tasks"] == ["t011"]
    (part,) = found["programs"][""].values()
    assert ["> 25" in demo["sparql"] for demo in part["demos"]] == [True]


def test_only_training_tasks_are_compiled_on(made: Make, run: Run) -> None:
    for selection in ({"ids": ["t001"]}, {"split": "dev"}):
        with pytest.raises(UsageError) as caught:
            run(made(arm(tasks=selection), tasks={"ids": ["t006"]}))
        assert caught.value.code == "held-out-task"
    with pytest.raises(UsageError) as caught:
        run(made(arm(tasks={"ids": ["t000"]}), tasks={"ids": ["t000"]}))
    assert caught.value.code == "shared-group"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"memory": "gold"}, "compiled-with-memory"),
        ({"layers": ["L1"]}, "compiled-with-memory"),
        ({"compile": {"optimizer": "COPRO"}}, "literal-error"),
        ({"compile": {"optimizer": "GEPA", "tokens": 1, "match_tokens_of": "made"}}, "two-limits"),
        ({"compile": {"optimizer": "GEPA", "match_tokens_of": "nobody"}}, "unknown-arm"),
        ({"compile": {"optimizer": "GEPA", "match_tokens_of": "other"}}, "not-learned"),
        ({"compile": {"optimizer": "GEPA", "options": {"k": 3}}}, "unknown-option"),
        ({"compile": {"optimizer": "KNNFewShot"}}, "no-k"),
        ({"compile": {"optimizer": "GEPA", "rounds": 3}}, "extra-forbidden"),
        ({"agent": "pupil"}, "not-compilable"),
        ({"agent": "oracle"}, "oracle-with-memory"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    made: Make, run: Run, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        run(made({**arm(), **change}, {"name": "other", "agent": "oracle"}))
    assert caught.value.code == code


def test_a_model_that_fails_ends_the_run_and_leaves_no_program(
    made: Make, run: Run, model: ScriptedServer, tmp_path: Path
) -> None:
    model.next_reply = lambda: failure(400, "no")  # type: ignore[method-assign]
    experiment = made(arm())
    with pytest.raises(ReasoningBankError) as caught:
        run(experiment)
    assert caught.value.code != "unexpected"
    assert not list(tmp_path.rglob("compiled"))
    model.next_reply = lambda: reply(model.asked[-1].body)  # type: ignore[method-assign]
    folder = run(experiment)
    assert [trial.strict for trial in folder.trials()] == [True] * 4


def test_an_option_that_the_optimizer_refuses_is_named(
    made: Make, run: Run, model: ScriptedServer
) -> None:
    options = {"auto": "light", "max_metric_calls": 5}
    with pytest.raises(UsageError) as caught:
        run(made(arm("GEPA", options=options)))
    assert caught.value.code == "refused"
    assert "max_metric_calls" in str(caught.value)
