"""The corpus: domain packs, and their SHACL examples as tasks.

`load_pack` finds a pack and `open_endpoint` serves it; `load_shacl_tasks` reads its examples,
`load_corpus` does so with findings about what is odd, `validate` checks everything that can be
checked; `get_task_stats`, `sample_tasks` and `split_tasks` work on tasks.
"""

from reasoningbank.corpus.features import Complexity, QueryFeatures, query_features
from reasoningbank.corpus.pack import (
    SETS,
    DocumentSpace,
    FederatedEndpoint,
    Pack,
    endpoint_config,
    known_packs,
    load_pack,
    open_endpoint,
)
from reasoningbank.corpus.shacl import Corpus, corpus_prefixes, load_corpus, load_shacl_tasks
from reasoningbank.corpus.splits import (
    LEVELS,
    Level,
    Split,
    SplitName,
    groups_of,
    levels,
    near_duplicates,
    split_tasks,
)
from reasoningbank.corpus.task import (
    QueryForm,
    Task,
    TaskStats,
    find_task,
    get_task_stats,
    sample_tasks,
)
from reasoningbank.corpus.templates import Instance, instantiate, write_instances
from reasoningbank.corpus.validation import Severity, finding_row, severity_of, validate
from reasoningbank.findings import Finding

__all__ = [
    "LEVELS",
    "SETS",
    "Complexity",
    "Corpus",
    "DocumentSpace",
    "FederatedEndpoint",
    "Finding",
    "Instance",
    "Level",
    "Pack",
    "QueryFeatures",
    "QueryForm",
    "Severity",
    "Split",
    "SplitName",
    "Task",
    "TaskStats",
    "corpus_prefixes",
    "endpoint_config",
    "find_task",
    "finding_row",
    "get_task_stats",
    "groups_of",
    "instantiate",
    "known_packs",
    "levels",
    "load_corpus",
    "load_pack",
    "load_shacl_tasks",
    "near_duplicates",
    "open_endpoint",
    "query_features",
    "sample_tasks",
    "severity_of",
    "split_tasks",
    "validate",
    "write_instances",
]
