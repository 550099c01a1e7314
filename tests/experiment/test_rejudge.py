"""Judging a run again: records get evidence and other judges' words, and lose nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import LMServerError

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, TrialRecord, run_experiment
from reasoningbank.experiment.rejudge import rejudge_run
from reasoningbank.experiment.state import hold_run
from reasoningbank.experiment.storage import write_atomically

YES = {"checked": "all", "reason": "Fine.", "success": "yes", "confidence": "0.9"}
NO = {**YES, "success": "no"}


@pytest.fixture(scope="module")
def made() -> dict[str, Path]:
    """Where the run lies that every test gets a copy of, once it is made."""
    return {}


@pytest.fixture
def run(
    made: dict[str, Path],
    make_pack: Callable[..., Path],
    experiment_on: Callable[..., Experiment],
    tmp_path: Path,
) -> RunFolder:
    """A run of two arms and three tasks as an older version wrote it; one arm is wrong."""
    if not made:
        made["pack"] = make_pack(3, "original")
        made["run"] = old_run(experiment_on, made["pack"], tmp_path / "original_run")
    pack = shutil.copytree(made["pack"], tmp_path / "pack")
    folder = RunFolder(shutil.copytree(made["run"], tmp_path / "run"))
    manifest = folder.manifest or {}
    manifest["experiment"]["pack"] = str(pack)
    folder.write_manifest(manifest)
    return folder


def old_run(experiment_on: Callable[..., Experiment], pack: Path, path: Path) -> Path:
    arms = ({"name": "oracle", "agent": "oracle"}, {"name": "other", "agent": "oracle"})
    folder = run_experiment(experiment_on(pack, *arms), RunFolder(path))
    for record in list(folder.trials()):
        if record.key.arm == "other":
            sparql = {
                "t000": "SELECT ?plant { ?plant a t:Moss }",
                "t001": "SELECT ?plant {",
                "t002": "SELECT ?plant { ?plant a t:Palm }",
            }[record.key.task]
            folder.write(replace(record, sparql=sparql))
    # The records of the wrong arm get the verdicts that they should have.
    rejudge_run(folder, "execution", overwrite=True)
    for record in folder.trials():
        data = record.to_json()
        for name in ("gold", "evidence", "judgements", "judge_seconds", "tries", "step", "memory"):
            del data[name]
        data["verdict"]["seconds"] = 0.01
        write_atomically(folder.path / record.key.path, data)
    folder.write_manifest({k: v for k, v in (folder.manifest or {}).items() if k != "judges"})
    return folder.path


def by_key(folder: RunFolder) -> dict[tuple[str, str], TrialRecord]:
    return {(r.key.arm, r.key.task): r for r in folder.trials()}


def test_old_records_get_gold_and_evidence(run: RunFolder) -> None:
    before = by_key(run)
    outcome = rejudge_run(run, "execution")
    assert (outcome.judged, outcome.changed, outcome.failed) == (6, [], [])
    for key, record in by_key(run).items():
        assert "SELECT ?plant WHERE" in record.gold
        assert record.evidence["gold"]["n"] == 3
        assert record.verdict is not None
        assert "seconds" not in record.verdict
        assert record.strict == before[key].strict == (key[0] == "oracle")
        assert record.trajectory == before[key].trajectory
    wrong = by_key(run)["other", "t000"].evidence
    assert wrong["surplus"] == [["<http://e/moss>"]]
    assert (wrong["n_missing"], wrong["missing"][0]) == (3, ["<http://e/ash>"])
    again = rejudge_run(run, "execution")
    assert again.changed == []
    assert (run.manifest or {})["judges"]["execution"]["corpus"]


def test_a_verdict_that_changed_is_reported_and_kept(run: RunFolder) -> None:
    victim = by_key(run)["oracle", "t001"]
    verdict = {**(victim.verdict or {}), "strict": False, "f1": 0.25}
    run.write(replace(victim, verdict=verdict))
    outcome = rejudge_run(run, "execution")
    (change,) = outcome.changed
    assert (change.key, change.written) == (victim.key, False)
    assert (change.before["f1"], change.after["f1"]) == (0.25, 1.0)
    kept = run.read(victim.key)
    assert (kept.verdict, kept.evidence) == (verdict, {})
    outcome = rejudge_run(run, "execution", overwrite=True)
    assert outcome.changed[0].written
    assert run.read(victim.key).strict


def test_a_copy_is_judged_and_the_run_stays_as_it_was(run: RunFolder, tmp_path: Path) -> None:
    (run.path / "compiled").mkdir()
    (run.path / "compiled" / "other.0.json").write_text('{"programs": {}}')
    archived = run.archive(tmp_path / "archived")
    held = {p: p.read_bytes() for p in archived.path.rglob("*") if p.is_file()}
    with pytest.raises(UsageError, match="--out"):
        rejudge_run(archived, "rule")
    out = RunFolder(tmp_path / "copy")
    outcome = rejudge_run(archived, "execution", out=out, arms=("oracle",), limit=2)
    assert outcome.judged == 2
    assert len(by_key(out)) == 6
    assert out.program("other", 0) == {"programs": {}}
    assert sum(bool(r.evidence) for r in out.trials()) == 2
    assert rejudge_run(archived, "rule", out=out).judged == 6
    assert sum(bool(r.evidence) for r in out.trials()) == 2
    assert {p: p.read_bytes() for p in archived.path.rglob("*") if p.is_file()} == held
    # Begun at another time, it is another run of the same experiment.
    for mark in ("fingerprint", "created"):
        out.write_manifest({**(run.manifest or {}), mark: "another"})
        with pytest.raises(UsageError, match="another run"):
            rejudge_run(archived, "rule", out=out)


def test_the_rule_says_what_it_can(run: RunFolder) -> None:
    outcome = rejudge_run(run, "rule")
    found = {key: r.judgements["rule"]["success"] for key, r in by_key(run).items()}
    assert found["other", "t000"] is True
    assert found["other", "t001"] is False
    assert found["other", "t002"] is False
    assert outcome.agreement is not None
    assert (outcome.agreement.true_positives, outcome.agreement.false_positives) == (3, 1)
    assert outcome.agreement == outcome.rule


@dataclass
class Models:
    """Stands where `open_lm` does: replies or raises in turn."""

    replies: list[Any]
    opened: list[str] = field(default_factory=list)
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"model": "scripted"})

    @contextmanager
    def open(self, name: str) -> Iterator[Models]:
        self.opened.append(name)
        yield self

    def lm(self, **settings: Any) -> DummyLM:
        return Scripted(self.replies)


class Scripted(DummyLM):  # type: ignore[misc]
    """Gives the next of the replies that all share, or raises it."""

    def __init__(self, replies: list[Any]) -> None:
        super().__init__([])
        self.replies = replies

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        self.answers = iter([reply])
        return super().__call__(*args, **kwargs)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Models]:
    def script(*replies: Any) -> Models:
        made = Models(list(replies))
        monkeypatch.setattr("reasoningbank.experiment.rejudge.open_lm", made.open)
        return made

    return script


def test_a_model_judges_beside_the_execution_judge(
    run: RunFolder, models: Callable[..., Models]
) -> None:
    # Five queries run; the sixth does not, and the model is not asked about it.
    model = models(YES, YES, NO, NO, YES)
    outcome = rejudge_run(run, "lm:local", limit=2)
    assert (outcome.judged, outcome.known, len(model.replies)) == (2, 0, 3)
    outcome = rejudge_run(run, "lm:local")
    assert (outcome.judged, outcome.known, len(model.replies)) == (4, 2, 0)
    found = outcome.agreement
    assert found is not None
    assert (found.true_positives, found.false_positives) == (2, 1)
    assert (found.false_negatives, found.true_negatives) == (1, 2)
    assert outcome.rule is not None
    assert outcome.rule.kappa == pytest.approx(2 / 3)
    record = by_key(run)["other", "t002"]
    assert record.judgements["lm:local"]["reason"] == "Fine."
    assert not record.strict
    assert (run.manifest or {})["judges"]["lm:local"]["model"] == {"model": "scripted"}
    assert rejudge_run(run, "lm:local").judged == 0
    models(*[NO] * 5)
    outcome = rejudge_run(run, "lm:local", again=True)
    assert outcome.judged == 6
    assert outcome.agreement is not None
    assert outcome.agreement.true_positives == 0


def test_a_reply_that_cannot_be_read_is_counted_apart(
    run: RunFolder, models: Callable[..., Models]
) -> None:
    models(YES, {"reason": "what?"}, YES, NO, NO)
    outcome = rejudge_run(run, "lm:local")
    assert (outcome.judged, outcome.undecided) == (6, 1)
    assert outcome.agreement is not None
    assert outcome.agreement.n == 5


def test_a_model_that_is_gone_leaves_the_records_as_they_were(
    run: RunFolder, models: Callable[..., Models]
) -> None:
    gone = LMServerError(model="m", message="connection refused")
    models(YES, gone, gone, gone, YES)
    held = {p: p.read_bytes() for p in (run.path / "trials").rglob("*.json")}
    notices: list[str] = []
    outcome = rejudge_run(run, "lm:local", on_notice=notices.append)
    assert outcome.judged == 1
    assert [key.task for key, _ in outcome.failed] == ["t001", "t002", "t000"]
    assert "connection refused" in outcome.failed[0][1]
    assert notices == [n for n in notices if "3 trials in a row" in n]
    now = {p: p.read_bytes() for p in (run.path / "trials").rglob("*.json")}
    assert sum(now[path] != held[path] for path in held) == 1
    models(*[YES] * 4)
    assert rejudge_run(run, "lm:local").judged == 5


def test_what_cannot_be_judged_is_left_out(run: RunFolder) -> None:
    record = by_key(run)["oracle", "t000"]
    run.write(replace(record, verdict=None, status="error"))
    (run.path / "trials" / "other" / "t002.0.json").write_text("{", encoding="utf-8")
    notices: list[str] = []
    outcome = rejudge_run(run, "execution", on_notice=notices.append)
    assert (outcome.judged, outcome.without_verdict) == (4, 1)
    assert any("t002.0.json" in notice for notice in notices)
    assert run.read(record.key).verdict is None


def test_a_task_that_is_gone_and_golds_that_changed_are_reported(run: RunFolder) -> None:
    manifest = run.manifest or {}
    examples = Path(manifest["experiment"]["pack"]) / "examples" / "tasks.ttl"
    text = examples.read_text(encoding="utf-8")
    kept = text[: text.index("ex:t002")].replace("FILTER(?h > 1)", "FILTER(?h > 30)")
    examples.write_text(kept, encoding="utf-8")
    notices: list[str] = []
    outcome = rejudge_run(run, "execution", on_notice=notices.append)
    assert len(notices) == 1
    assert {key.task for key, _ in outcome.failed} == {"t002"}
    assert {change.key.task for change in outcome.changed} == {"t001"}


def test_a_summary_that_is_older_than_its_verdicts_is_reported(run: RunFolder) -> None:
    write_atomically(run.path / "summary.json", {})
    record = by_key(run)["oracle", "t000"]
    run.write(replace(record, verdict={**(record.verdict or {}), "strict": False}))
    notices: list[str] = []
    rejudge_run(run, "execution", overwrite=True, on_notice=notices.append)
    assert any("summary.json was written before" in notice for notice in notices)


@pytest.mark.parametrize(
    ("judge", "arms", "said"),
    [
        ("oracle", (), "unknown judge"),
        ("lm:", (), "unknown judge"),
        ("lm:nonsense", (), "unknown model"),
        ("rule", ("nobody",), "unknown arm.*oracle, other"),
    ],
)
def test_what_there_is_not_is_reported(
    run: RunFolder, judge: str, arms: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        rejudge_run(run, judge, arms=arms)


def test_no_run_and_a_run_that_is_running(run: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        rejudge_run(RunFolder(tmp_path / "nothing"), "rule")
    with hold_run(run), pytest.raises(UsageError, match="another process"):
        rejudge_run(run, "rule")


def test_the_outcome_is_plain_data(run: RunFolder) -> None:
    data = json.loads(json.dumps(rejudge_run(run, "rule").to_json()))
    assert data["agreement"]["kappa"] == pytest.approx(2 / 3)
    assert data["judged"] == 6
