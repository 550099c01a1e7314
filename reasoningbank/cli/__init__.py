"""The command line: results on standard output, everything else on standard error.

Exit status is 0 for success, 1 for a failure (one line on standard error), 2 for bad usage.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings

from reasoningbank.errors import EndpointError, ReasoningBankError, missing_package

__all__ = ["main", "nl2sparql_main"]


#: Exit status after Ctrl-C.
INTERRUPTED = 130


def nl2sparql_main() -> None:
    """Run the console script `nl2sparql`."""
    main("nl2sparql", "reasoningbank.cli.nl2sparql")


def main(program: str = "reasoningbank", module: str = "reasoningbank.cli.app") -> None:
    """Run the console script `reasoningbank`, or another one, whose module holds an ``app``."""
    # litellm would otherwise fetch prices from the web at import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # MLflow would send telemetry.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    app = importlib.import_module(module).app
    # rdflib warns about ill-typed literals in the data.
    warnings.filterwarnings("ignore", module="rdflib")
    # DSPy sets the level of `dspy` itself when it is imported, later.
    parts = ("adapters", "clients", "evaluate", "predict", "primitives", "teleprompt", "utils")
    for name in (*(f"dspy.{part}" for part in parts), "LiteLLM", "httpx", "rdflib"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        try:
            app()
        except ModuleNotFoundError as error:
            raise missing_package(error) from error
    except ReasoningBankError as error:
        cause = error.__cause__
        # A tool's error is for agents; the endpoint's error behind it is for people.
        shown = cause if isinstance(cause, EndpointError) else error
        print(f"{program}: {shown}", file=sys.stderr)
        raise SystemExit(1) from shown
    except SystemExit as ended:
        # Typer turns a KeyboardInterrupt into this silently.
        if ended.code == INTERRUPTED:
            resumable = sys.argv[1:2] in (["run"], ["rerun"]) or sys.argv[1:3] == ["judge", "run"]
            more = "; the same command resumes" if resumable else ""
            print(f"{program}: interrupted{more}", file=sys.stderr)
        raise
    except BrokenPipeError:
        # The reader of the pipe is gone; the interpreter must not complain at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
