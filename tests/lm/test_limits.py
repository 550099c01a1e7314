"""Calls wait for the provider's limit, counted at the server."""

from __future__ import annotations

import copy
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from reasoningbank.http import Gate
from reasoningbank.lm import ModelHandle, RateLimit
from reasoningbank.lm.calls import model_gate

from .scripted import chat, scripted


@pytest.mark.parametrize(
    ("limit", "apart"),
    [
        (RateLimit(requests=300), 0.2),
        # Each call uses 30 + 10 tokens, as expected: 24 / 4 + 34.
        (RateLimit(tokens=12_000), 0.2),
        (RateLimit(requests=6_000, tokens=12_000), 0.2),
    ],
)
def test_all_that_call_a_model_share_its_limit(limit: RateLimit, apart: float) -> None:
    name = f"openai/limited-{limit.requests}-{limit.tokens}"
    with scripted(chat("x", prompt_tokens=30, completion_tokens=10, total_tokens=40)) as server:
        handle = ModelHandle(name, api_base=server.base, limit=limit)
        lms = [handle.lm(role=role, max_tokens=34) for role in ("solver", "judge", "solver")]
        lms.append(copy.deepcopy(lms[0]))

        def call(number: int) -> float:
            lms[number % len(lms)]("012345678901234567890123")
            return time.monotonic()

        with ThreadPoolExecutor(6) as pool:
            began = time.monotonic()
            ended = sorted(pool.map(call, range(6)))
        assert len(server.asked) == 6
        # Never sooner; a busy machine may be later.
        for number, at in enumerate(ended):
            assert at - began >= apart * number


def test_a_call_is_corrected_by_what_it_used() -> None:
    with scripted(chat("x", prompt_tokens=1, completion_tokens=1, total_tokens=2)) as server:
        handle = ModelHandle("openai/brief", api_base=server.base, limit=RateLimit(tokens=600))
        # Expected to use 600 tokens, a minute's worth.
        handle.lm(max_tokens=600)("say x")
    # Without the correction the next turn would be a minute away, which is refused.
    model_gate("openai/brief").start(0.0, time.monotonic() + 30)


def test_a_turn_beyond_the_time_there_is_is_refused() -> None:
    gate = Gate()
    gate.start(60.0)
    with pytest.raises(TimeoutError):
        gate.start(0.0, time.monotonic() + 1)


def test_a_model_without_limit_waits_for_none() -> None:
    assert not ModelHandle("openai/free", api_base="http://127.0.0.1:9/v1").lm().callbacks
