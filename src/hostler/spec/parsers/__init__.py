"""Options that a script's own parser declares, read from its source: never imported, never run.

An option that cannot be read for sure is unknown, and nothing is guessed about it.

declarations.py    a command's script to its declarations
option.py          an option, and the declarations of a script
sources.py         the statements that a script runs: its own, and those of modules that it imports
values.py          constants and callables in source
argparse_calls.py  `add_argument` calls, `add_option` calls of optparse
subcommands.py     calls of argparse's sub-commands that a command does not name
default_tables.py  options that a loop makes of a table of defaults
getopt_calls.py    `getopt.getopt` of Python
click_options.py   decorators of click, signatures of typer
class_fields.py    fields of classes that tyro and Tap make options of
whole_scripts.py   libraries that read all options one way: absl, Fire, HfArgumentParser, configurators
shell_options.py   `getopts` and `case` of shell scripts
usage_errors.py    a usage error to the form that the parser wants
"""
