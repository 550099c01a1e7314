"""The endpoints that queries are checked against: the same as those of the tools."""

from tools.conftest import bare, foreign, sample, uniprot

__all__ = ["bare", "foreign", "sample", "uniprot"]
