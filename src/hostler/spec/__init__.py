"""Jobs and projects as frozen data; files and command lines to data. No I/O but reading those files.

job.py         a job: everything that a worker needs for a sweep's runs
project.py     a project: hostler.yaml as data, its folder, its default store
script.py      words of `hostler run` to a command
notebook.py    a notebook's parameters, and the cell that takes them
argv.py        words and variables of one attempt
resume.py      words of `resume:` that fit a checkpoint
params.py      nested parameters and dotted keys
plain_data.py  arguments and results of functions that run elsewhere
scalars.py     a word to a value, as in YAML
hydra.py       parameters as overrides of Hydra's
inputs.py      parameters that name other runs
reference.py   the words of such a parameter
rounds.py      rounds of a sweep
spans.py       sets of indices in few words
style.py       form of options
together.py    runs that may share a process
methods.py     methods of search and pruning by name
pruning.py     `prune:` as data
ranking.py     the value and the step that a run is ranked by
tracking.py    `trackers:` as data
states.py      states of a run
names.py       names that are safe in keys and labels
folders.py     folder names for runs
nearest.py     the nearest known word, for hints
units.py       durations, sizes and money
parsers/       options that scripts declare
files/         hostler.yaml and sweep files
space/         search spaces
formats/       files of other tools
"""
