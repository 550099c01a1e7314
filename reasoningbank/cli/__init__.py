"""The command line: results on standard output, everything else on standard error.

Exit status is 0 for success, 1 for a failure told in one line, 2 for bad usage.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings

from reasoningbank.errors import EndpointError, ReasoningBankError

__all__ = ["main", "nl2sparql_main"]


#: Exit status after Ctrl-C.
INTERRUPTED = 130


def nl2sparql_main() -> None:
    """Run the translators' command line; the console script `nl2sparql` calls it."""
    main("nl2sparql", "reasoningbank.cli.nl2sparql")


def main(program: str = "reasoningbank", module: str = "reasoningbank.cli.app") -> None:
    """Run a command line; the console script `reasoningbank` calls it.

    Args:
        program: Its name, as errors begin.
        module: The module whose ``app`` it is.
    """
    # litellm would otherwise ask a web server for prices at import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # MLflow would report its use to its makers.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    app = importlib.import_module(module).app
    # rdflib warns of ill-typed literals, which are the data's own affair.
    warnings.filterwarnings("ignore", module="rdflib")
    for name in ("dspy", "LiteLLM", "httpx", "rdflib"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        app()
    except ReasoningBankError as error:
        cause = error.__cause__
        # A tool tells an agent to try again; a person can do more about an endpoint.
        told = cause if isinstance(cause, EndpointError) else error
        print(f"{program}: {told}", file=sys.stderr)
        sys.exit(1)
    except SystemExit as ended:
        # Typer makes this of a KeyboardInterrupt, and says nothing.
        if ended.code == INTERRUPTED:
            goes_on = sys.argv[1:2] in (["run"], ["rerun"]) or sys.argv[1:3] == ["judge", "run"]
            more = "; the same command goes on" if goes_on else ""
            print(f"{program}: interrupted{more}", file=sys.stderr)
        raise
    except BrokenPipeError:
        # The reader of the pipe is gone; the interpreter must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
