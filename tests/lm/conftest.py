from __future__ import annotations

from pathlib import Path

import pytest

from .tiny_gguf import write_tiny_gguf


@pytest.fixture(autouse=True)
def _own_cache_and_no_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Keep the user's cache and keys out of the tests, and price tables from the web too."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    if "model" not in request.keywords:
        monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real GGUF model of 100 kB."""
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")
