"""Names our key for a word of another tool or of habit, as a hint for an unknown key."""

from __future__ import annotations

from collections.abc import Iterable

# how it is written here → other names of it
ELSEWHERE = {
    "budget: {runs: N}": "runs trials n_trials num_trials max_trials num_samples samples count run_cap",
    "method: grid, random, tpe, …": "search sampler algorithm strategy tuner",
    "parameters: {lr: [0.1, 0.01]}": "space search_space param_space params hyperparameters grid",
    "command: python train.py": "program script entrypoint run cmd",
    "metric: {name: val/loss, goal: min}": "objective monitor optimize",
    "goal: max, or in a sweep metric: {name: …, goal: max}": "direction mode",
    "prune: asha": "early_stopping early_terminate pruner scheduler",
    "parallel: N": "concurrency max_concurrent max_parallel n_jobs",
    "repeat: N": "repeats replicates n_seeds",
    "resources: {gpus: 1, cpus: 4, memory: 16GB}": "gpus gpu cpus memory nodes",
    "limits: {time: 2h}": "timeout time_limit walltime max_time",
    "retries: N": "max_retries restarts max_restarts",
    "env: {NAME: value}": "envs environment env_vars",
    "python: {requirements: requirements.txt}": "requirements conda venv",
}
HERE = {word: here for here, words in ELSEWHERE.items() for word in words.split()}


def meant(word: str) -> str:
    """Our key for another tool's word; '' if it is not one."""
    return HERE.get(word, "").partition(":")[0]


def said_here(word: str, known: Iterable[str]) -> str:
    """How to write it, where its key is one of the known; else nothing."""
    return f"write {HERE[word]}" if meant(word) in known else ""
