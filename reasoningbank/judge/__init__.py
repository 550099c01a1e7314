"""Judges of what an agent submitted: by its query's result, by a model, by a plain rule.

`ExecutionJudge` runs the submitted query and compares its result with the frozen gold; `compare`
is that comparison alone, `compare_files` the same for files. `LMJudge` needs no gold: it is given a
`Case`, the part of an attempt that it may see. `ExecutionMetric` is the execution judge as a metric
of DSPy, and `to_examples` makes tasks its examples. `agreement` compares the verdicts of another
judge with those of the execution judge.

docs/judge.md lists the codes of a verdict's `findings`.
"""

from reasoningbank.judge.agreement import Agreement, agreement, agreement_with, rule_verdict
from reasoningbank.judge.answer import Answer, answer_of, read_answer
from reasoningbank.judge.case import Case, case_of
from reasoningbank.judge.compare import Comparison, Window, compare, compare_files, findings_of
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.evidence import AnswerSample, Evidence, sample_of
from reasoningbank.judge.execution import RAN, ExecutionJudge, Judgement, Verdict, is_judged
from reasoningbank.judge.gold import Gold, GoldStore
from reasoningbank.judge.lm_judge import LMJudge, LMVerdict, OwnJudge
from reasoningbank.judge.metric import ExecutionMetric, feedback, open_metric, to_examples

__all__ = [
    "RAN", "Agreement", "Answer", "AnswerSample", "Case", "Comparison", "DocumentChanges",
    "Evidence", "ExecutionJudge", "ExecutionMetric", "Gold", "GoldStore", "Judgement", "LMJudge",
    "LMVerdict", "OwnJudge", "Verdict", "Window", "agreement", "agreement_with", "answer_of",
    "case_of", "compare", "compare_files", "feedback", "findings_of", "is_judged", "open_metric",
    "read_answer", "rule_verdict", "sample_of", "to_examples",
]  # fmt: skip
