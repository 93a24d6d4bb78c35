"""Workers on machines that a person reaches by ssh: nothing is installed there, nothing is left."""
