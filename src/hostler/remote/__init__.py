"""Other machines by ssh: one connection each, and a small Python program at its far end."""
