"""The compiled graph, its writers, and its picture.

``analyze → plan → retrieve → generate → execute → verify``, then ``output``, ``refine`` (back to
``retrieve``) or ``explore`` (back to ``generate``). With a human, ``clarify`` follows ``analyze``.
``generate`` is a subgraph with one writer for each pattern family and a general one; a writer picks
the rules and examples of its family, then writes. LangGraph is imported when a graph is built.
"""

from __future__ import annotations

import importlib
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Pack
from reasoningbank.errors import SetupError, UsageError, need_package
from reasoningbank.lm import stuck_temperature
from reasoningbank.nl2sparql.examples import PackExample
from reasoningbank.nl2sparql.hints import PatternSet, as_pack, build_constraints, load_patterns
from reasoningbank.nl2sparql.nodes import GraphSettings, NL2SPARQLState, Nodes, WriterOutput, asked
from reasoningbank.nl2sparql.pipeline import same_query, write_query
from reasoningbank.sparql import EndpointConfig

GENERAL = "general"
#: Characters of the explored properties in a prompt, and of the classes.
MOST_NAMES = 1_000
#: Problems after which the schema is explored.
_EXPLORED = frozenset(("unknown-property", "unknown-class", "unknown-graph", "empty"))
#: The endpoint of a picture, which is never queried.
_NOWHERE = EndpointConfig("http://127.0.0.1:9/sparql", "nowhere")


def build_graph(nodes: Nodes, checkpointer: Any = None) -> Any:
    need_package("langgraph", "graph")
    from langgraph.graph import END, START, StateGraph

    settings = nodes.settings
    graph = StateGraph(NL2SPARQLState)
    # A node that waits runs again from its beginning: it must do nothing else.
    human = ["clarify"] if settings.human else []
    path = ["analyze", *human, "plan", "retrieve", "generate", "execute", "verify"]
    after = ["output", "refine", *(["explore"] if settings.explore else [])]
    for name in (*path, *after):
        graph.add_node(name, _writers(nodes) if name == "generate" else partial(_run, nodes, name))
    for one, other in pairwise((START, *path)):
        graph.add_edge(one, other)

    def decide(state: NL2SPARQLState) -> str:
        """Choose the node after a query was verified."""
        if state["is_valid"] or state["generation_attempts"] >= settings.max_attempts:
            return "output"
        codes = {one["code"] for one in state["problems"]}
        found_nothing = state["execution_error"] is None and bool(codes & _EXPLORED)
        explores = settings.explore and found_nothing and not state["explored"]
        return "explore" if explores else "refine"

    graph.add_conditional_edges("verify", decide, after)
    graph.add_edge("refine", "retrieve")
    if settings.explore:
        graph.add_edge("explore", "generate")
    graph.add_edge("output", END)
    return graph.compile(checkpointer=checkpointer)


def _run(nodes: Nodes, name: str, state: NL2SPARQLState) -> dict[str, Any]:
    found: dict[str, Any] = getattr(nodes, name)(state)
    nodes.record(name, found)
    return found


def families_of(patterns: PatternSet) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each family, in the order of the pack's file."""
    found: dict[str, tuple[str, ...]] = {}
    for one in patterns.patterns:
        # LangGraph joins the names of nested nodes with these.
        if one.family == GENERAL or set(one.family) & set(":|"):
            what = f"the family of {one.name} cannot be called {one.family!r}"
            hint = "use letters, and not the word general"
            raise UsageError(what, where="hints/patterns.toml", hint=hint)
        if one.family:
            found[one.family] = (*found.get(one.family, ()), one.name)
    return found


def _writers(nodes: Nodes) -> Any:
    """Return the compiled subgraph that routes to the writers."""
    from langgraph.graph import END, START, StateGraph

    families = families_of(load_patterns(nodes.pack)) if nodes.settings.specialists else {}

    def route(state: NL2SPARQLState) -> str:
        """Return the family of most of the question's needs."""
        scores = state["pattern_scores"]
        sums = {name: sum(scores.get(one, 0.0) for one in of) for name, of in families.items()}
        best = max(sums, key=lambda name: sums[name], default=GENERAL)
        return best if sums.get(best, 0) > 0 else GENERAL

    graph = StateGraph(NL2SPARQLState, output_schema=WriterOutput)
    for family, names in {GENERAL: (), **families}.items():
        writer = StateGraph(NL2SPARQLState, output_schema=WriterOutput)
        writer.add_node("focus", partial(_focus, nodes, family, names))
        writer.add_node("write", partial(_write, nodes, family, names))
        writer.add_edge(START, "focus")
        writer.add_edge("focus", "write")
        writer.add_edge("write", END)
        graph.add_node(family, writer.compile())
        graph.add_edge(family, END)
    graph.add_conditional_edges(START, route, [GENERAL, *families])
    return graph.compile()


def _focus(
    nodes: Nodes, family: str, names: tuple[str, ...], state: NL2SPARQLState
) -> dict[str, Any]:
    """Pick all rules of the family, and put its examples first."""
    needs = dict.fromkeys((*names, *state["detected_patterns"]))
    examples = state["retrieved_examples"]
    return {
        "family": "" if family == GENERAL else family,
        "relevant_constraints": build_constraints(needs, nodes.pack),
        "retrieved_examples": sorted(examples, key=lambda e: set(names).isdisjoint(e["patterns"])),
    }


def _write(
    nodes: Nodes, family: str, names: tuple[str, ...], state: NL2SPARQLState
) -> dict[str, Any]:
    """Write a query from the plan, the schema and the failed attempts."""
    nodes.episode.meter.turn()
    titles = [load_patterns(nodes.pack).named(name).title or name for name in names]
    kind = f"You write queries of one kind: {'; '.join(titles)}." if titles else ""
    shown = state["retrieved_examples"][: nodes.settings.shown]
    rules = (state["relevant_constraints"], kind, state["advice"])
    sparql = write_query(
        asked(state),
        "\n\n".join(filter(None, rules)),
        [PackExample(one["id"], one["nl"], one["sparql"]) for one in shown],
        failed_queries(state),
        nodes.episode.lm,
        notes=_notes(state),
        temperature=stuck_temperature(nodes.episode.lm) if state["repeated"] else None,
    )
    used = [one["id"] for one in shown]
    tried = [one["sparql"] for one in state["refinement_history"]]
    found = {
        "generated_sparql": sparql or "",
        "generation_attempts": state["generation_attempts"] + 1,
        "repeated": bool(sparql) and any(same_query(sparql or "", one) for one in tried),
        "used_ids": used,
        "shown_ids": list(dict.fromkeys((*state["shown_ids"], *used))),
    }
    nodes.record("write", {"family": family, **found})
    return found


def failed_queries(state: NL2SPARQLState) -> list[tuple[str, str]]:
    """Return the failed queries with their problems, the explored one with what was found."""
    tried = [one for one in state["refinement_history"] if one["sparql"]]
    explored = [one["sparql"] for one in tried if one.get("step") == "explore"]
    failed: dict[str, str] = {}
    for one in tried:
        # A repeated query is shown once: shown twice it would come a third time.
        failed.pop(one["sparql"], None)
        # The findings come first, since the end of a long text is cut.
        findings = state["findings"] if one["sparql"] in explored else ()
        failed[one["sparql"]] = "\n".join((*findings, one["error"]))
    return list(failed.items())


def _notes(state: NL2SPARQLState) -> str:
    """Return the plan, and the explored names: as many whole ones as fit."""
    steps = state["sub_tasks"]
    numbered = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    plan = "\n".join(("Steps:", *numbered)) if len(steps) > 1 else ""
    lines = []
    for title, names in (
        ("Properties", state["discovered_properties"]),
        ("Classes", state["discovered_classes"]),
    ):
        lengths = accumulate(len(name) + 2 for name in names)
        kept = [name for name, end in zip(names, lengths, strict=True) if end <= MOST_NAMES]
        if kept:
            lines.append(f"{title} in use: {', '.join(kept)}")
    return "\n\n".join(filter(None, (plan, "\n".join(lines))))


def mermaid_picture(
    pack: Pack | str = "liita", settings: GraphSettings | None = None, *, inside: bool = False
) -> str:
    """Return the graph of a pack as Mermaid text, with the writers' steps if `inside`."""
    nodes = Nodes(Episode(_NOWHERE, {}, pack=as_pack(pack)), settings or GraphSettings())
    # Depth 1 draws the routing to the writers, 2 the steps of each.
    return str(build_graph(nodes).get_graph(xray=2 if inside else False).draw_mermaid())


def save_picture(file: Path, text: str) -> None:
    """Write Mermaid text to a file: drawn in a ``.png`` or ``.svg``, as it is in a ``.mmd``."""
    ending = file.suffix.lower()
    if ending not in (".png", ".svg", ".mmd"):
        what = f"cannot draw a picture in the format {ending or '(none)'!r}"
        raise UsageError(what, where=str(file), hint="end the name in .png, .svg or .mmd")
    data = text.encode()
    if ending != ".mmd":
        hint = "pip install mermaid-render, or write a .mmd file and render it elsewhere"
        try:
            renderer = importlib.import_module("mermaid_render")
            data = bytes(renderer.convert(text, format=ending[1:]))
        except ImportError as error:
            raise SetupError("the package mermaid-render is not installed", hint=hint) from error
        except Exception as error:  # QuickJS, resvg and the renderer raise their own
            raise SetupError(f"the picture cannot be drawn: {error}", hint=hint) from error
    try:
        file.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot be written: {error.strerror}", where=str(file)) from error
