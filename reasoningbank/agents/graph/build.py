"""The graph: the seed's nodes and edges. LangGraph is imported when a graph is built, not before.

``analyze → plan → retrieve → generate → execute → verify``, then ``output``, ``refine`` (back to
``retrieve``) or ``explore`` (back to ``generate``). With a human, ``clarify`` stands behind
``analyze``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reasoningbank.agents.graph.nodes import Node, Nodes
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.graph.specialists import build_writers
from reasoningbank.agents.graph.state import NL2SPARQLState
from reasoningbank.errors import need_package

__all__ = ["build_graph", "next_step"]

#: A name of an empty result's query that is not in the data is looked for as well.
_UNKNOWN = ("unknown-property", "unknown-class", "unknown-graph", "empty")


def build_graph(parts: Parts, checkpointer: Any = None) -> Any:
    """Return the compiled graph.

    Args:
        parts: What its nodes work with.
        checkpointer: A LangGraph checkpointer; None to keep nothing.

    Raises:
        SetupError: LangGraph is not installed.
    """
    need_package("langgraph", "graph")
    from langgraph.graph import END, START, StateGraph

    nodes = Nodes(parts)
    graph = StateGraph(NL2SPARQLState)

    def add(name: str, node: Node) -> None:
        graph.add_node(name, _recorded(parts, name, node))  # type: ignore[call-overload]

    add("analyze", nodes.analyze)
    add("plan", nodes.plan)
    add("retrieve", nodes.retrieve)
    graph.add_node("generate", build_writers(parts))
    add("execute", nodes.execute)
    add("verify", nodes.verify)
    add("refine", nodes.refine)
    if parts.settings.explore:
        add("explore", nodes.explore)
        graph.add_edge("explore", "generate")
    add("output", nodes.output)
    graph.add_edge(START, "analyze")
    if parts.settings.human:
        # A node that waits runs anew from its beginning: it must hold nothing else.
        add("clarify", _clarify)
        graph.add_edge("analyze", "clarify")
        graph.add_edge("clarify", "plan")
    else:
        graph.add_edge("analyze", "plan")
    graph.add_edge("plan", "retrieve")
    graph.add_edge("retrieve", "generate")
    graph.add_edge("generate", "execute")
    graph.add_edge("execute", "verify")
    after = ["output", "refine", *(["explore"] if parts.settings.explore else [])]
    graph.add_conditional_edges("verify", next_step(parts.settings), after)
    graph.add_edge("refine", "retrieve")
    graph.add_edge("output", END)
    return graph.compile(checkpointer=checkpointer)


def next_step(settings: GraphSettings) -> Callable[[NL2SPARQLState], str]:
    """Return what decides how it goes on after a query was verified.

    Examples:
        >>> decide = next_step(GraphSettings())
        >>> empty = {"level": "endpoint", "code": "empty", "text": "no rows"}
        >>> state = NL2SPARQLState(is_valid=False, generation_attempts=1, problems=[empty],
        ...                        explored=False, execution_error=None)
        >>> decide(state), decide(state | {"explored": True}), decide(state | {"is_valid": True})
        ('explore', 'refine', 'output')
        >>> decide(state | {"generation_attempts": 3})
        'output'
    """

    def decide(state: NL2SPARQLState) -> str:
        if state["is_valid"] or state["generation_attempts"] >= settings.max_attempts:
            return "output"
        codes = {one["code"] for one in state["problems"]}
        found_nothing = state["execution_error"] is None and bool(codes & set(_UNKNOWN))
        if settings.explore and found_nothing and not state["explored"]:
            return "explore"
        return "refine"

    return decide


def _clarify(state: NL2SPARQLState) -> dict[str, Any]:
    """Ask the question back where it is unclear, and wait for the answer."""
    from langgraph.types import interrupt

    if not state["unclear"]:
        return {}
    said = interrupt({"question": state["question"], "unclear": state["unclear"]})
    return {"clarification": str(said or "").strip()}


def _recorded(parts: Parts, name: str, node: Node) -> Node:
    def run(state: NL2SPARQLState) -> dict[str, Any]:
        found = node(state)
        parts.record(name, found)
        return found

    return run
