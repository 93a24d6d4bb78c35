"""Data sets by name, and the batches of a training as a pure function of seed and step."""
