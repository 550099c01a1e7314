"""Result files, and agreement between judges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.judge import (
    agreement,
    agreement_with,
    compare_files,
    read_answer,
    rule_verdict,
)
from reasoningbank.judge.agreement import Agreement

SRJ = """{"head": {"vars": ["x", "n"]}, "results": {"bindings": [
  {"x": {"type": "uri", "value": "http://e/a"},
   "n": {"type": "typed-literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#int"}},
  {"x": {"type": "bnode", "value": "b0"}}]}}"""
SRX = """<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#">
<head><variable name="n"/><variable name="y"/></head><results>
<result><binding name="y"><bnode>q</bnode></binding></result>
<result><binding name="n"><literal datatype="http://www.w3.org/2001/XMLSchema#integer">1</literal>
</binding><binding name="y"><uri>http://e/a</uri></binding></result></results></sparql>"""
TSV = "?x\t?n\n<http://e/a>\t1\n_:z\t\n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_the_same_results_in_three_formats(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "a.srj", SRJ),
        written(tmp_path, "b.srx", SRX),
        written(tmp_path, "c.tsv", TSV),
    ]
    for one in files:
        for other in files:
            assert compare_files(one, other).strict
    other = written(tmp_path, "d.tsv", "?x\t?n\t?m\n<http://e/a>\t1\t5\n_:z\t\t6\n")
    assert not compare_files(files[0], other).match
    assert compare_files(files[0], other, lenient=True).match


def test_order_and_repetition_are_options(tmp_path: Path) -> None:
    one = written(tmp_path, "a.tsv", "?n\n1\n1\n2\n")
    other = written(tmp_path, "b.tsv", "?n\n2\n1\n")
    assert compare_files(one, other).match
    assert not compare_files(one, other, bag=True).match
    assert not compare_files(one, other, ordered=True).match


def test_booleans_and_graphs(tmp_path: Path) -> None:
    yes = written(tmp_path, "a.srj", '{"head": {}, "boolean": true}')
    also = written(
        tmp_path,
        "b.srx",
        '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/><boolean>true</boolean></sparql>',
    )
    assert compare_files(yes, also).strict
    turtle = written(tmp_path, "g.ttl", "<http://e/a> <http://e/p> [ <http://e/q> 1 , 01 ] .")
    lines = written(
        tmp_path,
        "g.nt",
        "<http://e/a> <http://e/p> _:k .\n"
        '_:k <http://e/q> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    )
    assert compare_files(turtle, lines).strict
    assert read_answer(lines).n_rows == 2


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.srj", "{", "usage"),
        ("a.srx", "<html><body>down</body></html>", "usage"),
        ("a.tsv", "?x\nnot a term\n", "usage"),
        ("a.ttl", "<a> <b>", "usage"),
        ("a.nt", "<http://e/a> <http://e/p> .", "usage"),
        ("a.csv", "x\n1\n", "unknown-file-kind"),
        ("a.docx", "", "unknown-file-kind"),
        ("a", "", "unknown-file-kind"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, name: str, text: str, code: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(UsageError) as caught:
        read_answer(path)
    assert (caught.value.code, caught.value.where) == (code, str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_answer(tmp_path / "none.srj")
    (tmp_path / "folder.srj").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        read_answer(tmp_path / "folder.srj")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"?x\n\xff\xfe\n")
    with pytest.raises(UsageError):
        read_answer(path)


def pairs(both: int, only_reference: int, only_judge: int, neither: int) -> list[tuple[bool, bool]]:
    return (
        [(True, True)] * both
        + [(True, False)] * only_reference
        + [(False, True)] * only_judge
        + [(False, False)] * neither
    )


@pytest.mark.parametrize(
    ("cells", "kappa"),
    [
        # The worked examples of the literature on kappa (grant readers; same accuracy of 0.6,
        # different kappas).
        ((20, 5, 10, 15), 0.4),
        ((45, 15, 25, 15), 0.1304),
        ((25, 35, 5, 35), 0.2593),
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
    ],
)
def test_kappa_as_published(cells: tuple[int, int, int, int], kappa: float) -> None:
    assert agreement(pairs(*cells)).kappa == pytest.approx(kappa, abs=5e-5)


def test_kappa_by_its_definition() -> None:
    found = agreement(pairs(31, 4, 9, 17))
    n = 61
    observed = (31 + 17) / n
    by_chance = (31 + 4) / n * (31 + 9) / n + (9 + 17) / n * (4 + 17) / n
    assert found.kappa == pytest.approx((observed - by_chance) / (1 - by_chance))
    assert found == Agreement(
        true_positives=31, false_positives=9, false_negatives=4, true_negatives=17
    )
    assert found.precision == pytest.approx(31 / 40)
    assert found.recall == pytest.approx(31 / 35)
    assert found.accuracy == pytest.approx(48 / 61)


def test_what_is_not_defined_is_none() -> None:
    nothing = agreement([])
    assert (nothing.kappa, nothing.precision, nothing.recall, nothing.accuracy) == (None,) * 4
    always = agreement(pairs(8, 0, 0, 0))
    assert always.kappa is None
    assert always.accuracy == 1.0


@dataclass(frozen=True)
class Record:
    verdict: Mapping[str, Any] | None
    judgements: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def judged(
    strict: bool, said: bool, status: str = "judged", lenient: bool = False, rows: int = 1
) -> Record:
    verdict = {"strict": strict, "lenient": lenient, "status": status, "n_predicted": rows}
    return Record(verdict, {"lm:x": {"success": said, "status": "judged"}})


def test_pairs_come_from_records() -> None:
    records = [
        judged(True, True, lenient=True),
        judged(False, True, lenient=True),
        judged(False, False, status="query_error", rows=0),
        judged(False, False, rows=0),
        judged(False, True, status="gold_defect"),
        Record(None, {"lm:x": {"success": True}}),
        Record({"strict": True, "status": "judged", "n_predicted": 2}),
        Record(
            {"strict": False, "status": "judged", "n_predicted": 2},
            {"lm:x": {"success": None, "status": "unparsed"}},
        ),
    ]
    assert agreement_with("lm:x", records) == Agreement(1, 1, 0, 2)
    assert agreement_with("lm:x", records, metric="lenient").precision == 1.0
    # The rule needs no judgement in the record, and judges all that was run.
    assert agreement_with("rule", records) == Agreement(2, 2, 0, 2)
    assert agreement_with("lm:y", records).n == 0


def test_the_rule_says_no_more_than_that_it_ran_and_has_rows() -> None:
    plausible = {"status": "judged", "n_predicted": 1, "strict": False}
    said = rule_verdict(plausible)
    assert said is not None
    assert (said["success"], said["reason"]) == (True, "it ran and has 1 row")
    for status, rows in (("judged", 0), ("query_timeout", 0), ("no_query", 0)):
        verdict = rule_verdict({"status": status, "n_predicted": rows})
        assert verdict is not None
        assert not verdict["success"]
    assert rule_verdict({"status": "gold_defect"}) is None


def test_agreement_is_plain_data() -> None:
    data = agreement(pairs(20, 5, 10, 15)).to_json()
    assert (data["n"], data["false_positives"], data["false_negatives"]) == (50, 10, 5)
    assert data["kappa"] == pytest.approx(0.4)
