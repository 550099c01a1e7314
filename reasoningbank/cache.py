"""Where the package keeps what it brings or computes once."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path

__all__ = ["cache_dir"]


def cache_dir() -> Path:
    """Return the folder for what is kept once: ``REASONINGBANK_CACHE``, or the user's cache."""
    chosen = os.environ.get("REASONINGBANK_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("reasoningbank")
