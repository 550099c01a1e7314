"""Serve one GGUF file on loopback until the starter closes our standard input.

Run as a file of its own, not as a module, so that it starts without loading the library. It
prints one JSON line: ``{"address": …}`` once the model is loaded, or ``{"error": …}``. The
settings come as one JSON argument, the fields of `reasoningbank.lm.server.Settings`.
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
    """Load the model, tell the address, and wait for the starter to go."""
    starter = os.getppid()
    settings = json.loads(sys.argv[1])
    # Loading holds the interpreter's lock: a starter that dies meanwhile is noticed after it.
    threading.Thread(target=_leave_with, args=(starter,), daemon=True).start()
    try:
        server = _server(settings)
        _tell({"address": server.listening_address})
    except Exception as error:
        _tell({"error": str(error) or type(error).__name__})
        os._exit(1)
    while True:
        time.sleep(3600)


def _server(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = settings["port"]
    params.n_parallel = settings["slots"]
    params.n_ctx = settings["slots"] * settings["context"]
    params.kv_unified = False
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.cache_prompt = True
    # Callers name their slot, which keeps its prefix; a second cache beside the slots would
    # take up to 8 GiB and bring nothing.
    params.cache_ram_mib = 0
    params.cors_origins = "http://127.0.0.1"
    params.ui = False
    params.offline = True
    params.verbosity = 2  # warnings and errors
    return xllamacpp.Server(params)


def _leave_with(starter: int) -> None:
    # End of file tells that the starter is gone, however it went; the parent's number covers
    # the case that a forked child of it still holds the other end of the pipe.
    while os.getppid() == starter:
        ready, _, _ = select.select([sys.stdin], [], [], 1.0)
        if ready and not os.read(sys.stdin.fileno(), 1):
            break
    os._exit(0)


def _tell(message: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
