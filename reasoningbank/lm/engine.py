"""How DSPy speaks to the local server: one engine a slot.

DSPy's own routes would do for plain calls, but they cannot name llama.cpp's slot without
going through LiteLLM, and would look up prices on the web for a model that has none.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any, ClassVar

from dspy import lm15

__all__ = ["AsyncLocalEngine", "LocalEngine"]

_PROVIDER = "openai-chat"
#: What llama.cpp says of a prompt longer than the slot's context (error type
#: ``exceed_context_size_error``); DSPy sees only its code 400 and the message.
_TOO_LONG = "exceeds the available context size"


class LocalEngine:
    """Sends each request to one slot of a llama.cpp server.

    It can be copied and pickled; the connection is made on the first call.

    Args:
        address: Base of the OpenAI-compatible interface, ending in ``/v1``.
        slot: The server's slot for these calls.
        timeout_s: Seconds to wait for an answer.
    """

    supports_function_calling: ClassVar[bool] = False
    supports_reasoning: ClassVar[bool] = False
    supports_response_schema: ClassVar[bool] = True
    supported_params: ClassVar[frozenset[str]] = frozenset(
        {"temperature", "max_tokens", "top_p", "stop", "seed", "response_format"}
    )

    def __init__(self, address: str, slot: int, timeout_s: float) -> None:
        self.address = address
        self.slot = slot
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._client: Any = None

    def __reduce__(self) -> tuple[type[LocalEngine], tuple[str, int, float]]:
        return type(self), (self.address, self.slot, self.timeout_s)

    def complete(self, request: Any) -> Any:
        """Answer one `dspy.lm15.Request`."""
        config = request.config
        extensions = {**(config.extensions or {}), "id_slot": self.slot}
        try:
            return self._connected().complete(
                replace(request, model="local", config=replace(config, extensions=extensions))
            )
        except lm15.InvalidRequestError as error:
            if _TOO_LONG in str(error):
                raise lm15.ContextLengthError(str(error), status=400) from error
            raise

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                router = lm15.LMRouter(
                    lm15.RouterConfig(
                        env={},
                        api_keys={_PROVIDER: "none"},
                        base_urls={_PROVIDER: self.address},
                        timeouts=lm15.Timeouts(connect=10.0, read=self.timeout_s),
                    )
                )
                self._client = router.lm(f"{_PROVIDER}:local")
            return self._client


class AsyncLocalEngine:
    """The same for callers on an event loop, which waits in a thread.

    Args:
        engine: The engine that does the work.
    """

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine

    async def complete(self, request: Any) -> Any:
        """Answer one `dspy.lm15.Request`."""
        return await asyncio.to_thread(self.engine.complete, request)
