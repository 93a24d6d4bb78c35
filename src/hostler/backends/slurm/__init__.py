"""Workers as tasks of Slurm job arrays: what is submitted, what the queue says, and how it is undone."""
