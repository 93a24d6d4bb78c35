"""Trainings that differ only in numbers, as one: stacked weights, one kernel for all."""
