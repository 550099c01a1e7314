"""Faults that befall a run, acted out on real parts: nothing finished is lost or run twice."""
