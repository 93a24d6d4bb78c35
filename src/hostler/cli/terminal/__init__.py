"""A verb's output and questions.

output.py      rows as JSON, table or plain lines
named_rows.py  runs that a person names, as rows
table.py       the table of runs, live on a terminal
run_columns.py  columns of that table: which there are, what fits
screen.py      colour; columns cut to the terminal's width, redrawn in place
follow.py      follows a run: its log, its exit code
liveness.py    whether a worker is still at a run that is followed
loglines.py    fragments of a log to whole lines
halt_hints.py  why a sweep is halted, and what lifts that
hints.py       whether a worker takes waiting runs; the command that starts one
missing_file.py  a file that a run missed: which rule left it out
ask.py         asks before something cannot be undone
"""
