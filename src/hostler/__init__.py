"""hostler: takes a training script and runs it, once or ten thousand times, and never loses a run."""

__version__ = "0.1.0"
