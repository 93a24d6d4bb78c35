"""`hostler mcp`: what assistants may ask of a store, by the Model Context Protocol.

tools.py    the tools: their arguments, and the verb that answers each
reading.py  curves and files of runs, which no verb prints as JSON
answers.py  answers: cut to a size, and marked as data
server.py   the server on standard input and output; the only importer of mcp
"""
