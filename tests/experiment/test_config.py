"""An experiment file is refused in one line that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment import RunFolder, load_experiment, parse_experiment

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
    ("text", "named"),
    [
        (ARM + 'name = "b"\n', "TOML"),
        ('name = "x"\n' + ARM, "pack: "),
        (HEAD, "arms: "),
        (HEAD + "arms = []\n", "arms: "),
        (HEAD + 'colour = "red"\n' + ARM, "colour: unknown key"),
        (
            HEAD + ARM + "temprature = 1\n",
            r"arms\.a\.temprature: unknown key; did you mean temperature",
        ),
        (HEAD + ARM + "temperature = 9\n", r"arms\.a\.temperature: .*2"),
        (HEAD + '[[arms]]\nname = "a/../b"\nagent = "oracle"\n', r"arms\..*\.name: "),
        (HEAD + ARM + ARM, "two arms have the same name"),
        (HEAD + 'comparison = ["a", "b"]\n' + ARM, "comparison names 'b'"),
        (HEAD + 'comparison = ["a", "a"]\n' + ARM, "comparison names 'a' twice"),
        (HEAD + 'comparison = ["a"]\n' + ARM, "comparison"),
        (HEAD + "seeds = []\n" + ARM, "seeds: "),
        (HEAD + "version = 2\n" + ARM, "version: "),
        (HEAD + 'metric = "luck"\n' + ARM, "metric: .*strict"),
        (HEAD + '[endpoint]\nurl = ""\n' + ARM, r"endpoint\.url: "),
        (HEAD + "[endpoint]\nmin_interval_s = -1\n" + ARM, "endpoint.*and 1 more"),
        (HEAD + "[tasks]\nsample = 0\n" + ARM, r"tasks\.sample: "),
        (HEAD + '[tasks]\nsplit = "tset"\n' + ARM, r"tasks\.split: .*train"),
        (HEAD + "[budget]\niterations = 0\n" + ARM, r"budget\.iterations: "),
        (HEAD + 'mode = "learn"\n' + ARM, "mode = 'learn' needs an arm with memory.source"),
        (HEAD + ARM + 'memory = "gold"\n', r"arms\.a: the oracle has no use for memory"),
        (HEAD + ARM + 'layers = ["L1"]\n', r"arms\.a: the oracle has no use for memory"),
        (HEAD + "seeds = [1, 1]\n" + ARM, "a seed is named twice"),
        (HEAD + "repeats = 0\n" + ARM, "repeats must be a whole number"),
        (HEAD + "repeats = 2\nseeds = [1]\n" + ARM, "give seeds or repeats, not both"),
        (HEAD + 'executor = "ray"\n' + ARM, r"executor\.kind: .*dask"),
        (HEAD + "executor = {workers = 0}\n" + ARM, r"executor\.workers: "),
        (HEAD + 'executor = {scheduler = "tcp://x:1"}\n' + ARM, "a scheduler needs kind"),
        (HEAD + "[retries]\nbackoff_s = -1\n" + ARM, r"retries\.backoff_s: "),
        (HEAD + "[budget]\ntool_cals = 1\nseconds = 0\n" + ARM, r"budget.*and 1 more"),
    ],
)
def test_what_it_may_not_say_is_named_in_one_line(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        load_experiment(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "x.toml" in str(caught.value)


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
