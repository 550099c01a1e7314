"""Models by name: `open_lm` makes one ready for a run, `ModelHandle.lm` gives DSPy one to call.

Repeats of a trial are real repeats: nothing is answered from DSPy's cache unless asked for, since
the records of a run are its cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, ClassVar

import dspy
import httpx
from dspy import lm15

from reasoningbank.errors import SetupError, UsageError, need_package
from reasoningbank.lm.calls import Pacing, RateLimit
from reasoningbank.lm.names import (
    asked_as,
    check_hosted,
    hosted_at,
    parse_name,
    sampling_settings,
    secrets_in_environment,
    takes_temperature,
    weights_named,
)
from reasoningbank.lm.server import SINGLE_ROLES, LocalModel, check_gguf, slot_of
from reasoningbank.lm.weights import require, sha256_of

#: Tokens of an answer of a local model, unless the caller sets them.
LOCAL_MAX_TOKENS = 1024
#: What OpenAI's reasoning models think counts as their answer; DSPy refuses to allow them less.
LEAST_OF_REASONING = 16_000
#: How DSPy's `ChatAdapter` ends a reply; small models go on with a turn of their own.
END_OF_REPLY = "[[ ## completed ## ]]"
#: Environment variable with the address of a server that already serves the local model.
SERVER_VARIABLE = "REASONINGBANK_LM_SERVER"
_PROVIDER = "openai-chat"
#: llama.cpp's message for a prompt longer than the slot's context (error type
#: ``exceed_context_size_error``); DSPy sees only code 400 and the message.
_TOO_LONG = "exceeds the available context size"


@dataclass(frozen=True)
class ModelHandle:
    """A model that is ready for calls, as long as `open_lm`'s block lasts; plain data."""

    name: str  #: The name it was opened by
    #: What decides its answers: model, hash of the weights, versions, settings
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    api_base: str | None = None  #: Address of the interface; None for a provider's own
    #: Environment variable with the key; None for the provider's own, never sent to `api_base`
    api_key_env: str | None = None
    workers: int = 1  #: Solvers that may call at the same time without sharing a slot
    context: int | None = None  #: Tokens that a prompt and its answer may have; None if unknown
    #: Slots of a local server that was already running; None if there is one per role
    slots: int | None = None
    limit: RateLimit | None = None  #: Of its provider; shared by all calls of this process

    def lm(
        self,
        *,
        role: str = "solver",
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        seed: int | None = None,
        rollout_id: int | None = None,
        cache: bool = False,
        num_retries: int | None = None,
        timeout_s: float = 900.0,
        worker: int = 0,
    ) -> dspy.LM:
        """Return a `dspy.LM` for one role.

        Args:
            role: ``solver``, ``judge``, ``distiller`` or ``extractor``, each with a local slot.
            temperature: 0 for the most likely answer; None for the model's own default.
            max_tokens: Tokens an answer may have; None for 1,024 (local) or the provider's default,
                which a reasoning model of OpenAI has if this is less than 16,000.
            seed: Seed of the sampling, if the model accepts one and `temperature` is not 0.
            rollout_id: Distinguishes repeats in DSPy's cache; only with `cache`.
            cache: Whether DSPy may answer from its cache.
            num_retries: Retries after a rate limit, a time-out or a lost connection, with backoff;
                by default 5 for a hosted model and 1 for a local one.
            timeout_s: Seconds to wait for an answer.
            worker: Which of the `workers` calls, from 0.

        Raises:
            UsageError: If a name or setting is wrong, or a local model has no address.
            SetupError: If the key is missing.
        """
        name, base = self.name, self.api_base
        settings: dict[str, Any] = {"cache": cache, "max_tokens": max_tokens}
        if self.limit is not None:
            settings["callbacks"] = [Pacing(name, self.limit)]
        if rollout_id is not None and temperature != 0:
            settings["rollout_id"] = rollout_id
        slot = slot_of(role, workers=self.workers, worker=worker)
        if parse_name(name).is_local:
            if base is None:
                hint = "open it with open_lm(name)"
                raise UsageError("a local model needs its server", where=name, hint=hint)
            # Servers differ in how they handle a slot number that they do not have.
            slot = slot % self.slots if self.slots else slot
            engine = LocalEngine(base.rstrip("/"), slot, timeout_s)
            settings |= {
                "num_retries": 1 if num_retries is None else num_retries,
                "max_tokens": max_tokens or LOCAL_MAX_TOKENS,
                "temperature": temperature,
                "stop": [END_OF_REPLY],
                "engine": engine,
                "async_engine": AsyncLocalEngine(engine),
                **({} if seed is None else {"seed": seed}),
            }
            return dspy.LM(asked_as(name), **settings)
        check_hosted(name, api_base=base, api_key_env=self.api_key_env)
        settings |= sampling_settings(name, temperature=temperature, seed=seed)
        if not takes_temperature(name) and (max_tokens or 0) < LEAST_OF_REASONING:
            settings["max_tokens"] = None
        settings |= {"num_retries": 5 if num_retries is None else num_retries, "timeout": timeout_s}
        if base is not None:
            settings |= {"api_base": base, "api_key": "none"}
        if self.api_key_env:
            settings["api_key"] = os.environ[self.api_key_env]
        try:
            return dspy.LM(name, **settings)
        except (dspy.LMConfigurationError, ValueError, TypeError) as error:
            raise UsageError(str(error), where=name, hint="change the model's settings") from error

    @property
    def secrets(self) -> tuple[str, ...]:
        """Credentials that must never be recorded."""
        own = os.environ.get(self.api_key_env or "", "")
        return tuple(sorted({*secrets_in_environment(), *([own] if own else [])}))


@contextlib.contextmanager
def open_lm(
    name: str,
    *,
    api_base: str | None = None,
    api_key_env: str | None = None,
    workers: int = 1,
    context: int = 8192,
    threads: int | None = None,
    own: bool = False,
) -> Iterator[ModelHandle]:
    """Make a model ready for the length of a block; yields the handle to make `dspy.LM`s from.

    A local model's server is started and stopped, unless `api_base`, or else the environment
    variable ``REASONINGBANK_LM_SERVER``, names a running one that serves this model. For a hosted
    model only name and key are checked; nothing is sent.

    Args:
        name: ``local``, ``local-small``, ``local:PATH.gguf`` or LiteLLM's ``provider/model``.
        api_base: Address of an interface that serves the model.
        api_key_env: Environment variable that holds the key.
        workers: Solvers that will call at the same time.
        context: Tokens of context of a local model, for each role.
        threads: Threads of a local model; by default the available cores.
        own: Whether to start a server even if the environment names one.

    Raises:
        UsageError: If the name is unknown.
        SetupError: If weights or key are missing or wrong, or the server does not start.
    """
    model = parse_name(name)
    if not model.is_local:
        check_hosted(name, api_base=api_base, api_key_env=api_key_env)
        address = api_base or hosted_at(name)
        versions = {"litellm": version("litellm"), "dspy": version("dspy")}
        hosted = {"model": name, "api_base": address, **versions}
        yield ModelHandle(name, hosted, api_base, api_key_env, workers)
        return
    need_package("xllamacpp", "local")
    api_base = api_base or (None if own else os.environ.get(SERVER_VARIABLE)) or None
    path = model.path
    if path is not None:
        check_gguf(path)
        sha256 = sha256_of(path)
    else:
        sha256 = weights_named(model.text).sha256
        path = require(model.text) if api_base is None else None
    alias = f"{model.stem}@{sha256[:12]}"
    fingerprint: dict[str, Any] = {
        "model": model.stem,
        "sha256": sha256,
        "xllamacpp": version("xllamacpp"),
        "context": context,
        "dspy": version("dspy"),
    }
    if api_base is not None:
        api_base = api_base.rstrip("/")
        context, slots, build = _check_served(api_base, alias)
        fingerprint |= {"context": context, "served_by": build}
        spare = max(1, slots - len(SINGLE_ROLES))
        yield ModelHandle(name, fingerprint, api_base, None, spare, context, slots)
        return
    assert path is not None
    with LocalModel(path, alias=alias, workers=workers, context=context, threads=threads) as server:
        fingerprint["threads"] = server.threads
        yield ModelHandle(name, fingerprint, server.address, None, workers, context)


def _check_served(api_base: str, alias: str) -> tuple[int, int, str]:
    """Return context, slots and build of the server there; raise if it serves another model."""
    try:
        address = f"{api_base.removesuffix('/v1')}/props"
        answer = httpx.get(address, timeout=10, trust_env=False).raise_for_status().json()
        served = str(answer["model_alias"])
        context = int(answer["default_generation_settings"]["n_ctx"])
        slots = int(answer["total_slots"])
        build = f"llama.cpp {answer.get('build_info') or 'of an unknown build'}"
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        what = f"no local model server answers there ({type(error).__name__})"
        hint = "start one with `reasoningbank lm serve`, or leave the address out"
        raise SetupError(what, where=api_base, hint=hint, code="no-model-server") from error
    if served != alias:
        what, hint = f"it serves {served}, not {alias}", "name the model that is served, or leave"
        raise SetupError(what, where=api_base, hint=f"{hint} the address out", code="other-model")
    return context, slots, build


@dataclass(frozen=True)
class LocalEngine:
    """DSPy's engine for one slot of a llama.cpp server; it can be copied and pickled."""

    supports_function_calling: ClassVar[bool] = False
    supports_reasoning: ClassVar[bool] = False
    supports_response_schema: ClassVar[bool] = True
    supported_params: ClassVar[frozenset[str]] = frozenset(
        {"temperature", "max_tokens", "top_p", "stop", "seed", "response_format"}
    )
    address: str
    slot: int
    timeout_s: float

    def complete(self, request: Any) -> Any:
        config = request.config
        extensions = {**(config.extensions or {}), "id_slot": self.slot}
        try:
            return _client(self.address, self.timeout_s, os.getpid()).complete(
                replace(request, model="local", config=replace(config, extensions=extensions))
            )
        except lm15.InvalidRequestError as refusal:
            if _TOO_LONG in (said := str(refusal)):
                raise lm15.ContextLengthError(said, status=400) from refusal
            raise


@functools.lru_cache(maxsize=16)
def _client(address: str, timeout_s: float, _pid: int) -> Any:
    router = lm15.LMRouter(
        lm15.RouterConfig(
            env={},
            api_keys={_PROVIDER: "none"},
            base_urls={_PROVIDER: address},
            timeouts=lm15.Timeouts(connect=10.0, read=timeout_s),
        )
    )
    return router.lm(f"{_PROVIDER}:local")


@dataclass(frozen=True)
class AsyncLocalEngine:
    """`LocalEngine` for callers on an event loop; it waits in a thread."""

    engine: LocalEngine

    async def complete(self, request: Any) -> Any:
        return await asyncio.to_thread(self.engine.complete, request)


class PlainAdapter(dspy.Adapter):  # type: ignore[misc]
    """Writes a signature with one input and one output as a plain chat, without field names.

    No small model was trained on the markers of `dspy.ChatAdapter`: with the same examples the 1.5B
    model copied the nearest query instead of answering.
    """

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        return str(signature.instructions)

    def format_user_message_content(
        self, signature: type[dspy.Signature], inputs: dict[str, Any], *_: Any, **__: Any
    ) -> str:
        (name,) = signature.input_fields
        return str(inputs[name])

    def format_assistant_message_content(
        self, signature: type[dspy.Signature], outputs: dict[str, Any], *_: Any, **__: Any
    ) -> str:
        (name,) = signature.output_fields
        return str(outputs[name])

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        (name,) = signature.output_fields
        return {name: completion}
