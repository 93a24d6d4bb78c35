"""Packs: the small objects of ended runs, many in one, for stores with a quota of files.

covered_keys.py   keys that a pack may hold, and whose they are
pack_format.py    bytes of packs
seals.py          which runs are packed and where; bytes of that, in pieces
packed_store.py   a store in which packed objects are where they were
packer.py         moves ended runs into packs
due.py            when a sweep is old enough, and the packing of these by itself
"""
