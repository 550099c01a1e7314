"""What a model's name means: an embedded model, a GGUF file, or a hosted model of LiteLLM."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.lm.catalogue import CATALOGUE

__all__ = [
    "ModelName",
    "check_hosted",
    "parse_name",
    "providers",
    "sampling_settings",
    "secrets_in_environment",
    "takes_temperature",
]

EXAMPLES = (
    "local, local-small, local:/path/to/model.gguf, openai/gpt-4o-mini, "
    "anthropic/claude-sonnet-4-5, ollama_chat/qwen3"
)

#: Providers that run on the user's own machine and ask for no key.
_KEYLESS = frozenset({"ollama", "ollama_chat", "lm_studio", "hosted_vllm", "vllm", "llamafile"})


@dataclass(frozen=True)
class ModelName:
    """A model's name, understood.

    Attributes:
        text: The name as given.
        kind: ``embedded`` (of the catalogue), ``file`` (a GGUF file) or ``hosted``.
        path: The GGUF file, for kind ``file``.
    """

    text: str
    kind: Literal["embedded", "file", "hosted"]
    path: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether the harness serves the model by itself."""
        return self.kind != "hosted"


def parse_name(text: str) -> ModelName:
    """Understand a model's name; nothing is loaded or asked.

    Args:
        text: ``local``, ``local-small``, ``local:PATH.gguf`` or LiteLLM's ``provider/model``.

    Raises:
        UsageError: The name is empty, or looks like none of these.

    Examples:
        >>> parse_name("local").kind, parse_name("openai/gpt-4o-mini").kind
        ('embedded', 'hosted')
        >>> parse_name("local:~/m.gguf").path.name
        'm.gguf'
        >>> parse_name("locla")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        reasoningbank.errors.UsageError: unknown model 'locla'; name a model like local, ...
    """
    name = text.strip()
    if name in CATALOGUE:
        return ModelName(name, "embedded")
    kind, colon, rest = name.partition(":")
    if kind == "local" and colon and rest:
        return ModelName(name, "file", Path(rest).expanduser())
    if re.fullmatch(r"[A-Za-z0-9_.-]+/\S+", name):
        return ModelName(name, "hosted")
    raise UsageError(f"unknown model {text!r}", hint=f"name a model like {EXAMPLES}")


def check_hosted(name: str, *, api_base: str | None = None, api_key_env: str | None = None) -> None:
    """Find out before a run whether a hosted model can be asked: provider known, key at hand.

    Nothing is sent. With an address of its own the provider's key is neither needed nor used.

    Args:
        name: LiteLLM's ``provider/model``.
        api_base: Address that replaces the provider's.
        api_key_env: Environment variable that holds the key.

    Raises:
        UsageError: LiteLLM knows no such provider.
        SetupError: The key is missing; the message names the variable.
    """
    provider = name.partition("/")[0]
    if provider not in providers():
        raise UsageError(
            f"unknown provider {provider!r} in model {name!r}", hint=f"name a model like {EXAMPLES}"
        )
    if api_key_env:
        if not os.environ.get(api_key_env):
            raise _missing_key(name, api_key_env)
        return
    if api_base or provider in _KEYLESS:
        return
    found: Mapping[str, Any] = _litellm().validate_environment(name)
    # Keys alone are checked: addresses have defaults, and cloud credentials many other homes.
    missing = [k for k in found["missing_keys"] if k.endswith("_API_KEY")]
    if missing and not found["keys_in_environment"]:
        raise _missing_key(name, " or ".join(missing))


def sampling_settings(
    name: str, *, temperature: float | None, seed: int | None
) -> dict[str, float | int | None]:
    """Return the sampling settings that a hosted model takes, without those it would refuse.

    Args:
        name: LiteLLM's ``provider/model``.
        temperature: Wanted temperature; 0 is left out for OpenAI's reasoning models, which
            sample in one way only.
        seed: Wanted seed; left out where the provider has none.
    """
    settings: dict[str, float | int | None] = {"temperature": temperature}
    if temperature == 0 and not takes_temperature(name):
        settings["temperature"] = None
    if seed is not None and "seed" in (_litellm().get_supported_openai_params(name) or ()):
        settings["seed"] = seed
    return settings


def takes_temperature(name: str) -> bool:
    """Say whether a model takes a temperature; OpenAI's reasoning models sample in one way alone.

    Args:
        name: LiteLLM's ``provider/model``, or what `dspy.LM.model` is.

    Examples:
        >>> takes_temperature("openai/gpt-4.1"), takes_temperature("openai/gpt-5-mini")
        (True, False)
        >>> takes_temperature("local/qwen2.5-coder-1.5b-instruct-q4_k_m")
        True
    """
    if name.partition("/")[0] not in {"openai", "azure"}:
        return True
    return not _litellm().supports_reasoning(name)


def secrets_in_environment() -> tuple[str, ...]:
    """Return the values in the environment that look like credentials, for a recorder to redact."""
    marks = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_ACCESS_KEY", "_PASSWORD")
    found = {v for k, v in os.environ.items() if k.upper().endswith(marks) and len(v) >= 8}
    return tuple(sorted(found))


def _missing_key(name: str, variable: str) -> SetupError:
    return SetupError(
        f"the environment variable {variable} is not set",
        where=name,
        hint="set it to your key, or choose --lm local, which needs none",
    )


@functools.cache
def providers() -> frozenset[str]:
    """Return the names of the providers that LiteLLM knows; importing it takes seconds."""
    return frozenset(p.value for p in _litellm().LlmProviders)


def _litellm() -> Any:
    # Takes seconds to import, and only names of hosted models need it.
    import litellm

    return litellm
