"""Where each public name is, for type checkers, and for `__init__.py`, which loads it."""

from reasoningbank.agents import Budget as Budget
from reasoningbank.agents import make_agent as make_agent
from reasoningbank.agents.sandbox.interpreter import (
    LocalToolInterpreter as LocalToolInterpreter,
)
from reasoningbank.agents.sandbox.interpreter import Sandbox as Sandbox
from reasoningbank.algebra import read_program as read_program
from reasoningbank.algebra import run_program as run_program
from reasoningbank.analysis import compare_runs as compare_runs
from reasoningbank.analysis import load as load
from reasoningbank.analysis import summarise_run as summarise_run
from reasoningbank.analysis.report import write_report as write_report
from reasoningbank.corpus import Task as Task
from reasoningbank.corpus import get_task_stats as get_task_stats
from reasoningbank.corpus import load_pack as load_pack
from reasoningbank.corpus import load_shacl_tasks as load_shacl_tasks
from reasoningbank.corpus import open_endpoint as open_endpoint
from reasoningbank.corpus import sample_tasks as sample_tasks
from reasoningbank.corpus import split_tasks as split_tasks
from reasoningbank.errors import ReasoningBankError as ReasoningBankError
from reasoningbank.experiment import Arm as Arm
from reasoningbank.experiment import Experiment as Experiment
from reasoningbank.experiment import RunFolder as RunFolder
from reasoningbank.experiment import load_experiment as load_experiment
from reasoningbank.experiment import run_experiment as run_experiment
from reasoningbank.experiment.ask import ask as ask
from reasoningbank.experiment.ask import open_program as open_program
from reasoningbank.findings import Finding as Finding
from reasoningbank.judge import ExecutionJudge as ExecutionJudge
from reasoningbank.judge import LMJudge as LMJudge
from reasoningbank.judge import open_metric as open_metric
from reasoningbank.judge import to_examples as to_examples
from reasoningbank.lm import open_lm as open_lm
from reasoningbank.memory import MemoryBank as MemoryBank
from reasoningbank.memory import MemoryItem as MemoryItem
from reasoningbank.nl2sparql import NL2SPARQL as NL2SPARQL
from reasoningbank.refs import Ref as Ref
from reasoningbank.sparql import EndpointConfig as EndpointConfig
from reasoningbank.sparql import SPARQLClient as SPARQLClient
from reasoningbank.tools import EndpointTools as EndpointTools
from reasoningbank.tools import SPARQLTools as SPARQLTools
from reasoningbank.tools.adapting import text_tools as text_tools
from reasoningbank.version import __version__ as __version__
