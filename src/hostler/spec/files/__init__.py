"""hostler.yaml and sweep files to data, every key checked.

parse.py           hostler.yaml to a Project
sweepfile.py       a sweep file to data
entries.py         the forms in which entries may be written
hub_address.py     addresses of a hub, hf://…
tracking_words.py  the forms of `trackers:`
searchable.py      whether method, metric, budget and pruning fit together
yaml12.py          YAML 1.2 and JSON with line numbers
complaint.py       an error with file, line, key and value
otherwords.py      other tools' words for our keys, as hints
"""
