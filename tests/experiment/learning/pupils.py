"""A scripted model: it knows a property of the orchard in one case of three, or if it is told."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

from lm.scripted import Reply, ScriptedServer, chat, scripted

#: What it proposes as an instruction, with the markers that DSPy asks for.
ADVICE = "Write one SPARQL query. The property of a height is t:height."


def said_to(body: dict[str, Any]) -> str:
    """Return all that a request says, as one text."""
    return json.dumps(body["messages"])


def reply(body: dict[str, Any]) -> Reply:
    """Return the query that answers the last question, or a new instruction if that is asked."""
    last = str(body["messages"][-1]["content"])
    asked_for = last.rpartition("Respond with")[2] if "Respond with" in last else ""
    if "JSON" in asked_for:
        return chat(json.dumps(dict.fromkeys(re.findall(r"`(\w+)`", asked_for), ADVICE)))
    if fields := re.findall(r"\[\[ ## (\w+) ## \]\]", asked_for):
        return chat("".join(f"[[ ## {name} ## ]]\n{ADVICE}\n\n" for name in fields))
    number = int(re.findall(r"higher than (\d+)", last)[-1])
    before = said_to(body).replace(json.dumps(last), "")
    name = "height" if number % 3 == 0 or "t:height" in before else "size"
    return chat(f"SELECT ?plant WHERE {{ ?plant t:{name} ?h . FILTER(?h > {number}) }}")


@contextlib.contextmanager
def scripted_pupil() -> Iterator[ScriptedServer]:
    """Serve the scripted model on loopback."""
    with scripted(chat("")) as server:
        server.next_reply = lambda: reply(server.asked[-1].body)  # type: ignore[method-assign]
        yield server
