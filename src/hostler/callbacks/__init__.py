"""Runs of hostler's in the loops of other libraries: one small module for each, imported on use.

Each logs, saves where its library's loop can go on exactly, and leaves after a stop request.
"""
