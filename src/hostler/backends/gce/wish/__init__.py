"""Wishes: machines and places that a fleet leaves to be chosen, by price.

wishes.py   a fleet's wish
choice.py   machines that fit a wish, by price; and why others do not
chosen.py   candidates of a fleet by this machine's table, and their words
larger.py   a machine with a larger GPU, asked for by a VM of the launch
places.py   zones, regions, continents; the way of data to them
quotas.py   quotas of a project
buckets.py  where a bucket is
limits.py   rules of custom machine types, GPUs and disks
"""
