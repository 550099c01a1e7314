"""A trial's record as rows of the frames."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reasoningbank.analysis.cell_text import error_form, json_of, text_of
from reasoningbank.analysis.memory_rows import retrieval_rows, shown_items
from reasoningbank.experiment import TrialRecord
from reasoningbank.trajectory import Event

__all__ = ["OUTCOMES", "Row", "trial_rows"]

Row = dict[str, Any]

#: What can become of a trial, best first; the last two are not judged.
OUTCOMES = (
    "right",
    "partly right",
    "wrong rows",
    "wrong form",
    "query timeout",
    "query error",
    "no query",
    "gold defect",
    "infrastructure error",
)

_VERDICTS = {
    "wrong_form": "wrong form",
    "query_timeout": "query timeout",
    "query_error": "query error",
    "no_query": "no query",
    "gold_defect": "gold defect",
}

#: A handle as tools return it and as the records hold it.
_HANDLE = re.compile(r"Ref\('([^']+)', '[^']*', (\d+) ")


def trial_rows(
    record: TrialRecord, run: str, file: str, arm: Mapping[str, Any], *, texts: bool
) -> Iterator[tuple[str, Row]]:
    """Yield the rows that a trial puts into the frames, each with the frame's name.

    Args:
        record: The trial.
        run: Name of its run.
        file: Its file, relative to the run's folder.
        arm: What the manifest says of its arm; may be empty.
        texts: Whether to resolve and include long texts.
    """
    key = record.key
    keys: Row = {"run": run, "arm": key.arm, "task": key.task, "seed": key.seed}
    judged = _judged(record)
    calls = list(_tool_calls(record, texts=texts))
    failed = sum(not call["ok"] for call in calls)
    yield "trials", keys | _trial(record, arm, judged, failed) | {"file": file}
    for event, turn in _turns(record):
        yield "events", keys | _event(record, event, turn, texts=texts)
        if event.kind == "lm_call":
            yield "lm_calls", keys | _lm_call(record, event, turn, texts=texts)
        elif event.kind == "memory_retrieved":
            for frame, row in retrieval_rows(record, event):
                yield frame, keys | row
    for call in calls:
        yield "tool_calls", keys | call
    for judge, words in record.judgements.items():
        strict = record.strict if judged else None
        yield "judgements", keys | {"judge": judge, "strict": strict} | _judgement(words)


def _judged(record: TrialRecord) -> bool:
    return record.verdict is not None and record.verdict.get("status") != "gold_defect"


def _outcome(record: TrialRecord) -> str:
    if record.verdict is None:
        return "infrastructure error"
    status = str(record.verdict.get("status", "judged"))
    if status != "judged":
        return _VERDICTS.get(status, status)
    if record.strict:
        return "right"
    return "partly right" if record.f1 > 0 else "wrong rows"


def _trial(record: TrialRecord, arm: Mapping[str, Any], judged: bool, failed: int) -> Row:
    verdict, usage = record.verdict or {}, record.usage
    scores = verdict if judged else {}
    return {
        "step": record.step,
        "group": record.group,
        "complexity": record.complexity,
        "form": record.form,
        "question": record.question,
        "agent": arm.get("agent"),
        "lm": arm.get("lm"),
        "model": record.model.get("model"),
        "memory": record.memory or None,
        "items_shown": len(shown_items(record)),
        "started": record.started,
        "status": record.status,
        "error": record.error or None,
        "verdict": verdict.get("status"),
        "reason": verdict.get("reason") or None,
        "outcome": _outcome(record),
        "judged": judged,
        "strict": bool(scores.get("strict")) if judged else None,
        "lenient": bool(scores.get("lenient")) if judged else None,
        **{name: scores.get(name) for name in ("precision", "recall", "f1")},
        "n_gold": verdict.get("n_gold"),
        "n_predicted": verdict.get("n_predicted"),
        "sparql": record.sparql,
        "gold": record.gold or None,
        "lm_calls": usage.lm_calls,
        "cached_calls": usage.cached_calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_prompt_tokens": usage.cached_prompt_tokens,
        "tokens": usage.tokens,
        "tool_calls": usage.tool_calls,
        "tool_errors": failed,
        "turns": usage.iterations,
        "seconds": usage.seconds,
        "judge_seconds": record.judge_seconds,
        "dollars": usage.dollars,
        "attempts": 1 + len(record.rollouts),
        "tries": record.tries,
        "answer": record.answer or None,
    }


def _turns(record: TrialRecord) -> Iterator[tuple[Event, int]]:
    # Judges and distillers call models too; turns are the agent's alone.
    turn = 0
    for event in record.trajectory.events:
        if event.kind == "lm_call" and event.data.get("role", "solver") == "solver":
            turn += 1
        yield event, turn


def _event(record: TrialRecord, event: Event, turn: int, *, texts: bool) -> Row:
    data = event.data
    tool = data.get("tool")
    if event.kind == "tool_result" and event.parent is not None:
        tool = record.trajectory.events[event.parent].data.get("tool")
    row: Row = {
        "event": event.index,
        "kind": event.kind,
        "turn": turn,
        "parent": event.parent,
        "at": event.at,
        "seconds": event.seconds,
        "tool": tool,
        "error": text_of(record.trajectory.resolve(data.get("error"))),
    }
    if texts:
        row["data"] = json_of(record.trajectory.resolve(data))
    return row


def _lm_call(record: TrialRecord, event: Event, turn: int, *, texts: bool) -> Row:
    data = event.data
    plain = ("role", "model", "prompt_tokens", "completion_tokens", "cached_prompt_tokens",
             "dollars", "prompt_s", "generation_s")  # fmt: skip
    row: Row = {name: data.get(name) for name in plain}
    row |= {
        "event": event.index,
        "turn": turn,
        "at": event.at,
        "seconds": event.seconds,
        "from_cache": bool(data.get("from_cache")),
        "finish_reason": data.get("finish_reason") or None,
        "error": text_of(record.trajectory.resolve(data.get("error"))),
    }
    if texts:
        row["messages"] = json_of(record.trajectory.resolve(data.get("messages")))
        row["response"] = text_of(record.trajectory.resolve(data.get("response")))
    return row


def _tool_calls(record: TrialRecord, *, texts: bool) -> Iterator[Row]:
    trajectory = record.trajectory
    results = {e.parent: e for e in trajectory.of("tool_result") if e.parent is not None}
    made: list[str] = []
    order = 0
    for event, turn in _turns(record):
        if event.kind != "tool_call":
            continue
        arguments = trajectory.resolve(event.data.get("arguments"))
        told = results.get(event.index)
        data = trajectory.resolve(told.data) if told is not None else {}
        error = text_of(data.get("error"))
        result = data.get("result") if "result" in data else None
        handle = _HANDLE.match(result) if isinstance(result, str) else None
        text = None if result is None else json_of(result)
        row: Row = {
            "event": event.index,
            "order": order,
            "turn": turn,
            "tool": str(event.data.get("tool", "")),
            "at": event.at,
            "seconds": told.seconds if told is not None else None,
            "ok": told is not None and error is None,
            "error": error,
            "error_form": error_form(error) if error else None,
            "infrastructure": bool(data.get("infrastructure")),
            "opened": " ".join(_opened(arguments, made)) or None,
            "made": handle[1] if handle else None,
            "rows": int(handle[2]) if handle else None,
            "result_chars": None if text is None else len(text),
        }
        if texts:
            row |= {"arguments": json_of(arguments), "result": text}
        if handle:
            made.append(handle[1])
        order += 1
        yield row


def _opened(value: Any, made: list[str]) -> Iterator[str]:
    """Yield the handles in arguments, given as such or by their key, each once."""
    found: list[str] = []
    values = value.values() if isinstance(value, Mapping) else value
    for part in values if isinstance(values, (list, tuple)) or values is not value else (value,):
        if isinstance(part, str):
            handles = [match[1] for match in _HANDLE.finditer(part)]
            found += handles or ([part] if part in made else [])
        elif isinstance(part, (Mapping, list)):
            found += _opened(part, made)
    yield from dict.fromkeys(found)


def _judgement(words: Mapping[str, Any]) -> Row:
    usage = words.get("usage") or {}
    tokens = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    success = words.get("success")
    return {
        "success": success if isinstance(success, bool) else None,
        "confidence": words.get("confidence"),
        "seconds": words.get("seconds"),
        "tokens": sum(n or 0 for n in tokens) if any(n is not None for n in tokens) else None,
        "dollars": usage.get("dollars"),
        "reason": words.get("reason"),
    }
