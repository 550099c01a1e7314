"""Judging what an agent submitted: by what its query returns, by a model, by a plain rule.

`ExecutionJudge` runs the submitted query and compares its result with the frozen gold;
`compare` is that comparison alone, `compare_files` the same for files. `LMJudge` is for where
there is no gold: it is handed a `Case`, what may be seen of an attempt. `agreement` sets the
verdicts of another judge against those of the execution judge.
"""

from reasoningbank.judge.agreement import Agreement, agreement, agreement_with, pairs_with
from reasoningbank.judge.answer import Answer, answer_of
from reasoningbank.judge.case import Case, case_of
from reasoningbank.judge.compare import Comparison, compare
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.evidence import Evidence
from reasoningbank.judge.execution import ExecutionJudge, Judgement, Verdict, VerdictStatus
from reasoningbank.judge.gold import Gold, GoldStore
from reasoningbank.judge.known_names import KnownName, KnownNames
from reasoningbank.judge.lm_judge import LMJudge, LMVerdict
from reasoningbank.judge.results_file import compare_files, read_answer
from reasoningbank.judge.rule import rule_verdict
from reasoningbank.judge.sample import Sample, sample_of
from reasoningbank.judge.window import Window

__all__ = [
    "Agreement",
    "Answer",
    "Case",
    "Comparison",
    "DocumentChanges",
    "Evidence",
    "ExecutionJudge",
    "Gold",
    "GoldStore",
    "Judgement",
    "KnownName",
    "KnownNames",
    "LMJudge",
    "LMVerdict",
    "Sample",
    "Verdict",
    "VerdictStatus",
    "Window",
    "agreement",
    "agreement_with",
    "answer_of",
    "case_of",
    "compare",
    "compare_files",
    "pairs_with",
    "read_answer",
    "rule_verdict",
    "sample_of",
]
