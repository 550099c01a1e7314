"""Faults of runs, caused on real parts: nothing finished is lost or run twice."""
