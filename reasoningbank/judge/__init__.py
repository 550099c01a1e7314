"""Judges of what an agent submitted: by its query's result, by a model, by a plain rule.

`ExecutionJudge` runs the submitted query and compares its result with the frozen gold; `compare`
is that comparison alone, `compare_files` the same for files. `LMJudge` needs no gold: it is given a
`Case`, the part of an attempt that it may see. `ExecutionMetric` is the execution judge as a metric
of DSPy, and `to_examples` makes tasks its examples. `agreement` compares the verdicts of another
judge with those of the execution judge.

A verdict's `findings` say what differs, each with a code and fields:

==================== ============================ ================================================
code                 fields                       meaning
==================== ============================ ================================================
form-mismatch        gold, predicted              table, graph or boolean: not the form asked for
wrong-boolean        gold                         ASK: the other answer is right
columns-missing      missing, of                  fewer columns than the gold
columns-extra        columns                      columns that were not asked for
rows-missing         missing, of, unit            rows (or triples) of the gold that it lacks
rows-extra           extra, of, unit              rows (or triples) that are wrong or too many
wrong-order          -                            the right rows in the wrong order
blank-nodes-differ   -                            alike, but blank nodes connect rows differently
search-incomplete    -                            not every mapping of columns was tried
result-truncated     -                            the judge's cap cut the result
no-query             -                            no query was submitted
query-error          error and the error's own    the query fails; `error` is the error's code
timed-out            error and the error's own    the query takes too long
gold-missing, gold-error, gold-timed-out,         the task itself is broken (`gold_defect`)
gold-truncated, gold-empty
gold-limit-kept      error                        the gold was computed with its LIMIT
gold-sort-hidden     -                            the gold is sorted by what is in no column
==================== ============================ ================================================
"""

from reasoningbank.judge.agreement import (
    Agreement,
    agreement,
    agreement_with,
    pairs_with,
    rule_verdict,
)
from reasoningbank.judge.answer import Answer, answer_of, read_answer
from reasoningbank.judge.case import Case, case_of
from reasoningbank.judge.compare import Comparison, Window, compare, compare_files, findings_of
from reasoningbank.judge.documents import DocumentChanges
from reasoningbank.judge.evidence import AnswerSample, Evidence, sample_of
from reasoningbank.judge.execution import ExecutionJudge, Judgement, Verdict, VerdictStatus
from reasoningbank.judge.gold import Gold, GoldStore
from reasoningbank.judge.lm_judge import LMJudge, LMVerdict, OwnJudge
from reasoningbank.judge.metric import ExecutionMetric, open_metric, to_examples

__all__ = [
    "Agreement",
    "Answer",
    "AnswerSample",
    "Case",
    "Comparison",
    "DocumentChanges",
    "Evidence",
    "ExecutionJudge",
    "ExecutionMetric",
    "Gold",
    "GoldStore",
    "Judgement",
    "LMJudge",
    "LMVerdict",
    "OwnJudge",
    "Verdict",
    "VerdictStatus",
    "Window",
    "agreement",
    "agreement_with",
    "answer_of",
    "case_of",
    "compare",
    "compare_files",
    "findings_of",
    "open_metric",
    "pairs_with",
    "read_answer",
    "rule_verdict",
    "sample_of",
    "to_examples",
]
