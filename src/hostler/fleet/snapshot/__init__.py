"""Code and data of a project, packed for machines.

snapshot.py    the code as one archive, named by its content
ignore.py      files that stay at home, by git's rules
tree.py        names, kinds and sizes below a folder
archive.py     a tree as one tar file with reproducible bytes
memo.py        hashes of folders that have not changed
size_limit.py  refuses a tree that is too large for code
secrecy.py     refuses a spec that holds a secret
left_out.py    says why a file is not part of the code
changes.py     files that differ between two snapshots
gitref.py      the commit that `git: URL@ref` means now
data.py        entries of `data:`, local ones uploaded once
progress.py    tells how far a large upload is
mirror.py      keeps a folder of another machine like one here, as a stream of tar at first
"""
