"""Other machines by ssh: one connection each, and a small Python program at its far end.

target.py       `user@host:port`, or a name of ~/.ssh/config
connection.py   options of the ssh program
opening.py      opens a channel: ssh, Python, hostler, the program
refusal.py      errors of ssh in plain words
boot.py         the far side's first lines: install hostler, start the program
install.py      unpacks zips of hostler, each once, where nobody else can write
standalone.py   a program and all that it uses of hostler as one text
library_zip.py  hostler as one zip
bytecode.py     the bytecode of its modules, for machines that come later
zip_main.py     `__main__` of that zip: a worker
wheels.py       the store driver for another machine's Python
frames.py       messages over a pipe
channel.py      questions to the far end, many at a time
service.py      the far end: answers questions
mirrored.py     the far end of a mirrored folder
jupyter.py      the far end of a notebook
keypair.py      the ssh key of a project
"""
