"""A pack of questions about trees, and an agent that can be taught one thing."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import trees

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.corpus import Task
from reasoningbank.trajectory import Usage

__all__ = ["STREAM", "TEST", "Pupil", "enrol", "experiment_data", "write_orchard"]

TASKS = 14
#: Tasks that are learned from, of the training split, and those held out: the test split.
STREAM = ["t000", "t002", "t003", "t008", "t009", "t011"]
TEST = ["t001", "t006", "t007", "t012"]

_EXAMPLE = """\
ex:t{0:03} a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
  rdfs:comment "Which plants are higher than {0} m?"@en ;
  sh:select '''SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {0}) }}''' ;
  rb:group "g{0:02}" ;
  schema:target <https://trees.example/sparql/> .
"""


def write_orchard(folder: Path) -> Path:
    """Write a pack of fourteen questions, each a group by itself."""
    (folder / "examples").mkdir(parents=True)
    (folder / "pack.toml").write_text(trees.PACK, encoding="utf-8")
    (folder / "trees.ttl").write_text(trees.TREES, encoding="utf-8")
    head = trees.EXAMPLES + "@prefix rb: <urn:reasoningbank:ontology#> .\n"
    examples = "".join(_EXAMPLE.format(number) for number in range(TASKS))
    (folder / "examples" / "tasks.ttl").write_text(head + examples, encoding="utf-8")
    return folder


def experiment_data(pack: Path, url: str, *arms: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Return a learning experiment on the pack; one arm that learns unless others are given."""
    learned = {"name": "learned", "agent": "pupil", "memory": "learned"}
    return {
        "name": "orchard",
        "pack": str(pack),
        "mode": "learn",
        "endpoint": {"url": url, "min_interval_s": 0.0},
        "tasks": {"ids": TEST},
        "learning": {"tasks": {"ids": STREAM}},
        "retries": {"infrastructure": 1, "backoff_s": 0.01, "write_s": 0},
        **rest,
        "arms": list(arms) or [learned],
    }


class Pupil:
    """Knows the right property in one case of three, and elsewhere if its memory names it."""

    uses_lm = False
    sees_gold = False

    def solve(self, task: Task, episode: Episode) -> Attempt:
        found = re.search(r"higher than (\d+)", task.query)
        assert found is not None
        number = int(found[1])
        shown = "t:height" in episode.context or "e/height" in episode.context
        name = "height" if number % 3 == 0 or shown else "size"
        query = f"SELECT ?plant WHERE {{ ?plant t:{name} ?h . FILTER(?h > {number}) }}"
        episode.recorder.add("submit", {"sparql": query, "status": "submitted"})
        usage = Usage(lm_calls=1, prompt_tokens=100 + len(episode.context), completion_tokens=20)
        return Attempt(query, "", "submitted", usage, episode.recorder.trajectory())


def enrol() -> None:
    """Let experiments name the pupil, and let all that happens happen at one time.

    A record says when it began, and what is learned from it says so too.
    """
    AGENTS["pupil"] = Pupil
    from reasoningbank.experiment import trial

    class Noon:
        fromisoformat = datetime.fromisoformat

        @staticmethod
        def now(zone: Any = UTC) -> datetime:
            return datetime(2026, 1, 1, 12, tzinfo=zone)

    trial.datetime = Noon  # type: ignore[misc,assignment]
