"""What came out, read back from a store: needs its address and nothing else."""
