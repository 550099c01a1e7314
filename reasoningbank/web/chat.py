"""The interface of OpenAI's chat completions, so that other clients ask."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from pydantic import BaseModel, Field

from reasoningbank.corpus import known_packs
from reasoningbank.errors import UsageError
from reasoningbank.experiment.ask import MOST_TURN_CHARS
from reasoningbank.web.answers import Asked, agents_of
from reasoningbank.web.guard import valid


class ChatRequest(BaseModel):
    """A request for a completion; other parameters are accepted and have no effect."""

    model: str = ""
    messages: list[dict[str, Any]] = Field(min_length=1)
    stream: bool = False


def model_names(default: Asked) -> list[str]:
    """Return the names of models: ``AGENT/PACK``, the default first."""
    packs = dict.fromkeys((default.pack, *known_packs()))
    return [f"{agent}/{pack}" for pack in packs for agent in agents_of(default)]


def question_of(request: ChatRequest, default: Asked) -> Asked:
    """Return the last message as a question to the agent and pack that the model names.

    The messages before it are the conversation that it follows up.
    """
    agent, _, pack = request.model.partition("/")
    agent = agent or default.agent
    if agent not in agents_of(default):
        hint = f"choose {', '.join(model_names(default)[:3])}, …"
        raise UsageError(f"no model {request.model!r}", hint=hint, code="model_not_found")
    turns: list[dict[str, str]] = []
    for message in request.messages:
        if message.get("role") == "user":
            turns.append({"question": _words(message), "answer": ""})
        elif message.get("role") == "assistant" and turns:
            # An answer of ours begins with its sentence.
            turns[-1]["answer"] = _words(message).partition("\n\n")[0][:MOST_TURN_CHARS]
    last = turns.pop()["question"] if turns else ""
    # The default's address is that of its own pack's endpoint.
    url = default.url if pack in ("", default.pack) else ""
    found = {"agent": agent, "pack": pack or default.pack, "url": url, "question": last}
    earlier = [turn | {"question": turn["question"][:MOST_TURN_CHARS]} for turn in turns]
    given = {**default.model_dump(), **found, "earlier": earlier}
    return valid(Asked.model_validate, given)


def _words(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content may come in parts."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content.strip() if isinstance(content, str) else ""


def completion(answer: Mapping[str, Any], model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text_of(answer)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = _head(str(answer["id"]), model, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(answer)}


async def chunks(
    events: AsyncIterator[tuple[str, Mapping[str, Any]]], number: str, model: str
) -> AsyncIterator[str]:
    """Yield the data of a streamed completion: steps as reasoning, then the answer."""
    head = _head(number, model, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return json.dumps({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    async for name, data in events:
        if name == "step":
            yield chunk({"reasoning_content": f"[{data['name']}] {data['text']}\n"})
        elif name == "error":
            yield json.dumps({"error": error_body(data)})
        elif name == "answer":
            yield chunk({"content": text_of(data)})
            yield chunk({}, "stop", usage=_usage(data))
    yield "[DONE]"


def error_body(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding as OpenAI's clients read errors."""
    return {"message": finding["text"], "type": "error", "param": None, "code": finding["code"]}


def text_of(answer: Mapping[str, Any]) -> str:
    """Return an answer as Markdown: a sentence, the query, a table, and what is wrong with it."""
    parts, columns = [str(answer["sentence"])], answer["columns"]
    if answer["sparql"]:
        parts.append(f"```sparql\n{answer['sparql']}\n```")
    if len(answer["rows"]) > 1:
        lines = [columns, ["---"] * len(columns)]
        lines += [[row.get(name) for name in columns] for row in answer["rows"]]
        parts.append("\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines))
    return "\n\n".join([*parts, *(f"- {one['text']}" for one in answer["findings"])])


def _cell(value: Any) -> str:
    return " ".join(("" if value is None else str(value)).split()).replace("|", "\\|")


def _head(number: str, model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": int(time.time()), "model": model}


def _usage(answer: Mapping[str, Any]) -> dict[str, int]:
    counts = {name: int(answer[name]) for name in ("prompt_tokens", "completion_tokens")}
    return {**counts, "total_tokens": sum(counts.values())}
