"""Files of other tools, recognised by their shape and read as sweep files of ours."""
