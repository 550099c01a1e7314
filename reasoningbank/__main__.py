"""`python -m reasoningbank` is the command line."""

from reasoningbank.cli import main

main()
