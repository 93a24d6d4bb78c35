"""A script that no worker started: it finds, claims, beats for and ends its run by itself."""
