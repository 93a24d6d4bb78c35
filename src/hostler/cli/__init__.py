"""The command line: options of verbs in `<heading>/verbs.py`, the body of each verb in a file of its own.

entry.py       the entry point: answers `hostler --help`, leaves everything else to main.py
main.py        finds the verb, turns errors into one line and an exit code
overview.py    the table of verbs, and the text of `hostler --help`
here.py        project and store of the current folder
options.py     options that several verbs share; imports the module of a verb and calls it
completing.py  names that a shell completes
extras.py      says which package a verb lacks
begin/         init, import, doctor, demo, completion
run/           run, sweep, plan, simulate, train, drill
look/          status, show, logs, best, diff, errors, cost, wait, attach
see/           ui, df, plot, report, export, mcp
steer/         stop, pause, resume, retry, parallel, tag, rm
keep/          archive, pull, push, gc
machines/      up, down, ssh, sync, notebook, image
assistants/    the server of `hostler mcp`
hubs/          model cards, and places that take them
doctor/        the checks of `hostler doctor`
terminal/      tables, colour, questions, following a run
"""
