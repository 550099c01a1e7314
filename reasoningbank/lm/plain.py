"""Chat as it is: instructions, questions and answers, without names of fields."""

from __future__ import annotations

from typing import Any

import dspy

__all__ = ["PlainAdapter"]


class PlainAdapter(dspy.Adapter):  # type: ignore[misc]
    """Writes a signature with one input and one output as a plain conversation.

    The markers of `dspy.ChatAdapter` are some 25 tokens an example, and no small model was trained
    on them: with the very same examples the 1.5B model copied the nearest query instead of
    answering the question.
    """

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """Return the instructions alone."""
        return str(signature.instructions)

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Return the input as it is."""
        (name,) = signature.input_fields
        return str(inputs[name])

    def format_assistant_message_content(
        self,
        signature: type[dspy.Signature],
        outputs: dict[str, Any],
        missing_field_message: str | None = None,
    ) -> str:
        """Return the output as it is."""
        (name,) = signature.output_fields
        return str(outputs[name])

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Take the whole reply for the output."""
        (name,) = signature.output_fields
        return {name: completion}
