"""A `dspy.LM` by a model's name, as a run makes one."""

from __future__ import annotations

from typing import Any

import dspy

from reasoningbank.lm import ModelHandle


def make_lm(
    name: str, *, api_base: str | None = None, api_key_env: str | None = None, **settings: Any
) -> dspy.LM:
    """Return the model of a handle; `ModelHandle.lm` has the settings."""
    return ModelHandle(name, api_base=api_base, api_key_env=api_key_env).lm(**settings)
