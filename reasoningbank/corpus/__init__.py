"""The corpus: domain packs, and their SHACL examples as tasks.

`load_pack` finds a pack and `open_endpoint` serves it; `load_shacl_tasks` reads its examples,
`load_corpus` does so with findings about what is odd, `validate` checks everything that can be
checked; `get_task_stats`, `sample_tasks` and `split_tasks` work on tasks. `SEVERITIES` lists the
codes of the findings.
"""

from reasoningbank.corpus.features import Complexity as Complexity
from reasoningbank.corpus.features import QueryFeatures as QueryFeatures
from reasoningbank.corpus.features import query_features as query_features
from reasoningbank.corpus.features import triple_patterns as triple_patterns
from reasoningbank.corpus.features import without_pattern as without_pattern
from reasoningbank.corpus.pack import SETS as SETS
from reasoningbank.corpus.pack import DocumentSpace as DocumentSpace
from reasoningbank.corpus.pack import ExampleSet as ExampleSet
from reasoningbank.corpus.pack import FederatedEndpoint as FederatedEndpoint
from reasoningbank.corpus.pack import Pack as Pack
from reasoningbank.corpus.pack import endpoint_config as endpoint_config
from reasoningbank.corpus.pack import federated_config as federated_config
from reasoningbank.corpus.pack import known_packs as known_packs
from reasoningbank.corpus.pack import load_pack as load_pack
from reasoningbank.corpus.pack import open_endpoint as open_endpoint
from reasoningbank.corpus.registry import Registry as Registry
from reasoningbank.corpus.registry import RegistryEndpoint as RegistryEndpoint
from reasoningbank.corpus.registry import read_registry as read_registry
from reasoningbank.corpus.shacl import Corpus as Corpus
from reasoningbank.corpus.shacl import complete_prefixes as complete_prefixes
from reasoningbank.corpus.shacl import corpus_prefixes as corpus_prefixes
from reasoningbank.corpus.shacl import load_corpus as load_corpus
from reasoningbank.corpus.shacl import load_shacl_tasks as load_shacl_tasks
from reasoningbank.corpus.splits import LEVELS as LEVELS
from reasoningbank.corpus.splits import Level as Level
from reasoningbank.corpus.splits import Split as Split
from reasoningbank.corpus.splits import SplitName as SplitName
from reasoningbank.corpus.splits import groups_of as groups_of
from reasoningbank.corpus.splits import levels as levels
from reasoningbank.corpus.splits import near_duplicates as near_duplicates
from reasoningbank.corpus.splits import schema_items as schema_items
from reasoningbank.corpus.splits import split_tasks as split_tasks
from reasoningbank.corpus.task import QueryForm as QueryForm
from reasoningbank.corpus.task import Task as Task
from reasoningbank.corpus.task import TaskStats as TaskStats
from reasoningbank.corpus.task import find_task as find_task
from reasoningbank.corpus.task import get_task_stats as get_task_stats
from reasoningbank.corpus.task import sample_tasks as sample_tasks
from reasoningbank.corpus.task import shuffle_key as shuffle_key
from reasoningbank.corpus.templates import Instance as Instance
from reasoningbank.corpus.templates import QuestionTemplate as QuestionTemplate
from reasoningbank.corpus.templates import TemplateSlot as TemplateSlot
from reasoningbank.corpus.templates import instantiate as instantiate
from reasoningbank.corpus.templates import read_templates as read_templates
from reasoningbank.corpus.templates import write_instances as write_instances
from reasoningbank.corpus.validation import SEVERITIES as SEVERITIES
from reasoningbank.corpus.validation import Severity as Severity
from reasoningbank.corpus.validation import finding_row as finding_row
from reasoningbank.corpus.validation import severity_of as severity_of
from reasoningbank.corpus.validation import validate as validate
from reasoningbank.findings import Finding as Finding
from reasoningbank.sparql.tree import TriplePattern as TriplePattern
