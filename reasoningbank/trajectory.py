"""What an agent did, as an ordered list of typed events, which only the recorder writes."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

EventKind = Literal[
    "lm_call", "code", "tool_call", "tool_result", "memory_retrieved", "step", "submit", "error"
]

#: Strings longer than this are stored once, by content hash, next to the events.
PAYLOAD_CHARS = 400


@dataclass(frozen=True)
class Event:
    """One event of a trial, `at` seconds after it began, of a duration of `seconds`.

    `data` are JSON-able facts; ``{"$ref": HASH}`` in them refers to a long payload. `parent` is the
    index of the event that this one belongs to, e.g. the code that called a tool.
    """

    index: int
    kind: EventKind
    at: float
    seconds: float = 0.0
    data: Mapping[str, Any] = field(default_factory=dict)
    parent: int | None = None


@dataclass(frozen=True)
class Usage:
    """What a trial consumed. Cached calls are counted separately, since they cost nothing.

    `prompt_tokens` are those sent in calls that reached the model, `cached_prompt_tokens` those of
    them that the server had in its prefix cache; `tool_calls` include failed ones, `iterations` are
    turns of the agent's loop, and `dollars` is None if the price of any call is unknown.
    """

    lm_calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    tool_calls: int = 0
    iterations: int = 0
    seconds: float = 0.0
    dollars: float | None = None

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def unpriced(self) -> bool:
        """Whether a call has no known price; calls from a cache cost nothing."""
        return self.dollars is None and self.lm_calls > 0

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; without a price if either part has calls of unknown price."""
        names = [f.name for f in fields(self) if f.name != "dollars"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        prices = [usage.dollars for usage in (self, other) if usage.dollars is not None]
        # A sum with an unknown part is not a price.
        known = prices and not (self.unpriced or other.unpriced)
        return Usage(**sums, dollars=sum(prices) if known else None)


@dataclass(frozen=True)
class Trajectory:
    """The events of one attempt, with the long payloads they refer to."""

    events: tuple[Event, ...] = ()
    payloads: Mapping[str, str] = field(default_factory=dict)

    def of(self, *kinds: EventKind) -> tuple[Event, ...]:
        """Return the events of the given kinds, in order."""
        return tuple(e for e in self.events if e.kind in kinds)

    def resolve(self, value: Any) -> Any:
        """Return `value` with every payload reference replaced by its text."""
        if isinstance(value, Mapping):
            if set(value) == {"$ref"}:
                return self.payloads.get(str(value["$ref"]), "")
            return {k: self.resolve(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.resolve(v) for v in value]
        return value

    def to_json(self) -> dict[str, Any]:
        return {"events": [asdict(e) for e in self.events], "payloads": dict(self.payloads)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trajectory:
        """Read what `to_json` wrote."""
        events = tuple(Event(**_upgraded(e)) for e in data.get("events", ()))
        return cls(events, dict(data["payloads"]))


#: Repeated code and handles in records of earlier versions, without the fields.
_OLD_REPEATED = "[Repeated]"
_OLD_REF = re.compile(r"Ref\('([^']*)', '([^']*)', (\d+) items from (.*)\)")


def _upgraded(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event of an earlier version with the fields that it lacks."""
    data = event["data"]
    if event["kind"] == "code" and str(data.get("output")).startswith(_OLD_REPEATED):
        return {**event, "data": {"repeated": True, **data}}
    if event["kind"] != "tool_result" or "ref" in data:
        return event
    found = _OLD_REF.fullmatch(str(data.get("result")))
    if found is None:
        return event
    key, dtype, rows, source = found.groups()
    ref = {"key": key, "dtype": dtype, "rows": int(rows), "sz": 0, "source": source}
    return {**event, "data": {**data, "ref": ref}}


class Recorder:
    """Collects the events of one trial; thread-safe."""

    def __init__(
        self,
        redact: list[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        watch: Callable[[Event], None] | None = None,
    ) -> None:
        self._clock = clock
        self._watch = watch
        self._start = clock()
        self._redact = [s for s in redact or () if s]
        self._events: list[Event] = []
        self._payloads: dict[str, str] = {}
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the seconds since the trial began."""
        return self._clock() - self._start

    def add(
        self,
        kind: EventKind,
        data: Mapping[str, Any],
        *,
        seconds: float = 0.0,
        parent: int | None = None,
    ) -> int:
        """Append an event that ends now and return its index."""
        with self._lock:
            stored = self._store(data)
            at = round(max(0.0, self.now() - seconds), 4)
            event = Event(len(self._events), kind, at, round(seconds, 4), stored, parent)
            self._events.append(event)
        self._notify(event)
        return event.index

    def extend(self, index: int, data: Mapping[str, Any], *, seconds: float = 0.0) -> None:
        """Add facts and the duration to the event at `index`."""
        with self._lock:
            data = {**self._events[index].data, **self._store(data)}
            event = replace(self._events[index], data=data, seconds=round(seconds, 4))
            self._events[index] = event
        self._notify(event)

    def trajectory(self) -> Trajectory:
        """Return the events so far."""
        with self._lock:
            return Trajectory(tuple(self._events), dict(self._payloads))

    def _notify(self, event: Event) -> None:
        if self._watch is not None:
            whole = Trajectory(payloads=self._payloads).resolve(event.data)
            self._watch(replace(event, data=whole))

    def _store(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._redact:
                value = value.replace(secret, "[redacted]")
            if len(value) <= PAYLOAD_CHARS:
                return value
            key = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            self._payloads[key] = value
            return {"$ref": key}
        if isinstance(value, Mapping):
            return {str(k): self._store(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._store(v) for v in value]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return self._store(str(value))
