"""What a drill's findings are called, and what a person can do about each."""

from __future__ import annotations

WORDS = {
    "position": "weights, optimiser and random states are as they were, and yet it goes on differently: "
    "which data comes next was not restored, or something else that the script keeps in variables",
    "unknown": "something is not restored; nothing that the drill can see in the process says what",
}

_NAMES = {
    "rng|python": "Python's random state (module random)",
    "rng|numpy": "NumPy's random state (np.random)",
    "rng|torch": "torch's random state (CPU)",
    "rng|cuda": "torch's random state (CUDA)",
}
_KINDS = {
    "optimizer": "what the {} has gathered (momentum, averages)",
    "groups": "the settings (learning rate and the like) of the {}",
    "state": "the state of the {}",
    "generator": "the {}",
    "weights": "the weights of the {}",
}

_SAVE = {
    "rng|python": "save random.getstate() with the checkpoint, and random.setstate() it after loading",
    "rng|numpy": "save np.random.get_state() with the checkpoint, and np.random.set_state() it after loading",
    "rng|torch": "save torch.get_rng_state() with the checkpoint, and torch.set_rng_state() it after loading",
    "rng|cuda": "save torch.cuda.get_rng_state_all() with the checkpoint, and set it after loading",
    "generator": "save the generator's state with the checkpoint, and set it after loading",
    "optimizer": "save optimizer.state_dict() with the checkpoint, and load it",
    "groups": "save the state_dict() of optimizer and scheduler with the checkpoint, and load both",
    "state": "save its state_dict() with the checkpoint, and load it",
    "weights": "save and load all weights, whole: write beside and rename",
    "position": "save the position in the data with the checkpoint (epoch and batch), and go on from there",
    "unknown": "compare what the script saves with every variable that one step hands to the next",
    "not-loaded": "at the start, load what lies in $HOSTLER_CHECKPOINT_DIR; or `resume:` in hostler.yaml",
    "skipped": "save the step that was finished, and begin with the one after it",
    "nothing-saved": "write checkpoints to $HOSTLER_CHECKPOINT_DIR and load them at the start; "
    "or hostler.start() and run.track(…)",
    "never-at-rest": "files were written to the checkpoint folder, but never left alone long enough before a "
    "kill to be copied: save earlier, or less often; or hostler.start() and run.track(…)",
    "not-repeatable": "seed random, numpy and torch; PYTHONHASHSEED=0; no nondeterministic kernels",
    "seed": "seed it at the start",
}
_TRACK = {
    "rng": "hostler restores it: does the script seed or draw after start() and before its loop?",
    "generator": "run.track(rng=…) saves it too",
    "optimizer": "run.track(optimizer=…) saves it",
    "groups": "run.track(optimizer=…, scheduler=…) saves them",
    "state": "run.track(scheduler=…) saves it, whatever it is called",
    "weights": "run.track(model=…) saves them",
    "position": "for step in run.steps(n) and run.track(loader=…) keep it",
    "not-loaded": "run.track(…) what must go on, and take the position from run.epochs(n) or run.steps(n)",
    "nothing-saved": "run.track(…) what must go on, and loop over run.epochs(n) or run.steps(n)",
    "never-at-rest": "run.save() earlier",
}


def named(mark: str) -> str:
    kind, _, label = mark.partition("|")
    return _NAMES.get(mark) or _KINDS[kind].format(label)


def advice(about: str, joined: bool) -> str:
    """What to do, for a script that uses the library or one that does not. `about`: a mark or a kind."""
    kind = about.split("|")[0]
    return _TRACK.get(kind, "") if joined and kind in _TRACK else _SAVE.get(about) or _SAVE.get(kind, "")
