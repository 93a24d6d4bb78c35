"""Meaning over bytes: the protocol. Who runs what, how far it is, what came out."""
