"""Learning runs: streams of training tasks, step by step, and frozen banks for the evaluation.

A stream retrieves, solves, judges, distils and consolidates, task after task, and leaves a
snapshot and a file a step; whatever kills it, it goes on after its last whole step. The rest of
the room says which bank a trial sees, and what it is given of it. It is imported only where an
experiment has use for memory.
"""

from reasoningbank.experiment.learning.learner import Learner
from reasoningbank.experiment.learning.session import LearningSession
from reasoningbank.experiment.learning.snapshots import Snapshots
from reasoningbank.experiment.learning.streams import Stream
from reasoningbank.experiment.records import Step, StepFolder

__all__ = ["Learner", "LearningSession", "Snapshots", "Step", "StepFolder", "Stream"]
