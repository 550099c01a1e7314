"""The version of the package. It stands here only; the build reads it."""

__version__ = "0.2.0"
