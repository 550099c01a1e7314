"""What is told to agents is hashed: a changed text shows, and a changed comment does not."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from reasoningbank.agents import AGENTS, asks_model
from reasoningbank.experiment.fixed_texts import fixed_texts
from reasoningbank.experiment.prompt_hashes import prompt_hashes

SOURCE = inspect.getsource


def changed(monkeypatch: pytest.MonkeyPatch, module: str, old: str, new: str) -> set[str]:
    """Return whose hash differs once a module is written otherwise."""
    before = prompt_hashes([])
    seen = []

    def written(one: ModuleType) -> str:
        source = SOURCE(one)
        if not getattr(one, "__name__", "").endswith(module):
            return source
        assert old in source
        seen.append(one)
        return source.replace(old, new)

    monkeypatch.setattr(inspect, "getsource", written)
    after = prompt_hashes([])
    assert seen
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("module", "old", "whose"),
    [
        ("memory.packing", '"Pitfall"', {"layers"}),
        ("memory.packing", '"Pattern:"', {"layers"}),
        ("layers.procedures", '"From earlier tasks:"', {"layers"}),
        ("layers.schema_card", '"In SERVICE <', {"layers"}),
        ("memory.consultation", '"when"', {"layers"}),
        ("sparql.linking", "({mention.name})", {"linking"}),
        ("experiment.sampling", "It runs and returns no rows.", {"outcomes"}),
        ("diagnosis.unknown", "write it in place of ", {"outcomes"}),
        ("distillation.failure", "You already ran this code", {"lessons"}),
    ],
)
def test_a_changed_text_shows(
    monkeypatch: pytest.MonkeyPatch, module: str, old: str, whose: set[str]
) -> None:
    new = old[:-1] + "x" + old[-1]
    assert changed(monkeypatch, module, old, new) == whose


def test_every_agent_that_asks_a_model_has_a_hash() -> None:
    told = prompt_hashes(AGENTS)
    assert {name for name in AGENTS if asks_model(name)} <= told.keys()
    assert "oracle" not in told
    assert len({told[name] for name in AGENTS if asks_model(name)}) == len(AGENTS) - 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Items as text', '"""Items in words'),
        ('"FAMILIES", ', ""),
        ("lines.append(", "lines.append( # kind and title\n"),
        ("MOST_SKIPPED = 5", "MOST_SKIPPED = 6"),
    ],
)
def test_other_code_does_not(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    assert changed(monkeypatch, "memory.packing", old, new) == set()


def test_texts_are_those_that_run() -> None:
    source = '''
"""A module."""
__all__ = ["One"]
class One:
    """A class."""
    said: str = "a"  # "b"
    def two(self, n):
        """A function."""
        return f"c {n} d" + "e"
"""No docstring, where it stands."""
'''
    assert set(fixed_texts(source)) == {"No docstring, where it stands.", "a", "c ", " d", "e"}
