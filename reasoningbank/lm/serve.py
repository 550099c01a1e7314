"""Serve one GGUF file on loopback until the parent closes our standard input.

Run as a script, so that it starts without loading the library. It prints one JSON line:
``{"address": …}`` once the model is loaded, or ``{"error": …}``. Its one argument is the JSON of
the settings of a `reasoningbank.lm.server.LocalModel`.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from typing import Any


def main() -> None:
    """Load the model, print the address, and wait for the parent to end."""
    parent = os.getppid()
    settings = json.loads(sys.argv[1])
    # Loading holds the interpreter's lock: a parent that dies meanwhile is noticed afterwards.
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    try:
        # Kept in a variable, since it ends with its last reference.
        server = _server(settings)
        message = {"address": server.listening_address}
    except Exception as error:
        message = {"error": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
    if "error" in message:
        os._exit(1)
    while True:
        time.sleep(3600)


def _server(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.kv_unified = False
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_prompt = True
    # Callers name their slot, which keeps its prefix; a second cache would take up to 8 GiB.
    params.cache_ram_mib = 0
    params.cors_origins = "http://127.0.0.1"
    params.ui = False
    params.offline = True
    params.verbosity = 2  # warnings and errors
    return xllamacpp.Server(params)


def _leave_with(parent: int) -> None:
    # End of file means that the parent is gone. The process number covers the case that a forked
    # child of it still holds the other end of the pipe.
    while os.getppid() == parent:
        ready, _, _ = select.select([sys.stdin], [], [], 1.0)
        if ready and not os.read(sys.stdin.fileno(), 1):
            break
    os._exit(0)


if __name__ == "__main__":
    main()
