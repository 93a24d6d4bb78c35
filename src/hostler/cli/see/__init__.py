"""Verbs under "See".

verbs.py   their options
ui.py      `hostler ui`: the dashboard
df.py      `hostler df`: all runs as one table
plot.py    `hostler plot`: plots into a file
report.py  `hostler report`: a sweep as an HTML page
metrics.py `hostler metrics`: metrics from stored output
export.py  `hostler export`: past runs into a tracking tool
mcp.py     `hostler mcp`: a server for assistants
"""
