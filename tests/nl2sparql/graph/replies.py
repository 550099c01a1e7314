"""Replies of the scripted model, step by step, and what its prompts held."""

from __future__ import annotations

import json

from reasoningbank.agents import Attempt
from reasoningbank.trajectory import Trajectory

QUESTION = "Which plants near the pine are trees, and how tall are they?"
QUERY = "SELECT ?plant ?metres WHERE { ?plant a t:Tree ; t:height ?metres }"
EMPTY = "SELECT ?plant WHERE { ?plant a t:Moss ; t:near ?other }"
BROKEN = "SELECT ?plant WHERE { ?plant a t:Tree"


def analysis(
    *patterns: str, complexity: str = "simple", dialects: tuple[str, ...] = (), unclear: str = ""
) -> dict[str, str]:
    return {
        "patterns": json.dumps(patterns),
        "complexity": complexity,
        "dialects": json.dumps(dialects),
        "unclear": unclear or "none",
    }


def plan(*steps: str) -> dict[str, str]:
    return {"steps": json.dumps(steps)}


def written(sparql: str) -> dict[str, str]:
    return {"sparql": sparql}


def verified(*issues: str) -> dict[str, str]:
    return {"valid": str(not issues), "issues": json.dumps(issues)}


def steps(trajectory: Trajectory) -> list[str]:
    return [str(event.data["step"]) for event in trajectory.of("step")]


def prompts(attempt: Attempt) -> list[str]:
    resolve = attempt.trajectory.resolve
    calls = attempt.trajectory.of("lm_call")
    return [json.dumps(resolve(call.data)["messages"], ensure_ascii=False) for call in calls]
