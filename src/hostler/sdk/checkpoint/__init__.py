"""Checkpoints of the library: the loop waits only while memory is copied.

checkpointer.py  takes, keeps and restores a training's state, where in a loop that is exact
state.py         everything that belongs into a checkpoint
tracked.py       an object whose state is saved
policy.py        whether a checkpoint is due
interval.py      how often a checkpoint pays
epoch_rng.py     random numbers at the beginning of an epoch
rng.py           states of random number generators
capture.py       state as a JSON tree and tensors, and back; NumPy's values
typed.py         Python values as JSON, exactly
torch_state.py   PyTorch's values
taken.py         a copy of the state at one moment
host_memory.py   the memory block for that copy
writer.py        a thread that writes it
folder.py        checkpoints in the run's folder; reports of ranks to rank 0
part.py          files of one rank, written in pieces
safetensors.py   the safetensors format
best.py          the best value so far
bests.py         states at the best values
"""
