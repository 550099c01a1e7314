"""What is not collected here."""

#: Only the processes of the runs have use for what it imports.
collect_ignore = ["warm.py"]
