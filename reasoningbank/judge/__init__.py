"""Judging what an agent submitted: the execution judge, and how other judges agree with it.

`ExecutionJudge` runs the submitted query and compares its result with the frozen gold;
`compare` is that comparison alone, `compare_files` the same for files. `agreement` sets the
verdicts of another judge against its.
"""

from reasoningbank.judge.agreement import Agreement, agreement
from reasoningbank.judge.answer import Answer, answer_of
from reasoningbank.judge.compare import Comparison, compare
from reasoningbank.judge.execution import ExecutionJudge, Verdict, VerdictStatus
from reasoningbank.judge.gold import Gold, GoldStore
from reasoningbank.judge.results_file import compare_files, read_answer
from reasoningbank.judge.window import Window

__all__ = [
    "Agreement",
    "Answer",
    "Comparison",
    "ExecutionJudge",
    "Gold",
    "GoldStore",
    "Verdict",
    "VerdictStatus",
    "Window",
    "agreement",
    "answer_of",
    "compare",
    "compare_files",
    "read_answer",
]
