"""The command line: one verb, one short file; a verb's imports happen when it is called."""
