"""Results read back from a store: needs its address and nothing else.

frame.py      all runs of a store as a data frame, one row each
curves.py     every point of every run, in long form
reading.py    reads one sweep: cache, new segments, then single runs and their long curves
cache.py      rows of a sweep kept on this machine's disk
stack.py      runs of one sweep as columns, their curves as slices
sheet.py      names the columns of a frame and joins sweeps
thin.py       a long curve as few points that look the same
filters.py    conditions on columns that choose rows
chosen.py     sweeps and metrics that were asked for, checked
names.py      names of columns; the best value of a metric
tables.py     columns as pandas or polars
export.py     frames as CSV or Parquet files
live_folder.py  files of all runs in a folder, as they grow
live_table.py   a table in a notebook that follows a sweep
foreign.py    runs of tracking tools as rows of a frame
codediff.py   code of two runs, file by file
spend.py      money of fleets, reserved and spent
purposes.py   money of launches by purpose
plain.py      values of any kind as JSON
damage_report.py  warnings about runs that could not be read
board/        the dashboard
plots/        plots of runs
report/       a sweep as one HTML page
"""
