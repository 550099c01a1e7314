"""The LM judge: whether a query answers its question, said without knowing the right answer.

It is the judge for places where there is no gold, and so it must not see one, nor be swayed by
what the agent says of itself: it is handed a `Case`, which has no place for either.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.errors import BudgetError
from reasoningbank.judge.case import Case
from reasoningbank.judge.lm_prompt import (
    DEMONSTRATIONS,
    JudgeAttempt,
    Reply,
    inputs_of,
    prompt_hash,
    read_reply,
)
from reasoningbank.lm import UsageCounter, lm_failure
from reasoningbank.trajectory import Usage

__all__ = ["MAX_REPLY_TOKENS", "LMJudge", "LMVerdict", "LMVerdictStatus"]

#: Tokens a reply may have.
MAX_REPLY_TOKENS = 300

LMVerdictStatus = Literal["judged", "not_asked", "unparsed", "too_long"]


@dataclass(frozen=True)
class LMVerdict:
    """What an LM judge says of an attempt.

    Attributes:
        success: Whether it holds the answer for right; None where it did not decide.
        confidence: How sure it says it is, in [0, 1]; 0.5 where it does not say, 0 where it did
            not decide.
        reason: What decided, in a sentence.
        checked: What it says it checked.
        status: `judged`; `not_asked`: there was no query, or it did not run, which is a failure
            without asking; `unparsed`: its reply says neither yes nor no; `too_long`: the case
            does not fit its context. The last two decide nothing.
        seconds: How long it took.
        usage: What the model consumed.
        prompt: Hash of what is the same in every prompt.
    """

    success: bool | None
    confidence: float
    reason: str
    checked: tuple[str, ...] = ()
    status: LMVerdictStatus = "judged"
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    prompt: str = ""

    @property
    def decided(self) -> bool:
        """Whether it says anything of the attempt."""
        return self.success is not None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a record keeps it."""
        usage = {k: v for k, v in asdict(self.usage).items() if k not in _NOT_A_JUDGES}
        return {**asdict(self), "checked": list(self.checked), "usage": usage}


_NOT_A_JUDGES = frozenset({"tool_calls", "iterations", "seconds"})


class LMJudge:
    """Judges attempts by asking a language model; one call each.

    Args:
        lm: The model, made for the role ``judge``: a local server then keeps its prompt apart
            from the solver's. Its temperature should be 0.
    """

    def __init__(self, lm: dspy.BaseLM) -> None:
        self._lm = lm
        self._prompt = prompt_hash()

    def judge(self, case: Case) -> LMVerdict:
        """Judge an attempt.

        Args:
            case: What may be seen of it.

        Raises:
            ModelError: If the model cannot be reached: nothing can be said of the attempt.
            SetupError: If its key or settings are wrong.
        """
        if case.result is None:
            return LMVerdict(False, 1.0, case.failure, ("the query runs",), "not_asked")
        began = time.monotonic()
        counter = UsageCounter(role="judge")
        status: LMVerdictStatus = "judged"
        reply: Reply | None = None
        reason = "the reply says neither yes nor no"
        try:
            reply = self._ask(case, counter)
        except BudgetError as error:
            status, reason = "too_long", str(error)
        if reply is None and status == "judged":
            status = "unparsed"
        return LMVerdict(
            success=reply.success if reply else None,
            confidence=reply.confidence if reply else 0.0,
            reason=reply.reason if reply else reason,
            checked=reply.checked if reply else (),
            status=status,
            seconds=round(time.monotonic() - began, 3),
            usage=counter.usage,
            prompt=self._prompt,
        )

    def _ask(self, case: Case, counter: UsageCounter) -> Reply | None:
        predict = dspy.Predict(JudgeAttempt)
        predict.demos = list(DEMONSTRATIONS)
        adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
        with dspy.context(lm=self._lm, adapter=adapter, callbacks=[counter]):
            try:
                prediction = predict(**inputs_of(case))
            except AdapterParseError as error:
                # A small model leaves fields out; its yes or no may be there all the same.
                return read_reply(str(error.lm_response))
            except Exception as error:
                failure = lm_failure(error)
                if failure is None or failure is error:
                    raise
                raise failure from error
        return read_reply(dict(prediction))
