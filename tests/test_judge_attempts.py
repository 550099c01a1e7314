"""The set on which judges are measured: what is in it, where from, and that its labels hold."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from reasoningbank.corpus import load_corpus, load_pack, split_tasks
from reasoningbank.experiment import RunFolder, TrialRecord, load_experiment
from reasoningbank.experiment.rejudge import rejudge_run
from reasoningbank.judge import agreement_with, rule_verdict

ROOT = Path(__file__).resolve().parents[1]
ATTEMPTS = RunFolder(ROOT / "experiments" / "judge_attempts")

QUERY = """PREFIX up: <http://purl.uniprot.org/core/>
PREFIX taxon: <http://purl.uniprot.org/taxonomy/>
SELECT ?protein ?mass WHERE {
  ?taxon rdfs:subClassOf taxon:8570 .
  ?protein up:organism ?taxon ;
           up:reviewed true ;
           up:sequence/up:mass ?mass .
  FILTER(?mass > 50000)
}
"""


@pytest.fixture(scope="module")
def records() -> list[TrialRecord]:
    return list(ATTEMPTS.trials())


@pytest.fixture
def edits(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("query_edits")


def plausible(record: TrialRecord) -> bool:
    return bool((rule_verdict(record.verdict or {}) or {}).get("success"))


def test_it_is_large_and_balanced_enough_to_tell_judges_apart(records: list[TrialRecord]) -> None:
    n = len(records)
    assert n >= 110
    assert sum(record.strict for record in records) >= 0.3 * n
    assert sum(plausible(record) and not record.strict for record in records) >= 0.3 * n


def test_it_holds_nothing_that_must_not_be_tuned_on(records: list[TrialRecord]) -> None:
    part = split_tasks(load_corpus(load_pack("uniprot")).tasks).by_id()
    base_line = set(load_experiment(ROOT / "experiments" / "uniprot_baseline.toml").tasks.ids)
    assert {part[record.key.task] for record in records} == {"train", "dev"}
    assert not base_line & {record.key.task for record in records}


def test_every_attempt_says_how_it_was_made(records: list[TrialRecord]) -> None:
    said = {
        arm: {"made": set(), "recorded": set()} for arm in ("rewritten", "mistaken", "recorded")
    }
    for record in records:
        for kind, found in said[record.key.arm].items():
            found.add(str(record.model.get(kind)))
    assert len(said["rewritten"]["made"]) >= 5
    assert len(said["mistaken"]["made"]) >= 8
    assert "None" not in said["recorded"]["recorded"]
    assert "no model's" in str((ATTEMPTS.manifest or {})["about"])


def test_labels_are_what_they_were_made_to_be(records: list[TrialRecord]) -> None:
    for record in records:
        if record.key.arm == "rewritten":
            assert record.strict, record.key
        if record.key.arm == "mistaken":
            assert plausible(record), record.key
            assert not record.strict, record.key
        assert record.sparql != record.gold


def test_the_rule_sees_no_difference_between_right_and_plausible(
    records: list[TrialRecord],
) -> None:
    found = agreement_with("rule", records)
    assert found.recall == 1.0
    assert found.kappa is not None
    assert 0 < found.kappa < 0.3


def test_the_labels_come_out_again(tmp_path: Path) -> None:
    for arm in ("rewritten", "mistaken"):
        out = RunFolder(tmp_path / arm)
        again = rejudge_run(ATTEMPTS, "execution", out=out, arms=(arm,), limit=6)
        assert (again.judged, again.changed, again.failed) == (6, [], [])


def test_rewritings_and_mistakes_are_what_they_are_called(edits: ModuleType) -> None:
    spelt = next(edits.REWRITINGS["paths spelt out"](QUERY))
    assert "up:sequence [ up:mass ?mass ]" in spelt
    valued = next(edits.REWRITINGS["a constant in VALUES"](QUERY))
    assert "VALUES ?given { taxon:8570 }" in valued
    assert "subClassOf ?given" in valued
    turned = next(edits.REWRITINGS["an inverse path"](QUERY))
    assert "taxon:8570 ^rdfs:subClassOf ?taxon ." in turned
    renamed = next(edits.REWRITINGS["other names of variables"](QUERY))
    assert "?mass" not in renamed
    assert "FILTER(" in renamed
    unfiltered = next(edits.MISTAKES["a filter is missing"](QUERY))
    assert "FILTER" not in unfiltered
    assert unfiltered.rstrip().endswith("}")
    assert "SELECT ?protein ?mass ?taxon WHERE" in next(edits.MISTAKES["a column too many"](QUERY))
    assert "SELECT ?protein WHERE" in next(edits.MISTAKES["a column is missing"](QUERY))
    turned = next(edits.MISTAKES["the other direction"](QUERY))
    assert "taxon:8570 rdfs:subClassOf ?taxon" in turned
    assert "?mass >= 50000" in "".join(edits.MISTAKES["another operator"](QUERY))
    assert "up:reviewed" not in next(edits.MISTAKES["a condition is missing"](QUERY))
    assert next(edits.MISTAKES["cut short or too long"](QUERY)).endswith("LIMIT 5")
    assert list(edits.MISTAKES["counted otherwise"](QUERY)) == []
