"""The corpus: SHACL examples of a domain pack, read as tasks.

`load_pack` finds a pack, `load_shacl_tasks` reads its examples, `load_corpus` does so with
findings about what was odd, `validate` checks all that can be checked; `get_task_stats`,
`sample_tasks` and `split_tasks` work on tasks.
"""

from reasoningbank.corpus.embedded import open_endpoint
from reasoningbank.corpus.features import QueryFeatures, query_features
from reasoningbank.corpus.findings import Finding, Severity
from reasoningbank.corpus.lookup import find_task
from reasoningbank.corpus.pack import (
    DocumentSpace,
    FederatedEndpoint,
    Pack,
    endpoint_config,
    federated_config,
    known_packs,
    load_pack,
)
from reasoningbank.corpus.patterns import TriplePattern, triple_patterns, without_pattern
from reasoningbank.corpus.prefixes import corpus_prefixes
from reasoningbank.corpus.sampling import sample_tasks
from reasoningbank.corpus.shacl import Corpus, load_corpus, load_shacl_tasks
from reasoningbank.corpus.splits import Split, groups_of, split_tasks
from reasoningbank.corpus.stats import TaskStats, get_task_stats
from reasoningbank.corpus.task import Complexity, QueryForm, Task
from reasoningbank.corpus.validation import validate

__all__ = [
    "Complexity",
    "Corpus",
    "DocumentSpace",
    "FederatedEndpoint",
    "Finding",
    "Pack",
    "QueryFeatures",
    "QueryForm",
    "Severity",
    "Split",
    "Task",
    "TaskStats",
    "TriplePattern",
    "corpus_prefixes",
    "endpoint_config",
    "federated_config",
    "find_task",
    "get_task_stats",
    "groups_of",
    "known_packs",
    "load_corpus",
    "load_pack",
    "load_shacl_tasks",
    "open_endpoint",
    "query_features",
    "sample_tasks",
    "split_tasks",
    "triple_patterns",
    "validate",
    "without_pattern",
]
