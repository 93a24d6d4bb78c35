"""Files of runs in the store.

checkpoints.py     checkpoints of a run: files first, COMMIT last
bundle.py          small files in one object
selection.py       one of the kept checkpoints, by its step or the run's metric
ranked_weights.py  the weights that a run is ranked by
saved_folder.py    a checkpoint that the library wrote, as a folder
tree.py            a folder as a list of files with hashes
parts.py           a large file as several objects
restorer.py        files of the store into a new folder
outputs.py         files that a run left
bulk.py            large data under its hash
archive.py         the best N models over all sweeps
archive_files.py   files of an archived model, into a folder
"""
