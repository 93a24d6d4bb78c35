"""Trainings that differ only in numbers, as one: stacked weights, one kernel for all.

offer.py       runs of a sweep that can be trained together
alike.py       why two trainings cannot
together.py    several configs to their last rows, as a generator
seated.py      runs that a worker gave to one process
ride.py        carries their trainings out
rider.py       one run among them
places.py      places in a group, kept in checkpoints
alone.py       a training that goes on without its group
group.py       the group, epoch by epoch
stack.py       models stacked by member
layers.py      layers with weights for each member; a convolution as one product over rows
batches.py     examples of each member
steps.py       steps of the whole group
losses.py      loss of each member
optimizer.py   SGD and Adam over stacked parameters
averages.py    averages of each member's weights
evaluation.py  accuracy of each member
"""
