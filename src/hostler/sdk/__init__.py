"""Inside the user's process: a run, its log, its checkpoints. Standard library only."""
