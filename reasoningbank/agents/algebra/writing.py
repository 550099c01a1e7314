"""A model writes a program, is told what is wrong with it, and writes it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import dspy

from reasoningbank.agents.algebra.shown import ShownProgram
from reasoningbank.agents.calling import ask_once, asking, prefix_names
from reasoningbank.agents.protocol import Episode
from reasoningbank.algebra import mistakes, operations
from reasoningbank.algebra.reference import agent_prompt, program_schema
from reasoningbank.algebra.source import parse_program, with_prefixes
from reasoningbank.algebra.terms import ProgramError
from reasoningbank.lm import PlainAdapter, stuck_temperature
from reasoningbank.lm.reply import json_in

__all__ = ["Draft", "Writing"]

#: Mistakes that one answer tells; a small model mends no more at once.
MOST_TOLD = 3

ENDPOINT = """\
The SPARQL endpoint is {url} ({name}). Write no PREFIX lines and no @context: these prefixes are \
declared for you: {prefixes}."""
DOCUMENTS = "Documents that may be written lie below {base}."
AGAIN = """\
{instruction}

Another program was tried, and was wrong: {problems}
Write one that does it differently, as JSON alone."""
MEND = """\
That program is wrong:
{problems}
Write the whole program again, mended, as JSON alone."""


@dataclass(frozen=True)
class Draft:
    """A program as a model wrote it.

    Attributes:
        text: The reply.
        program: Its JSON data, prefixes declared; None where it is none.
        problems: What is wrong with it, found without running it.
    """

    text: str
    program: Any
    problems: tuple[str, ...]


class Writing:
    """A conversation in which one instruction becomes a program.

    The signature is made of the operations: their signatures, first sentences and examples are its
    instructions. What was written before, and what was wrong with it, stands as turns.

    Args:
        episode: Model, endpoint, memory context, pack.
        instruction: What the program is to do.
        constrained: Whether the model is held to the JSON Schema of programs, where its server
            can do that.
        names: The operations that are told; all where empty.
        shown: Instructions with their programs, which stand before as turns.
    """

    def __init__(
        self,
        episode: Episode,
        instruction: str,
        *,
        constrained: bool = True,
        names: Sequence[str] = (),
        shown: Sequence[ShownProgram] = (),
    ) -> None:
        self._episode = episode
        self._instruction = instruction
        told = tuple(names) or tuple(operations())
        config: dict[str, Any] = {}
        if constrained and getattr(episode.lm, "supports_response_schema", False):
            config["response_format"] = _response_format(told)
        self.is_constrained = bool(config)
        self._signature = _signature(episode, told)
        self._config = config
        self._said = instruction
        self._written: set[str] = set()
        self._shown = [
            dspy.Example(instruction=one.instruction, program=one.text).with_inputs("instruction")
            for one in shown
        ]
        self._turns = list(self._shown)

    def first(self) -> Draft:
        """Ask for the program.

        Raises:
            BudgetError: A budget is used up.
            ModelError: The model cannot be reached.
        """
        return self._asked(self._instruction)

    def mended(self, draft: Draft, problems: Sequence[str]) -> Draft:
        """Ask for the program again, with what was wrong with the last one; raises as `first`.

        A model that wrote the same program twice would do so for ever while it sees it: it is told
        the problems alone then, and asked with a temperature.
        """
        said = draft.text if draft.program is None else json.dumps(draft.program)
        told = list(dict.fromkeys(problems))[:MOST_TOLD]
        if said in self._written:
            self._turns = list(self._shown)
            again = AGAIN.format(instruction=self._instruction, problems="; ".join(told))
            return self._asked(again, temperature=stuck_temperature(self._episode.lm))
        self._written.add(said)
        if draft.text:
            turn = dspy.Example(instruction=self._said, program=draft.text)
            self._turns.append(turn.with_inputs("instruction"))
        return self._asked(MEND.format(problems="\n".join(f"- {one}" for one in told)))

    def _asked(self, text: str, temperature: float | None = None) -> Draft:
        self._said = text
        self._episode.meter.turn()
        config = self._config | ({} if temperature is None else {"temperature": temperature})
        with asking(self._episode):
            said = ask_once(
                self._signature,
                {"instruction": text},
                adapter=PlainAdapter(),
                demos=self._turns,
                config=config,
            )
        return self._read(str(said.get("program", "")))

    def _read(self, reply: str) -> Draft:
        text = json_in(reply)
        try:
            data = with_prefixes(parse_program(text), self._episode.endpoint.prefixes)
        except ProgramError as error:
            return Draft(reply, None, (str(error),))
        return Draft(text, data, tuple(str(one) for one in mistakes(data)))


def _signature(episode: Episode, names: tuple[str, ...]) -> type[dspy.Signature]:
    endpoint = episode.endpoint
    told = [
        agent_prompt(names),
        episode.context,
        ENDPOINT.format(
            url=endpoint.url, name=endpoint.name or "no name", prefixes=prefix_names(endpoint)
        ),
    ]
    if episode.pack is not None and episode.pack.documents is not None:
        told.append(DOCUMENTS.format(base=episode.pack.documents.base))
    fields: dict[str, Any] = {
        "instruction": (str, dspy.InputField()),
        "program": (str, dspy.OutputField(desc="the program as JSON alone")),
    }
    signature: type[dspy.Signature] = dspy.Signature(fields, "\n\n".join(filter(None, told)))
    return signature


@cache
def _response_format(names: tuple[str, ...]) -> dict[str, Any]:
    schema = {"name": "program", "schema": program_schema(names)}
    return {"type": "json_schema", "json_schema": schema}
