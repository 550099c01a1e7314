"""Calling models and tools within an attempt; agents differ only in their loops."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode, conclude, used_up
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, ModelError
from reasoningbank.findings import Finding
from reasoningbank.lm import lm_failure, stuck_temperature
from reasoningbank.lm.calls import is_timeout
from reasoningbank.lm.reply import query_in
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder


@contextlib.contextmanager
def asking(episode: Episode, *callbacks: Any) -> Iterator[None]:
    """Run DSPy modules with the episode's model; nothing outside the block is configured."""
    active = [*episode.callbacks, *callbacks]
    with dspy.context(lm=episode.lm, adapter=_adapter(), callbacks=active):
        try:
            with _our_errors():
                yield
        except ModelError as error:
            limit = episode.budget.seconds
            out_of_time = limit is not None and episode.meter.usage().seconds >= limit
            if limit is not None and out_of_time and is_timeout(error):
                # The model hangs: the time limit ends the trial, and what was done is judged.
                raise used_up("seconds", limit) from error
            raise


def ask_once(
    signature: Any,
    inputs: Mapping[str, Any],
    *,
    lm: dspy.BaseLM | None = None,
    adapter: dspy.Adapter | None = None,
    demos: Sequence[dspy.Example] = (),
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Make one prediction and return its outputs by name."""
    predict = dspy.Predict(signature, **(config or {}))
    predict.demos = list(demos)
    given = {"lm": lm} if lm is not None else {}
    with dspy.context(adapter=adapter or _adapter(), **given), _our_errors():
        try:
            said = predict(**inputs)
        except AdapterParseError:
            return {}
    return {name: said[name] for name in predict.signature.output_fields}


def prefix_names(endpoint: EndpointConfig) -> str:
    """Return the endpoint's own prefixes as a prompt lists them, always in the same order."""
    return ", ".join(f"{prefix}:" for prefix in sorted(endpoint.prefixes)) or "none"


def _adapter() -> dspy.Adapter:
    return dspy.ChatAdapter(use_json_adapter_fallback=False)


@contextlib.contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except AdapterParseError:
        raise
    except Exception as error:
        failure = lm_failure(error)
        if failure is None or failure is error:
            raise
        raise failure from error


#: Instructions of the extract step.
TASK = "Write the SPARQL query that answers the question over the endpoint {name}."
#: Turns that repeat an earlier one before a loop is ended.
MOST_REPEATS = 2


class ToolLoop(Protocol):
    """A DSPy program that calls tools in turns, and extracts a query at the end."""

    repeats: Repeats
    submitted: bool

    def __call__(self, **inputs: str) -> Any:
        """Run the loop."""


def run_loop(loop: ToolLoop, task: Task, episode: Episode, calls: ToolRecorder) -> Attempt:
    """Run a loop over a task; a budget or a repeated turn may end it."""
    inputs = {"memory": episode.context} if episode.context else {}
    try:
        with asking(episode, calls):
            sparql = query_in(loop(**inputs, question=task.query).sparql)
    except AdapterParseError as failure:
        # Only the extract step raises it: a turn that cannot be parsed is a failed turn.
        sparql = query_in(failure.lm_response)
    except BudgetError as error:
        return conclude(episode, None, "exhausted", [error])
    ended = loop.repeats.too_many
    repeated = [Finding("repeated", "a turn repeated an earlier one")] if ended else []
    status: AttemptStatus = "submitted" if loop.submitted and not ended else "fallback"
    return conclude(episode, sparql, status, repeated)


def task_signature(episode: Episode) -> Any:
    """Return the signature: advice if there is any, the question, and the query."""
    fields: dict[str, Any] = {}
    if episode.context:
        fields["memory"] = (str, dspy.InputField(desc="advice from earlier tasks"))
    fields["question"] = (str, dspy.InputField())
    fields["sparql"] = (str, dspy.OutputField(desc="the query that answers the question"))
    return dspy.Signature(fields, TASK.format(name=episode.endpoint.source))


def instruct(predict: Any, instructions: str, more: str, episode: Episode) -> None:
    """Give a predictor its instructions: with endpoint and prefixes, the tools, and more lines."""
    endpoint = episode.endpoint
    lines = [instructions.format(name=endpoint.source, prefixes=prefix_names(endpoint))]
    for name, tool in episode.tools.items():
        shown = [
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in inspect.signature(tool).parameters.values()
        ]
        summary = (inspect.getdoc(tool) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"- `{name}({', '.join(shown)})`: {summary}")
    text = "\n".join((*lines, more) if more else lines)
    predict.signature = predict.signature.with_instructions(text)


def tool_objects(episode: Episode) -> list[dspy.Tool]:
    """Return the tools for `dspy.RLM` and `dspy.ReAct`."""
    return [dspy.Tool(tool, name=name) for name, tool in episode.tools.items()]


class Repeats:
    """Detects turns that repeat an earlier one; at temperature 0 a small model never stops."""

    def __init__(self, predict: Any) -> None:
        self._predict = predict
        self._seen: set[str] = set()
        self._count = 0

    def again(self, text: str) -> bool:
        """Return whether this was done before, and remember it."""
        text = _normalized(text)
        repeated = text in self._seen
        self._seen.add(text)
        if repeated:
            self._count += 1
            warmer = stuck_temperature(self._predict.lm)
            if warmer is not None:
                self._predict.config["temperature"] = warmer
        return repeated

    def unreadable(self, failure: AdapterParseError, recorder: Recorder) -> str:
        """Record a reply that the adapter could not parse; return its end."""
        said = str(failure.lm_response)
        event = {"error": "the reply could not be parsed", "code": "unreadable-reply"}
        recorder.add("error", event | {"reply": said})
        self.again(said)
        return said[-500:]

    def forget(self, text: str) -> None:
        """Allow a repeat: it failed for a reason that may be gone the next time."""
        self._seen.discard(_normalized(text))

    @property
    def too_many(self) -> bool:
        """Whether the loop should end."""
        return self._count >= MOST_REPEATS


def _normalized(text: str) -> str:
    # Code that differs in its indentation is no repeat: it fixes an IndentationError.
    lines = (line for line in text.splitlines() if line.strip())
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + " ".join(line.split()) for line in lines
    )
