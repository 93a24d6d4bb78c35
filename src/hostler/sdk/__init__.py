"""Inside the user's process: what a training script imports."""
