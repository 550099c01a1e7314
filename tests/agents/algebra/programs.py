"""Programs about the towns, and what is asked of attempts."""

from __future__ import annotations

from typing import Any

from reasoningbank.agents import Attempt
from reasoningbank.corpus import Pack, Task, load_shacl_tasks

ENDPOINT = "https://towns.example/sparql"
READ, WRITE = 0, 1


def op(name: str, /, **args: Any) -> dict[str, Any]:
    return {"@op": name, "args": args}


def value(name: str) -> dict[str, Any]:
    return op("Value", name=name)


def select(query: Any) -> dict[str, Any]:
    return op("SELECT", endpoint=ENDPOINT, query=query)


BIG = "SELECT ?name WHERE { ?town p:people ?n ; p:name ?name FILTER(?n > 10000) }"
ALL = "SELECT ?town ?name ?n WHERE { ?town p:people ?n ; p:name ?name }"
JUTLAND = "SELECT ?town ?name WHERE { ?town p:region t:Jutland ; p:name ?name }"
DOCUMENT = op(
    "ResolveURI",
    base="http://docs.example/towns/",
    relative=op("EncodeForURI", input=value("name")),
)
COPY = op(
    "ForEach",
    select=select(JUTLAND),
    operation=op("PUT", url=DOCUMENT, data=op("GET", url=value("town"))),
)


def tasks(pack: Pack) -> list[Task]:
    return load_shacl_tasks(pack)


def steps(attempt: Attempt, name: str) -> list[dict[str, Any]]:
    found = [attempt.trajectory.resolve(event.data) for event in attempt.trajectory.of("step")]
    return [one for one in found if one["step"] == name]
