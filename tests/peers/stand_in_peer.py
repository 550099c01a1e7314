"""A stand-in for a peer in the tests: it speaks the protocol and has no model."""

import json
import os
import sys
import time
from typing import Any


def main() -> None:
    """Answer each line of the input by one of the output."""
    setting = json.loads(sys.stdin.readline())
    say({"ready": True})
    for line in sys.stdin:
        question = json.loads(line)["question"]
        if question == "die":
            sys.exit("it broke here")
        if question == "wait":
            time.sleep(60)
        answers: dict[str, dict[str, Any]] = {
            "none": {"sparql": None, "error": "ValueError: no query"},
            "network": {"error": "no connection", "infrastructure": True},
            "reported": {"sparql": f"ASK {{}} # {os.getpid()} {json.dumps(setting)}"},
        }
        usage = {"lm_calls": 2, "prompt_tokens": 30, "completion_tokens": 4}
        say({"usage": usage, **answers[question]})


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
