"""A trial as a conversation: the question, the turns of the model, what its tools answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.tool import ToolCall, ToolCallError

from reasoningbank.analysis.inspect_log.text import as_text, identity
from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.storage import plain
from reasoningbank.trajectory import Event

__all__ = ["PYTHON", "Conversation", "call_id", "prompt_messages"]

#: Name under which code of the agent appears among the tools.
PYTHON = "python"

_ROLES = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant}


class Conversation:
    """The messages of a trial.

    The prompts themselves, which repeat everything said before, are in the model events; here each
    reply stands once, with the code or the tools that it called and their answers.

    Args:
        record: The trial.
        uuid: Id of the sample; those of its messages are made of it.

    Attributes:
        messages: All messages in order, the submitted query last.
        replies: The model's reply, by index of its event.
        answers: The answer to a call, by index of the event that called.
    """

    def __init__(self, record: TrialRecord, uuid: str) -> None:
        self._uuid = uuid
        self._record = record
        self.replies: dict[int, ChatMessageAssistant] = {}
        self.answers: dict[int, ChatMessageTool] = {}
        self.messages: list[ChatMessage] = []
        events = record.trajectory.events
        results = {e.parent: e for e in events if e.kind == "tool_result"}
        self._open_with(next((e for e in events if e.kind == "lm_call"), None))
        for event in events:
            if event.kind == "lm_call":
                self._reply(event)
            elif event.kind == "code":
                self._call(event, event.data, event.data.get("output"))
            elif event.kind == "tool_call" and event.parent is None:
                data = results[event.index].data if event.index in results else {}
                self._call(event, event.data, data.get("result"), data.get("error"))
        self.submission = ChatMessageAssistant(
            id=identity(uuid, "submission"),
            content=plain(record.sparql or record.answer or ""),
            metadata={"status": record.status},
        )
        if record.sparql is not None or record.answer:
            self.messages.append(self.submission)

    def _open_with(self, first: Event | None) -> None:
        prompts = self._resolved(first.data).get("messages", []) if first else []
        self.messages += [
            message for message in prompt_messages(prompts) if message.role == "system"
        ][:1]
        self.messages.append(
            ChatMessageUser(
                id=identity(self._uuid, "question"),
                content=plain(self._record.question),
                source="input",
            )
        )

    def _reply(self, event: Event) -> None:
        data = self._resolved(event.data)
        reply = ChatMessageAssistant(
            id=identity(self._uuid, "reply", event.index),
            content=as_text(data.get("response")),
            model=str(data.get("model", "")),
            source="generate",
        )
        self.replies[event.index] = reply
        self.messages.append(reply)

    def _call(
        self, event: Event, data: Mapping[str, Any], result: Any, error: str | None = None
    ) -> None:
        call = self._resolved(data)
        function = str(call.get("tool", PYTHON))
        arguments = call.get("arguments", {"code": call.get("code", "")})
        number = call_id(self._uuid, event)
        asked = ToolCall(id=number, function=function, arguments=_named(arguments))
        # A call belongs to the reply before it; an agent without a model calls by itself.
        if self.replies:
            reply = next(reversed(self.replies.values()))
            reply.tool_calls = [*(reply.tool_calls or []), asked]
        failure = as_text(self._resolved(error))
        answer = ChatMessageTool(
            id=identity(self._uuid, "answer", event.index),
            content=as_text(self._resolved(result)) or failure,
            tool_call_id=number,
            function=function,
            error=ToolCallError("unknown", failure) if failure else None,
        )
        self.answers[event.index] = answer
        self.messages.append(answer)

    def _resolved(self, value: Any) -> Any:
        return plain(self._record.trajectory.resolve(value))


def prompt_messages(prompts: Sequence[Mapping[str, Any]]) -> list[ChatMessage]:
    """Return the messages of a prompt; equal ones have equal ids, so that a log keeps one."""
    found: list[ChatMessage] = []
    for prompt in prompts:
        role, content = str(prompt.get("role", "user")), as_text(prompt.get("content"))
        kind = _ROLES.get(role, ChatMessageUser)
        found.append(kind(id=identity("prompt", role, content), content=content))
    return found


def call_id(uuid: str, event: Event) -> str:
    """Return the id of the call that an event made."""
    return f"call_{identity(uuid, 'call', event.index)}"


def _named(arguments: Any) -> dict[str, Any]:
    return dict(arguments) if isinstance(arguments, Mapping) else {"value": arguments}
