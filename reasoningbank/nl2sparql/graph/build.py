"""The compiled graph, its writers, and its picture.

``analyze → plan → retrieve → generate → execute → verify``, then ``output``, ``refine`` (back to
``retrieve``) or ``explore`` (back to ``generate``). With a human, ``clarify`` follows ``analyze``.
``generate`` is a subgraph with one writer for each pattern family and a general one; a writer picks
the rules and examples of its family, then writes. LangGraph is imported when a graph is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import SetupError, UsageError, need_package
from reasoningbank.lm import stuck_temperature
from reasoningbank.nl2sparql.constraints import build_constraints
from reasoningbank.nl2sparql.examples import PackExample
from reasoningbank.nl2sparql.graph.nodes import Node, Nodes, Parts, asked
from reasoningbank.nl2sparql.graph.state import GraphSettings, NL2SPARQLState, WriterOutput
from reasoningbank.nl2sparql.patterns import PatternSet
from reasoningbank.nl2sparql.pipeline import same_query, write_query
from reasoningbank.sparql import EndpointConfig

GENERAL = "general"
#: Characters of the explored properties in a prompt, and of the classes.
MOST_NAMES = 1_000
#: Problems after which the schema is explored.
_EXPLORED = frozenset(("unknown-property", "unknown-class", "unknown-graph", "empty"))
#: The endpoint of a picture, which is never queried.
_NOWHERE = EndpointConfig("http://127.0.0.1:9/sparql", "nowhere")


def build_graph(parts: Parts, checkpointer: Any = None) -> Any:
    """Return the compiled graph."""
    need_package("langgraph", "graph")
    from langgraph.graph import END, START, StateGraph

    nodes, settings = Nodes(parts), parts.settings
    graph = StateGraph(NL2SPARQLState)

    def add(name: str, node: Node) -> None:
        def run(state: NL2SPARQLState) -> dict[str, Any]:
            found = node(state)
            parts.record(name, found)
            return found

        graph.add_node(name, run)

    for name in ("analyze", "plan", "retrieve", "execute", "verify", "refine", "output"):
        add(name, getattr(nodes, name))
    graph.add_node("generate", _writers(parts))
    after = ["output", "refine"]
    if settings.explore:
        add("explore", nodes.explore)
        graph.add_edge("explore", "generate")
        after.append("explore")
    first = ["analyze"]
    if settings.human:
        # A node that waits runs again from its beginning: it must do nothing else.
        add("clarify", _clarify)
        first.append("clarify")
    path = [START, *first, "plan", "retrieve", "generate", "execute", "verify"]
    for one, other in pairwise(path):
        graph.add_edge(one, other)
    graph.add_conditional_edges("verify", next_step(settings), after)
    graph.add_edge("refine", "retrieve")
    graph.add_edge("output", END)
    return graph.compile(checkpointer=checkpointer)


def next_step(settings: GraphSettings) -> Callable[[NL2SPARQLState], str]:
    """Return the function that chooses the node after a query was verified."""

    def decide(state: NL2SPARQLState) -> str:
        if state["is_valid"] or state["generation_attempts"] >= settings.max_attempts:
            return "output"
        codes = {one["code"] for one in state["problems"]}
        found_nothing = state["execution_error"] is None and bool(codes & _EXPLORED)
        if settings.explore and found_nothing and not state["explored"]:
            return "explore"
        return "refine"

    return decide


def _clarify(state: NL2SPARQLState) -> dict[str, Any]:
    """Ask an unclear question back, and wait for the answer."""
    from langgraph.types import interrupt

    if not state["unclear"]:
        return {}
    said = interrupt({"question": state["question"], "unclear": state["unclear"]})
    return {"clarification": str(said or "").strip()}


def families_of(patterns: PatternSet) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each family, in the order of the pack's file."""
    found: dict[str, tuple[str, ...]] = {}
    for one in patterns.patterns:
        if one.family:
            # LangGraph joins the names of nested nodes with these.
            if one.family == GENERAL or set(one.family) & set(":|"):
                raise UsageError(
                    f"the family of {one.name} cannot be called {one.family!r}",
                    where="hints/patterns.toml",
                    hint="use letters, and not the word general",
                )
            found[one.family] = (*found.get(one.family, ()), one.name)
    return found


def _writers(parts: Parts) -> Any:
    """Return the compiled subgraph that routes to the writers."""
    from langgraph.graph import END, START, StateGraph

    families = families_of(parts.patterns) if parts.settings.specialists else {}

    def route(state: NL2SPARQLState) -> str:
        """Return the family of most of the question's needs."""
        scores = state["pattern_scores"]
        sums = {name: sum(scores.get(one, 0.0) for one in of) for name, of in families.items()}
        best = max(sums, key=lambda name: sums[name], default=GENERAL)
        return best if sums.get(best, 0) > 0 else GENERAL

    graph = StateGraph(NL2SPARQLState, output_schema=WriterOutput)
    for family, names in {GENERAL: (), **families}.items():
        writer = StateGraph(NL2SPARQLState, output_schema=WriterOutput)
        writer.add_node("focus", _focus(parts, family, names))  # type: ignore[arg-type]
        writer.add_node("write", _write(parts, family, names))  # type: ignore[arg-type]
        writer.add_edge(START, "focus")
        writer.add_edge("focus", "write")
        writer.add_edge("write", END)
        graph.add_node(family, writer.compile())
        graph.add_edge(family, END)
    graph.add_conditional_edges(START, route, [GENERAL, *families])
    return graph.compile()


def _focus(parts: Parts, family: str, names: tuple[str, ...]) -> Node:
    def focus(state: NL2SPARQLState) -> dict[str, Any]:
        """Pick all rules of the family, and put its examples first."""
        needs = [*names, *(n for n in state["detected_patterns"] if n not in names)]
        examples = sorted(
            state["retrieved_examples"], key=lambda one: not set(names) & set(one["patterns"])
        )
        rules = build_constraints(needs, parts.pack, most_chars=parts.settings.most_chars)
        return {
            "family": "" if family == GENERAL else family,
            "relevant_constraints": rules,
            "retrieved_examples": examples,
        }

    return focus


def _write(parts: Parts, family: str, names: tuple[str, ...]) -> Node:
    kind = ""
    if family != GENERAL:
        titles = [parts.patterns.named(name).title or name for name in names]
        kind = f"You write queries of one kind: {'; '.join(titles)}."

    def write(state: NL2SPARQLState) -> dict[str, Any]:
        """Write a query from the plan, the schema and the failed attempts."""
        parts.episode.meter.turn()
        shown = state["retrieved_examples"][: parts.settings.shown]
        rules = (state["relevant_constraints"], kind, state["advice"])
        sparql = write_query(
            asked(state),
            "\n\n".join(filter(None, rules)),
            [PackExample(one["id"], one["nl"], one["sparql"]) for one in shown],
            failed_queries(state),
            parts.lm,
            notes="\n\n".join(filter(None, (_plan(state), _names(state)))),
            temperature=stuck_temperature(parts.lm) if state["repeated"] else None,
        )
        used = [one["id"] for one in shown]
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


def _plan(state: NL2SPARQLState) -> str:
    steps = state["sub_tasks"]
    if len(steps) < 2:
        return ""
    return "\n".join(["Steps:", *(f"{n}. {step}" for n, step in enumerate(steps, 1))])


def failed_queries(state: NL2SPARQLState) -> list[tuple[str, str]]:
    """Return the failed queries with their problems, the explored one with what was found."""
    failed: dict[str, str] = {}
    explored = ""
    for one in state["refinement_history"]:
        query = one["sparql"]
        if not query:
            continue
        if one.get("step") == "explore":
            explored = query
        # A repeated query is shown once: shown twice it would come a third time.
        failed.pop(query, None)
        # The findings come first, since the end of a long text is cut.
        failed[query] = "\n".join((*(state["findings"] if query == explored else ()), one["error"]))
    return list(failed.items())


def _names(state: NL2SPARQLState) -> str:
    """Return the explored names, as many whole ones as fit."""
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


def mermaid_picture(
    pack: Pack | str = "liita", settings: GraphSettings | None = None, *, inside: bool = False
) -> str:
    """Return the graph as Mermaid text.

    Args:
        pack: The pack, whose pattern families have their own writers.
        settings: Which steps are taken.
        inside: Whether the writers are drawn too.

    Raises:
        UsageError: If there is no such pack.

    Examples:
        >>> [line.strip() for line in mermaid_picture("liita").splitlines() if "verify -" in line]
        ['verify -.-> explore;', 'verify -.-> output;', 'verify -.-> refine;']
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    graph = build_graph(Parts(Episode(_NOWHERE, {}), found, settings or GraphSettings()))
    # Depth 1 draws the routing to the writers, 2 the steps of each.
    return str(graph.get_graph(xray=2 if inside else False).draw_mermaid())


def save_picture(
    file: Path,
    pack: Pack | str = "liita",
    settings: GraphSettings | None = None,
    *,
    inside: bool = False,
) -> None:
    """Write the picture to a file: ``.png``, ``.svg``, or ``.mmd`` for the text.

    Args:
        file: The file; its suffix decides the format.
        pack: As for `mermaid_picture`.
        settings: As for `mermaid_picture`.
        inside: As for `mermaid_picture`.

    Raises:
        UsageError: If the suffix or pack is unknown, or the file cannot be written.
        SetupError: If the renderer is not installed, or fails.
    """
    ending = file.suffix.lower()
    if ending not in (".png", ".svg", ".mmd"):
        raise UsageError(
            f"cannot draw a picture in the format {ending or '(none)'!r}",
            where=str(file),
            hint="end the name in .png, .svg or .mmd",
        )
    text = mermaid_picture(pack, settings, inside=inside)
    data = text.encode() if ending == ".mmd" else _rendered(text, ending[1:])
    try:
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(file)) from error


def _rendered(text: str, form: str) -> bytes:
    hint = "pip install mermaid-render, or write a .mmd file and render it elsewhere"
    try:
        renderer = importlib.import_module("mermaid_render")
    except ImportError as error:
        raise SetupError("the package mermaid-render is not installed", hint=hint) from error
    try:
        return bytes(renderer.convert(text, format=form))
    except Exception as error:  # QuickJS, resvg and the renderer raise their own
        raise SetupError(f"the picture cannot be drawn: {error}", hint=hint) from error
