"""The writers of queries: one for each pattern family, and one for all else.

Each is a subgraph: it picks the rules and examples of its family, then writes.
"""

from __future__ import annotations

from typing import Any

from reasoningbank.agents.graph.nodes import Node, asked
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.state import NL2SPARQLState, Written
from reasoningbank.errors import UsageError
from reasoningbank.lm import stuck_temperature
from reasoningbank.nl2sparql import Example, PatternSet, build_constraints, same_query, write_query

__all__ = ["GENERAL", "build_writers", "families_of", "family_for"]

GENERAL = "general"
#: Characters of the explored properties that a prompt tells, and likewise of the classes.
MOST_NAMES = 1_000


def families_of(patterns: PatternSet) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each family, in the order of the pack's file.

    Raises:
        UsageError: A family's name cannot be a node's.

    Examples:
        >>> from reasoningbank.nl2sparql import Pattern
        >>> families_of(PatternSet((Pattern("A", family="x"), Pattern("B"))))
        {'x': ('A',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for one in patterns.patterns:
        if one.family:
            # LangGraph joins the names of nested nodes by these.
            if one.family == GENERAL or set(one.family) & set(":|"):
                raise UsageError(
                    f"the family of {one.name} cannot be called {one.family!r}",
                    where="hints/patterns.toml",
                    hint="use letters, and not the word general",
                )
            found[one.family] = (*found.get(one.family, ()), one.name)
    return found


def family_for(state: NL2SPARQLState, families: dict[str, tuple[str, ...]]) -> str:
    """Return the family that most of a question's needs are of; ``general`` where none is.

    Examples:
        >>> state = NL2SPARQLState(pattern_scores={"COUNT": 0.8, "EMOTION": 0.9, "POLARITY": 0.8})
        >>> family_for(state, {"aggregates": ("COUNT",), "annotations": ("EMOTION", "POLARITY")})
        'annotations'
        >>> family_for(NL2SPARQLState(pattern_scores={}), {})
        'general'
    """
    scores = state["pattern_scores"]
    sums = {name: sum(scores.get(one, 0.0) for one in of) for name, of in families.items()}
    best = max(sums, key=lambda name: sums[name], default="")
    return best if best and sums[best] > 0 else GENERAL


def build_writers(parts: Parts) -> Any:
    """Return the compiled subgraph that routes to the writers."""
    from langgraph.graph import END, START, StateGraph

    families = families_of(parts.patterns) if parts.settings.specialists else {}
    writers = {GENERAL: (), **families}
    graph = StateGraph(NL2SPARQLState, output_schema=Written)
    for family, names in writers.items():
        writer = StateGraph(NL2SPARQLState, output_schema=Written)
        writer.add_node("focus", _focus(parts, family, names))  # type: ignore[call-overload]
        writer.add_node("write", _write(parts, family, names))  # type: ignore[call-overload]
        writer.add_edge(START, "focus")
        writer.add_edge("focus", "write")
        writer.add_edge("write", END)
        graph.add_node(family, writer.compile())
        graph.add_edge(family, END)
    graph.add_conditional_edges(START, lambda state: family_for(state, families), list(writers))
    return graph.compile()


def _focus(parts: Parts, family: str, names: tuple[str, ...]) -> Node:
    def focus(state: NL2SPARQLState) -> dict[str, Any]:
        """Pick the family's rules, all of them, and put its examples first."""
        needs = [*names, *(n for n in state["detected_patterns"] if n not in names)]
        examples = sorted(
            state["retrieved_examples"], key=lambda one: not set(names) & set(one["patterns"])
        )
        return {
            "family": "" if family == GENERAL else family,
            "relevant_constraints": build_constraints(
                needs, parts.pack, most_chars=parts.settings.most_chars
            ),
            "retrieved_examples": examples,
        }

    return focus


def _write(parts: Parts, family: str, names: tuple[str, ...]) -> Node:
    kind = ""
    if family != GENERAL:
        titles = [parts.patterns.named(name).title or name for name in names]
        kind = f"You write queries of one kind: {'; '.join(titles)}."

    def write(state: NL2SPARQLState) -> dict[str, Any]:
        """Write a query, knowing the plan, the schema and what failed before."""
        parts.turn()
        examples = _examples(state, parts.settings.shown)
        rules = (state["relevant_constraints"], kind, state["advice"])
        sparql = write_query(
            asked(state),
            "\n\n".join(filter(None, rules)),
            examples,
            _earlier(state),
            parts.lm,
            notes="\n\n".join(filter(None, (_plan(state), _names(state)))),
            temperature=stuck_temperature(parts.lm) if state["repeated"] else None,
        )
        used = [one.id for one in examples]
        tried = [one["sparql"] for one in state["refinement_history"]]
        found = {
            "generated_sparql": sparql or "",
            "generation_attempts": state["generation_attempts"] + 1,
            "repeated": any(same_query(sparql, one) for one in tried) if sparql else False,
            "used_ids": used,
            "shown_ids": list(dict.fromkeys((*state["shown_ids"], *used))),
        }
        parts.record("write", {"family": family, **found})
        return found

    return write


def _examples(state: NL2SPARQLState, most: int) -> list[Example]:
    shown = state["retrieved_examples"][:most]
    return [Example(one["id"], one["nl"], one["sparql"]) for one in shown]


def _plan(state: NL2SPARQLState) -> str:
    steps = state["sub_tasks"]
    if len(steps) < 2:
        return ""
    return "\n".join(["Steps:", *(f"{n}. {step}" for n, step in enumerate(steps, 1))])


def _earlier(state: NL2SPARQLState) -> list[tuple[str, str]]:
    """Return the queries that failed, the one that was explored with what the data told of it."""
    told: dict[str, str] = {}
    explored = ""
    for one in state["refinement_history"]:
        query = one["sparql"]
        if not query:
            continue
        if one.get("step") == "explore":
            explored = query
        # A query that came twice is told once: seen twice it would come a third time.
        told.pop(query, None)
        # What the data say comes first: of a long error the end is cut off.
        told[query] = "\n".join((*(state["findings"] if query == explored else ()), one["error"]))
    return list(told.items())


def _names(state: NL2SPARQLState) -> str:
    """Return the names that exploring found in use, as many whole ones as there is room for."""
    lines = []
    for title, names in (
        ("Properties", state["discovered_properties"]),
        ("Classes", state["discovered_classes"]),
    ):
        room, kept = MOST_NAMES, []
        for name in names:
            room -= len(name) + 2
            if room < 0:
                break
            kept.append(name)
        if kept:
            lines.append(f"{title} in use: {', '.join(kept)}")
    return "\n".join(lines)
