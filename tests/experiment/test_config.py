"""An experiment file is refused in one line that names the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, load_experiment, parse_experiment
from reasoningbank.experiment.config import apply_changes, bank_arm, control_of, seeds_of

ARM = '[[arms]]\nname = "a"\nagent = "oracle"\n'
HEAD = 'name = "x"\npack = "uniprot"\n'
ROOT = Path(__file__).resolve().parents[2]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_least_that_a_file_must_say(tmp_path: Path) -> None:
    loaded = load_experiment(write(tmp_path, HEAD + ARM))
    assert (loaded.seeds, loaded.metric, loaded.budget.iterations) == ((0,), "strict", 6)
    assert loaded.arms[0].lm == "local"


def test_an_endpoint_is_an_address_or_a_table_and_asked_politely(tmp_path: Path) -> None:
    address = "https://example.org/sparql"
    short = load_experiment(write(tmp_path, f'endpoint = "{address}"\n' + HEAD + ARM)).endpoint
    table = f'[endpoint]\nurl = "{address}"\nmin_interval_s = 0.2\n'
    full = load_experiment(write(tmp_path, HEAD + table + ARM)).endpoint
    assert short is not None
    assert full is not None
    assert (short.url, short.min_interval_s, short.max_connections) == (address, 1.0, 2)
    assert full.min_interval_s == 0.2


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.toml")), ids=str)
def test_every_shipped_experiment_is_valid(path: Path) -> None:
    assert load_experiment(path).name == path.stem


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ('name = "x"\n' + ARM, "missing", "pack"),
        (HEAD, "missing", "arms"),
        (HEAD + "arms = []\n", "too-short", "arms"),
        (HEAD + 'colour = "red"\n' + ARM, "extra-forbidden", "colour"),
        (HEAD + ARM + "temprature = 1\n", "extra-forbidden", "arms.a.temprature"),
        (HEAD + ARM + "temperature = 9\n", "less-than-equal", "arms.a.temperature"),
        (HEAD + '[[arms]]\nname = "a/../b"\nagent = "oracle"\n', "string-pattern-mismatch",
         "arms.a/../b.name"),
        (HEAD + ARM + ARM, "duplicate-arm", ""),
        (HEAD + 'comparison = ["a", "b"]\n' + ARM, "unknown-arm", ""),
        (HEAD + 'comparison = ["a", "a"]\n' + ARM, "arm-against-itself", ""),
        (HEAD + 'comparison = ["a"]\n' + ARM, "missing", "comparison.1"),
        (HEAD + "seeds = []\n" + ARM, "too-short", "seeds"),
        (HEAD + "version = 2\n" + ARM, "literal-error", "version"),
        (HEAD + 'metric = "luck"\n' + ARM, "literal-error", "metric"),
        (HEAD + '[endpoint]\nurl = ""\n' + ARM, "string-too-short", "endpoint.url"),
        (HEAD + "[endpoint]\nmin_interval_s = -1\n" + ARM, "missing", "endpoint.url"),
        (HEAD + "[tasks]\nsample = 0\n" + ARM, "greater-than-equal", "tasks.sample"),
        (HEAD + '[tasks]\nsplit = "tset"\n' + ARM, "literal-error", "tasks.split"),
        (HEAD + "[budget]\niterations = 0\n" + ARM, "greater-than-equal", "budget.iterations"),
        (HEAD + 'mode = "learn"\n' + ARM, "nothing-learns", ""),
        (HEAD + ARM + 'memory = "gold"\n', "oracle-with-memory", "arms.a"),
        (HEAD + ARM + 'layers = ["L1"]\n', "oracle-with-memory", "arms.a"),
        (HEAD + "seeds = [1, 1]\n" + ARM, "duplicate-seed", ""),
        (HEAD + "repeats = 0\n" + ARM, "bad-repeats", ""),
        (HEAD + "repeats = 2\nseeds = [1]\n" + ARM, "seeds-and-repeats", ""),
        (HEAD + 'executor = "ray"\n' + ARM, "literal-error", "executor.kind"),
        (HEAD + "executor = {workers = 0}\n" + ARM, "greater-than-equal", "executor.workers"),
        (HEAD + "executor = {warm_sandboxes = -1}\n" + ARM, "greater-than-equal",
         "executor.warm_sandboxes"),
        (HEAD + '[executor.limits."openai/m"]\nrequests = 5\n' + ARM, "unused-limit", ""),
        (HEAD + '[executor.limits.local]\nrequests = 0\n' + ARM, "greater-than",
         "executor.limits.local.requests"),
        (HEAD + 'executor = {scheduler = "tcp://x:1"}\n' + ARM, "scheduler-without-dask",
         "executor"),
        (HEAD + "[retries]\nbackoff_s = -1\n" + ARM, "greater-than-equal", "retries.backoff_s"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_named_in_one_line(
    tmp_path: Path, text: str, code: str, key: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_experiment(write(tmp_path, text))
    assert (caught.value.code, caught.value.fields["key"]) == (code, key)
    assert "\n" not in str(caught.value)
    assert caught.value.where.endswith("x.toml")


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        (HEAD + ARM + "temprature = 1\n", "did you mean temperature?"),
        (HEAD + ARM + 'model = "local"\n', "did you mean lm?"),
        (HEAD + ARM + "iterations = 3\n", "it belongs in [budget]"),
        (HEAD + 'split = "dev"\n' + ARM, "it belongs in [tasks]"),
        (HEAD + 'lm = "local"\n' + ARM, "it belongs in an arm"),
        (HEAD + 'model = "local"\n' + ARM, "it belongs in an arm, as lm"),
        (HEAD + "[budget]\ntool_cals = 1\n" + ARM, "did you mean tool_calls?"),
        (HEAD + ARM + 'memory = {source = "gold", kind = []}\n', "did you mean kinds?"),
        (HEAD + "[learning]\nqwertz = 1\n" + ARM, "known are attempts, consolidate, tasks"),
        (HEAD + ARM + "temp = 0.5\n", "did you mean temperature?"),
    ],
)
def test_an_unknown_key_suggests_one_that_its_table_has(
    tmp_path: Path, text: str, suggested: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_experiment(write(tmp_path, text))
    assert caught.value.code == "extra-forbidden"
    assert caught.value.what.endswith(f": unknown key; {suggested}")


def test_other_mistakes_are_counted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="and 1 more"):
        load_experiment(write(tmp_path, HEAD + "[budget]\ntool_cals = 1\nseconds = 0\n" + ARM))


def test_a_file_that_is_missing_or_unreadable_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such experiment file"):
        load_experiment(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_experiment(tmp_path)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"b\.toml.*cannot be read"):
        load_experiment(tmp_path / "b.toml")


def test_another_model_is_another_experiment(tmp_path: Path) -> None:
    loaded = load_experiment(write(tmp_path, HEAD + ARM))
    assert loaded.with_lm(None) is loaded
    other = loaded.with_lm("openai/x")
    assert other.arms[0].lm == "openai/x"
    assert other.fingerprint() != loaded.fingerprint()


def test_repeats_are_seeds(tmp_path: Path) -> None:
    assert load_experiment(write(tmp_path, HEAD + "repeats = 3\n" + ARM)).seeds == (0, 1, 2)


def test_who_runs_the_trials_and_how_often_they_are_tried_makes_no_other_experiment(
    tmp_path: Path,
) -> None:
    plain = load_experiment(write(tmp_path, HEAD + ARM))
    said = 'title = "T"\nexecutor = {workers = 8}\nretries = {infrastructure = 1}\n'
    assert load_experiment(write(tmp_path, HEAD + said + ARM)).fingerprint() == plain.fingerprint()
    defaults = 'seeds = [0]\nunit = "task"\n'
    other = load_experiment(write(tmp_path, HEAD + defaults + ARM))
    assert other.fingerprint() == plain.fingerprint()
    changed = load_experiment(write(tmp_path, HEAD + ARM), ["arms.a.temperature=0.5"])
    assert changed.fingerprint() != plain.fingerprint()


@pytest.mark.parametrize("folder", sorted((ROOT / "experiments" / "results").iterdir()), ids=str)
def test_the_experiment_in_a_committed_manifest_can_be_read(folder: Path) -> None:
    manifest = RunFolder(folder).manifest
    assert manifest is not None
    assert parse_experiment(manifest["experiment"]).name == manifest["experiment"]["name"]


@pytest.mark.parametrize("where", ["tasks", "arm"])
def test_a_task_is_named_once(where: str) -> None:
    named = ["t0", "t1", "t0"]
    arm = {"name": "a", "agent": "direct", **({"tasks": named} if where == "arm" else {})}
    data = {"name": "x", "pack": "p", "arms": [arm]}
    if where == "tasks":
        data["tasks"] = {"ids": named}
    with pytest.raises(UsageError, match="'t0' is named twice"):
        parse_experiment(data)


LEARNED: dict[str, Any] = {"name": "learned", "agent": "direct", "memory": "learned"}


def arm(name: str = "a", **rest: Any) -> dict[str, Any]:
    return {"name": name, "agent": "direct", **rest}


def parsed(*arms: dict[str, Any], **rest: Any) -> Experiment:
    return parse_experiment({"name": "x", "pack": "p", "arms": list(arms), **rest})


def learn(*arms: dict[str, Any], **rest: Any) -> Experiment:
    return parsed(*arms, LEARNED, mode="learn", **rest)


MATCHED: dict[str, Any] = {"temperature": 0.7, "sampling": {"match_tokens_of": "learned", "k": 9}}


@pytest.mark.parametrize(
    ("arms", "code", "key"),
    [
        ([arm(memory="learnt")], "union-tag-invalid", "arms.a.memory"),
        ([arm(memory={"source": "gold", "kind": []})], "extra-forbidden", "arms.a.memory.kind"),
        ([arm(memory={"tokens": 100})], "extra-forbidden", "arms.a.memory.tokens"),
        ([arm(memory="random")], "missing", "arms.a.memory.of"),
        ([arm(memory="bank")], "missing", "arms.a.memory.bank"),
        ([arm(memory={"source": "gold", "of": "learned"})], "extra-forbidden", "arms.a.memory.of"),
        ([arm(memory={"source": "gold", "bank": "x.jsonl"})], "extra-forbidden",
         "arms.a.memory.bank"),
        ([arm(memory={"source": "gold", "judge": "lm"})], "extra-forbidden",
         "arms.a.memory.judge"),
        ([arm(memory={"source": "learned", "kinds": ["gold"]})], "kinds-not-distilled",
         "arms.a.memory.kinds"),
        ([arm(memory={"source": "learned", "judge": "lm"})], "no-judge", ""),
        ([arm(agent="rlm", memory={"source": "gold", "show": "tools", "demonstrations": True})],
         "demonstrations-not-shown", "arms.a.memory"),
        ([arm(layers=["L2"])], "no-source", "arms.a"),
        ([arm(layers=["L4"])], "literal-error", "arms.a.layers.0"),
        ([arm(sampling={"k": 3})], "cold-sampling", "arms.a"),
        ([arm(sampling={"k": 3, "temperature": 0})], "greater-than",
         "arms.a.sampling.temperature"),
        ([arm(sampling={"k": 1}, temperature=0.7)], "one-sample", "arms.a.sampling"),
        ([arm(sampling={"kind": "sequential", "match_tokens_of": "learned"})],
         "token-match-not-possible", "arms.a.sampling"),
        ([arm(temperature=0.7, sampling={"match_tokens_of": "learned", "phase": "stream"})],
         "token-match-not-possible", "arms.a.sampling"),
        ([arm(sampling={"match_tokens_of": "b"}, temperature=0.7)], "unknown-arm", ""),
        ([arm(memory={"source": "random", "of": "b"})], "unknown-arm", ""),
        ([arm(memory={"source": "random", "of": "b"}), arm("b")], "no-memory", ""),
        ([arm(memory={"source": "random", "of": "b"}),
          arm("b", memory={"source": "random", "of": "a"})], "circular-arms", ""),
        ([arm(memory={"source": "shared", "of": "b"}), arm("b", memory="gold")], "not-learned", ""),
        ([arm(seeds=[0, 4], **MATCHED)], "seed-missing", ""),
        ([arm(memory={"source": "random", "of": "learned"}, seeds=[3])], "seed-missing", ""),
        ([arm(stream=True, memory={"source": "random", "of": "learned"})],
         "stream-with-final-bank", ""),
        ([arm(stream=True, **MATCHED)], "token-match-in-stream", ""),
        ([arm(memory="learned", **MATCHED)], "token-match-in-stream", ""),
        ([arm(memory={"source": "random", "of": "learned", "items": 4})], "control-differs", ""),
        ([arm(memory={"source": "random", "of": "learned", "tokens": 90})], "control-differs", ""),
        ([arm(agent="rlm", memory={"source": "random", "of": "learned", "show": "tools"})],
         "control-differs", ""),
        ([arm(memory={"source": "random", "of": "learned", "kinds": ["success"]})],
         "control-differs", ""),
        ([arm(agent="rlm", memory={"source": "random", "of": "learned", "demonstrations": True})],
         "control-differs", ""),
        ([arm(seeds=[1, 1])], "duplicate-seed", "arms.a"),
        ([arm(agent="oracle", memory="gold")], "oracle-with-memory", "arms.a"),
    ],
)  # fmt: skip
def test_contradictory_settings_are_refused_in_one_line(
    arms: list[dict[str, Any]], code: str, key: str
) -> None:
    with pytest.raises(UsageError) as caught:
        learn(*arms)
    assert (caught.value.code, caught.value.fields["key"]) == (code, key)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arms", "code"), [([LEARNED], "learned-needs-mode"), ([arm(stream=True)], "stream-needs-mode")]
)
def test_nothing_learns_without_a_stream(arms: list[dict[str, Any]], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(*arms)
    assert caught.value.code == code


def test_old_spellings_are_read() -> None:
    old = learn(
        arm("m", temperature=0.7, sampling={"tokens_of": "learned"}, linking=True),  # old spelling
        arm("p", memory={"source": "placebo", "of": "learned"}),  # old spelling
        arm("t", agent="rlm", memory={"source": "learned", "of": "learned", "show": "tools"}),
    )
    new = learn(
        arm("m", temperature=0.7, sampling={"match_tokens_of": "learned"}, entity_linking=True),
        arm("p", memory={"source": "random", "of": "learned"}),
        arm("t", agent="rlm", memory={"source": "shared", "of": "learned", "show": "tools"}),
    )
    assert old == new
    assert old.fingerprint() == new.fingerprint()


def test_a_manifest_that_lists_every_default_is_read() -> None:
    every = {
        "bank": "", "stream": "", "of": "", "judge": "execution", "kinds": [],
        "distiller": "rules", "show": "context", "items": 3, "tokens": 600,
        "demonstrations": False,
    }  # fmt: skip
    for source in ("none", "gold"):
        full = parsed(arm(memory={**every, "source": source}))
        assert full == parsed(arm(memory=source))
        assert parse_experiment(full.model_dump(mode="json")) == full


def test_a_word_is_a_source_and_none_is_the_default() -> None:
    plain = parsed(arm())
    assert parsed(arm(memory="none")).fingerprint() == plain.fingerprint()
    assert parsed(arm(memory="gold")).arms[0].memory.source == "gold"
    assert not plain.uses_memory
    assert parsed(arm(layers=["L0"])).uses_memory
    assert parsed(arm(memory="none", layers=[])).arms[0].memory.source == "none"


def test_banks_are_those_of_the_arm_at_the_end() -> None:
    tools = arm("tools", agent="rlm", memory={"source": "shared", "of": "learned", "show": "both"})
    drawn = {"source": "random", "of": "tools", "show": "both"}
    control = arm("random", agent="rlm", memory=drawn)
    experiment = learn(tools, control)
    arms = {one.name: one for one in experiment.arms}
    assert bank_arm(experiment, arms["random"]).name == "learned"
    assert not arms["tools"].learns


def test_the_control_is_alike_but_for_memory() -> None:
    others = [
        arm("idle"),
        arm("sampled", stream=True, temperature=0.5, sampling={}),
        arm("other", stream=True, lm="openai/x"),
        arm("layered", stream=True, layers=["L0"]),
        arm("none", stream=True, seeds=[7]),
    ]
    experiment = learn(*others, arm("deep", memory="learned", layers=["L0"]), seeds=[0, 1])
    arms = {one.name: one for one in experiment.arms}
    control = control_of(experiment, arms["learned"])
    assert control is not None
    assert control.name == "none"
    deep = control_of(experiment, arms["deep"])
    assert deep is not None
    assert deep.name == "layered"
    assert seeds_of(experiment, control) == (7,)
    assert seeds_of(experiment, arms["learned"]) == (0, 1)
    assert control_of(learn(), LEARNED_ARM) is None


@pytest.mark.parametrize(
    "unlike",
    [
        {"temperature": 0.5},
        {"max_tokens": 100},
        {"tools": []},
        {"demonstrations": False},
        {"budget": {"lm_calls": 3}},
        {"sampling": {"kind": "sequential"}},
        {"sampling": {"temperature": 0.7}},
    ],
)
def test_a_control_is_alike_in_all_but_memory(unlike: dict[str, Any]) -> None:
    plain, other = arm("plain", stream=True), arm("other", stream=True, **unlike)
    experiment = learn(other, plain, arm("unlike", memory="learned", **unlike))
    arms = {one.name: one for one in experiment.arms}
    for learner, expected in (("learned", "plain"), ("unlike", "other")):
        control = control_of(experiment, arms[learner])
        assert control is not None
        assert control.name == expected


def test_only_what_is_sampled_in_the_stream_tells_a_control_apart() -> None:
    later = {"kind": "sequential", "phase": "evaluation"}
    experiment = learn(arm("plain", stream=True), arm("later", memory="learned", sampling=later))
    control = control_of(experiment, experiment.arms[1])
    assert control is not None
    assert control.name == "plain"


def test_a_control_is_judged_by_whom_the_learner_believes() -> None:
    believes = arm("lm", memory={"source": "learned", "judge": "lm"}, judge_lm="local")
    none = arm("none", stream=True)
    assert control_of(learn(none, believes), learn(none, believes).arms[1]) is None
    experiment = learn(none | {"judge_lm": "local"}, believes)
    for learner in experiment.arms[1:]:
        control = control_of(experiment, learner)
        assert control is not None
        assert control.name == "none"


def test_a_random_memory_control_equals_its_bank_on_file() -> None:
    bank = {"source": "bank", "bank": "x.jsonl", "kinds": ["seed"], "items": 2}
    same = {"source": "random", "of": "bank", "kinds": ["seed"], "items": 2}
    assert parsed(arm("bank", memory=bank), arm("p", memory=same)).arms[1].memory.items == 2
    with pytest.raises(UsageError) as caught:
        parsed(arm("bank", memory=bank), arm("p", memory=same | {"kinds": []}))
    assert caught.value.code == "control-differs"


LEARNED_ARM = learn().arms[-1]


FILE: dict[str, Any] = {"name": "x", "arms": [{"name": "qwen-1.5b", "lm": "local"}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("seeds=[1, 2]", {**FILE, "seeds": [1, 2]}),
        ("title=a plain text", {**FILE, "title": "a plain text"}),
        ("executor.workers=16", {**FILE, "executor": {"workers": 16}}),
        ("endpoint.url=https://e/?a=b", {**FILE, "endpoint": {"url": "https://e/?a=b"}}),
        (
            "arms.qwen-1.5b.budget.tokens=5",
            {"name": "x", "arms": [{**FILE["arms"][0], "budget": {"tokens": 5}}, {"name": "b"}]},
        ),
        (
            "arms.*.temperature=0.5",
            {"name": "x", "arms": [{**arm, "temperature": 0.5} for arm in FILE["arms"]]},
        ),
    ],
)
def test_a_path_leads_to_what_it_names(change: str, expected: dict[str, Any]) -> None:
    before = str(FILE)
    assert apply_changes(FILE, [change]) == expected
    assert str(FILE) == before


@pytest.mark.parametrize("change", ["seeds", "=1", "a..b=1", "arms.c.lm=x", "name.first=x"])
def test_a_change_that_leads_nowhere_is_refused(change: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_changes(FILE, [change])
    assert caught.value.where == "--set"
