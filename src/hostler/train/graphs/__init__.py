"""Steps of a training recorded as CUDA graphs.

graph.py      a step as one graph: whether, after which trial, and what it falls back to
recording.py  work on a GPU recorded and replayed; two courses of a training compared
effects.py    what a step does in Python beside computing
"""
