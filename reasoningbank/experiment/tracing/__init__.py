"""A run in MLflow: one MLflow run, one trace a trial, made from the records.

The package ``mlflow`` is imported when a run is traced, not before, and nothing global is set:
neither its tracking address nor DSPy's callbacks.
"""

from reasoningbank.experiment.tracing.tracer import mlflow_tracer

__all__ = ["mlflow_tracer"]
