"""Hashes of what agents and judges are told, and of the rules that end their loops."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable
from typing import Any

from reasoningbank import nl2sparql, schema
from reasoningbank.agents import algebra, direct, react, rlm, tool_loop
from reasoningbank.algebra.reference import agent_prompt
from reasoningbank.experiment.fixed_texts import texts_of
from reasoningbank.judge.lm_judge import prompt_hash
from reasoningbank.lm import STUCK_TEMPERATURE
from reasoningbank.nl2sparql import graph
from reasoningbank.sparql import linking

__all__ = ["prompt_hashes"]


def prompt_hashes(agents: Iterable[str]) -> dict[str, str]:
    """Return the hash of all fixed texts that a model reads, by who reads them.

    ``layers`` are the words of the context and of what is shown of an item, ``lessons`` those
    that the rules put lessons into, ``linking`` those behind a question's words, ``outcomes``
    those that a refinement is told of the last query. Of their modules every text counts, and
    nothing else of the code: its hashes are told apart (`reasoningbank.experiment.code_history`).

    Args:
        agents: Names of the agents; others than those that come with the harness have none.

    Examples:
        >>> sorted(prompt_hashes(["direct", "oracle"]))
        ['direct', 'distiller', 'judge', 'layers', 'lessons', 'linking', 'outcomes', 'sampling', \
'stop rules']
    """
    # A run without memory loads none of it.
    from reasoningbank.experiment import sampling
    from reasoningbank.memory import consultation, distillation, layers, packing

    said: dict[str, Any] = {
        "direct": direct.INSTRUCTIONS,
        "rlm": [
            rlm.INSTRUCTIONS,
            rlm.SUB_CALLS,
            tool_loop.TASK,
            rlm.REPEATED,
            rlm.NO_CODE,
            rlm.CUT,
        ],
        "react": [react.INSTRUCTIONS, react.FINISH, tool_loop.TASK, inspect.getsource(react)],
    }
    wanted = set(agents)
    if "rag" in wanted:
        said["rag"] = texts_of(nl2sparql)
    if "graph" in wanted:
        said["graph"] = [texts_of(nl2sparql), texts_of(graph)]
    if "algebra" in wanted:
        said["algebra"] = [texts_of(algebra), agent_prompt(), STUCK_TEMPERATURE]
    told = {name: _hash(said[name]) for name in sorted(wanted) if name in said}
    return {
        **told,
        "distiller": distillation.prompt_hash(),
        "judge": prompt_hash(),
        "layers": _hash([texts_of(room) for room in (layers, packing, packing, consultation)]),
        "lessons": _hash(texts_of(distillation)),
        "linking": _hash(texts_of(linking)),
        "outcomes": _hash([texts_of(room) for room in (sampling, schema)]),
        "sampling": _hash([sampling.REFINE, sampling._ROWS, STUCK_TEMPERATURE]),
        "stop rules": _hash(inspect.getsource(tool_loop)),
    }


def _hash(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
