"""Trainings that differ only in numbers, as one: stacked weights, one kernel for all.

offer.py           runs of a sweep that can be trained together
alike.py           why two trainings cannot
together.py        several configs to their last rows, as a generator
seated.py          runs that a worker gave to one process
lasting.py         what that keeps for the next ones
ride.py            carries their trainings out
rider.py           one run among them
places.py          places in a group, kept in checkpoints
alone.py           a training that goes on without its group
group.py           the group, epoch by epoch
stack.py           models stacked by member
layers.py          layers with weights for each member
convolutions.py    a convolution as one product over rows
kernels.py         whether there are faster kernels for a tensor
triton_kernels.py  these kernels
dropout.py         dropout with numbers of each member's own
batches.py         examples of each member
steps.py           steps of the whole group
losses.py          loss of each member
optimizer.py       SGD, Adam and LAMB over stacked parameters
scaling.py         losses scaled for 16 bits, a scale for each member
averages.py        averages of each member's weights
evaluation.py      accuracy of each member
"""
