"""Turns as a model writes them that knows what it does, made from the golds of our own examples.

They are written, not recorded from a model: a look at the endpoint's classes, the query with a
peek at its rows, a look at more of them, the submission. They call tools that agents have by
default.
"""

from __future__ import annotations

from collections.abc import Sequence

from reasoningbank.corpus import Task, load_shacl_tasks

__all__ = ["PACK", "TURNS", "some_tasks", "turns_of"]

PACK = "uniprot"
#: Turns, and so calls of the model, that a trial takes.
TURNS = 4

_REPLY = """\
[[ ## reasoning ## ]]
{why}

[[ ## code ## ]]
```python
{code}
```

[[ ## completed ## ]]"""


def some_tasks(number: int) -> list[Task]:
    """Return so many tasks that one endpoint answers with rows, spread over the pack."""
    tasks = [t for t in load_shacl_tasks(PACK) if t.form == "SELECT" and not t.federates_with]
    return tasks[:: max(1, len(tasks) // number)][:number]


def turns_of(tasks: Sequence[Task]) -> dict[str, list[str]]:
    """Return, by question, what the model replies in each turn."""
    return {task.query: [_reply(*turn) for turn in _turns(task)] for task in tasks}


def _turns(task: Task) -> list[tuple[str, str]]:
    # Not the very text of the gold, which would be parsed already.
    query = repr(f"{task.expected_sparql.strip()}\n# as I wrote it")
    return [
        (
            "I look at the endpoint's classes first.",
            "print(sparql_classes(10))",
        ),
        (
            "I run the query and look at its rows.",
            f"query = {query}\nref = sparql_query(query)\nprint(ref)\nprint(sparql_peek(ref, 5))",
        ),
        ("I look at more of the rows.", "print(sparql_slice(ref, 0, 20))"),
        ("The rows answer the question.", "SUBMIT(query)"),
    ]


def _reply(why: str, code: str) -> str:
    return _REPLY.format(why=why, code=code)
