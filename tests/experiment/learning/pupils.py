"""A scripted model: it knows a property of the orchard one time in three, or from the prompt."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from lm.scripted import Reply, ScriptedServer, chat, scripted

#: What it proposes as an instruction.
ADVICE = "Write one SPARQL query. The property of a height is t:height."


def said_to(body: dict[str, Any]) -> str:
    """Return all that a request says, as one text."""
    return json.dumps(body["messages"])


def query_for(body: dict[str, Any]) -> str:
    """Return its query for the last question of a request."""
    last = str(body["messages"][-1]["content"])
    number = int(re.findall(r"higher than (\d+)", last)[-1])
    shown = "t:height" in said_to({"messages": body["messages"][:-1]})
    name = "height" if number % 3 == 0 or shown else "size"
    return f"SELECT ?plant WHERE {{ ?plant t:{name} ?h . FILTER(?h > {number}) }}"


def reply(body: dict[str, Any], advice: str = ADVICE) -> Reply:
    """Return what is asked for: a query, a turn of an agent, or a new instruction."""
    names = _fields(body)
    if not names:
        return chat(query_for(body))
    said = dict.fromkeys(names, advice)
    if "sparql" in said:
        said["sparql"] = query_for(body)
    if "code" in said:
        said["code"] = f"SUBMIT({query_for(body)!r})"
    if "next_tool_name" in said:
        said |= {"next_tool_name": "finish", "next_tool_args": "{}"}
    if "JSON" in _asked_for(body):
        return chat(json.dumps(said))
    return chat("".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name, text in said.items()))


@contextlib.contextmanager
def scripted_pupil(
    answer: Callable[[dict[str, Any]], Reply] = reply,
) -> Iterator[ScriptedServer]:
    """Serve the scripted model on loopback."""
    with scripted(chat("")) as server:
        server.next_reply = lambda: answer(server.asked[-1].body)  # type: ignore[method-assign]
        yield server


def _asked_for(body: dict[str, Any]) -> str:
    _, found, after = str(body["messages"][-1]["content"]).rpartition("Respond with")
    return after if found else ""


def _fields(body: dict[str, Any]) -> list[str]:
    asked = _asked_for(body)
    names = re.findall(r"`(\w+)`" if "JSON" in asked else r"\[\[ ## (\w+) ## \]\]", asked)
    return [name for name in names if name != "completed"]
