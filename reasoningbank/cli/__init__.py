"""The command line: results on standard output, everything else on standard error.

Exit status is 0 for success, 1 for a failure told in one line, 2 for bad usage.
"""

from __future__ import annotations

import logging
import os
import sys

from reasoningbank.errors import EndpointError, ReasoningBankError

__all__ = ["main"]


#: Exit status after Ctrl-C.
INTERRUPTED = 130


def main() -> None:
    """Run the command line; the console script `reasoningbank` calls it."""
    # litellm would otherwise ask a web server for prices at import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # MLflow would report its use to its makers.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from reasoningbank.cli.app import app

    for name in ("dspy", "LiteLLM", "httpx", "rdflib"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        app()
    except ReasoningBankError as error:
        cause = error.__cause__
        # A tool tells an agent to try again; a person can do more about an endpoint.
        told = cause if isinstance(cause, EndpointError) else error
        print(f"reasoningbank: {told}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as ended:
        # Typer makes this of a KeyboardInterrupt, and says nothing.
        if ended.code == INTERRUPTED:
            print("reasoningbank: interrupted; the same command goes on", file=sys.stderr)
        raise
    except BrokenPipeError:
        # The reader of the pipe is gone; the interpreter must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
