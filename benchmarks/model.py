"""A scripted model: it answers, over HTTP, after a fixed time.

It speaks OpenAI's interface on loopback, so that a call costs the client what a real one costs.
Run as a module it is the server: `python -m benchmarks.model SECONDS`, with the script on stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aiohttp import web

__all__ = ["serving"]

#: By question, the replies to its first, second, … turn.
Script = Mapping[str, Sequence[str]]

_TURN = re.compile(r"\[\[ ## iteration ## \]\]\s*(\d+)/")


@contextlib.contextmanager
def serving(script: Script, seconds: float) -> Iterator[str]:
    """Serve the script in a process of its own, and yield its address, ending in ``/v1``.

    Args:
        script: What to answer.
        seconds: How long each answer takes.
    """
    command = [sys.executable, "-m", "benchmarks.model", str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(script) + "\n")
        process.stdin.flush()
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def reply_to(messages: Sequence[Mapping[str, Any]], script: Script) -> str:
    """Return what the script says to the last message.

    Raises:
        LookupError: It says nothing to that.
    """
    asked = str(messages[-1]["content"])
    turn = _TURN.search(asked)
    if turn is None:
        raise LookupError(f"this is no turn: {asked[:200]}")
    question = next(question for question in script if question in asked)
    replies = script[question]
    return replies[min(int(turn[1]), len(replies)) - 1]


def _serve(script: Script, seconds: float) -> None:
    async def complete(request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        began = loop.time()
        asked = await request.json()
        messages = asked["messages"]
        said = reply_to(messages, script)
        sent = sum(len(str(message["content"])) for message in messages) // 4
        usage = {"prompt_tokens": sent, "completion_tokens": len(said) // 4}
        body = {
            "id": "replayed",
            "object": "chat.completion",
            "created": 1,
            "model": asked["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": said},
                }
            ],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }
        await asyncio.sleep(seconds - (loop.time() - began))
        return web.json_response(body)

    async def run() -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


if __name__ == "__main__":
    _serve(json.loads(sys.stdin.readline()), float(sys.argv[1]))
