"""From a training task's gold: the exemplar, marked as what it is."""

from __future__ import annotations

from reasoningbank.corpus import Task
from reasoningbank.corpus.splits import SplitName
from reasoningbank.errors import QueryError, UsageError
from reasoningbank.memory.distillation.experience import Draft, Experience, Rejected
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.shortened import shortened
from reasoningbank.memory.distillation.success import terms_in, title_of

__all__ = ["exemplar_draft"]


def exemplar_draft(task: Task, split: SplitName | None, facts: Facts) -> Draft | Rejected:
    """Return a training task's question and gold query as an example.

    Args:
        task: The task, with its gold.
        split: The part of the corpus that it is in.
        facts: What is known of the endpoint's names.

    Raises:
        UsageError: If it is not of the training split, or is blind.
    """
    if split != "train":
        raise UsageError(
            f"exemplars are made of the training split alone; this task is of {split or 'none'}",
            where=task.id,
            hint="choose tasks of split 'train'",
        )
    if not task.expected_sparql.strip():
        raise UsageError("the task has no gold query", where=task.id)
    try:
        query = shortened(task.expected_sparql, facts.namespaces)
    except QueryError as error:
        return Rejected(task.query[:110], error.what, "gold", task.expected_sparql)
    terms = terms_in(query, facts)
    return Draft(
        title=title_of(query),
        description="",
        content="",
        src="gold",
        experience=Experience(
            task=task.id,
            group=task.group,
            corpus=task.corpus,
            question=task.query,
            sparql=task.expected_sparql,
            success=True,
            judge="",
            ran=True,
        ),
        pattern=query,
        tags=(*terms, *task.features),
        question=task.query,
        author="gold",
    )
