"""Instructions with their programs, which a model is shown before it is asked."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from reasoningbank.agents.demonstrations import load_listed
from reasoningbank.corpus import Pack

__all__ = ["LEAD", "ShownProgram", "load_shown_programs", "shown_programs"]

#: Where a pack keeps its own; they are of no task of its corpus.
FILE = "hints/programs.json"


class ShownProgram(BaseModel):
    """An instruction and a program that carries it out.

    Attributes:
        instruction: What is to be done.
        program: The program, as JSON data; prefixes need not be declared in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    instruction: str
    program: Any

    @cached_property
    def text(self) -> str:
        """The program as a model is to write it: in one line, which costs the fewest tokens."""
        return json.dumps(self.program, ensure_ascii=False)


#: The first example of Web Algebra's specification, with names encoded as its rules ask.
LEAD = ShownProgram(
    instruction='Take "10 biggest cities in Denmark" as the question and query their titles and '
    "descriptions using SPARQL on https://dbpedia.org/sparql. For each of them, create a document "
    "with a URL relative to http://localhost/denmark/ and write the respective city metadata into "
    "them.",
    program={
        "@op": "ForEach",
        "args": {
            "select": {
                "@op": "SELECT",
                "args": {
                    "endpoint": "https://dbpedia.org/sparql",
                    "query": {
                        "@op": "SPARQLString",
                        "args": {"question": "10 biggest cities in Denmark"},
                    },
                },
            },
            "operation": {
                "@op": "PUT",
                "args": {
                    "url": {
                        "@op": "ResolveURI",
                        "args": {
                            "base": "http://localhost/denmark/",
                            "relative": {
                                "@op": "EncodeForURI",
                                "args": {"input": {"@op": "Value", "args": {"name": "cityName"}}},
                            },
                        },
                    },
                    "data": {
                        "@op": "GET",
                        "args": {"url": {"@op": "Value", "args": {"name": "city"}}},
                    },
                },
            },
        },
    },
)


def load_shown_programs(path: Path) -> tuple[ShownProgram, ...]:
    """Read instructions with their programs from a JSON file; one that is not there holds none.

    Raises:
        UsageError: The file is no list of them.
    """
    return load_listed(path, ShownProgram)


def shown_programs(pack: Pack | None) -> tuple[ShownProgram, ...]:
    """Return those of a pack; the specification's own where it has none."""
    own = load_shown_programs(pack.root / FILE) if pack is not None else ()
    return own or (LEAD,)
